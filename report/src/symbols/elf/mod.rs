//! ELF files, as far as needed to place their symbols.
//!
//! An [`ElfImage`] holds the layout of one file: its loadable segments, its sections, its build ID.
//! The headers are untrusted: the file may be truncated or forged. A part is read only if it lies
//! within the file.
//!
//! Source: the System V ABI's chapters on object files and program loading; `elf(5)`.

pub(crate) mod call_frames;
pub(crate) mod code;
pub(crate) mod decompress;
pub(crate) mod extents;
pub(crate) mod functions;
pub(crate) mod go;
pub(crate) mod lines;
pub(crate) mod plt;
mod scope_tree;
mod scopes;
pub(crate) mod symbols;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use object::elf::{
    EM_386, EM_X86_64, FileHeader32, FileHeader64, Machine, NT_GNU_BUILD_ID, NoteType, PT_LOAD,
    PT_NOTE, SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, SHT_NOBITS, SHT_NOTE, SectionType, Sym32,
    Sym64,
};
use object::pod::Pod;
use object::read::elf::{FileHeader, Note, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endian, Endianness, FileKind, StringTable, U32, U64};
use recrep_format::build_id::BuildId;

use crate::input::map::Bytes;
use crate::symbols::file::Refusal;
use crate::symbols::file::{kept, part};

/// Layout of an ELF file.
#[derive(Debug)]
pub(crate) struct ElfImage {
    pub(crate) file: Bytes,
    /// `true` if this is a file of 64-bit words (ELF class).
    pub(crate) is_64: bool,
    pub(crate) machine: Machine,
    pub(crate) endian: Endianness,
    /// Linked address at which a process enters the file (`e_entry`); 0 if it does not.
    pub(crate) entry: u64,
    pub(crate) build_id: Option<BuildId>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) sections: Vec<ElfSection>,
}

/// Loadable segment (`PT_LOAD`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) memory_size: u64,
    pub(crate) file_size: u64,
    pub(crate) offset: u64,
}

/// ElfSection header with the section's name.
#[derive(Clone, Debug)]
pub(crate) struct ElfSection {
    pub(crate) name: Box<[u8]>,
    pub(crate) kind: SectionType,
    pub(crate) allocated: bool,
    pub(crate) executable: bool,
    pub(crate) compressed: bool,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) entry_size: u64,
    pub(crate) alignment: u64,
    pub(crate) link: usize,
    /// `true` if its name contains `text` or `data`, so that labels in it count as symbols.
    pub(crate) text_or_data: bool,
}

/// Entries of a symbol table, as in a file of 64-bit words, and the bytes of its string table.
pub(crate) struct ElfSymbols<'i> {
    pub(crate) entries: Cow<'i, [Sym64<Endianness>]>,
    pub(crate) names: Bytes,
}

impl ElfImage {
    /// Reads the layout of an ELF file.
    pub(crate) fn parse(file: Bytes) -> Result<Self, Refusal> {
        match FileKind::parse(&*file) {
            Ok(FileKind::Elf32) => parse_class::<FileHeader32<Endianness>>(file),
            Ok(FileKind::Elf64) => parse_class::<FileHeader64<Endianness>>(file),
            Ok(other) => Err(Refusal::Malformed(format!("its format is {other:?}"))),
            Err(error) => Err(Refusal::Malformed(error.to_string())),
        }
    }

