//! ELF files, as far as needed to place their symbols.
//!
//! An [`Image`] holds the layout of one file: its loadable segments, its sections, its build ID. The headers are
//! untrusted: the file may be truncated or forged. A part is read only if it lies within the file, and each part is
//! read once, so a small file cannot cause large allocations.
//!
//! Source: the System V ABI's chapters on object files and program loading; `elf(5)`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use object::elf::{
    EM_386, EM_X86_64, FileHeader32, FileHeader64, Machine, NT_GNU_BUILD_ID, PN_XNUM, PT_LOAD, PT_NOTE, SHF_ALLOC,
    SHF_EXECINSTR, SHN_XINDEX, SHT_NOBITS, SHT_NOTE, SectionType,
};
use object::pod::Pod;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endian, Endianness, FileKind};
use recrep_format::build_id::BuildId;

use super::bytes::{Bytes, name_at};
use super::decompress;
use super::file::Contents;
use super::outcome::Refusal;

/// Layout of an ELF file.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) contents: Contents,
    /// `true` if this is a file of 64-bit words (ELF class).
    pub(super) is_64: bool,
    pub(super) machine: Machine,
    pub(super) endian: Endianness,
    pub(super) build_id: Option<BuildId>,
    pub(super) segments: Vec<Segment>,
    pub(super) sections: Vec<Section>,
}

/// Loadable segment (`PT_LOAD`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) address: u64,
    pub(super) memory_size: u64,
    pub(super) file_size: u64,
    pub(super) offset: u64,
}

/// Section header with the section's name.
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
    /// `true` if its name contains `text` or `data`, so that labels in it count as symbols.
    pub(super) text_or_data: bool,
}

impl Image {
    /// Reads the layout of an ELF file.
    pub(super) fn parse(contents: Contents) -> Result<Self, Refusal> {
        let head = contents.read(0, contents.len().min(size_of::<FileHeader64<Endianness>>() as u64))?;
        match FileKind::parse(&*head) {
            Ok(FileKind::Elf32) => parse_class::<FileHeader32<Endianness>>(contents, &head),
            Ok(FileKind::Elf64) => parse_class::<FileHeader64<Endianness>>(contents, &head),
            Ok(other) => Err(Refusal::Malformed(format!("its format is {other:?}"))),
            Err(error) => Err(Refusal::Malformed(error.to_string())),
        }
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

    /// Returns the contents of a section, mapped if it is large; empty if it has no bytes in the file.
    pub(super) fn view(&self, section: &Section) -> Result<Bytes, Refusal> {
        if section.is_in_memory_only() {
            Ok(Vec::new().into())
        } else {
            self.contents.view(section.offset, section.size)
        }
    }

    pub(super) fn is_x86(&self) -> bool {
        matches!(self.machine, EM_386 | EM_X86_64)
    }

    /// Returns the name of the debug file of a stripped file (`.gnu_debuglink`), without directory, and its CRC-32.
    pub(super) fn debug_link(&self) -> Option<(Vec<u8>, Option<u32>)> {
        let section = self.view(self.section(b".gnu_debuglink")?).ok()?;
        let name = section.get(..memchr::memchr(0, &section)?)?;
        let crc = section.get((name.len() + 1).next_multiple_of(4)..).and_then(|rest| rest.first_chunk::<4>());
        let crc = crc.map(|bytes| self.endian.read_u32(*bytes));
        (!name.is_empty() && !name.contains(&b'/')).then(|| (name.to_vec(), crc))
    }

    /// Unpacks the small ELF file with function symbols that is embedded in a stripped file (`.gnu_debugdata`).
    pub(super) fn mini_debug_info(&self) -> Option<Result<Self, Refusal>> {
        let section = self.section(b".gnu_debugdata")?;
        let unpack = || Self::parse(Contents::Memory(decompress::xz(&self.view(section)?)?));
        Some(unpack())
    }

    /// Returns the path of the file with debug information that several debug files share (`.gnu_debugaltlink`).
    pub(super) fn alternate_link(&self) -> Option<PathBuf> {
        let section = self.view(self.section(b".gnu_debugaltlink")?).ok()?;
        Some(OsStr::from_bytes(section.get(..memchr::memchr(0, &section)?)?).into())
    }

    /// Returns whether the file has DWARF debug information, the source of lines and inlined functions.
    pub(super) fn has_debug_info(&self) -> bool {
        let sections = [&b".debug_info"[..], b".zdebug_info"];
        sections.iter().any(|name| self.section(name).is_some_and(|section| !section.is_in_memory_only()))
    }
}

impl Segment {
    pub(super) fn to_offset(self, address: u64) -> u64 {
        address.wrapping_sub(self.address).wrapping_add(self.offset)
    }

