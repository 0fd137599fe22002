//! ELF files: what is needed to place their symbols.
//!
//! An [`Image`] is the shape of one file: its loadable segments, its build ID, where its tables are. It is read once,
//! and everything else works on it. Sections come from the headers of a file that may be cut or made up: each is
//! checked against the file before it is kept, and one that does not fit is as good as not there.
//!
//! Source: the System V ABI's chapters on object files and program loading; `elf(5)`.

use std::sync::Arc;

use object::elf::{
    EM_386, EM_X86_64, FileHeader32, FileHeader64, Machine, NT_GNU_BUILD_ID, PT_LOAD, PT_NOTE, SHF_ALLOC, SHT_NOBITS,
    SHT_NOTE, SectionType,
};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind};
use recrep_format::build_id::BuildId;

use super::Refusal;
use super::file::FileBytes;

/// A file's shape.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) bytes: Arc<FileBytes>,
    pub(super) class: Class,
    pub(super) machine: Machine,
    pub(super) endian: Endianness,
    pub(super) build_id: Option<BuildId>,
    pub(super) segments: Vec<Segment>,
    pub(super) sections: Vec<Section>,
}

/// Which of the two layouts a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Elf32,
    Elf64,
}

/// A part of the file that is mapped (`PT_LOAD`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) address: u64,
    pub(super) memory_size: u64,
    pub(super) file_size: u64,
    pub(super) offset: u64,
}

/// A section's header, its name looked up.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: Box<[u8]>,
    pub(super) kind: SectionType,
    pub(super) allocated: bool,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) entry_size: u64,
    pub(super) alignment: u64,
    pub(super) link: usize,
}

impl Image {
    /// Reads the shape of the ELF file in `bytes`.
    pub(super) fn parse(bytes: Arc<FileBytes>) -> Result<Self, Refusal> {
        match FileKind::parse(&**bytes) {
            Ok(FileKind::Elf32) => shape::<FileHeader32<Endianness>>(bytes, Class::Elf32),
            Ok(FileKind::Elf64) => shape::<FileHeader64<Endianness>>(bytes, Class::Elf64),
            Ok(other) => Err(Refusal::Malformed(format!("it is {other:?}"))),
            Err(error) => Err(Refusal::Malformed(error.to_string())),
        }
    }

    /// The file offset of the byte that is mapped at `address`.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        self.segment_of(address).map(|segment| segment.to_offset(address))
    }

    pub(super) fn segment_of(&self, address: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| {
            let size = segment.memory_size.max(segment.file_size);
            address.checked_sub(segment.address).is_some_and(|within| within < size)
        })
    }

    pub(super) fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| *section.name == *name)
    }

    pub(super) fn section_of_kind(&self, kind: SectionType) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    /// The contents of a section, as far as the file has them.
    pub(super) fn contents(&self, section: &Section) -> &[u8] {
        self.bytes.get(self.range(section)).unwrap_or_default()
    }

    /// Where the contents of a section lie in the file; empty when they are not all there.
    pub(super) fn range(&self, section: &Section) -> std::ops::Range<usize> {
        let start = usize::try_from(section.offset).unwrap_or(usize::MAX);
        let end = usize::try_from(section.size).ok().and_then(|size| start.checked_add(size));
        match end {
            Some(end) if end <= self.bytes.len() && section.kind != SHT_NOBITS => start..end,
            _ => 0..0,
        }
    }

    pub(super) fn is_x86(&self) -> bool {
        matches!(self.machine, EM_386 | EM_X86_64)
    }

    /// The file that a stripped one names as the keeper of its symbols (`.gnu_debuglink`).
    pub(super) fn debug_link(&self) -> Option<&[u8]> {
        let contents = self.contents(self.section(b".gnu_debuglink")?);
        let name = contents.get(..memchr::memchr(0, contents)?)?;
        (!name.is_empty() && !name.contains(&b'/')).then_some(name)
    }
}

impl Segment {
    pub(super) fn to_offset(self, address: u64) -> u64 {
        address.wrapping_sub(self.address).wrapping_add(self.offset)
    }

