//! The search from place to place, on files made for it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::test_elf::{TestElf, function};
use super::{BuildId, Loaded, Module, ModuleKind, Refusal, Resolver, Source, SymbolOptions};

const ID: [u8; 20] = [0xab; 20];

/// Below `root`: writes `elf` to `path` and gives the path as a module has it.
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

fn load(path: &[u8], id: Option<&[u8]>, options: SymbolOptions) -> Arc<Loaded> {
    Resolver::new(options).load(&Module::file(path, id.and_then(BuildId::new)))
}

fn name_at(loaded: &Loaded, address: u64) -> Option<String> {
    let symbol = loaded.lookup(address)?;
    Some(loaded.name(symbol.id).unwrap().into_owned())
}

#[test]
fn a_file_with_symbols_is_all_that_is_needed() {
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
fn a_debug_link_is_followed_to_the_file_it_names_if_that_is_the_same_build() {
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
fn another_version_of_the_file_is_refused_and_the_cache_has_the_right_one() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), "p", &TestElf { build_id: Some([2; 20]), ..full() });
    let options = SymbolOptions { build_id_dir: Some(root.path().join("cache")), ..SymbolOptions::default() };
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
fn build_ids_that_were_padded_are_the_same() {
    let root = tempfile::tempdir().unwrap();
    let mut id = ID;
    id[16..].fill(0);
    let path = write(root.path(), "p", &TestElf { build_id: Some(id), ..full() });
    assert!(!load(&path, Some(&ID[..16]), SymbolOptions::default()).table.is_empty());
}

#[test]
fn symfs_stands_for_the_recorded_machine() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "usr/bin/recorded-elsewhere", &full());
    let options = SymbolOptions { symfs: Some(root.path().into()), ..SymbolOptions::default() };
    let loaded = load(b"/usr/bin/recorded-elsewhere", None, options);
    assert_eq!(name_at(&loaded, 0x1100).as_deref(), Some("inner"));
}

#[test]
fn what_cannot_be_read_says_why() {
    let root = tempfile::tempdir().unwrap();
    let reason = |path: &[u8]| load(path, None, SymbolOptions::default()).outcome.attempts[0].to_string();
    assert!(reason(b"/dev/zero2").ends_with("no such file"));
    assert!(reason(b"/dev/null").ends_with("not a regular file: not opened"));
    fs::write(root.path().join("text"), "no program").unwrap();
    let text = root.path().join("text");
    assert!(reason(text.to_str().unwrap().as_bytes()).contains("damaged or no ELF file"));
}

#[test]
fn a_module_is_loaded_once_by_any_number_of_threads() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), "p", &full());
    let resolver = Resolver::new(SymbolOptions::default());
    let module = Module::file(&path, None);
    let first = resolver.load(&module);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(Arc::ptr_eq(&first, &resolver.load(&module))));
        }
    });
    assert_eq!(resolver.loaded().len(), 1);
}

#[test]
fn a_jit_map_names_anonymous_code() {
    let root = tempfile::tempdir().unwrap();
    let map = root.path().join("perf-7.map");
    fs::write(&map, "7f0000001000 40 Interpreter\n").unwrap();
    let path = map.to_str().unwrap().as_bytes().into();
    let module = Module { path, build_id: None, kind: ModuleKind::PerfMap { pid: 7, dump: None }, mounts: None };
    let loaded = Resolver::new(SymbolOptions::default()).load(&module);
    assert_eq!(name_at(&loaded, 0x7f00_0000_103f).as_deref(), Some("Interpreter"));
}

#[test]
fn the_vdso_of_this_process_speaks_for_its_own_kernel_only() {
    let resolver = Resolver::new(SymbolOptions::default());
    let vdso = Module::of_user_mapping(b"[vdso]", 1, true, false, None);
    assert!(!resolver.load(&vdso).table.is_empty());
    let other = BuildId::new(&[1; 20]);
    for module in [Module { build_id: other, ..vdso.clone() }, vdso.of_kernel(other)] {
        let loaded = resolver.load(&module);
        assert!(loaded.table.is_empty(), "{module:?}");
        assert!(loaded.outcome.attempts.iter().all(|attempt| attempt.result.is_err()));
    }
}
