//! What unwinding needs of a mapped file: how to find a caller's frame, and where the file's parts are mapped.

use std::ops::Range;

use object::elf::{EM_AARCH64, EM_X86_64, Machine};

use super::elf::{Image, Segment};

/// The call frame information of a file (`.eh_frame` of the System V ABI, `.debug_frame` of DWARF).
#[derive(Debug)]
pub struct CallFrames {
    /// Whose instructions it has.
    pub cpu: Cpu,
    /// `.eh_frame`, at its address.
    pub eh_frame: Option<(Range<u64>, Vec<u8>)>,
    /// `.eh_frame_hdr`, likewise: the table that makes finding quick.
    pub eh_frame_hdr: Option<(Range<u64>, Vec<u8>)>,
    /// `.debug_frame`, where there is no `.eh_frame`.
    pub debug_frame: Option<Vec<u8>>,
    /// Where `.text` is.
    pub text: Option<Range<u64>>,
    /// Where `.got` is.
    pub got: Option<Range<u64>>,
    segments: Vec<Segment>,
}

/// The instruction sets that can be unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpu {
    /// x86 with 64 bits.
    X86_64,
    /// Arm with 64 bits.
    Aarch64,
}

impl CallFrames {
    /// Of a file, if it has any.
    pub(super) fn of(image: &Image) -> Option<Self> {
        let cpu = Cpu::of(image.machine)?;
        let section = |name: &[u8]| {
            let section = image.section(name)?;
            Some((section.address..section.address.checked_add(section.size)?, section))
        };
        let read = |name: &[u8]| {
            let (range, section) = section(name)?;
            Some((range, image.read(section).ok().filter(|bytes| !bytes.is_empty())?))
        };
        let eh_frame = read(b".eh_frame");
        let debug_frame = if eh_frame.is_none() { read(b".debug_frame").map(|(_, bytes)| bytes) } else { None };
        if eh_frame.is_none() && debug_frame.is_none() {
            return None;
        }
        Some(Self {
            cpu,
            eh_frame,
            eh_frame_hdr: read(b".eh_frame_hdr"),
            debug_frame,
            text: section(b".text").map(|(range, _)| range),
            got: section(b".got").map(|(range, _)| range),
            segments: image.segments.clone(),
        })
    }

    /// The address, as the file itself counts, of a byte that is at this offset in it.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let within = |segment: &&Segment| offset.checked_sub(segment.offset).is_some_and(|at| at < segment.file_size);
        self.segments.iter().find(within).map(|s| offset.wrapping_sub(s.offset).wrapping_add(s.address))
    }

    /// All addresses that the file has.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        let start = self.segments.iter().map(|s| s.address).min().unwrap_or(0);
        let ends = self.segments.iter().map(|s| s.address.saturating_add(s.memory_size.max(s.file_size)));
        start..ends.max().unwrap_or(0)
    }
}

impl Cpu {
    fn of(machine: Machine) -> Option<Self> {
        match machine {
            EM_X86_64 => Some(Self::X86_64),
            EM_AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }
}
