//! `jit-PID.dump`: the file in which a JIT writes the code it has compiled, with names.
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

use super::outcome::Refusal;
use super::table::{Binding, RawSymbol, SymbolTable, TableBuilder};

const MAGIC: u32 = 0x4a69_5444;
const LOAD: u32 = 0;
const MOVE: u32 = 1;

/// Reader of a record's fields, in the writer's byte order.
struct Cursor<'b> {
    rest: &'b [u8],
    swapped: bool,
}

impl<'b> Cursor<'b> {
    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        let number = u32::from_ne_bytes(*bytes);
        Some(if self.swapped { number.swap_bytes() } else { number })
    }

    fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        let number = u64::from_ne_bytes(*bytes);
        Some(if self.swapped { number.swap_bytes() } else { number })
    }

    fn take(&mut self, size: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(bytes)
    }
}

/// Loaded code: end and name by start address.
type Code<'b> = BTreeMap<u64, (u64, &'b [u8])>;

/// Builds a symbol table from a jitdump. A truncated file counts up to its last whole record.
pub(super) fn parse(bytes: &[u8], demangle: bool) -> Result<SymbolTable, Refusal> {
    let mut head = Cursor { rest: bytes, swapped: false };
    let magic = head.u32().ok_or_else(|| Refusal::Malformed("it is empty".into()))?;
    if magic != MAGIC && magic.swap_bytes() != MAGIC {
        return Err(Refusal::Malformed("it does not begin with a jitdump's magic number".into()));
    }
    let swapped = magic != MAGIC;
    head.swapped = swapped;
    let _version = head.u32();
    let size = head.u32().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    let mut records = Cursor { rest: bytes.get(size.max(16)..).unwrap_or_default(), swapped };
    let mut code = Code::new();
    while apply_record(&mut records, &mut code).is_some() {}
    let mut table = TableBuilder::new(demangle);
    for (start, (end, name)) in code {
        let name = table.add_name(name);
        table.push(RawSymbol { start, end, name, binding: Binding::Global, ifunc: false });
    }
    Ok(table.finish())
}

/// Applies the next record to `code`. Returns `None` at the end of the file or if the record is incomplete.
fn apply_record<'b>(records: &mut Cursor<'b>, code: &mut Code<'b>) -> Option<()> {
    /// Size of id, size and timestamp.
    const HEAD: usize = 16;
    let (id, size, _time) = (records.u32()?, records.u32()?, records.u64()?);
    let size = usize::try_from(size).ok()?.checked_sub(HEAD)?;
    let mut body = Cursor { rest: records.take(size)?, swapped: records.swapped };
    if id == LOAD || id == MOVE {
        let _pid_tid_vma = (body.u32()?, body.u32()?, body.u64()?);
        let (first, second, third) = (body.u64()?, body.u64()?, body.u64()?);
        if id == LOAD {
            let name = body.rest.get(..memchr::memchr(0, body.rest)?)?;
            insert(code, first, second, name);
        } else if let Some((_, name)) = code.remove(&first) {
            insert(code, second, third, name);
        }
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

    fn header() -> Vec<u8> {
        let words = [MAGIC, 1, 40, 62, 0, 7, 0, 0, 0, 0];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// A record of process 7 with no `vma`.
    fn add(bytes: &mut Vec<u8>, id: u32, numbers: &[u64], rest: &[u8]) {
        let size = u32::try_from(32 + 8 * numbers.len() + rest.len()).unwrap();
        for word in [id, size, 0, 0, 7, 7, 0, 0] {
            bytes.extend(word.to_ne_bytes());
        }
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
        let table = parse(&bytes, true).unwrap();
        let name = |address| table.lookup(address).map(|symbol| String::from_utf8_lossy(symbol.name).into_owned());
        assert_eq!([0x1000, 0x107f, 0x5000, 0x7000].map(name), [const { None }; 4]);
        assert_eq!(name(0x117f).as_deref(), Some("new"));
        assert_eq!(name(0x600f).as_deref(), Some("moving"));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(parse(b"", true), Err(Refusal::Malformed(_))));
        assert!(matches!(parse(b"\x7fELF....", true), Err(Refusal::Malformed(_))));
    }
}