    /// Whether the file's byte at `offset` is part of this segment.
    pub(super) fn has_offset(&self, offset: u64) -> bool {
        offset.checked_sub(self.offset).is_some_and(|within| within < self.file_size)
    }
}

impl Section {
    pub(super) fn is_in_memory_only(&self) -> bool {
        self.kind == SHT_NOBITS
    }

    /// Whether its name says that it is code or data, so that labels in it count as symbols.
    pub(super) fn is_text_or_data(&self) -> bool {
        memchr::memmem::find(&self.name, b"text").is_some() || memchr::memmem::find(&self.name, b"data").is_some()
    }
}

fn shape<Elf: FileHeader<Endian = Endianness>>(bytes: Arc<FileBytes>, class: Class) -> Result<Image, Refusal> {
    let malformed = |error: object::Error| Refusal::Malformed(error.to_string());
    let data: &[u8] = &bytes;
    let header = Elf::parse(data).map_err(malformed)?;
    let endian = header.endian().map_err(malformed)?;
    let programs = header.program_headers(endian, data).map_err(malformed)?;
    let segments = programs
        .iter()
        .filter(|program| program.p_type(endian) == PT_LOAD)
        .map(|program| Segment {
            address: program.p_vaddr(endian).into(),
            memory_size: program.p_memsz(endian).into(),
            file_size: program.p_filesz(endian).into(),
            offset: program.p_offset(endian).into(),
        })
        .collect();
    let sections = sections::<Elf>(header, endian, data);
    let build_id = build_id::<Elf>(header, endian, data);
    let machine = header.e_machine(endian);
    Ok(Image { class, machine, endian, build_id, segments, sections, bytes })
}

/// The sections; none if their table is damaged (an image without it, like a core's, is whole all the same).
fn sections<Elf: FileHeader<Endian = Endianness>>(header: &Elf, endian: Endianness, data: &[u8]) -> Vec<Section> {
    let Ok(table) = header.sections(endian, data) else { return Vec::new() };
    let section = |header: &Elf::SectionHeader| Section {
        name: table.section_name(endian, header).unwrap_or_default().into(),
        kind: header.sh_type(endian),
        allocated: header.sh_flags(endian).contains(SHF_ALLOC),
        address: header.sh_addr(endian).into(),
        offset: header.sh_offset(endian).into(),
        size: header.sh_size(endian).into(),
        entry_size: header.sh_entsize(endian).into(),
        alignment: header.sh_addralign(endian).into(),
        link: header.sh_link(endian) as usize,
    };
    table.iter().map(section).collect()
}

/// The build ID, from the note sections or else from the note segments.
fn build_id<Elf: FileHeader<Endian = Endianness>>(header: &Elf, endian: Endianness, data: &[u8]) -> Option<BuildId> {
    let sections = header.sections(endian, data).unwrap_or_default();
    let in_sections = sections
        .iter()
        .filter(|section| section.sh_type(endian) == SHT_NOTE)
        .filter_map(|section| section.notes(endian, data).ok().flatten())
        .find_map(|notes| in_notes::<Elf>(notes, endian));
    in_sections.or_else(|| {
        let programs = header.program_headers(endian, data).ok()?;
        programs
            .iter()
            .filter(|program| program.p_type(endian) == PT_NOTE)
            .filter_map(|program| program.notes(endian, data).ok().flatten())
            .find_map(|notes| in_notes::<Elf>(notes, endian))
    })
}

fn in_notes<Elf: FileHeader<Endian = Endianness>>(
    mut notes: NoteIterator<'_, Elf>,
    endian: Endianness,
) -> Option<BuildId> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"GNU" && note.n_type(endian) == NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}

/// The build ID in the notes of `bytes`, in this machine's byte order: what `/sys/kernel/notes` holds.
pub(super) fn build_id_in_notes(bytes: &[u8]) -> Option<BuildId> {
    let endian = Endianness::default();
    in_notes::<FileHeader64<Endianness>>(NoteIterator::new(endian, 4, bytes).ok()?, endian)
}
