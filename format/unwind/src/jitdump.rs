//! Jitdumps: files to which compilers at run time append the code that they make.
//!
//! ```text
//!   header   magic "JiTD" in the writer's order, version, size, machine, pad, pid, time, flags
//!   record   id, size, timestamp
//!            │ 0 load: pid, tid, vma, code_addr, code_size, code_index, name\0, code
//!            │ 1 move: pid, tid, vma, old_addr, new_addr, code_size, code_index
//!            │ 2 lines, 3 close
//!            │ 4 unwinding: size, size of the header, mapped size, .eh_frame, .eh_frame_hdr; of the next load
//! ```
//!
//! Source: `tools/perf/Documentation/jitdump-specification.txt`.

use std::collections::BTreeMap;
use std::ops::Range;

use recrep_format::endian::Endian;

const MAGIC: u32 = 0x4a69_5444;
/// Flag of the header: the times are those of the processor's counter, not of `CLOCK_MONOTONIC`.
const ARCH_TIMESTAMP: u64 = 1;

/// Size of id, size and timestamp of a record.
const HEAD: usize = 16;
/// Offset of what follows pid, tid and vma in a record.
const FIELDS: usize = HEAD + 16;

const LOAD: u32 = 0;
const MOVE: u32 = 1;
const UNWINDING: u32 = 4;

/// Header of a jitdump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitHeader {
    /// Byte order of the file.
    pub endian: Endian,
    /// Offset of the first record.
    pub size: usize,
    /// Machine of the code (`e_machine` of ELF).
    pub machine: u16,
    /// Process that wrote the file, in its own pid namespace.
    pub pid: i32,
    flags: u64,
}

impl JitHeader {
    /// Number of bytes that [`JitHeader::parse`] reads.
    pub const BYTES: usize = 40;

    /// Parses the header of a file; `None` if the file does not begin with a jitdump's magic
    /// number. Fields that a truncated file lacks are 0.
    pub fn parse(file: &[u8]) -> Option<Self> {
        let magic = *file.first_chunk()?;
        let endian =
            [Endian::Little, Endian::Big].into_iter().find(|endian| endian.u32(magic) == MAGIC)?;
        let size = endian.u32_at(file, 8).and_then(|size| usize::try_from(size).ok());
        Some(Self {
            endian,
            size: size.unwrap_or(0).max(HEAD),
            machine: endian.u32_at(file, 12).and_then(|at| u16::try_from(at).ok()).unwrap_or(0),
            pid: endian.u32_at(file, 20).unwrap_or(0).cast_signed(),
            flags: endian.u64_at(file, 32).unwrap_or(0),
        })
    }

    /// Returns whether the times are those of `CLOCK_MONOTONIC`.
    pub fn is_monotonic(&self) -> bool {
        self.flags & ARCH_TIMESTAMP == 0
    }
}

/// Code that is loaded at a time, each piece with what is known of it. Ranges do not overlap.
#[derive(Clone, Debug)]
pub struct LoadedCode<T> {
    parts: BTreeMap<u64, CodePart<T>>,
}

/// What later code left of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePart<T> {
    /// One past the last address.
    pub end: u64,
    /// First address of the whole code.
    pub whole: u64,
    /// What is known of the code.
    pub load: T,
}

impl<T> Default for LoadedCode<T> {
    fn default() -> Self {
        Self { parts: BTreeMap::new() }
    }
}

impl<T: Copy> LoadedCode<T> {
    /// Adds code, which replaces what it overlaps.
    pub fn load(&mut self, addresses: Range<u64>, load: T) {
        self.remove(addresses.clone());
        if !addresses.is_empty() {
            let part = CodePart { end: addresses.end, whole: addresses.start, load };
            self.parts.insert(addresses.start, part);
        }
    }

