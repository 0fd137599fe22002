//! Unwinding through a JIT's code: rules from the unwinding records of its dump, and the code.

use std::ops::Range;
use std::sync::OnceLock;

use recrep_format::endian::Endian;
use recrep_unwind::{Machine, Rules, Sections};

use crate::input::map::Bytes;
use crate::symbols::elf::call_frames::{bytes_before, copied};
use crate::symbols::file::{Refusal, kept};
use crate::symbols::module::JitDump;
use crate::symbols::search::jit::{Dump, DumpedCode};

/// Code of a JIT, by the addresses at which its names are looked up.
#[derive(Debug, Default)]
pub(crate) struct JitFrames {
    /// Machine of the code (`e_machine` of ELF).
    pub(crate) machine: u16,
    /// Sorted by address; they do not overlap.
    pub(crate) all: Vec<JitCode>,
}

/// A piece of code.
#[derive(Debug)]
pub(crate) struct JitCode {
    /// Addresses at which it is looked up.
    looked_up: Range<u64>,
    /// Address of the first of them in the process.
    start: u64,
    /// First address and size of the whole code, of which later code may have replaced a part.
    whole: (u64, u64),
    code: Bytes,
    eh_frame: Bytes,
    rules: OnceLock<Rules<Bytes>>,
}

impl JitFrames {
    /// Reads the code of process `pid` in a dump.
    pub(super) fn of(file: &Bytes, dump: &JitDump, pid: i32) -> Result<Self, Refusal> {
        let parsed = Dump::parse(file)?;
        let mut all = Vec::new();
        let mut add = |code: &DumpedCode<'_>, looked_up: Range<u64>, start: u64| {
            let bytes = |range: &Range<usize>| {
                kept(file, range.start as u64, range.len() as u64).unwrap_or_default()
            };
            all.push(JitCode {
                looked_up,
                start,
                whole: (code.version.start, code.version.end - code.version.start),
                code: bytes(&code.code),
                eh_frame: bytes(&code.eh_frame),
                rules: OnceLock::new(),
            });
        };
        for (start, part) in parsed.last_state(dump, pid).parts() {
            if let Some(code) = parsed.versions.get(part.load.number) {
                add(code, start..part.end, start);
            }
        }
        if parsed.versions(dump, pid).is_some() {
            for code in &parsed.versions {
                let version = &code.version;
                if parsed.has_own_addresses(version, pid) {
                    let end = version.first.saturating_add(version.end - version.start);
                    add(code, version.first..end, version.start);
                }
            }
        }
        all.sort_by_key(|code| code.looked_up.start);
        Ok(Self { machine: parsed.header.machine, all })
    }

    /// Returns the code from an address at which it is looked up, at most to the end of its piece.
    pub(crate) fn code_in(&self, looked_up: &Range<u64>) -> Option<&[u8]> {
        let code = self.all.get(self.find(looked_up.start)?)?;
        let end = looked_up.end.min(code.looked_up.end);
        code.code_at(&(looked_up.start..end)).map(|(_, bytes)| bytes)
    }

    /// Returns the number of the code that is looked up at an address.
    pub(crate) fn find(&self, address: u64) -> Option<usize> {
        let next = self.all.partition_point(|code| code.looked_up.start <= address);
        let number = next.checked_sub(1)?;
        self.all.get(number)?.looked_up.contains(&address).then_some(number)
    }
}

impl JitCode {
    /// Returns the address in the process of one at which it is looked up.
    pub(crate) fn address_of(&self, looked_up: u64) -> u64 {
        looked_up.wrapping_sub(self.looked_up.start).wrapping_add(self.start)
    }

    /// Returns the rules, by addresses of the process; there may be none.
    pub(crate) fn rules(&self, machine: Machine, endian: Endian) -> &Rules<Bytes> {
        self.rules.get_or_init(|| {
            let (start, size) = self.whole;
            Rules::new(match self.eh_frame.is_empty() {
                true => Sections::none(machine, endian),
                false => Sections::of_jit(machine, endian, start, size, self.eh_frame.clone()),
            })
        })
    }

    /// Returns the address in the process from which on the code of a range that is looked up lies,
    /// and the code.
    pub(crate) fn code_at(&self, looked_up: &Range<u64>) -> Option<(u64, &[u8])> {
        let address = self.address_of(looked_up.start);
        let start = usize::try_from(address.checked_sub(self.whole.0)?).ok()?;
        let size = usize::try_from(looked_up.end.checked_sub(looked_up.start)?).ok()?;
        Some((address, self.code.get(start..start.checked_add(size)?.min(self.code.len()))?))
    }

    /// Copies the code at an address of the process, and returns the number of bytes.
    pub(crate) fn copy_code(&self, address: u64, to: &mut [u8]) -> usize {
        let start = address.checked_sub(self.whole.0).and_then(|at| usize::try_from(at).ok());
        copied(start.and_then(|start| self.code.get(start..)).unwrap_or_default(), to)
    }

    /// Returns the 8 bytes of code that end before an address of the process.
    pub(crate) fn code_before(&self, address: u64) -> Option<[u8; 8]> {
        bytes_before(&self.code, address.checked_sub(self.whole.0)?)
    }
}
