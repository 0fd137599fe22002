//! Addresses that a symbol without a size names: as many as its neighbors prove.
//!
//! | symbol                                              | names                       | proof            |
//! |-----------------------------------------------------|-----------------------------|------------------|
//! | with a size, of any type                            | its range                   | the symbol       |
//! | no size, inside one with a size                     | nothing                     | the other symbol |
//! | a linker's mark (`_etext`, `__entry_text_start`)    | nothing; what is before it ends there | its name |
//! | a label without a type, inside an entry of `.eh_frame` | nothing                  | the entry        |
//! | a local label of NASM (`f.loop`), behind `f` without a size | nothing: it is of `f` | its name         |
//! | no size, an entry of `.eh_frame` begins there       | the entry, to the next symbol | the entry      |
//! | no size, an entry of `.eh_frame` begins one byte before | a signal's trampoline: the entry and one byte | the entry |
//! | no size, in `.init` or `.fini`                      | the section                 | System V ABI     |
//! | no size, in a whole list of symbols                 | to what begins next         | the list         |
//! | no size, in a list of some                          | the code that it leads to, at least one byte, at most to what begins next | a judgement |
//!
//! What begins next is a symbol that counts or not, a function by the unwind tables, or the end of
//! the section. A list is whole if it is a `.symtab` with local symbols: a stripped file has only
//! what it exports, and most of its functions lie between two of those. Code leads on by its jumps
//! and branches, not by calls.

use std::cell::OnceCell;
use std::ops::Range;

use recrep_unwind::{Machine, end_of_code};

use crate::symbols::elf::ElfImage;
use crate::symbols::elf::call_frames::copied;
use crate::symbols::elf::functions::UnwoundFunctions;
use crate::symbols::names::table::{Listing, PackedSymbol, TableBuilder, page_end};

/// The explanation of a judgement, for users.
pub(crate) const NOTE: &str = "their symbols have no size, and not all symbols of the file are known, so where they end follows from \
     their code";

/// The mapped file of symbols; its unwind tables are read when they are first asked.
struct Mapped<'i> {
    image: Option<&'i ElfImage>,
    functions: OnceCell<Option<UnwoundFunctions>>,
}

impl Mapped<'_> {
    fn functions(&self) -> Option<&UnwoundFunctions> {
        let find = || self.image.and_then(UnwoundFunctions::of);
        self.functions.get_or_init(find).as_ref()
    }

    /// Returns the function of the unwind tables at an offset.
    fn function_at(&self, offset: u64) -> Option<Range<u64>> {
        self.functions()?.proven_at(offset)
    }

    /// Returns whether an offset is in a function of the unwind tables, but not its start. That of a
    /// signal's trampoline begins one byte before.
    fn is_inside(&self, offset: u64) -> bool {
        self.function_at(offset).is_some_and(|function| function.start + 1 < offset)
    }

    /// Returns the end of the code that leads on from an offset; `None` if the file has none that can
    /// be followed.
    fn end_of_code(&self, start: u64, limit: u64) -> Option<u64> {
        let image = self.image?;
        let machine = Machine::of_elf(image.machine.0)?;
        let section = image.code_at(start)?;
        let until = usize::try_from(limit.checked_sub(section.offset)?).ok()?;
        let contents = image.view(section).ok()?;
        let contents = contents.get(..until).unwrap_or(contents);
        let end = end_of_code(machine, start, |at, bytes| {
            let at = at.checked_sub(section.offset).filter(|_| at >= start);
            let code = at.and_then(|at| contents.get(usize::try_from(at).ok()?..));
            copied(code.unwrap_or_default(), bytes)
        });
        (end > start).then_some(end)
    }
}

/// Ends the symbols without a size by the rules of the module's documentation, and removes those that
/// name nothing. `image` is the mapped file. Returns the starts of those whose end is a judgement.
pub(crate) fn end_unsized(table: &mut TableBuilder, image: Option<&ElfImage>) -> Vec<u64> {
    if table.symbols.iter().all(PackedSymbol::has_size) {
        return Vec::new();
    }
    let mapped = Mapped { image, functions: OnceCell::new() };
    let keeps = named(table, &mapped);
    let removed = table.symbols.iter().zip(&keeps).filter(|(_, keeps)| !**keeps);
    let marks = removed.map(|(symbol, _)| symbol).filter(|symbol| is_mark(table, symbol));
    let marks: Vec<u64> = marks.map(|symbol| symbol.start).collect();
    table.bounds.extend(marks);
    table.bounds.sort_unstable();
    table.keep_only(&keeps);
    let judged = set_ends(table, &mapped);
    let keeps: Vec<bool> = table.symbols.iter().map(PackedSymbol::has_size).collect();
    table.keep_only(&keeps);
    judged
}

