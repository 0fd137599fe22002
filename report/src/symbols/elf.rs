//! ELF files: what is needed to place their symbols.
//!
//! An [`Image`] is the shape of one file: its loadable segments, its sections, its build ID. The headers are input,
//! from a file that may be cut or made up: what they point at is read only if the file has it, and each part is read
//! once, so a small file cannot ask for more memory than it has bytes.
//!
//! Source: the System V ABI's chapters on object files and program loading; `elf(5)`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use object::elf::{
    EM_386, EM_X86_64, FileHeader32, FileHeader64, Machine, NT_GNU_BUILD_ID, PN_XNUM, PT_LOAD, PT_NOTE, SHF_ALLOC,
    SHF_EXECINSTR, SHN_XINDEX, SHT_NOBITS, SHT_NOTE, SectionType,
};
use object::pod::Pod;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endian, Endianness, FileKind};
use recrep_format::build_id::BuildId;

use super::file::Contents;
use super::outcome::Refusal;
use super::unpack;

/// A file's shape.
#[derive(Debug)]
pub(super) struct Image {
    contents: Contents,
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

/// What `.gnu_debuglink` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DebugLink {
    /// The file's name, without a directory.
    pub(super) name: Vec<u8>,
    /// The checksum of its contents.
    pub(super) crc: Option<u32>,
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
    pub(super) executable: bool,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) entry_size: u64,
    pub(super) alignment: u64,
    pub(super) link: usize,
    /// Whether its name says that it is code or data, so that labels in it count as symbols.
    pub(super) text_or_data: bool,
}

