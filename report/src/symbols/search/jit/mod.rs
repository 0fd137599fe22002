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
//! `jit-PID.dump` also has the code itself, times, and rules for unwinding: [`recrep_unwind::jitdump`].
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

pub(crate) mod frames;
pub(crate) mod proof;
mod search;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use recrep_format::feature::BundledVersion;
use recrep_unwind::jitdump::{CodePart, JitAction, JitHeader, JitRecord, JitRecords, LoadedCode};
use rustc_hash::FxHashSet;

use crate::symbols::file::Refusal;
use crate::symbols::file::hexadecimal;
use crate::symbols::module::JitDump;
use crate::symbols::names::table::{SymbolId, SymbolTable, TableBuilder};

/// Note on a dump whose times do not count although code was replaced.
pub(crate) const UNTIMED: &str = "the JIT replaced code while the program ran, and the recording's \
                                  clock is not the jitdump's: each address has the name of the \
                                  code that was there last; record with -k mono";

/// First of the addresses by which versions of code are looked up: no process has code there.
const VERSIONS: u64 = 1 << 63;

/// Code that is loaded at a time.
type Code<'b> = LoadedCode<NamedLoad<'b>>;

/// Name of code, and its number: of its line or version.
#[derive(Clone, Copy)]
struct NamedLoad<'b> {
    name: &'b [u8],
    number: usize,
}

/// Code that was at an address from a time on, until other code came there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    header: JitHeader,
}

/// Builds a symbol table from the text of a map.
pub(crate) fn of_map(text: &[u8]) -> SymbolTable {
    let mut code = Code::default();
    let lines = text.split(|&byte| byte == b'\n').filter_map(code_in_line);
    for (number, (start, end, name)) in lines.enumerate() {
        load(&mut code, start..end, NamedLoad { name, number });
    }
    let mut table = TableBuilder::new(false);
    add_code(&code, &mut table);
    table.finish()
}

/// Returns the start, the end and the name in a line.
fn code_in_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (start, rest) = hexadecimal(line)?;
    let (size, name) = hexadecimal(rest)?;
    let name = name.strip_suffix(b"\r").unwrap_or(name);
    (!name.is_empty() && !name.contains(&0)).then(|| (start, start.saturating_add(size), name))
}

impl<'b> Dump<'b> {
    /// Parses a jitdump. A truncated file counts up to its last whole record.
    pub(crate) fn parse(bytes: &'b [u8]) -> Result<Self, Refusal> {
        if bytes.is_empty() {
            return Err(Refusal::Malformed("it is empty".into()));
        }
        let header = JitHeader::parse(bytes).ok_or_else(|| {
            Refusal::Malformed("it does not begin with a jitdump's magic number".into())
        })?;
        let mut dump = Self { code: BTreeMap::new(), versions: Vec::new(), header };
        let records = bytes.get(header.size..).unwrap_or_default();
        let (mut next, mut eh_frame) = (VERSIONS, 0..0);
        for JitRecord { time, action } in JitRecords::new(header.endian, records, header.size) {
            match action {
                JitAction::Load { pid, start, size, name, code } => {
                    let eh_frame = std::mem::replace(&mut eh_frame, 0..0);
                    let version = Version { time, pid, start, ..Version::default() };
                    dump.add(DumpedCode { version, name, code, eh_frame }, size, &mut next);
                }
                JitAction::Move { pid, from, to, size } => {
                    let Some(name) = dump.name_at(pid, from) else { continue };
                    for (start, name) in [(from, &b""[..]), (to, name)] {
                        let version = Version { time, pid, start, ..Version::default() };
                        let code = DumpedCode { version, name, code: 0..0, eh_frame: 0..0 };
                        dump.add(code, size, &mut next);
                    }
                }
                JitAction::Unwinding(range) => eh_frame = range,
                JitAction::Other => {}
            }
        }
        dump.mark_replaced();
        Ok(dump)
    }

    /// Returns the name of the code that begins at an address.
    fn name_at(&self, pid: i32, start: u64) -> Option<&'b [u8]> {
        Some(self.code.get(&pid)?.starting_at(start)?.load.name)
    }

    /// Adds code of this size, which is looked up at addresses from `next` on.
    fn add(&mut self, code: DumpedCode<'b>, size: u64, next: &mut u64) {
        let Version { pid, start, .. } = code.version;
        let first = *next;
        if let Some(end) = start.checked_add(size).filter(|end| *end > start)
            && let Some(after) = first.checked_add(size)
        {
            *next = after;
            let version = Version { end, first, ..code.version };
            let named = NamedLoad { name: code.name, number: self.versions.len() };
            load(self.code.entry(pid).or_default(), start..end, named);
            self.versions.push(DumpedCode { version, ..code });
        }
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
        (dump.is_timed && self.header.is_monotonic()).then(|| all.collect())
    }

    /// Returns the process of a version, in the recorder's pid namespace. A child may write to the
    /// dump of its parent.
    fn pid_of(&self, version: &Version, pid: i32) -> i32 {
        if self.header.pid == pid { version.pid } else { pid }
    }

    /// Adds the code of process `pid` as it is at the end, or of all processes that wrote to the
    /// dump if its times do not count.
    pub(crate) fn add_to(&self, table: &mut TableBuilder, dump: &JitDump, pid: i32) {
        add_code(&self.last_state(dump, pid), table);
    }

    /// Returns the code that [`Dump::add_to`] adds.
    fn last_state(&self, dump: &JitDump, pid: i32) -> Cow<'_, Code<'b>> {
        let is_timed = dump.is_timed && self.header.is_monotonic() && self.header.pid == pid;
        if let Some(own) = self.code.get(&pid).filter(|_| is_timed) {
            return Cow::Borrowed(own);
        }
        let mut all = Code::default();
        for (number, DumpedCode { version, name, .. }) in self.versions.iter().enumerate() {
            load(&mut all, version.start..version.end, NamedLoad { name, number });
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

/// Loads code. Code without a name only replaces what it overlaps.
fn load<'b>(code: &mut Code<'b>, addresses: Range<u64>, named: NamedLoad<'b>) {
    match named.name {
        [] => code.remove(addresses),
        _ => code.load(addresses, named),
    }
}

/// Adds a symbol for each piece of code. One with other code within it is one symbol, which goes on
/// after that.
fn add_code(code: &Code<'_>, table: &mut TableBuilder) {
    // The end of the last part of each code that still has its beginning.
    let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
    for (_, CodePart { end, whole, load }) in code.parts() {
        if code.starting_at(*whole).is_some_and(|first| first.load.number == load.number) {
            let last = ends.entry(load.number).or_default();
            *last = (*end).max(*last);
        }
    }
    for (start, CodePart { end, whole, load }) in code.parts() {
        match ends.get(&load.number) {
            Some(end) if start == *whole => table.add(load.name, start, *end),
            Some(_) => {}
            None => table.add(load.name, start, *end),
        }
    }
}

#[cfg(test)]
mod tests;
