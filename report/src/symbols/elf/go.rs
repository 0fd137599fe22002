//! The function table of Go programs (`.gopclntab`), which stays in a program without symbol
//! tables: the runtime needs it.
//!
//! ```text
//!   header:  magic u32 | 0 0 | instruction quantum u8 | size of a word u8 | words …
//!   Go 1.2   … number of functions │ functions: (address, offset of details) words…, end address
//!   Go 1.16  … functions, files, offset of names, 3 other offsets, offset of functions │
//!   Go 1.18  … functions, files, start of code, offset of names, 3 other offsets, offset of functions │
//!            functions: (address − start of code, offset of details) u32…, end
//!   details: address (a word; u32 from Go 1.18 on) | offset of the name u32 | …
//! ```
//!
//! The start of code is missing in the file if the program can be loaded anywhere, and from Go 1.26
//! on. Then it is in a relocation, or in the `moduledata`, which begins with the addresses of this
//! table and of its names.
//!
//! Source: `debug/gosym/pclntab.go` and `runtime/symtab.go` of Go.

use object::elf::{SHT_RELA, STB_GLOBAL};
use recrep_format::endian::Endian;

use crate::symbols::elf::{ElfImage, ElfSection};
use crate::symbols::file::Refusal;
use crate::symbols::names::table::{NameRef, PackedSymbol, TableBuilder};

/// Formats of the table, by the oldest version of Go that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableFormat {
    Go12,
    Go116,
    Go118,
}

const MAGICS: [(u32, TableFormat); 4] = [
    (0xffff_fffb, TableFormat::Go12),
    (0xffff_fffa, TableFormat::Go116),
    (0xffff_fff0, TableFormat::Go118),
    // Go 1.20: what follows the functions differs.
    (0xffff_fff1, TableFormat::Go118),
];

/// Size of what comes before the words of the header.
const HEAD: usize = 8;

/// Position of the start of code in the `moduledata`, in words.
const TEXT_IN_MODULE: u64 = 22;

/// Most addresses that are tried as the `moduledata`: a program has one.
const CANDIDATES: usize = 16;

/// Table of functions in the bytes of a section.
#[derive(Clone, Copy, Debug)]
struct GoTable<'b> {
    bytes: &'b [u8],
    endian: Endian,
    format: TableFormat,
    /// Size of a word in bytes.
    word: usize,
}

/// A function: first address, one past the last, offset of its name in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GoFunction {
    start: u64,
    end: u64,
    name: u64,
}

/// Adds the functions of a Go program, placed in the file, then settles `table`, which ends its
/// round. Returns their number; `None` if the file has no function table of Go.
pub(crate) fn add_functions(
    image: &ElfImage,
    table: &mut TableBuilder,
) -> Option<Result<usize, Refusal>> {
    let (section, at) = find(image)?;
    Some(add_section(image, section, at, table))
}

/// Adds the functions of the table that begins in a section `at` this offset.
fn add_section(
    image: &ElfImage,
    section: &ElfSection,
    at: usize,
    table: &mut TableBuilder,
) -> Result<usize, Refusal> {
    let bytes = image.view(section)?;
    let functions = GoTable::of(bytes.get(at..).unwrap_or_default());
    let functions =
        functions.ok_or(Refusal::Other("its table of Go functions has an unknown format"))?;
    let address = section.address.wrapping_add(at as u64);
    let code = functions
        .code_start(image, address)
        .ok_or(Refusal::Other("it does not say where Go code begins"))?;
    let source = table.add_source(image.keep(section)?);
    let before = table.symbols.len();
    for function in functions.iter(code) {
        let offset = match image.segment_of(function.start) {
            Some(segment) => segment.to_offset(function.start),
            None => function.start,
        };
        let name = NameRef::new(source, at as u64 + function.name).ranked(STB_GLOBAL, false);
        let end = offset.saturating_add(function.end.saturating_sub(function.start));
        if !table.name(name).is_empty() {
            table.symbols.push(PackedSymbol { start: offset, end, name });
        }
    }
    let added = table.symbols.len() - before;
    table.settle();
    if added > 0 { Ok(added) } else { Err(Refusal::NoSymbols) }
}

