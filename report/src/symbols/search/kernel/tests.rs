//! Tests of the choice of the kernel's symbols.

use std::sync::Arc;

use super::*;
use crate::symbols::module::origin::Reference;

const TEXT: u64 = 0xffff_ffff_8100_0000;

/// Creates a root directory with a kernel of build ID `07 07 …` and one module.
fn machine() -> (tempfile::TempDir, Kernel) {
    let root = tempfile::tempdir().unwrap();
    for directory in ["proc", "sys/kernel", "sys/module/snd_pcm/notes"] {
        fs::create_dir_all(root.path().join(directory)).unwrap();
    }
    let head = [4_u32, 20, object::elf::NT_GNU_BUILD_ID.0].map(u32::to_ne_bytes);
    let notes = |id: u8| [head.as_flattened(), b"GNU\0", &[id; 20]].concat();
    fs::write(root.path().join("sys/kernel/notes"), notes(7)).unwrap();
    fs::write(root.path().join("sys/module/snd_pcm/notes/.note.gnu.build-id"), notes(9)).unwrap();
    let list = "ffffffff81000000 T _text\nffffffff81000000 t z\nffffffff81000010 t a\nffffffffc0000000 t b\t[snd_pcm]\n";
    fs::write(root.path().join("proc/kallsyms"), list).unwrap();
    fs::write(root.path().join("proc/modules"), "snd_pcm 16384 0 - Live 0xffffffffc0000000\n")
        .unwrap();
    let kernel = Kernel::new(root.path(), origin("desk", "6.1.0", 0), None);
    (root, kernel)
}

fn origin(hostname: &str, release: &str, reference: u64) -> Origin {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let reference =
        (reference != 0).then(|| Reference { symbol: "_text".into(), address: reference });
    Origin {
        hostname: text(hostname),
        release: text(release),
        arch: text("x86_64"),
        reference,
        ..Origin::default()
    }
}

fn with_id(id: u8) -> Origin {
    Origin { kernel: BuildId::new(&[id; 20]), ..origin("shelf", "5.0.0", TEXT) }
}

fn kernel_of(origin: Origin) -> Module {
    Module::new(b"[kernel.kallsyms]", origin.kernel, ModuleKind::Kernel).on(&Arc::new(origin))
}

#[test]
fn a_recorded_build_id_decides_alone() {
    let (_root, kernel) = machine();
    let mut outcome = Outcome::default();
    let options = SymbolOptions::default();
    assert_eq!(kernel.load(&kernel_of(with_id(7)), &options, &mut outcome).unwrap().len(), 2);
    let other = Origin { kernel: BuildId::new(&[8; 20]), ..origin("desk", "6.1.0", TEXT) };
    assert!(kernel.load(&kernel_of(other), &options, &mut outcome).is_none());
    assert!(matches!(outcome.attempts[1].result, Err(Refusal::OtherKernel { .. })));
}

#[test]
fn without_a_build_id_release_and_address_decide() {
    let (_root, kernel) = machine();
    let moved = TEXT + 0x100_0000;
    for here in [
        origin("desk", "6.1.0", TEXT),
        origin("shelf", "6.1.0", TEXT),
        Origin { arch: None, ..origin("", "6.1.0", TEXT) },
    ] {
        assert!(kernel.check_running(&here).is_ok(), "{here:?}");
    }
    for (other, expected) in [
        (origin("shelf", "6.1.0", moved), "MovedKernel"),
        (origin("desk", "6.1.0", moved), "MovedKernel"),
        (origin("desk", "6.1.1", TEXT), "OtherMachine { what: \"kernel release\""),
        (origin("", "", TEXT), "NoRelease"),
        (origin("desk", "", TEXT), "NoRelease"),
        (origin("desk", "6.1.0", 0), "NoReference"),
        (Origin::default(), "NoRelease"),
        (
            Origin { arch: Some("aarch64".into()), ..origin("", "", TEXT) },
            "OtherMachine { what: \"architecture\"",
        ),
    ] {
        let refusal = kernel.check_running(&other).unwrap_err();
        assert!(format!("{refusal:?}").starts_with(expected), "{other:?}: {refusal}");
        assert!(refusal.is_unproven(), "{refusal}");
    }
}

