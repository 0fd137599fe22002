//! Machine code of functions, as images have it.

use std::path::{Path, PathBuf};

use object::elf::Machine;

use crate::symbols::elf::{self, ElfImage, ElfSection, Segment};
use crate::symbols::file::Refusal;
use crate::symbols::file::part;

/// Machine code of a part of a module.
#[derive(Clone, Debug)]
pub(crate) struct MachineCode {
    /// Address of the first byte as linked, which other tools print; of the kernel's and a JIT's
    /// code where that has no file, as recorded.
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) machine: Machine,
    /// File that it was read from.
    pub(crate) path: PathBuf,
    /// Where linked addresses are looked up.
    pub(crate) segments: Vec<Segment>,
}

impl MachineCode {
    /// Most bytes that are read of a function: more than any has.
    pub(crate) const MAX: usize = 16 << 20;

    /// Takes the code at an offset of an image; what is beyond the end of the segment is left out.
    pub(crate) fn in_image(
        path: &Path,
        image: &ElfImage,
        offset: u64,
        size: u64,
    ) -> Result<Self, Refusal> {
        let none = Refusal::Other("it has no code at the function's place");
        let segment = image.segments.iter().find(|segment| segment.has_offset(offset));
        let segment = segment.ok_or(none.clone())?;
        let address = elf::address_of(&image.segments, offset).ok_or(none.clone())?;
        // A debug file has the headers of the mapped one, but not its contents.
        if image.allocated_at(address).is_some_and(ElfSection::is_in_memory_only) {
            return Err(none);
        }
        let left = segment.file_size - (offset - segment.offset);
        let size = size.min(left).min(Self::MAX as u64);
        Ok(Self {
            address,
            bytes: part(&image.file, offset, size)?.to_vec(),
            machine: image.machine,
            path: path.to_owned(),
            segments: image.segments.clone(),
        })
    }

    /// Returns the address in the module at which a linked address is looked up.
    pub(crate) fn looked_up(&self, linked: u64) -> Option<u64> {
        let mut segments = self.segments.iter().filter(|segment| {
            segment.file_size == u64::MAX
                || linked.wrapping_sub(segment.address) < segment.memory_size
        });
        segments.next().map(|segment| segment.to_offset(linked))
    }
}
