//! The files in which JITs list their code: a map or a jitdump.
//!
//! `/tmp/perf-PID.map` is a text. A JIT that reuses memory writes another line for it; the last one
//! counts.
//!
//! ```text
//!   3ef414c0 398 RegExp:[{(]
//!   START SIZE NAME            hexadecimal; the name is the rest of the line
//! ```
//!
//! `jit-PID.dump` also has the code itself, and times:
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
//! A JIT maps a page of the file as executable, so a record of the recording has its path.
//!
//! # Code over older code
//! Code replaces what it overlaps; what older code has beyond its ends stays. A map, which has no
//! times, describes the last state. If the jitdump's times are those of the recording
//! ([`JitDump::is_timed`]), each address has the name of its time: the table has all versions of
//! code that was replaced, each at addresses of its own ([`VERSIONS`]), and the timeline says which
//! version was where ([`crate::timeline`]'s `jit_code.rs`).
//!
//! ```text
//!   time ▲ 9  load c           [====]             c at VERSIONS + 48
//!        │ 5  load b      [========]              b at VERSIONS + 16
//!        │ 1  load a  [====]             [===]    a at VERSIONS; what was not replaced is at its own address
//!        └──────────────────────────────────────► address
//! ```
//!
//! Source: `tools/perf/Documentation/jitdump-specification.txt`.

pub(crate) mod frames;
pub(crate) mod proof;
mod search;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use recrep_format::endian::Endian;
use recrep_format::feature::BundledVersion;
use rustc_hash::FxHashSet;

use crate::symbols::file::Refusal;
use crate::symbols::file::hexadecimal;
use crate::symbols::module::JitDump;
use crate::symbols::names::table::{SymbolId, SymbolTable, TableBuilder};

const MAGIC: u32 = 0x4a69_5444;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const UNWINDING: u32 = 4;

/// Flag of the header: the times are those of the processor's counter, not of `CLOCK_MONOTONIC`.
const ARCH_TIMESTAMP: u64 = 1;

/// Note on a dump whose times do not count although code was replaced.
pub(crate) const UNTIMED: &str = "the JIT replaced code while the program ran, and the recording's \
                                  clock is not the jitdump's: each address has the name of the \
                                  code that was there last; record with -k mono";

/// First of the addresses by which versions of code are looked up: no process has code there.
const VERSIONS: u64 = 1 << 63;

/// Code that is loaded at a time. Ranges do not overlap.
#[derive(Clone, Default)]
struct Code<'b> {
    /// Parts of code by start address.
    parts: BTreeMap<u64, CodePart<'b>>,
}

/// What later code left of a piece of code.
#[derive(Clone, Copy)]
struct CodePart<'b> {
    end: u64,
    name: &'b [u8],
    /// First address of the whole code.
    whole: u64,
    /// Number of the code: of its line or version.
    load: usize,
}

/// Code that was at an address from a time on, until other code came there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) time: u64,
    pub(crate) pid: i32,
    pub(crate) start: u64,
    /// One past the last address.
    pub(crate) end: u64,
    /// Address by which `start` is looked up.
    pub(crate) first: u64,
    /// `true` if other code was at some of the addresses at another time.
    pub(crate) is_replaced: bool,
}

impl From<BundledVersion> for Version {
    fn from(version: BundledVersion) -> Self {
        let BundledVersion { time, pid, start, end, first, is_replaced, .. } = version;
        Self { time, pid, start, end, first, is_replaced: is_replaced != 0 }
    }
}

impl Version {
    /// Returns the version as it stands in a bundle, for the module with this number.
    pub(crate) fn bundled(&self, module: u32) -> BundledVersion {
        let Self { time, pid, start, end, first, is_replaced } = *self;
        BundledVersion { module, pid, time, start, end, first, is_replaced: u32::from(is_replaced) }
    }
}

/// A version of code as the dump has it.
struct DumpedCode<'b> {
    version: Version,
    /// Its name; empty where code was moved away.
    name: &'b [u8],
    /// Place of the code in the file; empty if it was moved here.
    code: Range<usize>,
    /// Place of its call frame information in the file; empty without any.
    eh_frame: Range<usize>,
}

/// Contents of a jitdump.
pub(crate) struct Dump<'b> {
    /// State at the end, by process.
    code: BTreeMap<i32, Code<'b>>,
    /// All code in the order of the records.
    versions: Vec<DumpedCode<'b>>,
    /// Machine whose code it has (`e_machine` of ELF).
    machine: u16,
    /// Process that wrote the file, in its own pid namespace.
    pid: i32,
    /// `true` if the times are those of `CLOCK_MONOTONIC`.
    is_monotonic: bool,
}

/// Builds a symbol table from the text of a map.
pub(crate) fn of_map(text: &[u8]) -> SymbolTable {
    let mut code = Code::default();
    let lines = text.split(|&byte| byte == b'\n').filter_map(code_in_line);
    for (load, (start, end, name)) in lines.enumerate() {
        code.load(start, end, name, load);
    }
    let mut table = TableBuilder::new(false);
    code.add_to(&mut table);
    table.finish()
}

