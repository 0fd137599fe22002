//! Tests of the symbol search on generated files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use recrep_format::build_id::BuildId;

use crate::query::SymbolOptions;
use crate::symbols::elf::test_elf::{TestElf, function};
use crate::symbols::{FileId, Loaded, Module, ModuleKind, Origin, Refusal, Resolver, Source};

const ID: [u8; 20] = [0xab; 20];

/// Writes `elf` to `path` below `root` and returns the whole path as a module has it.
fn write(root: &Path, path: &str, elf: &TestElf) -> Vec<u8> {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, elf.build()).unwrap();
    path.to_str().unwrap().into()
}

fn full() -> TestElf {
    TestElf { symtab: vec![function("inner", 0x1100, 8)], build_id: Some(ID), ..TestElf::default() }
}

fn stripped() -> TestElf {
    let dynsym = vec![function("exported", 0x1000, 8)];
    TestElf { dynsym, build_id: Some(ID), debug_link: Some("p.debug"), ..TestElf::default() }
}

fn debug() -> TestElf {
    TestElf { debug_only: true, ..full() }
}

/// A file mapped on this machine, as the kernel records it: by build ID, or by device and inode.
fn mapped(path: &[u8], id: Option<&[u8]>) -> Module {
    let module =
        Module::new(path, id.and_then(BuildId::new), ModuleKind::File).on(&Origin::here().into());
    let metadata = fs::metadata(module.as_path()).ok().filter(|_| id.is_none());
    Module { file: metadata.as_ref().map(FileId::from), ..module }
}

fn load(path: &[u8], id: Option<&[u8]>, options: SymbolOptions) -> Arc<Loaded> {
    Resolver::new(options).load(&mapped(path, id))
}

fn name_at(loaded: &Loaded, address: u64) -> Option<String> {
    Some(loaded.name(loaded.table.find(address)?).unwrap().into_owned())
}

#[test]
fn a_file_with_symbols_needs_no_further_search() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), "p", &full());
    for id in [Some(&ID[..]), None] {
        let loaded = load(&path, id, SymbolOptions::default());
        assert_eq!(name_at(&loaded, 0x1107).as_deref(), Some("inner"));
        assert_eq!(loaded.outcome.attempts.len(), 1);
        assert!(!loaded.outcome.dynamic_only);
    }
}

#[test]
fn a_file_that_is_rewritten_while_its_names_are_in_use_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let name = "n".repeat(1 << 17).leak();
    let path =
        write(root.path(), "p", &TestElf { symtab: vec![function(name, 0x1100, 8)], ..full() });
    let resolver = Resolver::new(SymbolOptions::default());
    let module = mapped(&path, Some(&ID));
    assert_eq!(name_at(&resolver.load(&module), 0x1100).as_deref(), Some(&*name));
    assert!(resolver.check_unchanged().is_ok());
    fs::write(module.as_path(), "new").unwrap();
    let changed = resolver.check_unchanged().unwrap_err().to_string();
    assert!(changed.contains("cannot read p: another process changed it"));
}

#[test]
fn a_debug_link_is_followed_to_a_file_with_the_same_build_id() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), "p", &stripped());
    let without = load(&path, None, SymbolOptions::default());
    assert_eq!(name_at(&without, 0x1000).as_deref(), Some("exported"));
    assert!(without.outcome.dynamic_only);
    write(root.path(), "p.debug", &TestElf { build_id: Some([1; 20]), ..debug() });
    write(root.path(), ".debug/p.debug", &debug());
    let with = load(&path, None, SymbolOptions::default());
    assert_eq!(name_at(&with, 0x1100).as_deref(), Some("inner"));
    assert!(matches!(with.outcome.attempts[0].result, Err(Refusal::BuildIdMismatch { .. })));
    let found: Vec<_> = with.outcome.found().map(|attempt| attempt.source).collect();
    assert_eq!(found, [Source::DebugLink]);
}

