//! The symbols in an ELF file's `.symtab` and `.dynsym`, placed in the file that was mapped.
//!
//! [`Placing`] selects the address space. For a mapped file, up to two files are involved: the one with the symbol
//! table (perhaps a separate debug file) and the one that was mapped (`runtime`). Symbols have linked addresses; the
//! program headers of the mapped file convert them to its file offsets. The headers of a debug file cannot be used,
//! since its segments have no contents and arbitrary offsets.
//!
//! # Symbols that count
//! As in perf: functions and indirect functions; data objects; and labels without a type, if they are visible and in
//! a section of code or data (by its name). All must be defined, named, and in a section that is loaded. On ARM, the
//! mapping symbols (`$a`, `$d`, `$t`, `$x`) are left out and the Thumb bit is cleared.

use object::elf::{
    EM_AARCH64, EM_ARM, FileHeader32, FileHeader64, SHN_ABS, SHN_UNDEF, SHN_XINDEX, SHT_SYMTAB, SHT_SYMTAB_SHNDX,
    STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STV_HIDDEN, STV_INTERNAL, SectionType,
};
use object::read::elf::{FileHeader, Sym};
use object::{Endianness, U32};

use super::elf::{self, Image, Section};
use super::outcome::Refusal;
use super::table::{NameRef, RawSymbol, TableBuilder};
use crate::input::map::Bytes;

/// Address space in which symbols are placed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Placing<'i> {
    /// Offsets in this file, the one that was mapped.
    InFile(&'i Image),
    /// Linked addresses.
    Linked,
    /// Run-time addresses: the load address of each section, by section index; `None` if it was not loaded.
    Sections(&'i [Option<u64>]),
}

/// Adds the symbols of `image`'s table of this kind (`SHT_SYMTAB`, `SHT_DYNSYM`), then settles `table`, which ends its
/// round. Returns the number of symbols added.
pub(super) fn add_symbols(
    image: &Image,
    placing: Placing<'_>,
    table_kind: SectionType,
    table: &mut TableBuilder,
) -> Result<usize, Refusal> {
    let added = if image.is_64 {
        add::<FileHeader64<Endianness>>(image, placing, table_kind, table)?
    } else {
        add::<FileHeader32<Endianness>>(image, placing, table_kind, table)?
    };
    table.settle();
    Ok(added)
}

/// Entries of a symbol table section, and the bytes of its string table.
pub(super) struct RawSymbols<'i, Elf: FileHeader> {
    pub(super) entries: &'i [Elf::Sym],
    pub(super) names: Bytes,
}

impl<'i, Elf: FileHeader> RawSymbols<'i, Elf> {
    /// Reads the symbol table in `section` and the string table that it links to.
    pub(super) fn read(image: &'i Image, section: &Section) -> Result<Self, Refusal> {
        let entries = elf::entries(image.view(section)?);
        let names = image.sections.get(section.link).map_or(Ok(Vec::new().into()), |names| image.keep(names))?;
        Ok(Self { entries, names })
    }
}

fn add<Elf: FileHeader<Endian = Endianness>>(
    image: &Image,
    placing: Placing<'_>,
    table_kind: SectionType,
    table: &mut TableBuilder,
) -> Result<usize, Refusal> {
    let section = image.section_of_kind(table_kind).ok_or(Refusal::NoSymbols)?;
    let RawSymbols { entries, names } = RawSymbols::<Elf>::read(image, section)?;
    let source = table.add_source(names.clone());
    let arm = image.machine == EM_ARM || image.machine == EM_AARCH64;
    let before = table.symbols.len();
    // Section indices that do not fit into 16 bits.
    let extended = image.section_of_kind(SHT_SYMTAB_SHNDX).filter(|_| table_kind == SHT_SYMTAB);
    let extended = extended.and_then(|section| image.view(section).ok()).unwrap_or_default();
    let extended = elf::entries::<U32<Endianness>>(extended);
    table.symbols.reserve(entries.len());
    for (at, symbol) in entries.iter().enumerate() {
        let name = symbol.st_name(image.endian);
        if name == 0 || name as usize >= names.len() {
            continue;
        }
        let index = match symbol.st_shndx(image.endian) {
            SHN_UNDEF => continue,
            SHN_XINDEX => extended.get(at).map_or(usize::MAX, |index| index.get(image.endian) as usize),
            index => index.0.into(),
        };
        let Some(section) = image.sections.get(index) else { continue };
        if !counts::<Elf>(symbol, section, image.endian) {
            continue;
        }
        let mut address: u64 = symbol.st_value(image.endian).into();
        let name = NameRef::new(source, name.into());
        if arm {
            if is_mapping_symbol(table.name(name)) {
                continue;
            }
            if image.machine == EM_ARM && symbol.st_type() == STT_FUNC {
                address &= !1;
            }
        }
        let Some(start) = placing.place(address, index, section, image) else { continue };
        let size: u64 = symbol.st_size(image.endian).into();
        let binding = symbol.st_bind();
        let ifunc = symbol.st_type() == STT_GNU_IFUNC;
        table.symbols.push(RawSymbol { start, end: start.saturating_add(size), name, binding, ifunc });
    }
    Ok(table.symbols.len() - before)
}

/// Returns whether a symbol counts by the rules in the module's documentation.
fn counts<Elf: FileHeader<Endian = Endianness>>(symbol: &Elf::Sym, section: &Section, endian: Endianness) -> bool {
    if !section.allocated || symbol.st_shndx(endian) == SHN_ABS {
        return false;
    }
    match symbol.st_type() {
        STT_FUNC | STT_GNU_IFUNC | STT_OBJECT => true,
        STT_NOTYPE => !matches!(symbol.st_visibility(), STV_HIDDEN | STV_INTERNAL) && section.text_or_data,
        _ => false,
    }
}

impl Placing<'_> {
    /// Returns the position of a symbol linked at `address` in this section.
    fn place(self, address: u64, index: usize, section: &Section, image: &Image) -> Option<u64> {
        match self {
            Self::InFile(runtime) => offset(address, section, image, runtime),
            Self::Linked => Some(address),
            Self::Sections(loaded) => {
                Some(loaded.get(index).copied()??.wrapping_add(address).wrapping_sub(section.address))
            }
        }
    }
}

/// Returns the offset in the mapped file of a symbol linked at `address`.
fn offset(address: u64, section: &Section, image: &Image, runtime: &Image) -> Option<u64> {
    let Some(segment) = runtime.segment_of(address) else {
        // Relocatable files, and the images that some JITs write, have no segments.
        let section = if section.is_in_memory_only() { runtime.section(&section.name)? } else { section };
        return Some(address.wrapping_sub(section.address).wrapping_add(section.offset));
    };
    let offset = segment.to_offset(address);
    // A symbol without bytes in the file (.bss) must not hide another segment's symbol at the same file offset.
    let beyond = offset.wrapping_sub(segment.offset) >= segment.file_size;
    let hides = beyond && image.segments.iter().chain(&runtime.segments).any(|other| other.has_offset(offset));
    (!hides).then_some(offset)
}

fn is_mapping_symbol(name: &[u8]) -> bool {
    matches!(name, [b'$', b'a' | b'd' | b't' | b'x'] | [b'$', b'a' | b'd' | b't' | b'x', b'.', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_symbols_of_arm() {
        assert!(is_mapping_symbol(b"$a"));
        assert!(is_mapping_symbol(b"$x.12"));
        assert!(!is_mapping_symbol(b"$abc"));
        assert!(!is_mapping_symbol(b"$"));
    }
}
