//! Parser of the kernel's list of its symbols: `/proc/kallsyms`, or a copy of it, which [`super`]
//! reads.
//!
//! ```text
//!   ffffffff81000000 T _text
//!   ffffffffc0a01010 t nf_hook_slow<TAB>[nf_tables]
//! ```
//!
//! Addresses are absolute and symbols have no sizes, but the list is whole: it has all functions, and
//! the labels of assembly that are no local ones of the assembler. As in perf, the types `T`, `W`,
//! `D` and `B` count, in upper and lower case (text, weak, data, zeroed data; upper case is global).
//! A symbol ends where the next one of any type starts; the last one of a module ends a page later at
//! most, since the gap may be gigabytes. Of several with one start, the last in the list that counts
//! is the one that has bytes. The marks of the linker's script (`__entry_text_start`) have none: they
//! are where sections begin and end.
//!
//! `/proc/kallsyms` lists the kernel that runs *now*; [`super::Kernel`] checks whether that is the
//! recorded one. Each boot may load the kernel at another address (KASLR), so all of its symbols
//! are moved back by the distance that the recorded reference symbol has moved.
//!
//! To parse the list would take half of the time of a small histogram, so the copy that is kept is
//! packed, and read as it is:
//!
//! ```text
//!   MAGIC · number of symbols · lengths of the names of modules and of the text    64 bits each
//!   for each symbol: start · end · offset of the name, module                      64 bits each
//!   names of the modules, separated by newlines                                    as in the list
//!   text of the list                                               each name ended by a zero byte
//! ```

use object::elf::STB_LOCAL;
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;

use crate::input::map::Bytes;
use crate::symbols::elf::extents::is_text_mark;
use crate::symbols::file::hexadecimal;
use crate::symbols::file::{self, Refusal};
use crate::symbols::module::origin::Reference;
use crate::symbols::names::table::{NameRef, PackedSymbol, SymbolTable, name_at, page_end};

/// Parsed list: sorted and with ends, not yet split by module.
#[derive(Debug)]
pub(crate) struct Kallsyms {
    /// Text of the list, with each name ended by a zero byte.
    text: Bytes,
    /// Symbols as they are packed.
    symbols: Bytes,
    modules: ModuleNames,
}

/// Names in brackets, by number; that of the kernel itself is empty.
#[derive(Debug, Default, PartialEq, Eq)]
struct ModuleNames(Vec<Box<[u8]>>);

/// A symbol, and the number of its module.
type Listed = (PackedSymbol, usize);

/// Number of the text among a table's sources of names: the first one that is added.
const SOURCE: u8 = 1;

/// Beginning of a packed list: `rec-ksy3`.
const MAGIC: u64 = 0x3379_736b_2d63_6572;

/// Length of a packed symbol in bytes.
const SYMBOL: usize = 24;

/// Position of the module above the offset of a name.
const MODULE: u32 = 48;

impl Kallsyms {
    /// Returns the list in packed form.
    pub(crate) fn packed(&self) -> Vec<u8> {
        let modules = self.modules.0.join(&b'\n');
        let mut packed = Encoder::new(Endian::Little);
        packed.u64(MAGIC);
        for len in [self.symbols.len() / SYMBOL, modules.len(), self.text.len()] {
            packed.u64(len as u64);
        }
        for bytes in [&*self.symbols, &modules, &self.text] {
            packed.bytes(bytes);
        }
        packed.into_bytes()
    }