    /// Removes the code in a range; what is before and after it stays.
    pub fn remove(&mut self, addresses: Range<u64>) {
        let Range { start, end } = addresses;
        // What begins where older code began is that code, made again.
        if self.parts.get(&start).is_some_and(|part| part.whole == start) {
            self.parts.remove(&start);
        }
        while let Some((&other, &part)) =
            self.parts.range(..end).next_back().filter(|(_, part)| part.end > start)
        {
            self.parts.remove(&other);
            if part.end > end {
                self.parts.insert(end, part);
            }
            if other < start {
                self.parts.insert(other, CodePart { end: start, ..part });
                break;
            }
        }
    }

    /// Returns the part that begins at an address.
    pub fn starting_at(&self, address: u64) -> Option<&CodePart<T>> {
        self.parts.get(&address)
    }

    /// Returns the part that has an address.
    pub fn find(&self, address: u64) -> Option<&CodePart<T>> {
        let (_, part) = self.parts.range(..=address).next_back()?;
        (address < part.end).then_some(part)
    }

    /// Returns all parts with the addresses at which they begin, in the order of these.
    pub fn parts(&self) -> impl Iterator<Item = (u64, &CodePart<T>)> {
        self.parts.iter().map(|(start, part)| (*start, part))
    }
}

/// A record of a jitdump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitRecord<'b> {
    /// Time at which it was written.
    pub time: u64,
    /// What it says.
    pub action: JitAction<'b>,
}

/// What a record of a jitdump says. Ranges are offsets in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JitAction<'b> {
    /// Code was loaded.
    Load {
        /// Process that has it, in its own pid namespace.
        pid: i32,
        /// Address in the process.
        start: u64,
        /// Size in bytes.
        size: u64,
        /// Name of the function.
        name: &'b [u8],
        /// The code; empty if the record does not have all of it.
        code: Range<usize>,
    },
    /// Code was moved.
    Move {
        /// Process that has it, in its own pid namespace.
        pid: i32,
        /// Address that it had.
        from: u64,
        /// Address that it has now.
        to: u64,
        /// Size in bytes.
        size: u64,
    },
    /// Call frame information (`.eh_frame`) of the code that is loaded next.
    Unwinding(Range<usize>),
    /// Anything else.
    Other,
}

/// Iterator over the whole records in a piece of a jitdump. It ends at the first one that is
/// incomplete.
#[derive(Clone, Debug)]
pub struct JitRecords<'b> {
    endian: Endian,
    rest: &'b [u8],
    offset: usize,
}

impl<'b> JitRecords<'b> {
    /// Creates an iterator over bytes of a file from `offset` on, where a record begins.
    pub fn new(endian: Endian, bytes: &'b [u8], offset: usize) -> Self {
        Self { endian, rest: bytes, offset }
    }

    /// Returns the offset in the file at which the next record begins.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the size of the next record by its header, of which all bytes may not be there.
    pub fn next_size(&self) -> Option<usize> {
        usize::try_from(self.endian.u32_at(self.rest, 4)?).ok()
    }
}

impl<'b> Iterator for JitRecords<'b> {
    type Item = JitRecord<'b>;

    fn next(&mut self) -> Option<Self::Item> {
        let size = self.next_size().filter(|size| *size >= HEAD)?;
        let (record, rest) = self.rest.split_at_checked(size)?;
        let action = action(self.endian, record, self.offset)?;
        let time = self.endian.u64_at(record, 8)?;
        (self.rest, self.offset) = (rest, self.offset.checked_add(size)?);
        Some(JitRecord { time, action })
    }
}