/// Returns the section with the table, and where it begins in it. Linkers other than Go's may merge
/// it with others.
fn find(image: &ElfImage) -> Option<(&ElfSection, usize)> {
    let named = image.sections.iter().find(|section| section.name.ends_with(b".gopclntab"));
    if let Some(section) = named {
        return Some((section, 0));
    }
    image.section(b".go.buildinfo").or_else(|| image.section(b".note.go.buildid"))?;
    let merged =
        [&b".data.rel.ro"[..], b".rodata"].into_iter().filter_map(|name| image.section(name));
    merged.filter_map(|section| Some((section, position(image.view(section).ok()?)?))).next()
}

/// Returns the position of what looks like a table with functions.
fn position(bytes: &[u8]) -> Option<usize> {
    let orders = [Endian::Little, Endian::Big].into_iter();
    let mut heads = orders.flat_map(|endian| MAGICS.map(|(magic, _)| endian.bytes_u32(magic)));
    heads.find_map(|head| {
        memchr::memmem::find_iter(bytes, &head).filter(|at| at.is_multiple_of(4)).find(|at| {
            let table = bytes.get(*at..).and_then(GoTable::of);
            table.is_some_and(|table| table.iter(0).nth(1).is_some())
        })
    })
}

impl<'b> GoTable<'b> {
    fn of(bytes: &'b [u8]) -> Option<Self> {
        let &[quantum @ (1 | 2 | 4), word @ (4 | 8)] = bytes.get(6..HEAD)? else { return None };
        let (magic, _) = bytes.split_first_chunk()?;
        (bytes.get(4..6)? == [0, 0] && quantum > 0).then_some(())?;
        [Endian::Little, Endian::Big].into_iter().find_map(|endian| {
            let (_, format) = *MAGICS.iter().find(|(known, _)| *known == endian.u32(*magic))?;
            Some(Self { bytes, endian, format, word: word.into() })
        })
    }

    /// Returns a word of the header.
    fn header(&self, index: usize) -> Option<u64> {
        self.word_at(HEAD + index * self.word)
    }

    /// Returns a word of the header that is an offset in the table.
    fn offset(&self, index: usize) -> Option<usize> {
        usize::try_from(self.header(index)?).ok()
    }

    fn word_at(&self, at: usize) -> Option<u64> {
        number(self.bytes, at, self.word, self.endian)
    }