/// Returns the start, the end and the name in a line.
fn code_in_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (start, rest) = hexadecimal(line)?;
    let (size, name) = hexadecimal(rest)?;
    let name = name.strip_suffix(b"\r").unwrap_or(name);
    (!name.is_empty() && !name.contains(&0)).then(|| (start, start.saturating_add(size), name))
}

/// Size of id, size and timestamp of a record.
const HEAD: usize = 16;

/// Splits off the next record; `None` at the end of the file or if the record is incomplete.
fn split_record(endian: Endian, records: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = usize::try_from(endian.u32_at(records, 4)?).ok().filter(|size| *size >= HEAD)?;
    records.split_at_checked(size)
}

impl<'b> Dump<'b> {
    /// Parses a jitdump. A truncated file counts up to its last whole record.
    pub(crate) fn parse(bytes: &'b [u8]) -> Result<Self, Refusal> {
        let magic = *bytes.first_chunk().ok_or_else(|| Refusal::Malformed("it is empty".into()))?;
        let endian =
            [Endian::Little, Endian::Big].into_iter().find(|endian| endian.u32(magic) == MAGIC);
        let endian = endian.ok_or_else(|| {
            Refusal::Malformed("it does not begin with a jitdump's magic number".into())
        })?;
        let size = endian.u32_at(bytes, 8).and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
        let mut records = bytes.get(size.max(16)..).unwrap_or_default();
        let flags = endian.u64_at(bytes, 32).unwrap_or(0);
        let mut dump = Self {
            code: BTreeMap::new(),
            versions: Vec::new(),
            machine: endian.u32_at(bytes, 12).and_then(|at| u16::try_from(at).ok()).unwrap_or(0),
            pid: endian.u32_at(bytes, 20).unwrap_or(0).cast_signed(),
            is_monotonic: flags & ARCH_TIMESTAMP == 0,
        };
        let (mut next, mut eh_frame) = (VERSIONS, 0..0);
        while let Some((record, rest)) = split_record(endian, records) {
            let at = bytes.len() - records.len();
            records = rest;
            if dump.apply_record(endian, at, record, &mut next, &mut eh_frame).is_none() {
                break;
            }
        }
        dump.mark_replaced();
        Ok(dump)
    }

    /// Applies a record `at` this place in the file; versions begin at `next`, and the code that is
    /// loaded next has the call frame information at `eh_frame`. Returns `None` if the record is
    /// incomplete.
    fn apply_record(
        &mut self,
        endian: Endian,
        at: usize,
        record: &'b [u8],
        next: &mut u64,
        eh_frame: &mut Range<usize>,
    ) -> Option<()> {
        let time = endian.u64_at(record, 8)?;
        let kind = endian.u32_at(record, 0)?;
        if kind == UNWINDING {
            // After the head: size of the data, size of .eh_frame_hdr at their end, mapped size.
            let word =
                |place: usize| usize::try_from(endian.u64_at(record, HEAD + 8 * place)?).ok();
            let (start, size) = (HEAD + 24, word(0)?.checked_sub(word(1)?)?);
            let range = start..start.checked_add(size)?;
            *eh_frame =
                record.get(range.clone()).map_or(0..0, |_| at + range.start..at + range.end);
            return Some(());
        }
        if !matches!(kind, LOAD | MOVE) {
            return Some(());
        }
        let pid = endian.u32_at(record, HEAD)?.cast_signed();
        let code = self.code.entry(pid).or_default();
        // After the head: pid, tid and vma.
        let number = |place: usize| endian.u64_at(record, HEAD + 16 + 8 * place);
        let (first, second) = (number(0)?, number(1)?);
        let (mut dumped, mut frames) = (0..0, 0..0);
        let (size, changes) = if kind == LOAD {
            let name = record.get(HEAD + 16 + 24..)?;
            let end = memchr::memchr(0, name)?;
            let start = HEAD + 16 + 24 + end + 1;
            let length = usize::try_from(second).ok().filter(|size| *size <= record.len() - start);
            dumped = length.map_or(0..0, |length| at + start..at + start + length);
            frames = std::mem::replace(eh_frame, 0..0);
            (second, vec![(first, name.get(..end)?)])
        } else {
            let moved = code.parts.get(&first).map(|part| part.name);
            let size = number(2)?;
            (size, moved.map_or(Vec::new(), |name| vec![(first, &b""[..]), (second, name)]))
        };
        for (start, name) in changes {
            let first = *next;
            if let Some(end) = start.checked_add(size).filter(|end| *end > start)
                && let Some(after) = first.checked_add(size)
            {
                *next = after;
                let version = Version { time, pid, start, end, first, is_replaced: false };
                code.load(start, end, name, self.versions.len());
                let (code, eh_frame) = (dumped.clone(), frames.clone());
                self.versions.push(DumpedCode { version, name, code, eh_frame });
            }
        }
        Some(())
    }