    pub(crate) fn segment_of(&self, address: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.has_address(address))
    }

    /// Returns the section of the program that has a linked address.
    pub(crate) fn allocated_at(&self, address: u64) -> Option<&ElfSection> {
        self.sections.iter().filter(|section| section.allocated).find(|section| {
            address.checked_sub(section.address).is_some_and(|offset| offset < section.size)
        })
    }

    /// Returns the section of code that has the byte at a file offset, if the file has its contents
    /// at the offset from which they are mapped.
    pub(crate) fn code_at(&self, offset: u64) -> Option<&ElfSection> {
        let section = self.sections.iter().find(|section| {
            let is_in = offset.checked_sub(section.offset).is_some_and(|at| at < section.size);
            section.executable && !section.is_in_memory_only() && is_in
        })?;
        let segment = self.segment_of(section.address)?;
        (segment.to_offset(section.address) == section.offset).then_some(section)
    }

    pub(crate) fn section(&self, name: &[u8]) -> Option<&ElfSection> {
        self.sections.iter().find(|section| *section.name == *name)
    }

    pub(crate) fn section_of_kind(&self, kind: SectionType) -> Option<&ElfSection> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    /// Returns the contents of a section; empty if it has no bytes in the file.
    pub(crate) fn view(&self, section: &ElfSection) -> Result<&[u8], Refusal> {
        if section.is_in_memory_only() {
            Ok(&[])
        } else {
            part(&self.file, section.offset, section.size)
        }
    }

    /// Like [`ElfImage::view`], for contents that are kept longer than the file.
    pub(crate) fn keep(&self, section: &ElfSection) -> Result<Bytes, Refusal> {
        let size = if section.is_in_memory_only() { 0 } else { section.size };
        kept(&self.file, section.offset, size)
    }

    /// Like [`ElfImage::keep`], for a section that may be compressed.
    pub(crate) fn keep_unpacked(&self, section: &ElfSection) -> Result<Bytes, Refusal> {
        if section.compressed {
            Ok(decompress::section(self.view(section)?, self.is_64, self.endian)?.into())
        } else if section.name.starts_with(b".zdebug_") {
            Ok(decompress::gnu_section(self.view(section)?)?.into())
        } else {
            self.keep(section)
        }
    }

    /// Reads the symbol table in `section` and the string table that it links to.
    pub(crate) fn symbols(&self, section: &ElfSection) -> Result<ElfSymbols<'_>, Refusal> {
        let contents = self.view(section)?;
        let names = self
            .sections
            .get(section.link)
            .map_or(Ok(Vec::new().into()), |names| self.keep(names))?;
        let entries = if self.is_64 {
            entries(contents).into()
        } else {
            entries(contents).iter().map(|symbol| widened(symbol, self.endian)).collect()
        };
        Ok(ElfSymbols { entries, names })
    }

    pub(crate) fn is_x86(&self) -> bool {
        matches!(self.machine, EM_386 | EM_X86_64)
    }

    /// Returns the name of the debug file of a stripped file (`.gnu_debuglink`), without directory,
    /// and its CRC-32.
    pub(crate) fn debug_link(&self) -> Option<(Vec<u8>, Option<u32>)> {
        let section = self.view(self.section(b".gnu_debuglink")?).ok()?;
        let name = section.get(..memchr::memchr(0, section)?)?;
        let crc = section
            .get((name.len() + 1).next_multiple_of(4)..)
            .and_then(|rest| rest.first_chunk::<4>());
        let crc = crc.map(|bytes| self.endian.read_u32(*bytes));
        (!name.is_empty() && !name.contains(&b'/')).then(|| (name.to_vec(), crc))
    }

    /// Unpacks the small ELF file with function symbols that is embedded in a stripped file
    /// (`.gnu_debugdata`).
    pub(crate) fn mini_debug_info(&self) -> Option<Result<Self, Refusal>> {
        let section = self.view(self.section(b".gnu_debugdata")?);
        Some(section.and_then(decompress::xz).and_then(|file| Self::parse(file.into())))
    }

    /// Returns the path and the build ID of the file with debug information that several debug
    /// files share (`.gnu_debugaltlink`).
    pub(crate) fn alternate_link(&self) -> Option<(PathBuf, BuildId)> {
        let section = self.view(self.section(b".gnu_debugaltlink")?).ok()?;
        let (path, rest) = section.split_at_checked(memchr::memchr(0, section)?)?;
        Some((OsStr::from_bytes(path).into(), BuildId::new(rest.get(1..)?)?))
    }

    /// Returns whether the file has DWARF debug information, the source of lines and inlined
    /// functions.
    pub(crate) fn has_debug_info(&self) -> bool {
        let sections = [&b".debug_info"[..], b".zdebug_info"];
        let mut sections = sections.iter().filter_map(|name| self.section(name));
        sections.any(|section| !section.is_in_memory_only())
    }
}

impl Segment {
    /// Creates a segment of all addresses from the one linked at `address` on, which is looked up
    /// at `offset`.
    pub(crate) fn moved(address: u64, offset: u64) -> Self {
        Self { address, offset, memory_size: u64::MAX, file_size: u64::MAX }
    }

    pub(crate) fn to_offset(self, address: u64) -> u64 {
        address.wrapping_sub(self.address).wrapping_add(self.offset)
    }

    pub(crate) fn has_address(&self, address: u64) -> bool {
        let size = self.memory_size.max(self.file_size);
        address.checked_sub(self.address).is_some_and(|within| within < size)
    }

    /// Returns whether the byte at file offset `offset` belongs to this segment.
    pub(crate) fn has_offset(&self, offset: u64) -> bool {
        offset.checked_sub(self.offset).is_some_and(|within| within < self.file_size)
    }
}

impl ElfSection {
    pub(crate) fn is_in_memory_only(&self) -> bool {
        self.kind == SHT_NOBITS
    }
}

/// Returns an entry of a symbol table as in a file of 64-bit words.
fn widened(symbol: &Sym32<Endianness>, endian: Endianness) -> Sym64<Endianness> {
    let Sym32 { st_name, st_info, st_other, st_shndx, st_value, st_size } = *symbol;
    let [st_value, st_size] =
        [st_value, st_size].map(|word: U32<_>| U64::new(endian, word.get(endian).into()));
    Sym64 { st_name, st_info, st_other, st_shndx, st_value, st_size }
}

/// Returns the linked address of the byte at file offset `offset`.
pub(crate) fn address_of(segments: &[Segment], offset: u64) -> Option<u64> {
    let segment = segments.iter().find(|segment| segment.has_offset(offset))?;
    Some(offset.wrapping_sub(segment.offset).wrapping_add(segment.address))
}

