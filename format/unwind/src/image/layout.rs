//! Headers of an ELF file: read, changed, and written back.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use recrep_format::endian::Endian;
use recrep_format::error::{Error, Result};

/// Places of the fields in one class of ELF files.
#[derive(Debug)]
struct Class {
    /// Size of an address or offset.
    word: usize,
    header: usize,
    phoff: usize,
    shoff: usize,
    /// `e_phentsize`; the numbers and sizes of headers follow it.
    counts: usize,
    segment: usize,
    p_offset: usize,
    p_filesz: usize,
    section: usize,
    sh_offset: usize,
    sh_size: usize,
    sh_link: usize,
}

static ELF32: Class = Class::of(4);
static ELF64: Class = Class::of(8);

impl Class {
    /// Returns the places for words of this size. Both classes have the same fields, but for
    /// `p_flags`, which is before `p_offset` where words have 8 bytes.
    const fn of(word: usize) -> Self {
        Self {
            word,
            header: 40 + 3 * word,
            phoff: 24 + word,
            shoff: 24 + 2 * word,
            counts: 30 + 3 * word,
            segment: 8 + 6 * word,
            p_offset: word,
            p_filesz: 4 * word,
            section: 16 + 6 * word,
            sh_offset: 8 + 2 * word,
            sh_size: 8 + 3 * word,
            sh_link: 8 + 4 * word,
        }
    }
}

/// Type of a section without contents in the file.
const SHT_NOBITS: u32 = 8;
const SHT_NULL: u32 = 0;
const PT_NOTE: u32 = 4;
const PT_PHDR: u32 = 6;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
/// Number of a section or segment that does not fit: the first section header has it.
const ESCAPE: u16 = 0xffff;
/// Maximum size of all headers, and of the names of sections.
const MAX_TABLE: u64 = 64 << 20;

/// Headers of a file.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) file_size: u64,
    pub(super) sections: Vec<ElfSection>,
    segments: Vec<Segment>,
    class: &'static Class,
    endian: Endian,
    header: Vec<u8>,
    segment_table: Vec<u8>,
    section_table: Vec<u8>,
}

/// ElfSection, as its header describes it.
#[derive(Clone, Debug)]
pub(super) struct ElfSection {
    pub(super) name: Vec<u8>,
    pub(super) kind: u32,
    /// Contents in the file.
    pub(super) range: Range<u64>,
    pub(super) has_contents: bool,
    /// `true` for the names of sections and of symbols.
    pub(super) is_strings: bool,
    /// `true` if the file has a `.plt.got`.
    pub(super) has_plt_got: bool,
    link: usize,
}

/// Segment, as its program header describes it.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    kind: u32,
    /// Contents in the file.
    pub(super) range: Range<u64>,
}