    /// Marks the versions that share addresses with others of the same process.
    fn mark_replaced(&mut self) {
        let mut order: Vec<usize> = (0..self.versions.len()).collect();
        let places: Vec<(i32, u64, u64)> = self
            .versions
            .iter()
            .map(|DumpedCode { version: of, .. }| (of.pid, of.start, of.end))
            .collect();
        order.sort_by_key(|&index| places.get(index));
        let mut replaced = Vec::new();
        // The version that ends last among those before.
        let mut last: Option<(usize, i32, u64)> = None;
        for index in order {
            let Some(&(pid, start, end)) = places.get(index) else { continue };
            match last {
                Some((other, of, until)) if of == pid && start < until => {
                    replaced.extend([other, index]);
                    last = Some(if until >= end { (other, of, until) } else { (index, pid, end) });
                }
                _ => last = Some((index, pid, end)),
            }
        }
        for index in replaced {
            if let Some(code) = self.versions.get_mut(index) {
                code.version.is_replaced = true;
            }
        }
    }

    /// Returns whether code was replaced while the program ran.
    pub(crate) fn has_replaced(&self) -> bool {
        self.versions.iter().any(|code| code.version.is_replaced)
    }

    /// Returns the functions of the last state that are where other code was at another time.
    pub(crate) fn replaced_in(&self, table: &SymbolTable) -> FxHashSet<SymbolId> {
        let mut replaced = FxHashSet::default();
        let versions = self.versions.iter().map(|code| code.version);
        for version in versions.filter(|version| version.is_replaced) {
            let mut at = version.start;
            while at < version.end {
                let (symbol, around) = table.find_range(at);
                replaced.extend(symbol);
                at = around.end.max(at.saturating_add(1));
            }
        }
        replaced
    }

    /// Returns all code, if its times are those of the recording's clock: `pid` is the process that
    /// mapped the dump.
    pub(crate) fn versions(&self, dump: &JitDump, pid: i32) -> Option<Vec<Version>> {
        let all = self.versions.iter().map(|code| code.version);
        let all = all.map(|version| Version { pid: self.pid_of(&version, pid), ..version });
        (dump.is_timed && self.is_monotonic).then(|| all.collect())
    }

    /// Returns the process of a version, in the recorder's pid namespace. A child may write to the
    /// dump of its parent.
    fn pid_of(&self, version: &Version, pid: i32) -> i32 {
        if self.pid == pid { version.pid } else { pid }
    }

    /// Adds the code of process `pid` as it is at the end, or of all processes that wrote to the
    /// dump if its times do not count.
    pub(crate) fn add_to(&self, table: &mut TableBuilder, dump: &JitDump, pid: i32) {
        self.last_state(dump, pid).add_to(table);
    }

    /// Returns the code that [`Dump::add_to`] adds.
    fn last_state(&self, dump: &JitDump, pid: i32) -> Cow<'_, Code<'b>> {
        let is_timed = dump.is_timed && self.is_monotonic && self.pid == pid;
        if let Some(own) = self.code.get(&pid).filter(|_| is_timed) {
            return Cow::Borrowed(own);
        }
        let mut all = Code::default();
        for (load, DumpedCode { version, name, .. }) in self.versions.iter().enumerate() {
            all.load(version.start, version.end, name, load);
        }
        Cow::Owned(all)
    }

    /// Returns whether a version is looked up by addresses of its own, where times count.
    fn has_own_addresses(&self, version: &Version, pid: i32) -> bool {
        version.is_replaced || self.pid_of(version, pid) != pid
    }

    /// Adds all versions of code that was replaced, and the code of other processes than `pid`.
    pub(crate) fn add_versions_to(&self, table: &mut TableBuilder, pid: i32) {
        for DumpedCode { version, name, .. } in &self.versions {
            if !name.is_empty() && self.has_own_addresses(version, pid) {
                let size = version.end - version.start;
                table.add(name, version.first, version.first.saturating_add(size));
            }
        }
    }
}

impl<'b> Code<'b> {
    /// Adds code, which replaces what it overlaps. Code without a name only replaces.
    fn load(&mut self, start: u64, end: u64, name: &'b [u8], load: usize) {
        // What begins where older code began is that code, made again.
        if self.parts.get(&start).is_some_and(|part| part.whole == start) {
            self.parts.remove(&start);
        }
        self.cut(start, end);
        if start < end && !name.is_empty() {
            self.parts.insert(start, CodePart { end, name, whole: start, load });
        }
    }

    /// Removes the code in a range; what is before and after it stays.
    fn cut(&mut self, start: u64, end: u64) {
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

    /// Adds a symbol for each piece of code. One with other code within it is one symbol, which
    /// goes on after that.
    fn add_to(&self, table: &mut TableBuilder) {
        // The end of the last part of each code that still has its beginning.
        let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
        for part in self.parts.values() {
            if self.parts.get(&part.whole).is_some_and(|first| first.load == part.load) {
                let end = ends.entry(part.load).or_default();
                *end = part.end.max(*end);
            }
        }
        for (&start, part) in &self.parts {
            match ends.get(&part.load) {
                Some(end) if start == part.whole => table.add(part.name, start, *end),
                Some(_) => {}
                None => table.add(part.name, start, part.end),
            }
        }
    }
}

#[cfg(test)]
mod tests;