    /// Returns the functions, ascending; `code` is the start of code.
    fn iter(&self, code: u64) -> impl Iterator<Item = GoFunction> + use<'b> {
        let table = *self;
        let count = table.header(0).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        let (functions, names, size) = match table.format {
            TableFormat::Go12 => (Some(HEAD + table.word), Some(0), table.word),
            TableFormat::Go116 => (table.offset(6), table.offset(2), table.word),
            TableFormat::Go118 => (table.offset(7), table.offset(3), 4),
        };
        // Offsets of details are relative to the functions, but for Go 1.2.
        let details = if table.format == TableFormat::Go12 { Some(0) } else { functions };
        let code = if table.format == TableFormat::Go118 { code } else { 0 };
        let read = move |index: usize| {
            let entry = functions?.checked_add(index.checked_mul(2 * size)?)?;
            let field = |index: usize| {
                number(table.bytes, entry.checked_add(index * size)?, size, table.endian)
            };
            let (start, end) = (field(0)?, field(2)?);
            let detail =
                usize::try_from(field(1)?).ok()?.checked_add(details?)?.checked_add(size)?;
            let name = number(table.bytes, detail, 4, table.endian)?.checked_add(names? as u64)?;
            Some(GoFunction { start: code.wrapping_add(start), end: code.wrapping_add(end), name })
        };
        (0..count).map_while(read).filter(|function| function.start < function.end)
    }

    /// Returns the address at which Go code begins; the table is at `address`.
    fn code_start(&self, image: &ElfImage, address: u64) -> Option<u64> {
        if self.format != TableFormat::Go118 {
            return Some(0);
        }
        let relocations = Relocations::of(image, self.word, self.endian);
        self.header(2)
            .filter(|start| is_code(image, *start))
            .or_else(|| {
                let field = address.checked_add((HEAD + 2 * self.word) as u64)?;
                relocations.at(field).filter(|start| is_code(image, *start))
            })
            .or_else(|| {
                let start = self.start_in_module(image, &relocations, address)?;
                is_code(image, start).then_some(start)
            })
            .or_else(|| Some(image.section(b".text")?.address))
    }

    /// Returns the start of code that the `moduledata` has.
    fn start_in_module(
        &self,
        image: &ElfImage,
        relocations: &Relocations<'_>,
        address: u64,
    ) -> Option<u64> {
        let module = self.module_data(image, relocations, address)?;
        self.value_at(image, relocations, module.checked_add(TEXT_IN_MODULE * self.word as u64)?)
    }

    /// Returns the word that the program has at an address when it runs.
    fn value_at(
        &self,
        image: &ElfImage,
        relocations: &Relocations<'_>,
        address: u64,
    ) -> Option<u64> {
        relocations.at(address).or_else(|| self.word_in(image, address))
    }

    /// Returns the address of the `moduledata`: two words that are the addresses of the table and
    /// of its names.
    fn module_data(
        &self,
        image: &ElfImage,
        relocations: &Relocations<'_>,
        address: u64,
    ) -> Option<u64> {
        let names = address.checked_add(self.header(3)?)?;
        let is_module = |at: &u64| {
            let next = at.wrapping_add(self.word as u64);
            self.value_at(image, relocations, next) == Some(names)
        };
        relocations.of_value(address).take(CANDIDATES).find(is_module).or_else(|| {
            let data =
                image.sections.iter().filter(|section| section.allocated && !section.executable);
            let addresses = data.flat_map(|section| {
                let bytes = image.view(section).unwrap_or_default();
                let words = (0..bytes.len()).step_by(self.word);
                let found = words
                    .filter(move |at| number(bytes, *at, self.word, self.endian) == Some(address));
                found.map(move |at| section.address.wrapping_add(at as u64))
            });
            addresses.take(CANDIDATES).find(is_module)
        })
    }

    /// Returns the word that the file has for this address.
    fn word_in(&self, image: &ElfImage, address: u64) -> Option<u64> {
        let offset = usize::try_from(image.segment_of(address)?.to_offset(address)).ok()?;
        number(&image.file, offset, self.word, self.endian)
    }
}

/// Returns whether an address is in executable sections.
fn is_code(image: &ElfImage, address: u64) -> bool {
    image.sections.iter().filter(|section| section.executable).any(|section| {
        address.checked_sub(section.address).is_some_and(|within| within < section.size)
    })
}

/// Relocations with the values that they put into memory, before what the program is moved by is
/// added.
struct Relocations<'b> {
    bytes: Vec<&'b [u8]>,
    word: usize,
    endian: Endian,
}

impl<'b> Relocations<'b> {
    fn of(image: &'b ElfImage, word: usize, endian: Endian) -> Self {
        let tables =
            image.sections.iter().filter(|section| section.kind == SHT_RELA && section.allocated);
        Self {
            bytes: tables.filter_map(|section| image.view(section).ok()).collect(),
            word,
            endian,
        }
    }

    /// Returns the address and the value of each.
    fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<'b> {
        let (word, endian) = (self.word, self.endian);
        let value = move |entry: &[u8]| {
            Some((number(entry, 0, word, endian)?, number(entry, 2 * word, word, endian)?))
        };
        let entries: Vec<_> = self.bytes.iter().map(|table| table.chunks_exact(3 * word)).collect();
        entries.into_iter().flatten().filter_map(value)
    }

    /// Returns the value at an address.
    fn at(&self, address: u64) -> Option<u64> {
        self.iter().find(|(at, _)| *at == address).map(|(_, value)| value)
    }

    /// Returns the addresses with this value.
    fn of_value(&self, wanted: u64) -> impl Iterator<Item = u64> + use<'b> {
        self.iter().filter(move |(_, value)| *value == wanted).map(|(at, _)| at)
    }
}

