//! The symbols in an ELF file's `.symtab` and `.dynsym`, placed in the file that was mapped.
//!
//! Where they are placed is [`Placing`]'s. For a mapped file, up to two files take part: the one that has the symbol table (perhaps a separate debug file) and the one that was
//! mapped (`runtime`). RawSymbols carry linked addresses; the program headers of the mapped file turn them into its file
//! offsets. A debug file's own headers do not, since its segments have no contents and lie anywhere.
//!
//! # What counts as a symbol
//! As in perf: functions and indirect functions; data objects; and labels without a type, if they are visible and in
//! a section of code or data (by its name). All of them defined, named, and in a section that is loaded. On ARM, the
//! mapping symbols (`$a`, `$d`, `$t`, `$x`) are left out and the Thumb bit is cleared.

use object::Endianness;
use std::sync::Arc;

use object::elf::{
    EM_AARCH64, EM_ARM, FileHeader32, FileHeader64, SHN_ABS, SHN_UNDEF, SHN_XINDEX, SHT_SYMTAB, SHT_SYMTAB_SHNDX,
    STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STV_HIDDEN, STV_INTERNAL, SectionType,
};
use object::read::elf::{FileHeader, Sym};

use super::elf::{self, Class, Image, Section};
use super::outcome::Refusal;
use super::table::{Binding, NameRef, RawSymbol, TableBuilder};

/// The space that symbols are placed in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Placing<'i> {
    /// Offsets in this file, which was mapped.
    InFile(&'i Image),
    /// Addresses: linked ones and so much.
    Moved(u64),
    /// Addresses: of each section, by its number, where it was loaded.
    Sections(&'i [Option<u64>]),
}

/// Adds the symbols of `image`'s table of this kind (`SHT_SYMTAB`, `SHT_DYNSYM`). Ends the round.
/// Returns how many there were.
pub(super) fn add_symbols(
    image: &Image,
    placing: Placing<'_>,
    table_kind: SectionType,
    table: &mut TableBuilder,
) -> Result<usize, Refusal> {
    let added = match image.class {
        Class::Elf32 => add::<FileHeader32<Endianness>>(image, placing, table_kind, table),
        Class::Elf64 => add::<FileHeader64<Endianness>>(image, placing, table_kind, table),
    }?;
    table.settle();
    Ok(added)
}

/// A symbol table and the names in it, as bytes.
pub(super) struct RawSymbols {
    entries: Vec<u8>,
    pub(super) names: Vec<u8>,
}

impl RawSymbols {
    /// Reads what is in `section`.
    pub(super) fn read(image: &Image, section: &Section) -> Result<Self, Refusal> {
        let entries = image.read(section)?;
        let names = image.sections.get(section.link).map_or(Ok(Vec::new()), |names| image.read(names))?;
        Ok(Self { entries, names })
    }

    pub(super) fn entries<Elf: FileHeader>(&self) -> &[Elf::Sym] {
        elf::entries(&self.entries)
    }
}

fn add<Elf: FileHeader<Endian = Endianness>>(
    image: &Image,
    placing: Placing<'_>,
    table_kind: SectionType,
    table: &mut TableBuilder,
) -> Result<usize, Refusal> {
    let section = image.section_of_kind(table_kind).ok_or(Refusal::NoSymbols)?;
    let RawSymbols { entries, names } = RawSymbols::read(image, section)?;
    let names = Arc::new(names);
    let source = table.add_source(names.clone());
    let arm = image.machine == EM_ARM || image.machine == EM_AARCH64;
    let before = table.len();
    let extended = extended_indices(image, table_kind);
    let entries = elf::entries::<Elf::Sym>(&entries);
    table.reserve(entries.len());
    for (at, symbol) in entries.iter().enumerate() {
        let name = symbol.st_name(image.endian);
        if names.get(name as usize).is_none_or(|&first| first == 0) {
            continue;
        }
        let Some(index) = section_index(symbol.st_shndx(image.endian), at, &extended, image.endian) else { continue };
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
        let binding = match symbol.st_bind() {
            STB_GLOBAL => Binding::Global,
            STB_WEAK => Binding::Weak,
            _ => Binding::Local,
        };
        let ifunc = symbol.st_type() == STT_GNU_IFUNC;
        table.push(RawSymbol { start, end: start.saturating_add(size), name, binding, ifunc });
    }
    Ok(table.len() - before)
}

/// Whether the rules in the module's documentation let this one in.
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
    /// Where what is linked at `address`, in this section, is.
    fn place(self, address: u64, index: usize, section: &Section, image: &Image) -> Option<u64> {
        match self {
            Self::InFile(runtime) => offset(address, section, image, runtime),
            Self::Moved(by) => Some(address.wrapping_add(by)),
            Self::Sections(loaded) => {
                Some(loaded.get(index).copied()??.wrapping_add(address).wrapping_sub(section.address))
            }
        }
    }
}

/// The offset in the mapped file of what is linked at `address`.
fn offset(address: u64, section: &Section, image: &Image, runtime: &Image) -> Option<u64> {
    let Some(segment) = runtime.segment_of(address) else {
        // No segment: relocatable files, and the images that some JITs write.
        let section = if section.is_in_memory_only() { runtime.section(&section.name)? } else { section };
        return Some(address.wrapping_sub(section.address).wrapping_add(section.offset));
    };
    let offset = segment.to_offset(address);
    // What has no bytes in the file (.bss) must not shadow what lies behind its segment there.
    let beyond = offset.wrapping_sub(segment.offset) >= segment.file_size;
    let shadows = beyond && image.segments.iter().chain(&runtime.segments).any(|other| other.has_offset(offset));
    (!shadows).then_some(offset)
}

/// The indices of sections past what 16 bits hold (`.symtab_shndx`).
fn extended_indices(image: &Image, table_kind: SectionType) -> Vec<u8> {
    let section = image.section_of_kind(SHT_SYMTAB_SHNDX).filter(|_| table_kind == SHT_SYMTAB);
    section.and_then(|section| image.read(section).ok()).unwrap_or_default()
}

fn section_index(
    index: object::elf::SymbolSection,
    symbol: usize,
    extended: &[u8],
    endian: Endianness,
) -> Option<usize> {
    use object::Endian;
    match index {
        SHN_UNDEF => None,
        SHN_XINDEX => {
            let bytes = extended.get(symbol.checked_mul(4)?..)?.first_chunk::<4>()?;
            Some(endian.read_u32(*bytes) as usize)
        }
        _ => Some(usize::from(index.0)),
    }
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
