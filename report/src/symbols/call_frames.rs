//! Data of a mapped file that unwinding needs: its call frame information and the addresses of its segments.

use std::ops::Range;

use object::elf::{EM_AARCH64, EM_X86_64};

use super::elf::{self, Image, Segment};

/// Call frame information of a file (`.eh_frame` of the System V ABI, `.debug_frame` of DWARF).
#[derive(Debug)]
pub struct CallFrames {
    /// Instruction set of the file.
    pub cpu: Cpu,
    /// Linked addresses and contents of `.eh_frame`.
    pub eh_frame: Option<(Range<u64>, Vec<u8>)>,
    /// Linked addresses and contents of `.eh_frame_hdr`, the search table for `.eh_frame`.
    pub eh_frame_hdr: Option<(Range<u64>, Vec<u8>)>,
    /// Contents of `.debug_frame`; `None` if there is an `.eh_frame`.
    pub debug_frame: Option<Vec<u8>>,
    /// Linked addresses of `.text`.
    pub text: Option<Range<u64>>,
    /// Linked addresses of `.got`.
    pub got: Option<Range<u64>>,
    segments: Vec<Segment>,
}

/// Instruction set that can be unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpu {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl CallFrames {
    /// Reads the call frame information of a file; `None` if it has none or its instruction set is not supported.
    pub(super) fn of(image: &Image) -> Option<Self> {
        let cpu = match image.machine {
            EM_X86_64 => Cpu::X86_64,
            EM_AARCH64 => Cpu::Aarch64,
            _ => return None,
        };
        let section = |name: &[u8]| {
            let section = image.section(name)?;
            Some((section.address..section.address.checked_add(section.size)?, section))
        };
        let read = |name: &[u8]| {
            let (range, section) = section(name)?;
            Some((range, image.view(section).ok().filter(|bytes| !bytes.is_empty())?.to_vec()))
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

    /// Returns the linked address of the byte at this file offset.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        elf::address_of(&self.segments, offset)
    }

    /// Returns the range from the lowest to the highest linked address of all segments.
    pub fn span(&self) -> Range<u64> {
        let start = self.segments.iter().map(|s| s.address).min().unwrap_or(0);
        let ends = self.segments.iter().map(|s| s.address.saturating_add(s.memory_size.max(s.file_size)));
        start..ends.max().unwrap_or(0)
    }
}
