//! The files in which JITs list their code: a map or a jitdump.
//!
//! `/tmp/perf-PID.map` is a text. A JIT that reuses memory writes another line with the same start; the last one counts.
//!
//! ```text
//!   3ef414c0 398 RegExp:[{(]
//!   START SIZE NAME            hexadecimal; the name is the rest of the line
//! ```
//!
//! `jit-PID.dump` also has the code itself:
//!
//! ```text
//!   header   magic "JiTD" in the writer's byte order, version, size, machine, pad, pid, timestamp, flags
//!   record   id, size, timestamp │ 0 load: pid, tid, vma, code_addr, code_size, code_index, name\0, code
//!                                │ 1 move: pid, tid, vma, old_addr, new_addr, code_size, code_index
//!                                │ 2 lines, 3 close, 4 unwinding: not needed for names
//! ```
//!
//! A JIT maps a page of the file as executable, so a record of the recording has its path. Code that is loaded over
//! older code replaces it: the table describes the last state, as with `/tmp/perf-PID.map`.
//!
//! Source: `tools/perf/Documentation/jitdump-specification.txt`.

use std::collections::BTreeMap;

use recrep_format::endian::Endian;

use super::bytes::hexadecimal;
use super::outcome::Refusal;
use super::table::{SymbolTable, TableBuilder};

const MAGIC: u32 = 0x4a69_5444;
const LOAD: u32 = 0;
const MOVE: u32 = 1;

/// Loaded code: end and name by start address.
type Code<'b> = BTreeMap<u64, (u64, &'b [u8])>;

/// Builds a symbol table from the text of a map.
pub(super) fn of_map(text: &[u8]) -> SymbolTable {
    // Of lines with equal starts the last one is kept.
    table(text.split(|&byte| byte == b'\n').filter_map(code_in_line).collect())
}

/// Returns the start, the end and the name in a line.
fn code_in_line(line: &[u8]) -> Option<(u64, (u64, &[u8]))> {
    let (start, rest) = hexadecimal(line)?;
    let (size, name) = hexadecimal(rest)?;
    let name = name.strip_suffix(b"\r").unwrap_or(name);
    (!name.is_empty() && !name.contains(&0)).then(|| (start, (start.saturating_add(size), name)))
}

/// Builds a symbol table from a jitdump. A truncated file counts up to its last whole record.
pub(super) fn of_dump(bytes: &[u8]) -> Result<SymbolTable, Refusal> {
    let magic = *bytes.first_chunk().ok_or_else(|| Refusal::Malformed("it is empty".into()))?;
    let endian = [Endian::Little, Endian::Big].into_iter().find(|endian| endian.u32(magic) == MAGIC);
    let other = || Refusal::Malformed("it does not begin with a jitdump's magic number".into());
    let endian = endian.ok_or_else(other)?;
    let size = endian.u32_at(bytes, 8).and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    let mut records = bytes.get(size.max(16)..).unwrap_or_default();
    let mut code = Code::new();
    while apply_record(endian, &mut records, &mut code).is_some() {}
    Ok(table(code))
}

fn table(code: Code<'_>) -> SymbolTable {
    // No name is ranked: each start has one.
    let mut table = TableBuilder::new(false);
    for (start, (end, name)) in code {
        table.add(name, start, end);
    }
    table.finish()
}

/// Applies the next record to `code`. Returns `None` at the end of the file or if the record is incomplete.
fn apply_record<'b>(endian: Endian, records: &mut &'b [u8], code: &mut Code<'b>) -> Option<()> {
    /// Size of id, size and timestamp.
    const HEAD: usize = 16;
    let size = usize::try_from(endian.u32_at(records, 4)?).ok().filter(|size| *size >= HEAD)?;
    let (record, rest) = records.split_at_checked(size)?;
    *records = rest;
    // After the head: pid, tid and vma.
    let number = |place: usize| endian.u64_at(record, HEAD + 16 + 8 * place);
    match endian.u32_at(record, 0)? {
        LOAD => {
            let name = record.get(HEAD + 16 + 24..)?;
            insert(code, number(0)?, number(1)?, name.get(..memchr::memchr(0, name)?)?);
        }
        MOVE => {
            let (old, new, size) = (number(0)?, number(1)?, number(2)?);
            if let Some((_, name)) = code.remove(&old) {
                insert(code, new, size, name);
            }
        }
        _ => {}
    }
    Some(())
}

/// Adds code of `size` bytes at `start`, replacing all code that it overlaps.
fn insert<'b>(code: &mut Code<'b>, start: u64, size: u64, name: &'b [u8]) {
    let Some(end) = start.checked_add(size).filter(|end| *end > start && !name.is_empty()) else { return };
    while let Some((&other, &(other_end, _))) = code.range(..end).next_back() {
        if other_end <= start {
            break;
        }
        code.remove(&other);
    }
    code.insert(start, (end, name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_for_a_start_counts() {
        let table = of_map(b"1000 40 old name\n2000 10 b\n\nzz 1 x\n1000 20 LazyCompile:~new a.js:1\n3000 8\n");
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
        numbers.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
        bytes.extend(rest);
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
        let table = of_dump(&bytes).unwrap();
        let name = |address| table.lookup(address).map(|symbol| String::from_utf8_lossy(symbol.name).into_owned());
        assert_eq!([0x1000, 0x107f, 0x5000, 0x7000].map(name), [const { None }; 4]);
        assert_eq!(name(0x117f).as_deref(), Some("new"));
        assert_eq!(name(0x600f).as_deref(), Some("moving"));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(of_dump(b""), Err(Refusal::Malformed(_))));
        assert!(matches!(of_dump(b"\x7fELF...."), Err(Refusal::Malformed(_))));
    }
}