/// Parses a record at this offset in the file; `None` if it lacks fields.
fn action(endian: Endian, record: &[u8], offset: usize) -> Option<JitAction<'_>> {
    let pid = || Some(endian.u32_at(record, HEAD)?.cast_signed());
    let number = |place: usize| endian.u64_at(record, FIELDS + 8 * place);
    Some(match endian.u32_at(record, 0)? {
        LOAD => {
            let name = record.get(FIELDS + 24..)?;
            let name = name.get(..name.iter().position(|byte| *byte == 0)?)?;
            let start = FIELDS + 24 + name.len() + 1;
            let size = number(1)?;
            let length = usize::try_from(size).ok().filter(|size| *size <= record.len() - start);
            let code = length.map_or(0..0, |length| offset + start..offset + start + length);
            JitAction::Load { pid: pid()?, start: number(0)?, size, name, code }
        }
        MOVE => JitAction::Move { pid: pid()?, from: number(0)?, to: number(1)?, size: number(2)? },
        UNWINDING => {
            let word =
                |place: usize| usize::try_from(endian.u64_at(record, HEAD + 8 * place)?).ok();
            // Of the size of all, that of `.eh_frame_hdr` is at the end.
            let (start, size) = (HEAD + 24, word(0)?.checked_sub(word(1)?)?);
            let range = start..start.checked_add(size)?;
            let is_there = record.get(range.clone()).is_some();
            let (start, end) = (offset + range.start, offset.checked_add(range.end)?);
            JitAction::Unwinding(if is_there { start..end } else { 0..0 })
        }
        _ => JitAction::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, and a load of two bytes of code with two bytes of call frame information.
    fn dump(endian: Endian) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|word| endian.bytes_u32(*word)).collect();
        let longs = |longs: &[u64]| longs.iter().flat_map(|long| endian.bytes_u64(*long)).collect();
        let parts: [Vec<u8>; 9] = [
            words(&[MAGIC, 1, 40, 62, 0, 7, 0, 0, 0, 0]),
            words(&[UNWINDING, 43]),
            longs(&[5, 3, 1, 3]),
            b"\x11\x12\x21".to_vec(),
            words(&[LOAD, 60]),
            longs(&[9, 7 | 7 << 32, 0, 0x1000, 2, 0]),
            b"f\0\xc3\x90".to_vec(),
            words(&[MOVE, 64]),
            longs(&[10, 7 | 7 << 32, 0, 0x1000, 0x2000, 2, 0]),
        ];
        parts.concat()
    }

    #[test]
    fn records_of_either_byte_order_are_read() {
        for endian in [Endian::Little, Endian::Big] {
            let file = dump(endian);
            let header = JitHeader::parse(&file).unwrap();
            assert_eq!((header.endian, header.size, header.machine), (endian, 40, 62));
            assert!(header.pid == 7 && header.is_monotonic());
            let mut records = JitRecords::new(endian, &file[40..], 40);
            let all: Vec<_> = records.by_ref().map(|record| (record.time, record.action)).collect();
            let load =
                JitAction::Load { pid: 7, start: 0x1000, size: 2, name: b"f", code: 141..143 };
            let moved = JitAction::Move { pid: 7, from: 0x1000, to: 0x2000, size: 2 };
            assert_eq!(all, [(5, JitAction::Unwinding(80..82)), (9, load), (10, moved)]);
            assert_eq!(records.offset(), file.len());
        }
    }

    #[test]
    fn a_record_that_is_still_written_is_left() {
        let file = dump(Endian::NATIVE);
        for length in 40..file.len() {
            let mut records = JitRecords::new(Endian::NATIVE, &file[40..length], 40);
            let count = records.by_ref().count();
            let ends = [83, 143, 207].iter().filter(|end| **end <= length).count();
            assert_eq!((count, records.offset() <= length), (ends, true), "{length} bytes");
        }
    }

    #[test]
    fn code_replaces_what_it_overlaps() {
        let mut code = LoadedCode::default();
        for (addresses, load) in [(10..20, 'a'), (30..40, 'b'), (14..16, 'c'), (18..32, 'd')] {
            code.load(addresses, load);
        }
        let at = |address| code.find(address).map_or(' ', |part| part.load);
        assert_eq!((8..42).map(at).collect::<String>(), "  aaaaccaaddddddddddddddbbbbbbbb  ");
        assert_eq!(code.starting_at(32).map(|part| part.whole), Some(30));
        code.load(10..12, 'e');
        assert_eq!((code.find(12), code.parts().count()), (None, 5), "it was made again");
    }

    #[test]
    fn anything_else_has_no_header() {
        assert_eq!(JitHeader::parse(b"perf.dat"), None);
        assert_eq!(JitHeader::parse(b"DT"), None);
        assert_eq!(JitHeader::parse(&MAGIC.to_ne_bytes()).unwrap().size, HEAD);
    }
}
