//! Names for the entries of a procedure linkage table (PLT), which have no symbols of their own.
//!
//! A call into another module goes through a stub: a jump through a slot of the global offset table
//! that the dynamic loader fills. The relocations of the slots name the function that each stub calls.
//! On x86:
//!
//! ```text
//!   .plt      header, then one entry per relocation in .rela.plt, in the order of the slots; if there is a .plt.sec,
//!             only the code for lazy binding
//!   .plt.sec  the stubs that are called, one per relocation in .rela.plt
//!   .plt.got  stubs without lazy binding: the jump's displacement gives the slot, its relocation is in .rela.dyn
//! ```
//!
//! Names are those of perf 6.12 (6.1 names fewer entries): a stub is `function@plt`, also for an
//! indirect function of the module itself; a stub whose relocation is not found is
//! `offset_0x…@plt`; the header is `.plt`. Arm and AArch64, whose ABIs fix the sizes of header and
//! entries, are treated alike.

use object::Endianness;
use object::elf::{
    EM_386, EM_AARCH64, EM_ARM, EM_X86_64, FileHeader32, FileHeader64, R_X86_64_IRELATIVE, SHT_REL,
    SHT_RELA,
};
use object::read::elf::{FileHeader, Rela, Sym};
use recrep_console::demangle::PLT_SUFFIX;

use crate::symbols::elf::{self, ElfImage, ElfSection, ElfSymbols};
use crate::symbols::names::table::{TableBuilder, name_at};

/// Relocation of a slot.
#[derive(Clone, Copy)]
struct PltSlot {
    address: u64,
    symbol: usize,
    /// Linked address of an indirect function.
    indirect: Option<u64>,
}

/// Adds the PLT entries of `image`. To be called last, just before [`TableBuilder::finish`]: these
/// symbols have sizes and must not be ranked against others at the same address. Returns `None`
/// where it finds no more of them.
pub(crate) fn add_plt_symbols(image: &ElfImage, table: &mut TableBuilder) -> Option<()> {
    let plt = image.section(b".plt")?;
    let (header, entry) = sizes(image, plt)?;
    if image.is_x86() {
        add_plt_got(image, table);
    }
    let relocations = image.section(b".rela.plt").or_else(|| image.section(b".rel.plt"));
    let mut slots = relocations.map(|section| slots(image, section)).unwrap_or_default();
    // The relocations of indirect functions are not in the order of the PLT entries; the slots are.
    slots.sort_by_key(|slot| slot.address);
    let secondary = if image.is_x86() { image.section(b".plt.sec") } else { None };
    let (mut offset, entry, header) = match secondary {
        Some(secondary) => (secondary.offset, sizes(image, secondary)?.1, plt.size),
        None if slots.len() as u64 * entry == plt.size => (plt.offset, entry, 0),
        None => (plt.offset.checked_add(header)?, entry, header),
    };
    if header > 0 {
        table.add(b".plt", plt.offset, plt.offset.saturating_add(header));
    }
    let symbols = relocations.and_then(|section| linked_symbols(image, section));
    for slot in slots {
        let name = symbols
            .as_ref()
            .and_then(|symbols| symbol_name(image, symbols, slot.symbol))
            .or_else(|| indirect_name(image, table, slot.indirect?))
            .unwrap_or_else(|| offset_name(offset));
        table.add(&name, offset, offset.saturating_add(entry));
        offset = offset.checked_add(entry)?;
    }
    Some(())
}

/// Returns the sizes of the header and of an entry.
fn sizes(image: &ElfImage, section: &ElfSection) -> Option<(u64, u64)> {
    match image.machine {
        EM_386 | EM_X86_64 => {
            let entry = match section.entry_size {
                size @ (8 | 16) => size,
                _ if section.alignment == 8 => 8,
                _ => 16,
            };
            Some((entry, entry))
        }
        EM_ARM => Some((20, 12)),
        EM_AARCH64 => Some((32, 16)),
        _ => None,
    }
}

fn slots(image: &ElfImage, section: &ElfSection) -> Vec<PltSlot> {
    if image.is_64 {
        slots_of::<FileHeader64<_>>(image, section)
    } else {
        slots_of::<FileHeader32<_>>(image, section)
    }
}