/// Returns for each symbol whether it names anything.
fn named(table: &TableBuilder, mapped: &Mapped<'_>) -> Vec<bool> {
    // End of the symbols with a size so far, and the last one without.
    let (mut covered, mut before): (u64, Option<&PackedSymbol>) = (0, None);
    let mut keeps = Vec::with_capacity(table.symbols.len());
    for symbol in &table.symbols {
        let keep = symbol.has_size()
            || symbol.start >= covered
                && !(symbol.name.is_label()
                    && (is_mark(table, symbol)
                        || before.is_some_and(|before| is_local_label(table, symbol, before))
                        || mapped.is_inside(symbol.start)));
        covered = covered.max(symbol.end);
        if keep && !symbol.has_size() {
            before = Some(symbol);
        }
        keeps.push(keep);
    }
    keeps
}

/// Sets the ends of the symbols without a size. Returns the starts of those whose end is a judgement.
fn set_ends(table: &mut TableBuilder, mapped: &Mapped<'_>) -> Vec<u64> {
    let (mut judged, mut next, mut of_next) = (Vec::new(), u64::MAX, u64::MAX);
    for symbol in table.symbols.iter_mut().rev() {
        if symbol.start < of_next {
            (next, of_next) = (of_next, symbol.start);
        }
        if symbol.has_size() {
            continue;
        }
        let start = symbol.start;
        let bound = table.bounds.get(table.bounds.partition_point(|&bound| bound <= start));
        let mut limit = bound.map_or(next, |&bound| next.min(bound));
        if let Some(function) = mapped.function_at(start) {
            // A thread in the system call that ends a signal's trampoline has the address behind it.
            let is_trampoline = function.start + 1 == start;
            symbol.end = limit.min(function.end + u64::from(is_trampoline));
            continue;
        }
        let behind = mapped.functions().and_then(|functions| functions.next_start(start));
        limit = limit.min(behind.unwrap_or(u64::MAX));
        if limit == u64::MAX {
            limit = page_end(start);
        }
        if table.listing != Listing::Whole {
            judged.push(start);
        }
        symbol.end = match table.listing {
            Listing::Whole => limit,
            Listing::Global => mapped.end_of_code(start, limit).unwrap_or(limit),
            Listing::Dynamic => mapped.end_of_code(start, limit).unwrap_or(start.saturating_add(1)),
        };
    }
    judged
}

/// Returns whether NASM made the label local to the symbol before it.
fn is_local_label(table: &TableBuilder, label: &PackedSymbol, before: &PackedSymbol) -> bool {
    let rest = table.name(label.name).strip_prefix(table.name(before.name));
    rest.is_some_and(|rest| rest.first() == Some(&b'.'))
}

fn is_mark(table: &TableBuilder, symbol: &PackedSymbol) -> bool {
    symbol.name.is_label() && symbol.name.is_global() && is_mark_name(table.name(symbol.name))
}

/// Returns whether linkers or their scripts give this name to the beginning or end of a section.
pub(crate) fn is_mark_name(name: &[u8]) -> bool {
    is_text_mark(name)
        || matches!(
            name,
            b"edata" | b"_edata" | b"end" | b"_end" | b"__bss_start" | b"__ehdr_start"
        )
        || [&b"__start_"[..], b"__stop_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether this is the name of a mark in code; no function of the kernel has such a name.
pub(crate) fn is_text_mark(name: &[u8]) -> bool {
    const MARKS: [&[u8]; 13] = [
        b"_text",
        b"_stext",
        b"etext",
        b"_etext",
        b"__etext",
        b"_sinittext",
        b"_einittext",
        b"__init_begin",
        b"__init_end",
        b"__pi__text",
        b"__executable_start",
        b"__indirect_thunk_start",
        b"__indirect_thunk_end",
    ];
    let is_of_section = name.starts_with(b"__")
        && [&b"_text_start"[..], b"_text_end"].iter().any(|suffix| name.ends_with(suffix));
    MARKS.contains(&name) || is_of_section
}
