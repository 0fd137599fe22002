//! Tests of the files in which JITs list their code.

use super::*;

const MAGIC: u32 = 0x4a69_5444;
const LOAD: u32 = 0;
const MOVE: u32 = 1;

#[test]
fn the_last_line_for_a_start_counts() {
    let table =
        of_map(b"1000 40 old name\n2000 10 b\n\nzz 1 x\n1000 20 LazyCompile:~new a.js:1\n3000 8\n");
    let name = |address| table.lookup(address).map(|symbol| symbol.name);
    assert_eq!(name(0x1000), Some(&b"LazyCompile:~new a.js:1"[..]));
    assert_eq!(name(0x1020), None);
    assert_eq!(name(0x200f), Some(&b"b"[..]));
    assert_eq!(table.len(), 2);
}

fn header() -> Vec<u8> {
    [MAGIC, 1, 40, 62, 0, 7, 0, 0, 0, 0].map(u32::to_ne_bytes).concat()
}

/// A record of process 7 with no `vma`.
fn add(bytes: &mut Vec<u8>, id: u32, numbers: &[u64], rest: &[u8]) {
    let size = u32::try_from(32 + 8 * numbers.len() + rest.len()).unwrap();
    bytes.extend([id, size, 0, 0, 7, 7, 0, 0].map(u32::to_ne_bytes).as_flattened());
    bytes.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
    bytes.extend(rest);
}

fn parsed(bytes: &[u8], is_timed: bool) -> (SymbolTable, Option<Vec<Version>>) {
    let dump = JitDump { path: b"jit-7.dump"[..].into(), file: None, is_timed };
    let (parsed, mut table) = (Dump::parse(bytes).unwrap(), TableBuilder::new(false));
    parsed.add_to(&mut table, &dump, 7);
    let versions = parsed.versions(&dump, 7);
    if versions.is_some() {
        parsed.add_versions_to(&mut table, 7);
    }
    (table.finish(), versions)
}

fn name(table: &SymbolTable, address: u64) -> String {
    let found = table.lookup(address).map_or(&b"-"[..], |symbol| symbol.name);
    String::from_utf8_lossy(found).into_owned()
}

#[track_caller]
fn assert_names(table: &SymbolTable, addresses: &[u64], expected: &str) {
    for at in addresses {
        assert_eq!(name(table, *at), expected, "{at:#x}");
    }
}

/// A dump of code that was replaced in part, and of code that was not.
fn replaced() -> Vec<u8> {
    let mut bytes = header();
    add(&mut bytes, LOAD, &[0x1000, 0x100, 0], b"first\0code");
    add(&mut bytes, LOAD, &[0x5000, 0x10, 1], b"alone\0");
    add(&mut bytes, LOAD, &[0x1080, 0x100, 2], b"second\0");
    bytes
}

#[test]
fn of_code_that_was_replaced_in_part_the_rest_stays() {
    let lines = "1000 100 a\n1040 20 within\n1080 100 b\n2000 100 c\n1ff0 20 d\n2080 1 \
                 e\n3004 4 old\n3000 10 new\n";
    let table = of_map(lines.as_bytes());
    assert_names(&table, &[0x1000, 0x103f, 0x1060, 0x107f], "a");
    assert_names(&table, &[0x1040, 0x105f], "within");
    assert_names(&table, &[0x1080, 0x117f], "b");
    assert_names(&table, &[0x1ff0, 0x200f], "d");
    assert_names(&table, &[0x2010, 0x2081, 0x20ff], "c");
    assert_names(&table, &[0x2080], "e");
    assert_names(&table, &[0x2100], "-");
    assert_names(&table, &[0x3000, 0x3004, 0x300f], "new");
    assert_eq!(table.lookup(0x1060).unwrap().start, 0x1000);
}

#[test]
fn code_that_was_replaced_has_addresses_of_its_own() {
    let mut bytes = replaced();
    add(&mut bytes, MOVE, &[0x1080, 0x9000, 0x100, 2], b"");
    let (table, versions) = parsed(&bytes, true);
    let shown = versions
        .iter()
        .flatten()
        .map(|v| format!("{:x} {} {}", v.start, v.is_replaced, name(&table, v.first)));
    assert_eq!(
        shown.collect::<Vec<_>>().join(", "),
        "1000 true first, 5000 false -, 1080 true second, 1080 true -, 9000 false -"
    );
    for (at, expected) in [(0x107f, "first"), (0x1080, "-"), (0x5000, "alone"), (0x9000, "second")]
    {
        assert_names(&table, &[at], expected);
    }
    // Without times, and with those of another clock, only the last state counts.
    assert_eq!(parsed(&bytes, false).1, None);
    bytes[32] = 1;
    let (table, versions) = parsed(&bytes, true);
    assert_eq!((versions, name(&table, VERSIONS)), (None, "-".into()));
}

#[test]
fn only_code_at_addresses_of_other_code_is_a_judgement() {
    let bytes = replaced();
    let (table, _) = parsed(&bytes, false);
    let replaced = Dump::parse(&bytes).unwrap().replaced_in(&table);
    let is_judged = |address| replaced.contains(&table.find(address).unwrap());
    assert_eq!([0x1000, 0x1080, 0x5000].map(is_judged), [true, true, false]);
    assert_eq!(replaced.len(), 2);
}

#[test]
fn a_child_writes_to_the_dump_of_its_parent() {
    let mut bytes = header();
    add(&mut bytes, LOAD, &[0x1000, 0x100, 0], b"parent\0");
    add(&mut bytes, LOAD, &[0x1000, 0x100, 1], b"child\0");
    let at = bytes.len() - 32 - 24 - 6 + 16;
    bytes[at..at + 4].copy_from_slice(&9_u32.to_ne_bytes());
    let (table, versions) = parsed(&bytes, true);
    let versions = versions.iter().flatten();
    let versions = versions.map(|v| (v.pid, v.is_replaced, name(&table, v.first)));
    assert!(versions.eq([(7, false, "-".into()), (9, false, "child".into())]));
    assert_eq!(name(&table, 0x1000), "parent");
}

#[test]
fn the_code_loaded_or_moved_last_counts() {
    let mut bytes = header();
    add(&mut bytes, LOAD, &[0x1000, 0x100, 0], b"old\0code");
    add(&mut bytes, LOAD, &[0x2000, 0x100, 1], b"\0");
    add(&mut bytes, LOAD, &[0x1080, 0x100, 1], b"new\0");
    add(&mut bytes, LOAD, &[0x5000, 0x10, 2], b"moving\0");
    add(&mut bytes, MOVE, &[0x5000, 0x6000, 0x10, 2], b"");
    add(&mut bytes, LOAD, &[0x7000, 0x10, 3], b"cut\0");
    bytes.truncate(bytes.len() - 1);
    let (table, _) = parsed(&bytes, false);
    assert_names(&table, &[0x5000, 0x7000], "-");
    assert_names(&table, &[0x1000, 0x107f], "old");
    assert_names(&table, &[0x117f], "new");
    assert_names(&table, &[0x600f], "moving");
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(Dump::parse(b""), Err(Refusal::Malformed(_))));
    assert!(matches!(Dump::parse(b"\x7fELF...."), Err(Refusal::Malformed(_))));
}