    /// Reverses [`Kallsyms::packed`]; returns `None` if these are not the bytes of a packed list.
    pub(crate) fn unpack(bytes: &Bytes) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(32)?;
        let words = U64s::new(head, Endian::Little);
        let len = |at| usize::try_from(words.get(at)?).ok();
        (words.get(0)? == MAGIC).then_some(())?;
        let (symbols, rest) = rest.split_at_checked(len(1)?.checked_mul(SYMBOL)?)?;
        let (modules, text) = rest.split_at_checked(len(2)?)?;
        (text.len() == len(3)?).then_some(())?;
        let text = file::kept(bytes, (bytes.len() - text.len()) as u64, text.len() as u64).ok()?;
        let symbols = file::kept(bytes, head.len() as u64, symbols.len() as u64).ok()?;
        let modules = ModuleNames(modules.split(|&byte| byte == b'\n').map(Into::into).collect());
        Some(Self { text, symbols, modules })
    }

    pub(crate) fn parse(mut text: Vec<u8>) -> Result<Self, Refusal> {
        let (mut symbols, mut modules, mut line_start) = (Vec::new(), ModuleNames::default(), 0);
        for line_end in memchr::memchr_iter(b'\n', &text).chain([text.len()]) {
            // What is no symbol is skipped.
            let line = text.get(line_start..line_end).unwrap_or_default();
            symbols.extend(modules.symbol(line, line_start));
            line_start = line_end + 1;
        }
        if symbols.is_empty() {
            let form = "it has no line of the form `ADDRESS TYPE NAME`";
            return Err(Refusal::Malformed(form.into()));
        }
        if symbols.iter().all(|(symbol, _)| symbol.start == 0) {
            return Err(Refusal::Restricted);
        }
        let ends: Vec<usize> = memchr::memchr2_iter(b'\n', b'\t', &text).collect();
        for end in ends {
            if let Some(byte) = text.get_mut(end) {
                *byte = 0;
            }
        }
        symbols.sort_by_key(|(symbol, _)| symbol.start);
        set_ends(&mut symbols);
        let mut packed = Encoder::new(Endian::Little);
        for (symbol, module) in symbols {
            let rest = symbol.name.offset() as u64 | (module as u64) << MODULE;
            for word in [symbol.start, symbol.end, rest] {
                packed.u64(word);
            }
        }
        Ok(Self { text: text.into(), symbols: packed.into_bytes().into(), modules })
    }

    /// Returns all symbols, sorted by start.
    fn symbols(&self) -> impl Iterator<Item = Listed> {
        let mut words = U64s::new(&self.symbols, Endian::Little).iter();
        std::iter::from_fn(move || {
            let (start, end, rest) = (words.next()?, words.next()?, words.next()?);
            Some((
                PackedSymbol {
                    start,
                    end,
                    name: NameRef::new(SOURCE, rest).ranked(STB_LOCAL, false),
                },
                usize::try_from(rest >> MODULE).ok()?,
            ))
        })
    }

    /// Returns the kernel's symbols, moved so that `reference` has its recorded address.
    pub(crate) fn kernel(&self, reference: Option<&Reference>) -> Result<SymbolTable, Refusal> {
        let Some(reference) = reference else { return self.table(b"", 0) };
        let missing =
            "it lacks the recorded reference symbol, so the kernel's load address is unknown";
        let now = self.address_of(&reference.symbol).ok_or(Refusal::Other(missing))?;
        self.table(b"", now.wrapping_sub(reference.address))
    }

    /// Returns the symbols of a kernel module, given its name without brackets.
    pub(crate) fn module(&self, name: &str) -> Result<SymbolTable, Refusal> {
        self.table(format!("[{name}]").as_bytes(), 0)
    }

    /// Returns the address of a symbol of the kernel itself.
    pub(crate) fn address_of(&self, name: &str) -> Option<u64> {
        let mut symbols = self.of_module(self.modules.number(b"")?);
        let named =
            symbols.find(|symbol| name_at(&self.text, symbol.name.offset()) == name.as_bytes());
        Some(named?.start)
    }

    fn of_module(&self, number: usize) -> impl Iterator<Item = PackedSymbol> {
        self.symbols().filter(move |(_, module)| *module == number).map(|(symbol, _)| symbol)
    }

    fn table(&self, module: &[u8], moved: u64) -> Result<SymbolTable, Refusal> {
        let number = self.modules.number(module).ok_or(Refusal::NoSymbols)?;
        let mut packed = Vec::with_capacity(self.symbols.len() / SYMBOL);
        for PackedSymbol { start, end, name } in self.of_module(number) {
            if end > start {
                let (start, end) = (start.wrapping_sub(moved), end.wrapping_sub(moved));
                packed.push(PackedSymbol { start, end, name });
            }
        }
        // Fast, since they are sorted unless addresses went below zero.
        packed.sort_by_key(|symbol| symbol.start);
        Ok(SymbolTable::from_sorted(packed, self.text.clone()))
    }
}