impl Layout {
    /// Reads all headers.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> Result<Self> {
        let file_size = file.seek(SeekFrom::End(0)).map_err(|error| Error::io(0, &error))?;
        let mut file = ElfInput { file, size: file_size };
        let ident = file.read(0, 16, "the identification of an ELF file")?;
        let [0x7f, b'E', b'L', b'F', class @ (1 | 2), order @ (1 | 2), ..] = *ident else {
            let detail = "it does not begin with the magic number and a known class and byte order";
            return Err(Error::invalid(0, "ELF file", detail));
        };
        let class = if class == 1 { &ELF32 } else { &ELF64 };
        let endian = if order == 1 { Endian::Little } else { Endian::Big };
        let header = file.read(0, class.header as u64, "the ELF header")?;
        let fields = Numbers { class, endian };
        let [segment_size, segments, section_size, sections, names] =
            [0, 2, 4, 6, 8].map(|at| fields.half(&header, class.counts + at));
        if sections == 0 && fields.word(&header, class.shoff) == 0 {
            return Err(Error::invalid(0, "ELF file", "it has no section headers"));
        }
        if usize::from(section_size) != class.section
            || (segments > 0 && usize::from(segment_size) != class.segment)
        {
            let detail = "its headers have another size than those of its class";
            return Err(Error::invalid(0, "ELF file", detail));
        }
        let section_offset = fields.word(&header, class.shoff);
        let first = file.read(section_offset, class.section as u64, "the first section header")?;
        let sections =
            if sections == 0 { fields.word(&first, class.sh_size) } else { sections.into() };
        // After sh_link: sh_info.
        let segments = fields.unless_escaped(segments, &first, class.sh_link + 4);
        let names = fields.unless_escaped(names, &first, class.sh_link) as usize;
        let segments_len = u64::from(segments).saturating_mul(class.segment as u64);
        let segment_offset = fields.word(&header, class.phoff);
        let segment_table = file.read(segment_offset, segments_len, "program headers")?;
        let sections_len = sections.saturating_mul(class.section as u64);
        let section_table = file.read(section_offset, sections_len, "section headers")?;
        let segments = segment_table.chunks_exact(class.segment);
        let sections = section_table.chunks_exact(class.section);
        let mut layout = Self {
            file_size,
            segments: segments.map(|header| fields.segment(header)).collect(),
            sections: sections.map(|header| fields.section(header)).collect(),
            class,
            endian,
            header,
            segment_table,
            section_table,
        };
        layout.read_names(&mut file, names)?;
        Ok(layout)
    }

    /// Gives each section its name.
    fn read_names(&mut self, file: &mut ElfInput<impl Read + Seek>, names: usize) -> Result<()> {
        let texts = self.sections.get(names).filter(|section| section.has_contents);
        let range = texts.map(|section| section.range.clone()).unwrap_or_default();
        let len = range.end.saturating_sub(range.start);
        let texts = file.read(range.start, len, "names of sections")?;
        let fields = Numbers { class: self.class, endian: self.endian };
        for (section, header) in
            self.sections.iter_mut().zip(self.section_table.chunks_exact(self.class.section))
        {
            let name = texts.get(fields.number(header, 0) as usize..).unwrap_or_default();
            section.name = name.split(|&byte| byte == 0).next().unwrap_or_default().into();
        }
        let tables = self.sections.iter().filter(|section| section.has_symbols());
        let links: Vec<_> = tables.map(|table| table.link).chain([names]).collect();
        for index in links {
            if let Some(section) = self.sections.get_mut(index) {
                section.is_strings = true;
            }
        }
        let has_plt_got = self.sections.iter().any(|section| section.name == b".plt.got");
        self.sections.iter_mut().for_each(|section| section.has_plt_got = has_plt_got);
        Ok(())
    }

    /// Iterates over the segments whose contents are kept: notes, and the table of the call frame
    /// information.
    pub(super) fn moved_segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.is_moved())
    }

    /// Returns the size of all headers.
    pub(super) fn headers_size(&self) -> u64 {
        (self.header.len() + self.segment_table.len() + self.section_table.len()) as u64
    }

    /// Changes the offsets of segments to those that `placed` returns for their old ones.
    pub(super) fn move_segments(&mut self, placed: impl Fn(&Range<u64>) -> Option<u64>) {
        let fields = Numbers { class: self.class, endian: self.endian };
        let first = self.class.header as u64;
        for (segment, header) in
            self.segments.iter().zip(self.segment_table.chunks_exact_mut(self.class.segment))
        {
            let offset = match segment.kind {
                PT_PHDR => Some(first),
                _ if segment.is_moved() => placed(&segment.range),
                _ => None,
            };
            if let Some(offset) = offset {
                fields.set_word(header, self.class.p_offset, offset);
            }
        }
    }

    /// Changes the offsets of sections to those that `placed` returns; the others lose their
    /// contents.
    pub(super) fn move_sections(&mut self, placed: impl Fn(&ElfSection) -> Option<u64>) {
        let fields = Numbers { class: self.class, endian: self.endian };
        for (section, header) in
            self.sections.iter().zip(self.section_table.chunks_exact_mut(self.class.section))
        {
            match placed(section) {
                Some(offset) => fields.set_word(header, self.class.sh_offset, offset),
                None if section.kind != SHT_NULL => fields.set_number(header, 4, SHT_NOBITS),
                None => {}
            }
        }
    }

    /// Returns the header, the program headers and the section headers, in this order.
    pub(super) fn headers(mut self) -> Vec<u8> {
        let fields = Numbers { class: self.class, endian: self.endian };
        let segments = self.header.len();
        let sections = segments + self.segment_table.len();
        if !self.segment_table.is_empty() {
            fields.set_word(&mut self.header, self.class.phoff, segments as u64);
        }
        fields.set_word(&mut self.header, self.class.shoff, sections as u64);
        [self.header, self.segment_table, self.section_table].concat()
    }
}