fn number(bytes: &[u8], at: usize, size: usize, endian: Endian) -> Option<u64> {
    if size == 4 { endian.u32_at(bytes, at).map(u64::from) } else { endian.u64_at(bytes, at) }
}

#[cfg(test)]
mod tests {
    use recrep_format::bytes::Encoder;

    use super::*;

    /// Puts a word of this size.
    fn put(e: &mut Encoder, size: usize, value: u64) {
        if size == 4 { e.u32(u32::try_from(value).unwrap()) } else { e.u64(value) }
    }

    /// A table of the functions `a` at 0x1000 and `main.b` at 0x1040, which end at 0x1060.
    fn table(format: TableFormat, magic: u32, word: usize, endian: Endian) -> Vec<u8> {
        let mut e = Encoder::new(endian);
        e.u32(magic);
        e.bytes(&[0, 0, 1, u8::try_from(word).unwrap()]);
        let size = if format == TableFormat::Go118 { 4 } else { word };
        // From here on: functions, end, the details of both, names.
        let (len, base) =
            (5 * size + 2 * (size + 4), if format == TableFormat::Go118 { 0x1000 } else { 0 });
        let header = match format {
            TableFormat::Go12 => 1,
            TableFormat::Go116 => 7,
            TableFormat::Go118 => 8,
        };
        let functions = HEAD + header * word;
        let names = functions + len;
        let words: &[usize] = match format {
            TableFormat::Go12 => &[2],
            TableFormat::Go116 => &[2, 1, names, 0, 0, 0, functions],
            TableFormat::Go118 => &[2, 1, 0x1000, names, 0, 0, 0, functions],
        };
        for value in words {
            put(&mut e, word, *value as u64);
        }
        let origin = if format == TableFormat::Go12 { functions } else { 0 };
        let details = origin + 5 * size;
        for value in [0x1000 - base, details, 0x1040 - base, details + size + 4, 0x1060 - base] {
            put(&mut e, size, value as u64);
        }
        let first = if format == TableFormat::Go12 { names } else { 0 };
        for (start, name) in [(0x1000, first), (0x1040, first + 2)] {
            put(&mut e, size, (start - base) as u64);
            e.u32(u32::try_from(name).unwrap());
        }
        e.bytes(b"a\0main.b\0");
        e.into_bytes()
    }

    #[test]
    fn functions_of_all_formats_are_read() {
        for (magic, format) in MAGICS {
            for endian in [Endian::Little, Endian::Big] {
                for word in [4, 8] {
                    let bytes = table(format, magic, word, endian);
                    let functions = GoTable::of(&bytes).unwrap();
                    let names = bytes.len() - 9;
                    let names = names as u64;
                    let expected = [(0x1000, 0x1040, names), (0x1040, 0x1060, names + 2)];
                    let code =
                        functions.header(2).filter(|_| format == TableFormat::Go118).unwrap_or(0);
                    let found = functions.iter(code).map(|of| (of.start, of.end, of.name));
                    assert!(found.eq(expected), "{magic:x} {endian:?} {word}");
                    let merged = [&[1, 2, 3, 4, 0, 0, 0, 0][..], &bytes].concat();
                    assert_eq!(position(&merged), Some(8));
                }
            }
        }
    }

    #[test]
    fn damaged_tables_have_fewer_functions_or_none() {
        for (magic, format) in MAGICS {
            let bytes = table(format, magic, 8, Endian::Little);
            for cut in 0..bytes.len() {
                let table = GoTable::of(&bytes[..cut]);
                assert!(table.is_none_or(|table| table.iter(0).count() <= 2));
            }
            for at in 0..bytes.len() {
                let mut bytes = bytes.clone();
                bytes[at] ^= 0xff;
                let table = GoTable::of(&bytes);
                assert!(table.is_none_or(|table| table.iter(u64::MAX).count() <= 3));
            }
        }
    }
}