/// Returns the entries of a table; an incomplete last one is left out.
pub(crate) fn entries<T: Pod>(bytes: &[u8]) -> &[T] {
    let count = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
    object::pod::slice_from_bytes(bytes, count).map_or(&[], |(entries, _)| entries)
}

fn parse_class<Elf: FileHeader<Endian = Endianness>>(file: Bytes) -> Result<ElfImage, Refusal> {
    let malformed = |error: object::Error| Refusal::Malformed(error.to_string());
    let data = &*file;
    let header = Elf::parse(data).map_err(malformed)?;
    let endian = header.endian().map_err(malformed)?;
    if header.e_shoff(endian).into() != 0 {
        part(data, header.e_shoff(endian).into(), size_of::<Elf::SectionHeader>() as u64)?;
    }
    let count = u64::from(header.phnum(endian, data).map_err(malformed)?);
    let size = count * size_of::<Elf::ProgramHeader>() as u64;
    let programs: &[Elf::ProgramHeader] = entries(part(data, header.e_phoff(endian).into(), size)?);
    // A file without section headers, or with truncated ones, can still be mapped.
    let headers = header.section_headers(endian, data).unwrap_or_default();
    let names = header.section_strings(endian, data, headers).unwrap_or_default();
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
    let sections: Vec<_> =
        headers.iter().map(|header| section::<Elf>(header, endian, names)).collect();
    let noted = sections.iter().filter(|section| section.kind == SHT_NOTE);
    let in_sections = noted.map(|section| (section.offset, section.size, section.alignment));
    let noted = programs.iter().filter(|program| program.p_type(endian) == PT_NOTE);
    let in_segments = noted.map(|program| {
        let place = (program.p_offset(endian).into(), program.p_filesz(endian).into());
        (place.0, place.1, program.p_align(endian).into())
    });
    let build_id = build_id(in_sections.chain(in_segments), endian, data);
    let (is_64, machine) = (header.is_class_64(), header.e_machine(endian));
    let entry = header.e_entry(endian).into();
    Ok(ElfImage { is_64, machine, endian, entry, build_id, segments, sections, file })
}

fn section<Elf: FileHeader<Endian = Endianness>>(
    header: &Elf::SectionHeader,
    endian: Endianness,
    names: StringTable<'_>,
) -> ElfSection {
    let name = header.name(endian, names).unwrap_or_default();
    ElfSection {
        name: name.into(),
        kind: header.sh_type(endian),
        allocated: header.sh_flags(endian).contains(SHF_ALLOC),
        executable: header.sh_flags(endian).contains(SHF_EXECINSTR),
        compressed: header.sh_flags(endian).contains(SHF_COMPRESSED),
        address: header.sh_addr(endian).into(),
        offset: header.sh_offset(endian).into(),
        size: header.sh_size(endian).into(),
        entry_size: header.sh_entsize(endian).into(),
        alignment: header.sh_addralign(endian).into(),
        link: header.sh_link(endian) as usize,
        text_or_data: [&b"text"[..], b"data"]
            .iter()
            .any(|word| memchr::memmem::find(name, word).is_some()),
    }
}

/// Returns the build ID from the first of these note areas (offset, size, alignment) that contains
/// one.
fn build_id(
    notes: impl Iterator<Item = (u64, u64, u64)>,
    endian: Endianness,
    file: &[u8],
) -> Option<BuildId> {
    // Real files have a few small note areas.
    const MAX_AREAS: usize = 64;
    const MAX_SIZE: u64 = 1 << 16;
    let mut areas = notes.filter(|&(_, size, _)| size <= MAX_SIZE).take(MAX_AREAS);
    areas.find_map(|(offset, size, alignment)| {
        let bytes = part(file, offset, size).ok()?;
        find_build_id(bytes, if alignment == 8 { 8 } else { 4 }, endian)
    })
}

/// Finds the build ID in notes, whose layout is the same in both ELF classes.
fn find_build_id(bytes: &[u8], alignment: u32, endian: Endianness) -> Option<BuildId> {
    let notes = || {
        let all = NoteIterator::<FileHeader32<Endianness>>::new(endian, alignment, bytes).ok();
        all.into_iter().flat_map(|notes| notes.map_while(Result::ok))
    };
    let has =
        |note: &Note<'_, _>, name: &[u8], kind| note.name() == name && note.n_type(endian) == kind;
    let gnu = notes().find(|note| has(note, b"GNU", NT_GNU_BUILD_ID));
    gnu.and_then(|note| BuildId::new(note.desc())).or_else(|| {
        let go = notes().find(|note| has(note, b"Go", NT_GO_BUILD_ID))?;
        BuildId::of_go_note(go.desc())
    })
}

/// Type of the note of Go programs with their build ID.
const NT_GO_BUILD_ID: NoteType = NoteType(4);

/// Finds the build ID in notes of this machine's byte order, such as `/sys/kernel/notes`.
pub(crate) fn build_id_in_notes(bytes: &[u8]) -> Option<BuildId> {
    find_build_id(bytes, 4, Endianness::default())
}

#[cfg(test)]
pub(crate) mod test_elf;
#[cfg(test)]
mod tests;
