//! Data of a mapped file that unwinding needs: its call frame information and the addresses of its
//! segments.

use std::ops::Range;

use framehop::ExplicitModuleSectionInfo;
use object::elf::{EM_AARCH64, EM_X86_64};
use recrep_format::abi::RegsArch;

use crate::symbols::elf::{self, ElfImage, Segment};

/// Call frame information of a file (`.eh_frame` of the System V ABI, `.debug_frame` of DWARF).
#[derive(Debug)]
pub struct CallFrames {
    /// Instruction set of the file: 64-bit x86 or 64-bit Arm.
    pub arch: RegsArch,
    /// Sections, at their linked addresses; no `.debug_frame` if there is an `.eh_frame`.
    pub sections: ExplicitModuleSectionInfo<Vec<u8>>,
    segments: Vec<Segment>,
}

impl CallFrames {
    /// Reads the call frame information of a file; `None` if it has none or its instruction set is
    /// not supported.
    pub(crate) fn of(image: &ElfImage) -> Option<Self> {
        let arch = match image.machine {
            EM_X86_64 => RegsArch::X86,
            EM_AARCH64 => RegsArch::Arm64,
            _ => return None,
        };
        let range = |name: &[u8]| {
            let section = image.section(name)?;
            Some(section.address..section.address.checked_add(section.size)?)
        };
        let read = |name: &[u8]| {
            let bytes = image.view(image.section(name)?).ok().filter(|bytes| !bytes.is_empty())?;
            Some((range(name)?, bytes.to_vec()))
        };
        let (eh_frame_svma, eh_frame) = read(b".eh_frame").unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = read(b".eh_frame_hdr").unzip();
        let sections = ExplicitModuleSectionInfo {
            text_svma: range(b".text"),
            got_svma: range(b".got"),
            debug_frame: if eh_frame.is_none() { Some(read(b".debug_frame")?.1) } else { None },
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            ..ExplicitModuleSectionInfo::default()
        };
        Some(Self { arch, sections, segments: image.segments.clone() })
    }

    /// Returns the linked address of the byte at this file offset.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        elf::address_of(&self.segments, offset)
    }

    /// Returns the range from the lowest to the highest linked address of all segments.
    pub fn span(&self) -> Range<u64> {
        let start = self.segments.iter().map(|s| s.address).min().unwrap_or(0);
        let ends =
            self.segments.iter().map(|s| s.address.saturating_add(s.memory_size.max(s.file_size)));
        start..ends.max().unwrap_or(0)
    }
}