impl ElfSection {
    fn has_symbols(&self) -> bool {
        matches!(self.kind, super::SYMTAB | super::DYNSYM)
    }
}

impl Segment {
    fn is_moved(&self) -> bool {
        matches!(self.kind, PT_NOTE | PT_GNU_EH_FRAME)
    }
}

/// A file of known size.
struct ElfInput<'f, R> {
    file: &'f mut R,
    size: u64,
}

impl<R: Read + Seek> ElfInput<'_, R> {
    /// Reads a part of the file if it lies within the file and is not absurdly large.
    fn read(&mut self, offset: u64, size: u64, what: &'static str) -> Result<Vec<u8>> {
        let left = self.size.saturating_sub(offset);
        if size > left {
            return Err(Error::truncated(offset, what, size, left));
        }
        if size > MAX_TABLE {
            return Err(Error::invalid(offset, what, format!("{size} bytes are too many")));
        }
        let mut bytes = Vec::new();
        let sought = self.file.seek(SeekFrom::Start(offset));
        let read = sought.and_then(|_| self.file.by_ref().take(size).read_to_end(&mut bytes));
        let read = read.map_err(|error| Error::io(offset, &error))? as u64;
        if read < size { Err(Error::truncated(offset, what, size, read)) } else { Ok(bytes) }
    }
}

/// Reads and writes the fields of headers. A field that a header lacks, which has the size of its
/// class, is 0.
#[derive(Clone, Copy)]
struct Numbers {
    class: &'static Class,
    endian: Endian,
}

impl Numbers {
    fn half(self, header: &[u8], at: usize) -> u16 {
        self.endian.u16_at(header, at).unwrap_or(0)
    }

    fn number(self, header: &[u8], at: usize) -> u32 {
        self.endian.u32_at(header, at).unwrap_or(0)
    }

    /// Returns a number of the ELF header, which `first`, the first section header, has in its
    /// place if it does not fit.
    fn unless_escaped(self, number: u16, first: &[u8], at: usize) -> u32 {
        if number == ESCAPE { self.number(first, at) } else { number.into() }
    }

    /// Returns an address or offset.
    fn word(self, header: &[u8], at: usize) -> u64 {
        let word = if self.class.word == 8 { self.endian.u64_at(header, at) } else { None };
        word.unwrap_or_else(|| self.number(header, at).into())
    }

    fn set_number(self, header: &mut [u8], at: usize, number: u32) {
        if let Some(place) = header.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = self.endian.bytes_u32(number);
        }
    }

    /// Sets an offset in the reduced file, which is less than one in the whole file, so that it
    /// fits.
    fn set_word(self, header: &mut [u8], at: usize, word: u64) {
        if self.class.word == 4 {
            self.set_number(header, at, u32::try_from(word).unwrap_or(u32::MAX));
        } else if let Some(place) = header.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = self.endian.bytes_u64(word);
        }
    }

    fn segment(self, header: &[u8]) -> Segment {
        let start = self.word(header, self.class.p_offset);
        let end = start.saturating_add(self.word(header, self.class.p_filesz));
        Segment { kind: self.number(header, 0), range: start..end }
    }

    fn section(self, header: &[u8]) -> ElfSection {
        let kind = self.number(header, 4);
        let start = self.word(header, self.class.sh_offset);
        let end = start.saturating_add(self.word(header, self.class.sh_size));
        ElfSection {
            name: Vec::new(),
            kind,
            range: start..end,
            has_contents: kind != SHT_NOBITS && kind != SHT_NULL,
            is_strings: false,
            has_plt_got: false,
            link: self.number(header, self.class.sh_link) as usize,
        }
    }
}