#[test]
fn another_version_of_the_file_is_refused_and_the_cached_one_is_used() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), "p", &TestElf { build_id: Some([2; 20]), ..full() });
    let options =
        SymbolOptions { build_id_dir: Some(root.path().join("cache")), ..SymbolOptions::default() };
    let refused = load(&path, Some(&ID), options.clone());
    assert!(refused.table.is_empty());
    assert!(matches!(refused.outcome.attempts[0].result, Err(Refusal::BuildIdMismatch { .. })));
    write(root.path(), &format!("cache/.build-id/ab/{}/elf", "ab".repeat(19)), &full());
    let found = load(&path, Some(&ID), options);
    assert_eq!(name_at(&found, 0x1100).as_deref(), Some("inner"));
    let nameless = write(root.path(), "q", &TestElf { build_id: None, ..full() });
    let unknown = load(&nameless, Some(&ID), SymbolOptions::default());
    assert!(matches!(unknown.outcome.attempts[0].result, Err(Refusal::NoBuildId { .. })));
}

#[test]
fn padded_build_ids_are_the_same() {
    let root = tempfile::tempdir().unwrap();
    let mut id = ID;
    id[16..].fill(0);
    let path = write(root.path(), "p", &TestElf { build_id: Some(id), ..full() });
    assert!(!load(&path, Some(&ID[..16]), SymbolOptions::default()).table.is_empty());
}

#[test]
fn files_below_symfs_are_trusted() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "usr/bin/recorded-elsewhere", &full());
    let options = SymbolOptions { symfs: Some(root.path().into()), ..SymbolOptions::default() };
    let loaded = load(b"/usr/bin/recorded-elsewhere", None, options.clone());
    assert_eq!(name_at(&loaded, 0x1100).as_deref(), Some("inner"));
    assert!(loaded.outcome.contradiction.is_none());
    let contradicted = load(b"/usr/bin/recorded-elsewhere", Some(&[1; 20]), options);
    assert_eq!(name_at(&contradicted, 0x1100).as_deref(), Some("inner"));
    assert!(contradicted.outcome.contradiction.is_some());
}

/// Returns why the symbols of `module` are refused for lack of proof; `None` if they are loaded.
#[track_caller]
fn refused(module: &Module, trust_paths: bool) -> Option<String> {
    let loaded =
        Resolver::new(SymbolOptions { trust_paths, ..SymbolOptions::default() }).load(module);
    assert_eq!(loaded.table.is_empty(), loaded.outcome.unproven().is_some());
    loaded.outcome.unproven().map(ToString::to_string)
}

#[test]
fn a_file_without_build_id_is_identified_by_machine_and_inode() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), "p", &TestElf { build_id: None, ..full() });
    let known = mapped(&path, None);
    assert_eq!(refused(&known, false), None);
    let on = |origin: Origin| known.clone().on(&Arc::new(origin));
    let text = |text: &str| Some(text.to_owned());
    let here = Origin::here;
    let not_here = "does not say that it was made on this machine";
    let other_file = known.file.map(|file| FileId { inode: 1, ..file });
    let written = Some(std::time::UNIX_EPOCH);
    for (module, why) in [
        (on(Origin { hostname: text("far"), ..here() }), "recorded host name is far"),
        (on(Origin { release: text("2.6.0"), ..here() }), "recorded kernel release is 2.6.0"),
        (on(Origin { arch: text("vax"), ..here() }), "recorded architecture is vax"),
        (on(Origin { hostname: None, ..here() }), not_here),
        (on(Origin { release: None, ..here() }), not_here),
        (on(Origin::default()), not_here),
        (Module { written, ..known.clone() }, "written to after the recording"),
        (Module { file: None, ..known.clone() }, "neither its build ID nor its device and inode"),
        (Module { file: other_file, ..known.clone() }, "the file was replaced"),
    ] {
        let refusal = refused(&module, false).unwrap();
        assert!(refusal.contains(why), "{refusal}: {why}");
        assert_eq!(refused(&module, true), None, "--trust-paths: {why}");
    }
}

#[test]
fn a_file_of_several_recordings_is_loaded_once() {
    let root = tempfile::tempdir().unwrap();
    let known = mapped(&write(root.path(), "p", &TestElf { build_id: None, ..full() }), None);
    let now = std::time::SystemTime::now();
    let written = |hours: u64| Module {
        written: Some(now + std::time::Duration::from_secs(hours * 3600)),
        ..known.clone()
    };
    let resolver = Resolver::new(SymbolOptions::default());
    let [one, other] = [1, 2].map(|hours| resolver.load(&written(hours)));
    assert!(Arc::ptr_eq(&one, &other) && !one.table.is_empty());
    // What was written to after a recording has no names for it.
    let before = resolver.load(&Module { written: Some(std::time::UNIX_EPOCH), ..known });
    assert!(before.table.is_empty());
}