impl Image {
    /// Reads the shape of an ELF file.
    pub(super) fn parse(contents: Contents) -> Result<Self, Refusal> {
        let head = contents.read(0, contents.len().min(size_of::<FileHeader64<Endianness>>() as u64))?;
        match FileKind::parse(&*head) {
            Ok(FileKind::Elf32) => shape::<FileHeader32<Endianness>>(contents, &head, Class::Elf32),
            Ok(FileKind::Elf64) => shape::<FileHeader64<Endianness>>(contents, &head, Class::Elf64),
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

    /// The bytes of a section.
    pub(super) fn read(&self, section: &Section) -> Result<Vec<u8>, Refusal> {
        match section.kind {
            SHT_NOBITS => Ok(Vec::new()),
            _ => self.contents.read(section.offset, section.size),
        }
    }

    pub(super) fn is_x86(&self) -> bool {
        matches!(self.machine, EM_386 | EM_X86_64)
    }

    /// The file that a stripped one names as the keeper of its symbols (`.gnu_debuglink`).
    pub(super) fn debug_link(&self) -> Option<DebugLink> {
        let mut name = self.read(self.section(b".gnu_debuglink")?).ok()?;
        let end = memchr::memchr(0, &name)?;
        let crc = name.get((end + 1).next_multiple_of(4)..).and_then(|rest| rest.first_chunk::<4>());
        let crc = crc.map(|bytes| self.endian.read_u32(*bytes));
        name.truncate(end);
        (!name.is_empty() && !name.contains(&b'/')).then_some(DebugLink { name, crc })
    }

    /// The small file within a stripped one that has the names of its functions (`.gnu_debugdata`).
    pub(super) fn mini_debug_info(&self) -> Option<Result<Self, Refusal>> {
        let section = self.section(b".gnu_debugdata")?;
        let unpack = || Self::parse(Contents::Memory(unpack::xz(&self.read(section)?)?));
        Some(unpack())
    }

    /// The file that holds what several debug files share (`.gnu_debugaltlink`).
    pub(super) fn alternate_link(&self) -> Option<PathBuf> {
        let mut name = self.read(self.section(b".gnu_debugaltlink")?).ok()?;
        name.truncate(memchr::memchr(0, &name)?);
        Some(PathBuf::from(OsString::from_vec(name)))
    }

    /// Whether it has debug information: what lines and inlined functions are read from.
    pub(super) fn has_debug_info(&self) -> bool {
        let sections = [&b".debug_info"[..], b".zdebug_info"];
        sections.iter().any(|name| self.section(name).is_some_and(|section| !section.is_in_memory_only()))
    }

    /// The checksum that a debuglink holds of the file that it names.
    pub(super) fn crc(&self) -> Result<u32, Refusal> {
        self.contents.crc()
    }
}

impl Segment {
    /// The address that the file's byte at `offset` is linked at.
    pub(super) fn to_address(self, offset: u64) -> u64 {
        offset.wrapping_sub(self.offset).wrapping_add(self.address)
    }

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
}

/// The entries of a table, as far as there are whole ones.
pub(super) fn entries<T: Pod>(bytes: &[u8]) -> &[T] {
    let count = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
    object::pod::slice_from_bytes(bytes, count).map_or(&[], |(entries, _)| entries)
}

fn shape<Elf: FileHeader<Endian = Endianness>>(
    contents: Contents,
    head: &[u8],
    class: Class,
) -> Result<Image, Refusal> {
    let malformed = |error: object::Error| Refusal::Malformed(error.to_string());
    let header = Elf::parse(head).map_err(malformed)?;
    let endian = header.endian().map_err(malformed)?;
    let tables = Tables::<Elf>::read(header, endian, &contents)?;
    let programs: &[Elf::ProgramHeader] = entries(&tables.programs);
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
    let headers: &[Elf::SectionHeader] = entries(&tables.sections);
    let sections: Vec<_> = headers.iter().map(|header| section::<Elf>(header, endian, &tables.names)).collect();
    let noted = sections.iter().filter(|section| section.kind == SHT_NOTE);
    let in_sections = noted.map(|section| (section.offset, section.size, section.alignment));
    let in_segments = programs.iter().filter(|program| program.p_type(endian) == PT_NOTE).map(|program| {
        (program.p_offset(endian).into(), program.p_filesz(endian).into(), program.p_align(endian).into())
    });
    let build_id = build_id(in_sections.chain(in_segments), endian, &contents);
    Ok(Image { class, machine: header.e_machine(endian), endian, build_id, segments, sections, contents })
}

fn section<Elf: FileHeader<Endian = Endianness>>(
    header: &Elf::SectionHeader,
    endian: Endianness,
    names: &[u8],
) -> Section {
    let name = name_at(names, header.sh_name(endian));
    Section {
        name: name.into(),
        kind: header.sh_type(endian),
        allocated: header.sh_flags(endian).contains(SHF_ALLOC),
        executable: header.sh_flags(endian).contains(SHF_EXECINSTR),
        address: header.sh_addr(endian).into(),
        offset: header.sh_offset(endian).into(),
        size: header.sh_size(endian).into(),
        entry_size: header.sh_entsize(endian).into(),
        alignment: header.sh_addralign(endian).into(),
        link: header.sh_link(endian) as usize,
        text_or_data: [&b"text"[..], b"data"].iter().any(|word| memchr::memmem::find(name, word).is_some()),
    }
}

/// The headers' tables, as bytes.
struct Tables<Elf> {
    programs: Vec<u8>,
    sections: Vec<u8>,
    names: Vec<u8>,
    of: std::marker::PhantomData<Elf>,
}

impl<Elf: FileHeader<Endian = Endianness>> Tables<Elf> {
    /// Reads them. Where there are more entries than the file's header can count, the first section does.
    fn read(header: &Elf, endian: Endianness, contents: &Contents) -> Result<Self, Refusal> {
        let section_size = size_of::<Elf::SectionHeader>() as u64;
        let sections_at: u64 = header.e_shoff(endian).into();
        let first = if sections_at == 0 { Vec::new() } else { contents.read(sections_at, section_size)? };
        let first = entries::<Elf::SectionHeader>(&first).first();
        let sections = match header.e_shnum(endian) {
            0 => first.map_or(0, |first| first.sh_size(endian).into()),
            count => count.into(),
        };
        let programs = match header.e_phnum(endian) {
            PN_XNUM => first.map_or(0, |first| first.sh_info(endian)),
            count => count.into(),
        };
        let named = match header.e_shstrndx(endian) {
            SHN_XINDEX => first.map_or(0, |first| first.sh_link(endian) as usize),
            index => index.0.into(),
        };
        let programs_size = u64::from(programs) * size_of::<Elf::ProgramHeader>() as u64;
        let programs = contents.read(header.e_phoff(endian).into(), programs_size)?;
        // A file without sections, or whose sections are cut off, can still be mapped.
        let sections = match sections.checked_mul(section_size) {
            Some(size) if sections_at != 0 => contents.read(sections_at, size).unwrap_or_default(),
            _ => Vec::new(),
        };
        let names = entries::<Elf::SectionHeader>(&sections).get(named);
        let names =
            names.and_then(|names| contents.read(names.sh_offset(endian).into(), names.sh_size(endian).into()).ok());
        Ok(Self { programs, sections, names: names.unwrap_or_default(), of: std::marker::PhantomData })
    }
}

/// The text at `offset` of a string table.
pub(super) fn name_at(table: &[u8], offset: u32) -> &[u8] {
    let name = table.get(offset as usize..).unwrap_or_default();
    memchr::memchr(0, name).and_then(|end| name.get(..end)).unwrap_or(name)
}

/// The build ID, from the first of these notes (offset, size, alignment) that has one.
fn build_id(notes: impl Iterator<Item = (u64, u64, u64)>, endian: Endianness, contents: &Contents) -> Option<BuildId> {
    // Real files have a handful of small ones.
    const MOST: usize = 64;
    const LARGEST: u64 = 1 << 16;
    notes.filter(|&(_, size, _)| size <= LARGEST).take(MOST).find_map(|(offset, size, alignment)| {
        let bytes = contents.read(offset, size).ok()?;
        let eight = alignment == 8;
        in_notes(&bytes, if eight { 8 } else { 4 }, endian)
    })
}

/// Notes are the same in both classes of files.
fn in_notes(bytes: &[u8], alignment: u32, endian: Endianness) -> Option<BuildId> {
    let mut notes = NoteIterator::<FileHeader32<Endianness>>::new(endian, alignment, bytes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"GNU" && note.n_type(endian) == NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}

/// The build ID in notes of this machine's byte order: what `/sys/kernel/notes` holds.
pub(super) fn build_id_in_notes(bytes: &[u8]) -> Option<BuildId> {
    in_notes(bytes, 4, Endianness::default())
}
