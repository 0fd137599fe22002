//! Tests of the rules for ELF symbols, each on a generated file.

use object::elf::{
    STB_LOCAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STT_SECTION,
};
use proptest::prelude::*;
use recrep_unwind::image::{Contents, reduce};

use super::extents::end_unsized;
use super::plt;
use super::test_elf::{BSS, DATA, TEXT, TestElf, TestSymbol, function};
use crate::symbols::UnwindingParts;
use crate::symbols::elf::{ElfImage, build_id_in_notes};
use crate::symbols::names::table::{SymbolTable, TableBuilder, name_hash};
use crate::symbols::search::mapped::add_tables;

fn table_of(image: &ElfImage, runtime: &ElfImage) -> SymbolTable {
    let mut table = TableBuilder::new(true);
    let _ = add_tables(image, runtime, &mut table);
    end_unsized(&mut table, Some(runtime));
    plt::add_plt_symbols(runtime, &mut table);
    table.finish()
}

fn names(symtab: Vec<TestSymbol>, dynsym: Vec<TestSymbol>) -> impl Fn(u64) -> String {
    let image = TestElf { symtab, dynsym, ..TestElf::default() }.image();
    let table = table_of(&image, &image);
    move |offset| {
        table
            .lookup(offset)
            .map_or("-".into(), |symbol| String::from_utf8_lossy(symbol.name).into_owned())
    }
}

