//! Rules of the code of JITs: from the unwinding records of jitdumps, which are read while the JITs
//! write them.
//!
//! ```text
//!  mapped page of jit-PID.dump ─▶ the file: its new records, once a batch
//!  address in memory           ─▶ the newest code there ─▶ the same as the process has? ─▶ its rules
//! ```
//!
//! A JIT may hold back records, and memory is used again. So the rules of a piece of code count only
//! while the process has that code at its address.

use std::cell::OnceCell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use recrep_format::endian::Endian;
use recrep_unwind::jitdump::{JitAction, JitHeader, JitRecord, JitRecords, LoadedCode};
use recrep_unwind::{Machine, Rules, Sections};
use rustc_hash::FxHashMap;

use super::code::CodeCache;
use super::modules::{Key, Mapping};
use crate::output::build_ids::{FileIdentity, MappedFile};

/// Number of the first module that is a piece of code.
pub(super) const FIRST: u32 = 1 << 31;
/// Number of pieces of code that have rules, of all dumps.
const MOST_CODE: usize = 1 << 17;
/// Number of pieces of code of a dump.
const MOST_LOADS: usize = 1 << 20;
/// Maximum size of the call frame information of a piece of code.
const LARGEST_FRAMES: usize = 4096;
/// Number of bytes that are read at a time.
const CHUNK: usize = 1 << 20;
/// Maximum size of a record.
const LARGEST_RECORD: usize = 64 << 20;
/// Number of bytes at the beginning of code that are compared with the process.
const COMPARED: usize = 256;
/// Number of attempts to open a dump.
const ATTEMPTS: u8 = 8;

/// Jitdumps, as known to a thread that writes.
#[derive(Default)]
pub(super) struct JitDumps {
    dumps: FxHashMap<Key, Dump>,
    /// By number.
    codes: Vec<DumpedCode>,
    /// Number of the current batch of records.
    batch: u64,
}

/// A dump of which the first records were read.
#[derive(Default)]
struct Dump {
    file: Option<(File, JitHeader)>,
    attempts: u8,
    /// Batch in which it was last read.
    batch: u64,
    /// Offset of the next record.
    offset: usize,
    /// Number of pieces of code that were loaded.
    loads: usize,
    /// The newest code at each address, by number; `None` if it has no rules.
    loaded: LoadedCode<Option<u32>>,
    /// Call frame information of the code that comes next.
    eh_frame: Vec<u8>,
}

/// Code that has rules.
struct DumpedCode {
    time: u64,
    start: u64,
    size: u64,
    /// The first bytes of the code.
    bytes: Vec<u8>,
    eh_frame: Vec<u8>,
    endian: Endian,
    rules: OnceCell<Rules<Vec<u8>>>,
    /// Version of the process's code that it was compared with, and whether it is the same.
    compared: Option<(u64, bool)>,
}

/// A moment of a process, at which code is looked up.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) pid: u32,
    pub(super) machine: Machine,
    /// Version of its code.
    pub(super) version: u64,
    /// The time, if it is that of `CLOCK_MONOTONIC`.
    pub(super) time: Option<u64>,
}

impl JitDumps {
    /// Begins a batch: dumps are read on once in each.
    pub(super) fn begin_batch(&mut self) {
        self.batch += 1;
    }

    /// Returns the module of the code at an address, if it has rules, by the mapped page of the
    /// process's dump.
    pub(super) fn find(
        &mut self,
        page: &Mapping,
        address: u64,
        at: Moment,
        memory: &mut CodeCache,
    ) -> Option<u32> {
        let Self { dumps, codes, batch } = self;
        if !dumps.contains_key(&page.source.key) {
            dumps.insert(page.source.key.clone(), Dump::default());
        }
        let dump = dumps.get_mut(&page.source.key)?;
        if dump.batch != *batch {
            dump.batch = *batch;
            dump.read_on(page, at.pid, codes);
        }
        let (_, header) = dump.file.as_ref()?;
        let number = dump.loaded.find(address)?.load?;
        let code = codes.get_mut(number as usize)?;
        // Code that is newer than the sample is not what it saw.
        let is_old = !header.is_monotonic() || at.time.is_none_or(|time| code.time <= time);
        if !is_old || !code.is_current(at, memory) {
            return None;
        }
        code.rules.get_or_init(|| {
            let eh_frame = std::mem::take(&mut code.eh_frame);
            Rules::new(Sections::of_jit(at.machine, code.endian, code.start, code.size, eh_frame))
        });
        FIRST.checked_add(number)
    }