/// Sets the ends of sorted symbols. Those that name nothing end at their starts, and so do all but the
/// last of those that share one.
fn set_ends(symbols: &mut [Listed]) {
    // Start and module of the group of the symbol before, and of the group behind that.
    let [mut group, mut behind]: [Option<(u64, usize)>; 2] = [None, None];
    let mut has_named = false;
    for (symbol, module) in symbols.iter_mut().rev() {
        if group.is_none_or(|(start, _)| start != symbol.start) {
            (behind, has_named) = (group, false);
        }
        group = Some((symbol.start, *module));
        let names = symbol.end > symbol.start && !has_named;
        symbol.end = match behind {
            _ if !names => symbol.start,
            Some((start, of)) if of == *module => start,
            Some((start, _)) => start.min(page_end(symbol.start)),
            None => page_end(symbol.start),
        };
        has_named |= names;
    }
}

impl ModuleNames {
    /// Returns the symbol in a line that begins at this offset of the text; its end is its start if
    /// it names nothing.
    fn symbol(&mut self, line: &[u8], line_start: usize) -> Option<Listed> {
        let (start, [kind, b' ', rest @ ..]) = hexadecimal(line)? else { return None };
        let counts = matches!(kind, b'T' | b'W' | b'D' | b'B' | b't' | b'w' | b'd' | b'b');
        let name = NameRef::new(SOURCE, (line_start + line.len() - rest.len()) as u64)
            .ranked(STB_LOCAL, false);
        let end = memchr::memchr(b'\t', rest).unwrap_or(rest.len());
        // `$` starts the mapping symbols of ARM.
        rest.get(..end)?.first().filter(|&&byte| byte != b'$')?;
        let names = counts && !rest.get(..end).is_some_and(is_text_mark);
        let module = rest.get(end + 1..).unwrap_or_default();
        let number = self.number(module).unwrap_or_else(|| {
            self.0.push(module.into());
            self.0.len() - 1
        });
        Some((PackedSymbol { start, end: start.saturating_add(names.into()), name }, number))
    }