#[test]
fn a_file_of_another_architecture_is_always_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), "p", &full());
    for id in [None, Some(&ID[..])] {
        let module = mapped(&path, id)
            .on(&Arc::new(Origin { arch: Some("armv7l".into()), ..Origin::default() }));
        let options = SymbolOptions { trust_paths: true, ..SymbolOptions::default() };
        let loaded = Resolver::new(options).load(&module);
        let mut refusals = loaded.outcome.refusals();
        assert!(refusals.any(|refusal| matches!(refusal, Refusal::OtherArchitecture { .. })));
        assert!(loaded.table.is_empty());
    }
}

#[test]
fn a_proven_file_is_preferred_to_a_trusted_one() {
    let root = tempfile::tempdir().unwrap();
    let other = TestElf {
        symtab: vec![function("other", 0x1100, 8)],
        build_id: Some([2; 20]),
        ..TestElf::default()
    };
    let path = write(root.path(), "p", &other);
    let cache = root.path().join("cache");
    let options =
        SymbolOptions { build_id_dir: Some(cache), trust_paths: true, ..SymbolOptions::default() };
    assert_eq!(name_at(&load(&path, Some(&ID), options.clone()), 0x1100).as_deref(), Some("other"));
    write(root.path(), &format!("cache/.build-id/ab/{}/elf", "ab".repeat(19)), &full());
    assert_eq!(name_at(&load(&path, Some(&ID), options), 0x1100).as_deref(), Some("inner"));
}

#[test]
fn unreadable_files_are_refused_with_the_reason() {
    let root = tempfile::tempdir().unwrap();
    let reason =
        |path: &[u8]| load(path, None, SymbolOptions::default()).outcome.attempts[0].to_string();
    assert!(reason(b"/dev/zero2").ends_with("no such file"));
    assert!(reason(b"/dev/null").ends_with("not a regular file: not opened"));
    fs::write(root.path().join("text"), "no program").unwrap();
    let text = root.path().join("text");
    assert!(reason(text.to_str().unwrap().as_bytes()).contains("damaged or of the wrong format"));
}

#[test]
fn several_threads_load_a_module_once() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), "p", &full());
    let resolver = Resolver::new(SymbolOptions::default());
    let module = mapped(&path, None);
    let first = resolver.load(&module);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(Arc::ptr_eq(&first, &resolver.load(&module))));
        }
    });
    assert_eq!(resolver.modules.lock().unwrap().len(), 1);
}

#[test]
fn the_vdso_of_this_process_is_used_for_its_own_kernel_only() {
    let resolver = Resolver::new(SymbolOptions::default());
    let vdso = Module::new(b"[vdso]", None, ModuleKind::Vdso);
    assert!(!resolver.load(&vdso.clone().on(&Origin::here().into())).table.is_empty());
    let other = BuildId::new(&[1; 20]);
    let of_other_kernel = Origin { kernel: other, ..Origin::here() };
    for module in [
        Module { build_id: other, ..vdso.clone() },
        vdso.clone().on(&Arc::new(of_other_kernel)),
        vdso.on(&Arc::default()),
    ] {
        let loaded = resolver.load(&module);
        assert!(loaded.table.is_empty(), "{module:?}");
        assert!(loaded.outcome.unproven().is_some() && loaded.outcome.found().next().is_none());
    }
}

#[test]
fn code_of_a_jit_without_names_is_one_function() {
    let module = Module::new(b"//anon", None, ModuleKind::PerfMap { pid: i32::MAX, dump: None });
    for inferred in [true, false] {
        let options = SymbolOptions { inferred, ..SymbolOptions::default() };
        let loaded = Resolver::new(options).load(&module);
        let found = [0x7f00_0000_1000, 0x7f00_0020_0000].map(|address| loaded.find(address));
        assert_eq!(found[0].is_some(), inferred);
        assert_eq!(found[0], found[1]);
        let Some(id) = found[0] else { continue };
        assert_eq!(loaded.name(id).as_deref(), Some("[JIT] tid 2147483647"));
        assert!(loaded.is_inferred(id));
    }
}