#[test]
fn a_kept_list_that_cannot_be_read_is_replaced() {
    let (root, _) = machine();
    let cache = root.path().join("cache");
    let kept = cache.join("kernel-symbols").join("07".repeat(20));
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    fs::write(&kept, "of another version").unwrap();
    let kernel = Kernel::new(root.path(), origin("desk", "6.1.0", 0), Some(cache));
    let table =
        kernel.load(&kernel_of(with_id(7)), &SymbolOptions::default(), &mut Outcome::default());
    assert_eq!(table.unwrap().len(), 2);
    assert!(packed(&kept).unwrap().is_some());
}

#[test]
fn a_given_list_is_not_checked_and_symfs_excludes_this_machine() {
    let (root, kernel) = machine();
    let mut outcome = Outcome::default();
    let given = root.path().join("copy");
    fs::write(&given, "ffffffff81000000 T _text\nffffffff81000000 t a\n").unwrap();
    let options = SymbolOptions { kallsyms: Some(given), ..SymbolOptions::default() };
    assert_eq!(kernel.load(&kernel_of(with_id(8)), &options, &mut outcome).unwrap().len(), 1);
    assert!(outcome.contradiction.is_none(), "a copy has no build ID");
    let options = SymbolOptions { symfs: Some("/elsewhere".into()), ..SymbolOptions::default() };
    assert!(kernel.load(&kernel_of(with_id(7)), &options, &mut outcome).is_none());
    assert!(matches!(outcome.attempts[1].result, Err(Refusal::Symfs)));
}

#[test]
fn the_running_list_given_for_another_kernel_is_used_and_reported() {
    let (root, kernel) = machine();
    let given = root.path().join("link");
    std::os::unix::fs::symlink(root.path().join("proc/kallsyms"), &given).unwrap();
    let options = SymbolOptions { kallsyms: Some(given), ..SymbolOptions::default() };
    for (id, contradicts) in [(7, false), (8, true)] {
        let mut outcome = Outcome::default();
        assert!(kernel.load(&kernel_of(with_id(id)), &options, &mut outcome).is_some());
        assert_eq!(outcome.contradiction.is_some(), contradicts);
    }
}

#[test]
fn the_cache_has_symbols_of_a_kernel_that_is_not_running() {
    let (root, kernel) = machine();
    let entry = root.path().join("cache/.build-id/08").join("08".repeat(19));
    fs::create_dir_all(&entry).unwrap();
    let list = "ffffffff81000000 T _text\nffffffff81000020 t c\nffffffffc0000010 t d\t[d]\n";
    fs::write(entry.join("kallsyms"), list).unwrap();
    let options =
        SymbolOptions { build_id_dir: Some(root.path().join("cache")), ..SymbolOptions::default() };
    let mut outcome = Outcome::default();
    let table = kernel.load(&kernel_of(with_id(8)), &options, &mut outcome).unwrap();
    assert_eq!(table.lookup(0xffff_ffff_8100_0021).unwrap().name, b"c");
    // A module may be elsewhere at each boot.
    for (start, is_there) in [(0xffff_ffff_c000_0000, true), (0xffff_ffff_bfff_0000, false)] {
        let module = Module::new(b"/lib/d.ko", None, ModuleKind::KernelModule { start })
            .on(&Arc::new(with_id(8)));
        let found = kernel.load(&module, &options, &mut Outcome::default());
        assert_eq!(found.is_some(), is_there, "{start:#x}");
    }
}

#[test]
fn the_running_list_is_kept_and_read_from_the_copy() {
    let (root, Kernel { host, .. }) = machine();
    let new = || Kernel::new(root.path(), host.clone(), Some(root.path().join("new/cache")));
    let (kernel, options) = (new(), SymbolOptions::default());
    let has_c = |origin: Origin| {
        let table = kernel.load(&kernel_of(origin), &options, &mut Outcome::default()).unwrap();
        table.lookup(TEXT + 0x20).unwrap().name == b"c"
    };
    assert!(!has_c(with_id(7)));
    let path = kernel.copy_path(&BuildId::new(&[7; 20]).unwrap()).unwrap();
    let list = fs::read_to_string(root.path().join("proc/kallsyms")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), Kallsyms::parse(list.clone().into()).unwrap().packed());
    let changed = list + "ffffffff81000020 t c\n";
    fs::write(&path, Kallsyms::parse(changed.into()).unwrap().packed()).unwrap();
    assert!(has_c(with_id(7)), "the copy is read");
    let unplaced =
        |module: Module| kernel.load(&module, &options, &mut Outcome::default()).is_none();
    assert!(
        unplaced(kernel_of(Origin { reference: None, ..with_id(7) })),
        "nobody knows where that kernel was"
    );
    let here = Origin { kernel: with_id(7).kernel, ..origin("desk", "6.1.0", 0) };
    assert!(!has_c(here.clone()), "it runs since");
    let before = std::time::SystemTime::UNIX_EPOCH;
    assert!(unplaced(Module { written: Some(before), ..kernel_of(here) }), "it was booted since");
    let hidden = "0000000000000000 T _text\n0000000000000000 t a\n";
    fs::write(root.path().join("proc/kallsyms"), hidden).unwrap();
    fs::remove_dir_all(root.path().join("new")).unwrap();
    assert!(new().load(&kernel_of(with_id(7)), &options, &mut Outcome::default()).is_none());
    assert!(!path.exists());
}