fn slots_of<Elf: FileHeader<Endian = Endianness>>(
    image: &ElfImage,
    section: &ElfSection,
) -> Vec<PltSlot> {
    let endian = image.endian;
    let Ok(contents) = image.view(section) else { return Vec::new() };
    let may_be_indirect = image.machine == EM_X86_64 && section.kind == SHT_RELA;
    let slot = |entry: Elf::Rela| PltSlot {
        address: entry.r_offset(endian).into(),
        symbol: entry.r_sym(endian, false) as usize,
        indirect: (may_be_indirect && entry.r_type(endian, false) == R_X86_64_IRELATIVE)
            .then(|| entry.r_addend(endian).into().cast_unsigned()),
    };
    match section.kind {
        SHT_RELA => elf::entries(contents).iter().copied().map(slot).collect(),
        SHT_REL => {
            elf::entries::<Elf::Rel>(contents).iter().map(|entry| slot((*entry).into())).collect()
        }
        _ => Vec::new(),
    }
}

/// Adds the stubs in `.plt.got`, named after the slots they jump through.
fn add_plt_got(image: &ElfImage, table: &mut TableBuilder) -> Option<()> {
    let section = image.section(b".plt.got")?;
    let contents = image.view(section).ok()?;
    let entry = usize::try_from(section.entry_size).ok().filter(|&size| size > 0)?;
    let relocations = image.section(b".rela.dyn").filter(|_| image.machine == EM_X86_64);
    let mut slots = relocations.map(|section| slots(image, section)).unwrap_or_default();
    slots.retain(|slot| slot.symbol != 0);
    slots.sort_by_key(|slot| slot.address);
    let symbols = relocations.and_then(|section| linked_symbols(image, section));
    // In a reduced file the contents are elsewhere than in the mapped one.
    let start = image
        .segment_of(section.address)
        .map_or(section.offset, |segment| segment.to_offset(section.address));
    for (offset, stub) in (start..).step_by(entry).zip(contents.chunks_exact(entry)) {
        let slot = slot_of_jump(stub).and_then(|distance| {
            let address = section.address.wrapping_add(offset - start).wrapping_add(distance);
            slots.get(slots.binary_search_by_key(&address, |slot| slot.address).ok()?)
        });
        let name = slot
            .and_then(|slot| symbol_name(image, symbols.as_ref()?, slot.symbol))
            .unwrap_or_else(|| offset_name(offset));
        table.add(&name, offset, offset.saturating_add(section.entry_size));
    }
    Some(())
}

/// Returns the distance from a stub's start to the slot of its jump:
/// `[endbr64] [bnd] jmp *displacement(%rip)`.
fn slot_of_jump(stub: &[u8]) -> Option<u64> {
    let rest = stub.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(stub);
    let rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
    let rest = rest.strip_prefix(&[0xff, 0x25])?;
    let displacement = i32::from_le_bytes(*rest.first_chunk::<4>()?);
    let end = (stub.len() - rest.len() + 4) as u64;
    Some(end.wrapping_add_signed(displacement.into()))
}

/// Returns the symbols that a relocation section refers to.
fn linked_symbols<'i>(image: &'i ElfImage, relocations: &ElfSection) -> Option<ElfSymbols<'i>> {
    image.symbols(image.sections.get(relocations.link)?).ok()
}

fn symbol_name(image: &ElfImage, symbols: &ElfSymbols<'_>, index: usize) -> Option<Vec<u8>> {
    let symbol = symbols.entries.get(index)?;
    let name = name_at(&symbols.names, symbol.st_name(image.endian) as usize);
    (!name.is_empty()).then(|| [name, PLT_SUFFIX].concat())
}

/// Returns the PLT name of the indirect function linked at `address`, or of the alias that replaced
/// it.
fn indirect_name(image: &ElfImage, table: &TableBuilder, address: u64) -> Option<Vec<u8>> {
    let symbol = table.at(image.segment_of(address)?.to_offset(address))?;
    symbol.name.is_ifunc().then(|| [table.name(symbol.name), PLT_SUFFIX].concat())
}

fn offset_name(offset: u64) -> Vec<u8> {
    format!("offset_{offset:#x}@plt").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jump_of_a_stub_gives_its_slot() {
        // jmp *0x2fe2(%rip); xchg %ax,%ax
        assert_eq!(slot_of_jump(&[0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x66, 0x90]), Some(0x2fe8));
        // endbr64; bnd jmp *-0x10(%rip)
        let stub = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf0, 0xff, 0xff, 0xff, 0x90];
        assert_eq!(slot_of_jump(&stub), Some(11_u64.wrapping_sub(0x10)));
        assert_eq!(slot_of_jump(&[0x90; 16]), None);
        assert_eq!(slot_of_jump(&[0xff, 0x25, 1]), None);
    }
}