fn functions(all: &[(&'static str, u64, u64)]) -> Vec<TestSymbol> {
    all.iter().map(|(name, address, size)| function(name, *address, *size)).collect()
}

#[test]
fn addresses_become_file_offsets() {
    for bias in [0, 0x40_0000, 0x2000] {
        let symtab = vec![function("a", 0x1100 + bias, 0x20), function("b", 0x1120 + bias, 0x20)];
        let image = TestElf { bias, symtab, ..TestElf::default() }.image();
        let table = table_of(&image, &image);
        let at =
            |offset| table.lookup(offset).map(|symbol| (symbol.name, symbol.start, symbol.end));
        assert_eq!(at(0x111f), Some((&b"a"[..], 0x1100, 0x1120)), "bias {bias:#x}");
        assert_eq!(at(0x1120), Some((&b"b"[..], 0x1120, 0x1140)));
        assert_eq!((at(0x10ff), at(0x1140)), (None, None));
    }
}

#[test]
fn symbols_that_count() {
    let label = TestSymbol { kind: STT_NOTYPE, bind: STB_LOCAL, ..function("label", 0x1010, 0) };
    let hidden = TestSymbol { hidden: true, name: "hidden", address: 0x1020, ..label };
    let in_bss = TestSymbol { name: "label_in_bss", section: BSS, address: 0x3900, ..label };
    let object = TestSymbol { kind: STT_OBJECT, section: DATA, ..function("object", 0x3010, 8) };
    let section = TestSymbol { kind: STT_SECTION, ..function("section", 0x1030, 8) };
    let undefined = TestSymbol { section: 0, ..function("undefined", 0x1040, 8) };
    let absolute = TestSymbol { section: 0xfff1, ..function("absolute", 0x1050, 8) };
    let unnamed = function("", 0x1060, 8);
    let at =
        names(vec![label, hidden, in_bss, object, section, undefined, absolute, unnamed], vec![]);
    // In code, labels that are hidden from other files count too.
    let expected = ["label", "hidden", "hidden", "hidden", "hidden", "hidden"];
    assert_eq!([0x1010, 0x1020, 0x1030, 0x1040, 0x1050, 0x1060].map(&at), expected);
    assert_eq!(
        [0x17ff, 0x1800, 0x3010, 0x3018, 0x3900].map(&at),
        ["hidden", "-", "object", "-", "-"]
    );
}

/// A local symbol, which shows that a table is whole.
const LOCAL: TestSymbol = TestSymbol {
    name: "static",
    address: 0x1780,
    size: 8,
    kind: STT_FUNC,
    bind: STB_LOCAL,
    section: TEXT,
    hidden: false,
};

/// A label that other files see.
fn label(name: &'static str, address: u64) -> TestSymbol {
    TestSymbol { kind: STT_NOTYPE, ..function(name, address, 0) }
}

fn with_local(mut symbols: Vec<TestSymbol>) -> Vec<TestSymbol> {
    symbols.push(LOCAL);
    symbols
}

#[test]
fn symbols_without_size_end_where_the_next_begins_in_a_whole_list() {
    let last_first_sized = [("last", 0x1100, 0), ("first", 0x1000, 0), ("sized", 0x1080, 8)];
    let at = names(with_local(functions(&last_first_sized)), vec![]);
    assert_eq!([0x1000, 0x107f, 0x1087, 0x1088].map(&at), ["first", "first", "sized", "-"]);
    assert_eq!([0x1100, 0x177f, 0x1780, 0x1788].map(&at), ["last", "last", "static", "-"]);
    // The last symbol ends with its section.
    let at = names(with_local(vec![function("last", 0x17f0, 0)]), vec![]);
    assert_eq!([0x17ff, 0x1800, 0x2fff].map(&at), ["last", "-", "-"]);
}

#[test]
fn symbols_without_size_name_their_code_in_a_list_of_some() {
    // `first`: jnz over a return and what fills its line, back from there; then another function.
    let mut code = vec![0x90; 0x80];
    code[..2].copy_from_slice(&[0x75, 0x0e]);
    code[2] = 0xc3;
    code[0x10..0x13].copy_from_slice(&[0xeb, 0xee, 0xcc]);
    code[0x20..0x22].copy_from_slice(&[0x90, 0xc3]);
    let exported = vec![function("first", 0x1000, 0), label("second", 0x1060)];
    let file = |symtab, dynsym| {
        let image = TestElf { symtab, dynsym, code: code.clone(), ..TestElf::default() }.image();
        let table = table_of(&image, &image);
        [0x1000, 0x1011, 0x1012, 0x1020, 0x105f, 0x1060].map(|at| {
            table
                .lookup(at)
                .map_or("-".into(), |symbol| String::from_utf8_lossy(symbol.name).into_owned())
        })
    };
    let found = ["first", "first", "-", "-", "-", "second"];
    assert_eq!(file(vec![], exported.clone()), found);
    // Local symbols were stripped.
    assert_eq!(file(exported.clone(), vec![]), found);
    let whole = ["first", "first", "first", "first", "first", "second"];
    assert_eq!(file(with_local(exported), vec![]), whole);
}

#[test]
fn entries_of_eh_frame_end_symbols_and_hide_labels() {
    let unwound = vec![(0x1000, 0x20), (0x1040, 0x10), (0x10ff, 0x10)];
    let listed = vec![
        function("f", 0x1000, 0),
        label("within", 0x1010),
        function("entry", 0x1018, 0),
        label("before", 0x1030),
        label("unknown", 0x1048),
        label("restore", 0x1100),
    ];
    for (symtab, dynsym) in [(with_local(listed.clone()), vec![]), (vec![], listed)] {
        let is_whole = !symtab.is_empty();
        let file = TestElf {
            symtab,
            dynsym,
            unwound: unwound.clone(),
            code: vec![0xc3; 0x200],
            ..TestElf::default()
        };
        let image = file.image();
        let table = table_of(&image, &image);
        let at = |offset| table.lookup(offset).map(|symbol| str::from_utf8(symbol.name).unwrap());
        // The rest of an entry is of a symbol with type in it.
        let of_entry = [Some("f"), Some("f"), Some("entry"), Some("entry"), None];
        assert_eq!([0x1000, 0x1010, 0x1018, 0x101f, 0x1020].map(at), of_entry);
        // What is not an entry's own ends where one begins.
        let rest = is_whole.then_some("before");
        assert_eq!(
            [0x1030, 0x103f, 0x1040, 0x1048, 0x1050].map(at),
            [Some("before"), rest, None, None, None]
        );
        // A signal's trampoline, with the address behind its system call.
        assert_eq!([0x1100, 0x110f, 0x1110].map(at), [Some("restore"), Some("restore"), None]);
    }
}

#[test]
fn labels_and_marks_name_nothing() {
    let all = vec![
        function("sized", 0x1000, 0x40),
        label("retry", 0x1010),
        function("alias_entry", 0x1020, 0),
        label("work", 0x1100),
        label("work.loop", 0x1110),
        label("workers", 0x1120),
        label("__my_text_end", 0x1140),
        label(".annobin_a.c", 0x1180),
        TestSymbol { bind: STB_LOCAL, ..label("end", 0x1190) },
        function("outer", 0x1200, 0x40),
        TestSymbol { size: 8, ..label("inner", 0x1210) },
        function("f.cold", 0x1300, 8),
        label("_etext", 0x1310),
    ];
    let at = names(all, vec![]);
    assert_eq!([0x100f, 0x1010, 0x1020, 0x103f].map(&at), ["sized"; 4]);
    assert_eq!(
        [0x1100, 0x1110, 0x111f, 0x1120, 0x113f].map(&at),
        ["work", "work", "work", "workers", "workers"]
    );
    assert_eq!([0x1140, 0x117f, 0x1180, 0x1190, 0x11ff].map(&at), ["-", "-", "-", "end", "end"]);
    assert_eq!([0x120f, 0x1210, 0x1218].map(&at), ["outer", "inner", "outer"]);
    assert_eq!([0x1300, 0x1307, 0x1308, 0x1310].map(&at), ["f.cold", "f.cold", "-", "-"]);
}

#[test]
fn one_name_for_an_address() {
    let local = |name| TestSymbol { bind: STB_LOCAL, ..function(name, 0x1000, 8) };
    let weak = |name| TestSymbol { bind: STB_WEAK, ..function(name, 0x1000, 8) };
    let global = |name| function(name, 0x1000, 8);
    let best = |symtab, dynsym| names(symtab, dynsym)(0x1000);
    assert_eq!(best(vec![weak("weak_and_long"), local("local")], vec![]), "local");
    assert_eq!(best(vec![local("local_and_long"), global("global")], vec![]), "global");
    assert_eq!(best(vec![global("__long_name"), global("_x"), global("y")], vec![]), "y");
    assert_eq!(
        best(vec![global("free"), global("cfree@V_1"), global("cfre")], vec![]),
        "cfree@V_1"
    );
    assert_eq!(best(vec![global("first"), global("equal")], vec![]), "first");
    assert_eq!(best(vec![function("sizeless_long", 0x1000, 0), local("l")], vec![]), "l");
    assert_eq!(best(vec![weak("w")], vec![global("g")]), "g");
}

#[test]
fn the_name_of_a_function_is_the_one_that_callers_write() {
    let local = |name| TestSymbol { bind: STB_LOCAL, ..function(name, 0x1000, 8) };
    let weak = |name| TestSymbol { bind: STB_WEAK, ..function(name, 0x1000, 8) };
    let global = |name| function(name, 0x1000, 8);
    let best = |symtab, dynsym| names(symtab, dynsym)(0x1000);
    let write =
        vec![local("__GI___write"), local("__GI___libc_write"), weak("__write"), weak("write")];
    assert_eq!(best(write.clone(), vec![]), "write");
    assert_eq!(best(write, vec![weak("__write"), weak("write")]), "write");
    assert_eq!(best(vec![global("_IO_puts"), weak("puts")], vec![]), "puts");
    assert_eq!(best(vec![global("_IO_puts")], vec![weak("puts")]), "puts");
    let open = vec![local("__libc_open64"), weak("__open"), weak("open64"), weak("open")];
    assert_eq!(best(open, vec![]), "open");
    assert_eq!(best(vec![weak("open64")], vec![]), "open64");
    assert_eq!(best(vec![weak("cosf32"), local("__cosf_ifunc"), weak("cosf")], vec![]), "cosf");
    assert_eq!(best(vec![local("__GI_x"), local("__x")], vec![]), "__x");
    assert_eq!(best(vec![local("__GI__dl_x"), global("_dl_x")], vec![]), "_dl_x");
    // Neither a stub of the kernel nor of musl gives its weak aliases their name.
    assert_eq!(
        best(vec![weak("__x64_sys_acct"), global("sys_ni_syscall")], vec![]),
        "sys_ni_syscall"
    );
    assert_eq!(best(vec![weak("__acquire_ptc"), local("dummy")], vec![]), "dummy");
}

#[test]
fn mangled_names_are_ranked_by_their_demangled_form() {
    // Longer than `plain_name` while mangled, shorter when demangled (`a::b`).
    let symtab =
        vec![function("_ZN1a1bERKSsS1_S1_S1_", 0x1000, 8), function("plain_name", 0x1000, 8)];
    assert_eq!(names(symtab, vec![])(0x1000), "plain_name");
    let local = TestSymbol { bind: STB_LOCAL, ..function("_ZN1aIiiiiiE1bEv", 0x1000, 8) };
    let symtab = vec![local, function("g", 0x1000, 8), function("_ZN1gE", 0x1000, 8)];
    assert_eq!(names(symtab, vec![])(0x1000), "g");
    let symtab = vec![function("_ZN3FooC2Ev@@V", 0x1000, 8), function("_ZN3FooC1Ev", 0x1000, 8)];
    assert_eq!(names(symtab, vec![])(0x1000), "_ZN3FooC2Ev@@V");
}

#[test]
fn symbols_inside_symbols() {
    let nested = [("outer", 0x1000, 0x100), ("inner", 0x1040, 8), ("in2", 0x1042, 2)];
    let at = names(functions(&nested), vec![]);
    let expected = ["outer", "inner", "in2", "inner", "outer", "-"];
    assert_eq!([0x103f, 0x1041, 0x1043, 0x1044, 0x1048, 0x1100].map(at), expected);
}

#[test]
fn symbols_in_bss_hide_no_code() {
    // The file offset computed for a .bss address may belong to another segment.
    let file = TestElf { symtab: vec![function("code", 0x1000, 0x100)], ..TestElf::default() };
    let zeroed = TestSymbol { kind: STT_OBJECT, section: BSS, ..function("zeroed", 0x3900, 8) };
    let mut with_bss = file.clone();
    with_bss.symtab.push(zeroed);
    let image = with_bss.image();
    assert_eq!(table_of(&image, &image).lookup(0x3900).unwrap().name, b"zeroed");
    let mut bytes = with_bss.build();
    // Move the text segment and section to where .bss would be.
    bytes[64 + 8..64 + 16].copy_from_slice(&0x3800_u64.to_le_bytes());
    let image = ElfImage::parse(bytes.into()).unwrap();
    assert_eq!(table_of(&image, &image).lookup(0x3900), None);
    assert_eq!(table_of(&image, &image).lookup(0x3800).unwrap().name, b"code");
}

#[test]
fn the_mapped_file_places_the_symbols_of_a_debug_file() {
    let bias = 0x40_0000;
    let symtab = vec![function("kept", 0x1100 + bias, 8)];
    let runtime =
        TestElf { bias, dynsym: vec![function("open", 0x1000 + bias, 8)], ..TestElf::default() }
            .image();
    let debug = TestElf { bias, symtab, debug_only: true, ..TestElf::default() }.image();
    assert_eq!(table_of(&debug, &runtime).lookup(0x1104).unwrap().name, b"kept");
}

#[test]
fn the_end_of_an_alias_that_loses_hides_no_enclosing_symbol() {
    // `b` goes on as far as `around` does; but `inner` has the longer name.
    let all = [
        ("around", 0x1000, 0x100),
        ("next", 0x1100, 8),
        ("inner", 0x1080, 0x10),
        ("b", 0x1080, 0x80),
    ];
    let at = names(functions(&all), vec![]);
    assert_eq!([0x1070, 0x1088, 0x1098, 0x1100].map(&at), ["around", "inner", "around", "next"]);
}

#[test]
fn an_alias_of_an_indirect_function_is_marked_as_one() {
    let ifunc = TestSymbol { kind: STT_GNU_IFUNC, ..function("memcpy", 0x1000, 8) };
    let image =
        TestElf { symtab: vec![ifunc, function("memcpy@V", 0x1000, 8)], ..TestElf::default() }
            .image();
    let mut table = TableBuilder::new(true);
    add_tables(&image, &image, &mut table).unwrap();
    assert!(table.at(0x1000).unwrap().name.is_ifunc());
}

#[test]
fn build_id_and_debug_link() {
    let file =
        TestElf { build_id: Some([9; 20]), debug_link: Some("x.debug"), ..TestElf::default() };
    let image = file.image();
    assert_eq!(image.build_id.unwrap().as_bytes(), [9; 20]);
    assert_eq!(image.debug_link().unwrap().0, b"x.debug");
    let note = |name: &[u8; 4], kind: u8, desc: &[u8]| {
        let sizes = [4, 0, 0, 0, u8::try_from(desc.len()).unwrap(), 0, 0, 0, kind, 0, 0, 0];
        [&sizes[..], name, desc].concat()
    };
    let go = note(b"Go\0\0", 4, b"a/b/0123456789abcdefghij");
    assert_eq!(build_id_in_notes(&go).unwrap().as_bytes(), b"0123456789abcdefghij");
    let both = [go, note(b"GNU\0", 3, &[9; 20])].concat();
    assert_eq!(build_id_in_notes(&both).unwrap().as_bytes(), [9; 20]);
    let outside = TestElf { debug_link: Some("../../etc/passwd"), ..TestElf::default() }.image();
    assert_eq!(outside.debug_link(), None);
}

fn test_file() -> TestElf {
    let symtab = functions(&[("_ZN3FooC2Ev", 0x1000, 8), ("b", 0x1000, 8), ("c", 0x1004, 0)]);
    let dynsym = vec![function("d", 0x1100, 0)];
    TestElf { symtab, dynsym, build_id: Some([1; 20]), debug_link: Some("l"), ..TestElf::default() }
}

/// Parses a file, builds its symbol table and looks addresses up.
fn exercise(bytes: Vec<u8>) {
    if let Ok(image) = ElfImage::parse(bytes.into()) {
        image.debug_link();
        let table = table_of(&image, &image);
        for address in [0, 0x1000, 0x1006, 0x1100, u64::MAX] {
            let _ = table.lookup(address);
        }
        assert!(table.iter().all(|symbol| symbol.name.len() < 1 << 20));
    }
}

#[test]
fn truncated_files_do_not_panic() {
    let bytes = test_file().build();
    for end in (0..200).chain((200..bytes.len()).step_by(61)).chain(bytes.len() - 1000..bytes.len())
    {
        exercise(bytes[..end].to_vec());
    }
}

proptest! {
    #[test]
    fn corrupted_files_do_not_panic(
        changes in prop::collection::vec((0..2000_usize, any::<u8>()), 1..12),
    ) {
        let mut bytes = test_file().build();
        // The headers at the front and the tables at the end.
        let tables = bytes.len() - 1800;
        for (at, byte) in changes {
            let at = if at < 200 { at } else { tables + at - 200 };
            bytes[at] = byte;
        }
        exercise(bytes);
    }
}

#[test]
fn a_reduced_file_gives_the_names_and_call_frames_of_the_whole_one() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libraries =
        maps.lines().filter_map(|line| line.get(line.find('/')?..)).map(std::path::PathBuf::from);
    let mut paths: Vec<_> = libraries.chain([std::env::current_exe().unwrap()]).collect();
    paths.sort();
    paths.dedup();
    let mut compared = 0;
    for path in paths {
        let Ok(whole) = std::fs::read(&path) else { continue };
        let Ok(reduced) = reduce(&whole, Contents::Names) else { continue };
        assert!(reduced.len() < whole.len());
        let (whole, reduced) =
            (ElfImage::parse(whole.into()).unwrap(), ElfImage::parse(reduced.into()).unwrap());
        assert_eq!(whole.build_id, reduced.build_id);
        let (before, after) = (table_of(&whole, &whole), table_of(&reduced, &reduced));
        assert!(before.iter().eq(after.iter()), "{}", path.display());
        let frames = |image| UnwindingParts::of(image, None).map(|parts| format!("{parts:?}"));
        assert_eq!(frames(&whole), frames(&reduced), "{}", path.display());
        assert_eq!((whole.debug_link(), reduced.has_debug_info()), (reduced.debug_link(), false));
        compared += usize::from(!before.is_empty());
    }
    // The test program itself at least.
    assert!(compared > 0);
}

#[test]
fn names_of_several_starts_are_shared() {
    let mut table = TableBuilder::new(false);
    // A second name of one start is no second function.
    let starts = [0x10, 0x20, 0x30, 0x30, 0x40, 0x50];
    for (name, start) in ["once", "twice", "alias", "alias", "twice", "last"].iter().zip(starts) {
        table.add(name.as_bytes(), start, start + 0x10);
    }
    let shared = table.finish().shared_names();
    let is_shared = |name: &str| shared.contains(&name_hash(name.as_bytes()));
    assert_eq!(["once", "twice", "alias", "last"].map(is_shared), [false, true, false, false]);
    assert_eq!(shared.len(), 1);
}