    /// Returns the number of a module, given its name in brackets.
    fn number(&self, name: &[u8]) -> Option<usize> {
        // A module's symbols are adjacent in the list: search from the end.
        self.0.iter().rposition(|module| **module == *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t do_a_too
ffffffff81000100 t do_a
ffffffff81000180 W weak_b
ffffffff81000200 r rodata
ffffffff81000300 t last
ffffffffc0a01000 t mod_a\t[nf_tables]
ffffffffc0a01010 t mod_b\t[nf_tables]
ffffffffc0b01010 t other\t[ext4]
not a line
";

    /// Returns the names at these addresses, all beyond 0xffff_ffff_0000_0000; `-` where there is
    /// none.
    fn names<const N: usize>(table: &SymbolTable, addresses: [u64; N]) -> [&str; N] {
        let symbol = |address| table.lookup(0xffff_ffff_0000_0000 | address);
        addresses.map(|address| {
            symbol(address).map_or("-", |symbol| std::str::from_utf8(symbol.name).unwrap())
        })
    }

    #[test]
    fn kernel_symbols_end_at_the_next_and_the_last_a_page_later() {
        let table = Kallsyms::parse(TEXT.into()).unwrap().kernel(None).unwrap();
        // Of several symbols with the same start, only the last in the list extends to the next
        // start.
        assert_eq!(names(&table, [0x8100_0000, 0x8100_0100]), ["-", "do_a"]);
        // What does not count ends what is before it.
        assert_eq!(names(&table, [0x8100_01ff, 0x8100_0200]), ["weak_b", "-"]);
        assert_eq!(names(&table, [0x8100_1fff, 0x8100_2000, 0x80ff_ffff]), ["last", "-", "-"]);
    }

    #[test]
    fn marks_of_sections_name_nothing() {
        let text = "\
ffffffff81000000 T srso_untrain
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000010 T __entry_text_start
ffffffff81000080 T entry_SYSCALL_64
ffffffff810000ba T entry_after_hwframe
ffffffff81000138 T __entry_text_end
ffffffff81000200 t start_text
";
        let table = Kallsyms::parse(text.into()).unwrap().kernel(None).unwrap();
        assert_eq!(names(&table, [0x8100_000f, 0x8100_0010]), ["srso_untrain", "-"]);
        assert_eq!(
            names(&table, [0x8100_00b9, 0x8100_00ba, 0x8100_0137, 0x8100_0138, 0x8100_0200]),
            ["entry_SYSCALL_64", "entry_after_hwframe", "entry_after_hwframe", "-", "start_text"]
        );
        let moved = Reference { symbol: "_text".into(), address: 0xffff_ffff_9100_0000 };
        let table = Kallsyms::parse(text.into()).unwrap().kernel(Some(&moved)).unwrap();
        assert_eq!(names(&table, [0x9100_0080]), ["entry_SYSCALL_64"]);
    }

    #[test]
    fn modules_have_their_own_symbols() {
        let list = Kallsyms::parse(TEXT.into()).unwrap();
        let table = list.module("nf_tables").unwrap();
        assert_eq!(names(&table, [0xc0a0_100f, 0xc0a0_1010, 0xc0b0_1010]), ["mod_a", "mod_b", "-"]);
        assert!(matches!(list.module("xfs"), Err(Refusal::NoSymbols)));
    }

    #[test]
    fn kernel_symbols_move_with_the_reference_symbol() {
        let list = Kallsyms::parse(TEXT.into()).unwrap();
        let recorded = Reference { symbol: "_text".into(), address: 0xffff_ffff_9100_0000 };
        let table = list.kernel(Some(&recorded)).unwrap();
        assert_eq!(names(&table, [0x9100_0101]), ["do_a"]);
        let unknown = Reference { symbol: "_nowhere".into(), address: 1 };
        assert!(matches!(list.kernel(Some(&unknown)), Err(Refusal::Other(_))));
    }

    #[test]
    fn a_packed_list_is_the_same_and_one_that_was_cut_is_none() {
        let list = Kallsyms::parse(TEXT.into()).unwrap();
        let packed = list.packed();
        let unpacked = Kallsyms::unpack(&packed.clone().into()).unwrap();
        assert_eq!((&*unpacked.symbols, &*unpacked.text), (&*list.symbols, &*list.text));
        assert_eq!(unpacked.modules, list.modules);
        assert!(
            (0..packed.len()).all(|len| Kallsyms::unpack(&packed[..len].to_vec().into()).is_none())
        );
        assert!(Kallsyms::unpack(&TEXT.as_bytes().to_vec().into()).is_none());
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0xff;
            let table = Kallsyms::unpack(&damaged.into()).and_then(|list| list.kernel(None).ok());
            let _ = table.map(|table| table.iter().count());
        }
    }

    #[test]
    fn hidden_addresses_are_reported() {
        let hidden = Kallsyms::parse(b"0000000000000000 T _text\n0000000000000000 t a\n".into());
        assert!(matches!(hidden, Err(Refusal::Restricted)));
        assert!(matches!(Kallsyms::parse(b"\x7fELF".into()), Err(Refusal::Malformed(_))));
    }
}