    /// Returns whether the byte at file offset `offset` belongs to this segment.
    pub(super) fn has_offset(&self, offset: u64) -> bool {
        offset.checked_sub(self.offset).is_some_and(|within| within < self.file_size)
    }
}

impl Section {
    pub(super) fn is_in_memory_only(&self) -> bool {
        self.kind == SHT_NOBITS
    }
}

/// Returns the linked address of the byte at file offset `offset`.
pub(super) fn address_of(segments: &[Segment], offset: u64) -> Option<u64> {
    let segment = segments.iter().find(|segment| segment.has_offset(offset))?;
    Some(offset.wrapping_sub(segment.offset).wrapping_add(segment.address))
}

/// Returns the entries of a table; an incomplete last one is left out.
pub(super) fn entries<T: Pod>(bytes: &[u8]) -> &[T] {
    let count = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
    object::pod::slice_from_bytes(bytes, count).map_or(&[], |(entries, _)| entries)
}

fn parse_class<Elf: FileHeader<Endian = Endianness>>(contents: Contents, head: &[u8]) -> Result<Image, Refusal> {
    let malformed = |error: object::Error| Refusal::Malformed(error.to_string());
    let header = Elf::parse(head).map_err(malformed)?;
    let endian = header.endian().map_err(malformed)?;
    let [programs, headers, names] = read_tables(header, endian, &contents)?;
    let programs: &[Elf::ProgramHeader] = entries(&programs);
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
    let headers: &[Elf::SectionHeader] = entries(&headers);
    let sections: Vec<_> = headers.iter().map(|header| section::<Elf>(header, endian, &names)).collect();
    let noted = sections.iter().filter(|section| section.kind == SHT_NOTE);
    let in_sections = noted.map(|section| (section.offset, section.size, section.alignment));
    let in_segments = programs.iter().filter(|program| program.p_type(endian) == PT_NOTE).map(|program| {
        (program.p_offset(endian).into(), program.p_filesz(endian).into(), program.p_align(endian).into())
    });
    let build_id = build_id(in_sections.chain(in_segments), endian, &contents);
    let (is_64, machine) = (header.is_class_64(), header.e_machine(endian));
    Ok(Image { is_64, machine, endian, build_id, segments, sections, contents })
}

fn section<Elf: FileHeader<Endian = Endianness>>(
    header: &Elf::SectionHeader,
    endian: Endianness,
    names: &[u8],
) -> Section {
    let name = name_at(names, header.sh_name(endian) as usize);
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

/// Reads the program headers, the section headers and the section names. Counts that do not fit into the file header
/// are in the first section header (`elf(5)`).
fn read_tables<Elf: FileHeader<Endian = Endianness>>(
    header: &Elf,
    endian: Endianness,
    contents: &Contents,
) -> Result<[Vec<u8>; 3], Refusal> {
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
    let names_index = match header.e_shstrndx(endian) {
        SHN_XINDEX => first.map_or(0, |first| first.sh_link(endian) as usize),
        index => index.0.into(),
    };
    let programs_size = u64::from(programs) * size_of::<Elf::ProgramHeader>() as u64;
    let programs = contents.read(header.e_phoff(endian).into(), programs_size)?;
    // A file without section headers, or with truncated ones, can still be mapped.
    let sections = match sections.checked_mul(section_size) {
        Some(size) if sections_at != 0 => contents.read(sections_at, size).unwrap_or_default(),
        _ => Vec::new(),
    };
    let names = entries::<Elf::SectionHeader>(&sections).get(names_index);
    let names =
        names.and_then(|names| contents.read(names.sh_offset(endian).into(), names.sh_size(endian).into()).ok());
    Ok([programs, sections, names.unwrap_or_default()])
}

/// Returns the build ID from the first of these note areas (offset, size, alignment) that contains one.
fn build_id(notes: impl Iterator<Item = (u64, u64, u64)>, endian: Endianness, contents: &Contents) -> Option<BuildId> {
    // Real files have a few small note areas.
    const MAX_AREAS: usize = 64;
    const MAX_SIZE: u64 = 1 << 16;
    notes.filter(|&(_, size, _)| size <= MAX_SIZE).take(MAX_AREAS).find_map(|(offset, size, alignment)| {
        let bytes = contents.read(offset, size).ok()?;
        find_build_id(&bytes, if alignment == 8 { 8 } else { 4 }, endian)
    })
}

/// Finds the build ID in notes, whose layout is the same in both ELF classes.
fn find_build_id(bytes: &[u8], alignment: u32, endian: Endianness) -> Option<BuildId> {
    let mut notes = NoteIterator::<FileHeader32<Endianness>>::new(endian, alignment, bytes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"GNU" && note.n_type(endian) == NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}

/// Finds the build ID in notes of this machine's byte order, such as `/sys/kernel/notes`.
pub(super) fn build_id_in_notes(bytes: &[u8]) -> Option<BuildId> {
    find_build_id(bytes, 4, Endianness::default())
}