#[test]
fn kernel_or_build_id_and_the_load_address_identify_a_module() {
    let (_root, kernel) = machine();
    let load = |start, id: Option<u8>, origin| {
        let mut outcome = Outcome::default();
        let id = id.and_then(|id| BuildId::new(&[id; 20]));
        let module = Module::new(b"/lib/snd-pcm.ko", id, ModuleKind::KernelModule { start })
            .on(&Arc::new(origin));
        let table = kernel.load(&module, &SymbolOptions::default(), &mut outcome);
        (table.map(|table| table.len()), outcome)
    };
    let here = || origin("desk", "6.1.0", TEXT);
    assert_eq!(load(0xffff_ffff_c000_0000, None, here()).0, Some(1));
    assert_eq!(load(0xffff_ffff_c000_0000, Some(9), Origin::default()).0, Some(1));
    let (table, outcome) = load(0xffff_ffff_c100_0000, None, here());
    assert_eq!(table, None);
    assert!(matches!(outcome.attempts[0].result, Err(Refusal::MovedKernelModule { .. })));
    let (table, outcome) = load(0xffff_ffff_c000_0000, Some(8), here());
    assert_eq!(table, None);
    assert!(matches!(outcome.attempts[0].result, Err(Refusal::BuildIdMismatch { .. })));
    assert_eq!(load(0xffff_ffff_c000_0000, None, origin("shelf", "5.0.0", TEXT)).0, None);
}

/// Writes a `/proc/kcore` whose only segment has this code at an address.
fn write_kcore(root: &Path, address: u64, code: &[u8]) {
    let header = [0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut file = header.to_vec();
    // ET_CORE of EM_X86_64, version 1; no entry; program headers behind this one; no sections.
    file.extend([4, 0, 62, 0, 1, 0, 0, 0]);
    file.extend([0_u64, 64, 0].map(u64::to_le_bytes).as_flattened());
    file.extend([0_u16, 0, 64, 56, 1, 0, 0, 0].map(u16::to_le_bytes).as_flattened());
    // PT_LOAD, readable and executable.
    file.extend([1_u32, 5].map(u32::to_le_bytes).as_flattened());
    let size = code.len() as u64;
    file.extend([4096_u64, address, 0, size, size, 4096].map(u64::to_le_bytes).as_flattened());
    file.resize(4096, 0);
    file.extend(code);
    fs::write(root.join("proc/kcore"), file).unwrap();
}

#[test]
fn code_of_the_running_kernel_is_where_this_boot_has_it() {
    let (root, kernel) = machine();
    write_kcore(root.path(), TEXT, &[0x90, 0x90, 0xc3, 0xcc]);
    let code = |module: &Module, start: u64| kernel.running_code(module, &(start..start + 2));
    // The recorded boot had the kernel 16 MiB higher.
    let moved = TEXT + 0x100_0000;
    let origin = Origin { kernel: BuildId::new(&[7; 20]), ..origin("desk", "6.1.0", moved) };
    let found = code(&kernel_of(origin), moved + 1).unwrap();
    assert_eq!((found.address, found.bytes.as_slice()), (TEXT + 1, &[0x90, 0xc3][..]));
    assert_eq!(found.looked_up(TEXT + 2), Some(moved + 2));
    let beyond = code(&kernel_of(with_id(7)), TEXT + 3).unwrap_err();
    assert!(matches!(beyond, Refusal::Other(_)), "{beyond}");
    let other = code(&kernel_of(with_id(8)), TEXT).unwrap_err();
    assert!(matches!(other, Refusal::OtherKernel { .. }), "{other}");
    fs::write(root.path().join("proc/kcore"), b"\x7fELF").unwrap();
    assert!(matches!(code(&kernel_of(with_id(7)), TEXT), Err(Refusal::Malformed(_))));
}
