//! What unwinding needs of a mapped file: its call frame information, its code, and the addresses
//! of its segments.

use object::Endianness;
use object::elf::SHT_SYMTAB;
use object::read::elf::Sym as _;
use recrep_format::endian::Endian;
use recrep_unwind::{GoRuntime, Machine, Rules, Section, Sections};

use crate::input::map::Bytes;
use crate::symbols::elf::{self, ElfImage, ElfSection, ElfSymbols, Segment};

/// Rules by which the frames of a file's functions are unwound (`.eh_frame` of the System V ABI,
/// `.debug_frame` of DWARF), by linked address.
#[derive(Debug)]
pub(crate) struct CallFrames {
    pub(crate) rules: Rules<Bytes>,
    /// `true` if the rules say what the frame pointer is; those of Go do not.
    pub(crate) has_frame_pointers: bool,
    /// The whole file; `None` if only its rules are known.
    file: Option<Bytes>,
    segments: Vec<Segment>,
}

impl CallFrames {
    /// Reads the call frame information of a file, and that in its separate debug file; there may
    /// be none. `None` if the file's instruction set is not supported.
    pub(crate) fn of(image: &ElfImage, separate: Option<&ElfImage>) -> Option<Self> {
        let debug_frame = [Some(image), separate].into_iter().flatten().find_map(|image| {
            image.keep_unpacked(debug_frame(image)?).ok().filter(|bytes| !bytes.is_empty())
        });
        let sections = Sections {
            machine: Machine::of_elf(image.machine.0)?,
            endian: match image.endian {
                Endianness::Little => Endian::Little,
                Endianness::Big => Endian::Big,
            },
            eh_frame: section(image, b".eh_frame"),
            eh_frame_hdr: section(image, b".eh_frame_hdr"),
            debug_frame,
            entry: image.entry,
            text: image.section(b".text").map_or(0, |section| section.address),
            got: image.section(b".got").map_or(0, |section| section.address),
            go: go_runtime(image),
        };
        // Of reduced files and debug files, none has contents.
        let mut code = image.sections.iter().filter(|section| section.executable).peekable();
        let has_code = code.peek().is_some() && !code.any(ElfSection::is_in_memory_only);
        Some(Self {
            rules: Rules::new(sections),
            has_frame_pointers: image.section(b".gopclntab").is_none()
                && image.section(b".note.go.buildid").is_none(),
            file: has_code.then(|| image.file.clone()),
            segments: image.segments.clone(),
        })
    }

    /// Returns the linked address of the byte at this file offset.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        elf::address_of(&self.segments, offset)
    }

    /// Returns the 8 bytes at this file offset.
    pub(crate) fn code_at(&self, offset: u64) -> Option<[u8; 8]> {
        let file = self.file.as_deref()?;
        file.get(usize::try_from(offset).ok()?..)?.first_chunk().copied()
    }

    /// Copies the bytes at this file offset, and returns how many there are.
    pub(crate) fn copy_code(&self, offset: u64, to: &mut [u8]) -> usize {
        let bytes = self.file.as_deref().and_then(|file| file.get(usize::try_from(offset).ok()?..));
        copied(bytes.unwrap_or_default(), to)
    }

    /// Returns the 8 bytes that end before this file offset.
    pub(crate) fn code_before(&self, offset: u64) -> Option<[u8; 8]> {
        bytes_before(self.file.as_deref()?, offset)
    }
}

/// Copies the first bytes, as many as there is room for, and returns their number.
pub(crate) fn copied(from: &[u8], to: &mut [u8]) -> usize {
    for (to, byte) in to.iter_mut().zip(from) {
        *to = *byte;
    }
    from.len().min(to.len())
}

/// Returns what unwinding needs of Go's runtime, if the program is one of Go.
fn go_runtime(image: &ElfImage) -> Option<GoRuntime> {
    image.section(b".gopclntab")?;
    let mut found = GoRuntime::default();
    if let Some(section) = image.section_of_kind(SHT_SYMTAB)
        && let Ok(ElfSymbols { entries, names }) = image.symbols(section)
    {
        for symbol in entries.iter() {
            let name = names.get(symbol.st_name(image.endian) as usize..).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let start = symbol.st_value(image.endian);
            found.add(name, start..start.saturating_add(symbol.st_size(image.endian)));
        }
    }
    Some(found)
}

/// Reads a section; `None` if it is empty.
fn section(image: &ElfImage, name: &[u8]) -> Option<Section<Bytes>> {
    let section = image.section(name)?;
    let bytes = image.keep_unpacked(section).ok().filter(|bytes| !bytes.is_empty())?;
    Some(Section { address: section.address, bytes })
}

/// Returns the 8 bytes that end before this place.
pub(crate) fn bytes_before(bytes: &[u8], place: u64) -> Option<[u8; 8]> {
    bytes.get(..usize::try_from(place).ok()?)?.last_chunk().copied()
}

/// Returns a file's section of DWARF's call frame information, if it has contents.
pub(crate) fn debug_frame(image: &ElfImage) -> Option<&ElfSection> {
    let sections = [&b".debug_frame"[..], b".zdebug_frame"].map(|name| image.section(name));
    sections.into_iter().flatten().find(|section| !section.is_in_memory_only())
}