    /// Returns the rules of a module that [`JitDumps::find`] returned.
    pub(super) fn rules(&self, module: u32) -> Option<&Rules<Vec<u8>>> {
        let number = module.checked_sub(FIRST)?;
        self.codes.get(number as usize)?.rules.get()
    }
}

impl DumpedCode {
    /// Returns whether the process has this code at its address. One that has ended had it.
    fn is_current(&mut self, at: Moment, memory: &mut CodeCache) -> bool {
        match self.compared {
            Some((version, is_same)) if version == at.version => is_same,
            _ => {
                let is_same = memory.has_now(at.pid, self.start, &self.bytes).unwrap_or(true);
                self.compared = Some((at.version, is_same));
                is_same
            }
        }
    }
}

impl Dump {
    /// Reads the records that were added to the file, which is found by its mapped page.
    fn read_on(&mut self, page: &Mapping, pid: u32, codes: &mut Vec<DumpedCode>) {
        if self.file.is_none() && self.attempts < ATTEMPTS {
            self.attempts += 1;
            self.file = open(page, pid);
            self.offset = self.file.as_ref().map_or(0, |(_, header)| header.size);
        }
        let Some((file, header)) = self.file.take() else { return };
        let mut bytes = Vec::new();
        let mut wanted = CHUNK;
        while codes.len() < MOST_CODE && self.loads < MOST_LOADS {
            bytes.resize(wanted, 0);
            let Ok(length) = file.read_at(&mut bytes, self.offset as u64) else { break };
            let read = bytes.get(..length).unwrap_or_default();
            let mut records = JitRecords::new(header.endian, read, self.offset);
            for record in records.by_ref() {
                self.add(record, read, header.endian, codes);
            }
            let is_stuck = records.offset() == self.offset;
            self.offset = records.offset();
            let next = records.next_size().unwrap_or(0);
            match is_stuck {
                true if length == wanted && next > wanted && next <= LARGEST_RECORD => {
                    wanted = next;
                }
                true => break,
                false => wanted = CHUNK,
            }
        }
        self.file = Some((file, header));
    }

    /// Adds what a record says, which is in these bytes from `self.offset` on.
    fn add(
        &mut self,
        record: JitRecord<'_>,
        bytes: &[u8],
        endian: Endian,
        codes: &mut Vec<DumpedCode>,
    ) {
        let in_bytes = |range: &Range<usize>| {
            let start = range.start.checked_sub(self.offset)?;
            bytes.get(start..start.checked_add(range.len())?)
        };
        match record.action {
            JitAction::Load { start, size, code, .. } => {
                let eh_frame = std::mem::take(&mut self.eh_frame);
                let Some(end) = start.checked_add(size) else { return };
                let code = in_bytes(&code).filter(|code| !code.is_empty());
                let number = code.filter(|_| !eh_frame.is_empty()).and_then(|code| {
                    let number = u32::try_from(codes.len()).ok()?;
                    codes.push(DumpedCode {
                        time: record.time,
                        start,
                        size,
                        bytes: code.get(..COMPARED).unwrap_or(code).to_vec(),
                        eh_frame,
                        endian,
                        rules: OnceCell::new(),
                        compared: None,
                    });
                    Some(number)
                });
                self.loads += 1;
                self.loaded.load(start..end, number);
            }
            JitAction::Move { from, to, size, .. } => {
                for start in [from, to] {
                    self.loaded.remove(start..start.saturating_add(size));
                }
            }
            JitAction::Unwinding(range) => {
                let frames = in_bytes(&range).filter(|frames| frames.len() <= LARGEST_FRAMES);
                self.eh_frame = frames.unwrap_or_default().to_vec();
            }
            JitAction::Other => {}
        }
    }
}

/// Opens the dump of which a process has mapped a page.
fn open(page: &Mapping, pid: u32) -> Option<(File, JitHeader)> {
    let FileIdentity::File(file) = page.source.key.identity else { return None };
    let mapped = MappedFile { pid, range: page.range.clone(), file };
    let file = mapped.file(&page.source.key.path)?;
    let mut header = [0; JitHeader::BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    Some((file, JitHeader::parse(&header)?))
}
