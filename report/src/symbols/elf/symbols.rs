//! The symbols in an ELF file's `.symtab` and `.dynsym`, by their offsets in the file that was mapped.
//!
//! For a mapped file, up to two files are involved: the one with the symbol table (perhaps a
//! separate debug file) and the one that was mapped (`runtime`). ElfSymbols have linked addresses; the
//! program headers of the mapped file convert them to its file offsets ([`in_file`]). The headers
//! of a debug file cannot be used, since its segments have no contents and arbitrary offsets.
//!
//! # ElfSymbols that count
//! Functions and indirect functions; data objects; and labels without a type, if they are in a section
//! of code, or visible and in one of data (by its name). All must be defined, named, and in a section
//! that is loaded. On ARM, the mapping symbols (`$a`, `$d`, `$t`, `$x`) are left out and the Thumb
//! bit is cleared. Labels that begin with a dot are the notes of compilers (annobin): nothing goes on
//! beyond them, but they name nothing.

use object::elf::{
    EM_AARCH64, EM_ARM, SHN_ABS, SHN_UNDEF, SHN_XINDEX, SHT_SYMTAB, SHT_SYMTAB_SHNDX, STB_LOCAL,
    STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STV_HIDDEN, STV_INTERNAL, SectionType, Sym64,
};
use object::read::elf::Sym;
use object::{Endianness, U32};

use crate::symbols::elf::{self, ElfImage, ElfSection, ElfSymbols};
use crate::symbols::file::Refusal;
use crate::symbols::names::table::{Listing, NameRef, PackedSymbol, TableBuilder};

/// Adds the symbols of `image`'s table of this kind (`SHT_SYMTAB`, `SHT_DYNSYM`), then settles
/// `table`, which ends its round. `locate` gives the position of a symbol, from its linked address
/// and the number and header of its section. Returns the number of symbols added.
pub(crate) fn add_symbols(
    image: &ElfImage,
    table_kind: SectionType,
    locate: impl Fn(u64, usize, &ElfSection) -> Option<u64>,
    table: &mut TableBuilder,
) -> Result<usize, Refusal> {
    let section = image.section_of_kind(table_kind).ok_or(Refusal::NoSymbols)?;
    let ElfSymbols { entries, names } = image.symbols(section)?;
    let source = table.add_source(names.clone());
    let arm = image.machine == EM_ARM || image.machine == EM_AARCH64;
    let before = table.symbols.len();
    let extended = extended_indices(image, table_kind);
    table.symbols.reserve(entries.len());
    for (at, symbol) in entries.iter().enumerate() {
        let name = symbol.st_name(image.endian);
        if name == 0 || name as usize >= names.len() {
            continue;
        }
        let index = section_index(symbol, extended.get(at), image.endian);
        let Some(section) = image.sections.get(index) else { continue };
        if !counts(symbol, section, image.endian) {
            continue;
        }
        let mut address = symbol.st_value(image.endian);
        let name = NameRef::new(source, name.into());
        if arm {
            if is_mapping_symbol(table.name(name)) {
                continue;
            }
            if image.machine == EM_ARM && symbol.st_type() == STT_FUNC {
                address &= !1;
            }
        }
        let Some(start) = locate(address, index, section) else { continue };
        let is_label = symbol.st_type() == STT_NOTYPE;
        if is_label && table.name(name).starts_with(b".") {
            table.add_bound(start);
            continue;
        }
        let (size, section_end) = (symbol.st_size(image.endian), end_of(section, address, start));
        let mut end = start.saturating_add(size);
        if size == 0 {
            table.add_bound(section_end);
            // By the ABI these are one function each.
            let is_one = matches!(&*section.name, b".init" | b".fini");
            end = if is_one && address == section.address { section_end } else { start };
        }
        table.listing = table.listing.max(listing(table_kind, symbol));
        let name = name.ranked(symbol.st_bind(), symbol.st_type() == STT_GNU_IFUNC);
        table.symbols.push(PackedSymbol { start, end, name: name.with_label(is_label) });
    }
    let added = table.symbols.len() - before;
    table.settle();
    Ok(added)
}

/// Returns the index of a symbol's section, which for some is in another table; that of no section
/// for a symbol that is not defined.
fn section_index(
    symbol: &Sym64<Endianness>,
    extended: Option<&U32<Endianness>>,
    endian: Endianness,
) -> usize {
    match symbol.st_shndx(endian) {
        SHN_UNDEF => usize::MAX,
        SHN_XINDEX => extended.map_or(usize::MAX, |index| index.get(endian) as usize),
        index => index.0.into(),
    }
}

/// Returns the indices of sections that do not fit into 16 bits.
fn extended_indices(image: &ElfImage, table_kind: SectionType) -> &[U32<Endianness>] {
    let section = image.section_of_kind(SHT_SYMTAB_SHNDX).filter(|_| table_kind == SHT_SYMTAB);
    elf::entries(section.and_then(|section| image.view(section).ok()).unwrap_or_default())
}

/// Returns what a table with this symbol lists.
fn listing(table_kind: SectionType, symbol: &Sym64<Endianness>) -> Listing {
    match symbol.st_bind() {
        _ if table_kind != SHT_SYMTAB => Listing::Dynamic,
        STB_LOCAL => Listing::Whole,
        _ => Listing::Global,
    }
}

/// Returns whether a symbol counts by the rules in the module's documentation.
fn counts(symbol: &Sym64<Endianness>, section: &ElfSection, endian: Endianness) -> bool {
    if !section.allocated || symbol.st_shndx(endian) == SHN_ABS {
        return false;
    }
    match symbol.st_type() {
        STT_FUNC | STT_GNU_IFUNC | STT_OBJECT => true,
        STT_NOTYPE if section.executable => true,
        STT_NOTYPE => {
            !matches!(symbol.st_visibility(), STV_HIDDEN | STV_INTERNAL) && section.text_or_data
        }
        _ => false,
    }
}

/// Returns the position of a section's end, given the address in it that has the position `at`.
fn end_of(section: &ElfSection, address: u64, at: u64) -> u64 {
    // In relocatable files addresses count from the section's beginning.
    let start = at.wrapping_sub(address.wrapping_sub(section.address));
    start.saturating_add(section.size)
}

/// Returns the offset in the mapped file of a symbol of `image` that is linked at `address` in
/// `section`.
pub(crate) fn in_file(
    address: u64,
    section: &ElfSection,
    image: &ElfImage,
    runtime: &ElfImage,
) -> Option<u64> {
    let Some(segment) = runtime.segment_of(address) else {
        // Relocatable files, and the images that some JITs write, have no segments.
        let section =
            if section.is_in_memory_only() { runtime.section(&section.name)? } else { section };
        return Some(address.wrapping_sub(section.address).wrapping_add(section.offset));
    };
    let offset = segment.to_offset(address);
    // A symbol without bytes in the file (.bss) must not hide another segment's symbol at the same
    // file offset.
    let beyond = offset.wrapping_sub(segment.offset) >= segment.file_size;
    let hides = beyond
        && image.segments.iter().chain(&runtime.segments).any(|other| other.has_offset(offset));
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
