//! The symbols of one module, ready for lookups by address.
//!
//! ```text
//!   starts  [ 0x1000 | 0x1040 | 0x1200 | … ]   sorted; a lookup is a look into an index and a short search over these alone
//!   ends    [ 0x1040 | 0x10f0 | 0x1300 | … ]
//!   names   [ ref    | ref    | tie 0  | … ]   where the name lies in its source; nothing is copied
//!   outer   [ 3 → 1, … ]                        only for symbols that lie inside another one
//!   ties    [ (a, b, c), … ]                    several names for one start, decided when first hit
//! ```
//!
//! # One symbol for each start
//! Files have many names for one address and many symbols without a size. Both are settled as perf settles them, so
//! that reports agree. A table is built in rounds (first `.symtab`, then `.dynsym`), and each round ends with:
//!
//! 1. Order by start, equal starts in the file's order, symbols of earlier rounds first.
//! 2. A symbol without size ends where the next one starts; the last one at the end of the page after its own.
//! 3. Of the symbols that share a start, the best one stays: one with a size, rather than without; not weak; global;
//!    with fewer leading underscores; with the longer name; the first.
//!
//! The last two criteria look at the name as it is shown, that is, demangled. Demangling every alias of a C++ library
//! to compare lengths costs more than everything else here, so these ties are kept, and decided when hit.
//!
//! # Symbols inside symbols
//! Labels in hand-written assembly and outlined parts lie within a larger symbol. The one that starts last wins; past
//! its end, the enclosing symbol goes on. (perf's answer depends on the shape of its tree there.)

use std::sync::{Arc, OnceLock};

use super::demangle;
use super::starts::Starts;

/// A symbol of one table, as a number that is the same for every lookup that hits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// A symbol: the addresses `start..end` and the name as the file spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Its number in its table.
    pub id: SymbolId,
    /// The first address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// The name, mangled if it is; not always UTF-8.
    pub name: &'a [u8],
}

/// The source of names that are in ties.
const TIE: u16 = u16::MAX;

/// Where a name lies: the number of its source in the upper 16 bits, the offset in that source below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameRef(u64);

/// How far a symbol reaches beyond its file, from what outranks what at one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// Not seen outside of its file.
    Local,
    /// Seen by all.
    Global,
    /// Gives way to others of the same name.
    Weak,
}

/// A symbol as its source states it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSymbol {
    pub(super) start: u64,
    /// Equal to `start` when the size is not known.
    pub(super) end: u64,
    pub(super) name: NameRef,
    pub(super) binding: Binding,
    /// An indirect function, or the alias that outranked one.
    pub(super) ifunc: bool,
}

/// All names of a table.
#[derive(Debug, Default)]
struct Names {
    /// Bytes that hold names, each ended by a zero byte.
    sources: Vec<Arc<Vec<u8>>>,
    /// Names that are in no file: source number 0.
    own: Vec<u8>,
}

/// The sorted symbols of one module.
#[derive(Debug, Default)]
pub struct SymbolTable {
    starts: Starts,
    ends: Vec<u64>,
    refs: Vec<NameRef>,
    outer: Vec<(u32, u32)>,
    ties: Vec<Tie>,
    names: Names,
    demangle: bool,
}

/// Symbols that only their shown names can rank.
#[derive(Debug)]
struct Tie {
    candidates: Box<[RawSymbol]>,
    best: OnceLock<RawSymbol>,
}

/// A table in the making.
#[derive(Debug, Default)]
pub(super) struct TableBuilder {
    symbols: Vec<RawSymbol>,
    /// How many of them are in order.
    settled: usize,
    names: Names,
    demangle: bool,
}

impl SymbolTable {
    /// The symbol at `address`.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<Symbol<'_>> {
        self.get(self.find(address)?)
    }

    /// The number of the symbol at `address`: what to ask for many addresses, since no name is looked at.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<SymbolId> {
        let mut index = u32::try_from(self.starts.find(address)?).ok()?;
        loop {
            let (_, end, _) = self.place(SymbolId(index))?;
            if address < end {
                return Some(SymbolId(index));
            }
            let at = self.outer.binary_search_by_key(&index, |&(inner, _)| inner).ok()?;
            index = self.outer.get(at)?.1;
        }
    }

    /// The symbol that a lookup in this table gave the number `id`.
    #[must_use]
    pub fn get(&self, id: SymbolId) -> Option<Symbol<'_>> {
        let (start, end, name) = self.place(id)?;
        Some(Symbol { id, start, end, name: self.names.get(name) })
    }

    /// Where a symbol begins and ends, and where its name is.
    fn place(&self, id: SymbolId) -> Option<(u64, u64, NameRef)> {
        let index = id.0 as usize;
        let (start, end, name) = (self.starts.get(index)?, *self.ends.get(index)?, *self.refs.get(index)?);
        let Some(tie) = name.tie() else { return Some((start, end, name)) };
        let best = self.ties.get(tie)?.best(&self.names, self.demangle)?;
        Some((start, best.end, best.name))
    }

    /// The start of the symbol that its file calls `name`.
    pub(super) fn named(&self, name: &[u8]) -> Option<u64> {
        let all =
            self.starts.iter().zip(&self.refs).map(|(start, name)| (start, *name)).filter(|(_, at)| at.tie().is_none());
        let tied = self.ties.iter().flat_map(|tie| tie.candidates.iter().map(|symbol| (symbol.start, symbol.name)));
        all.chain(tied).find_map(|(start, at)| (self.names.get(at) == name).then_some(start))
    }

    /// How many starts have a symbol.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are no symbols.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.len() == 0
    }

    /// All symbols, by start.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        (0u32..).map_while(|index| self.get(SymbolId(index)))
    }
}

impl Tie {
    fn best(&self, names: &Names, demangle: bool) -> Option<RawSymbol> {
        if let Some(best) = self.best.get() {
            return Some(*best);
        }
        let mut best = *self.candidates.first()?;
        let mut rank = shown_rank(names.get(best.name), demangle);
        for candidate in self.candidates.iter().skip(1) {
            let other = shown_rank(names.get(candidate.name), demangle);
            if other > rank {
                (best, rank) = (*candidate, other);
            }
        }
        Some(*self.best.get_or_init(|| best))
    }
}

impl TableBuilder {
    pub(super) fn new(demangle: bool) -> Self {
        Self { demangle, ..Self::default() }
    }

    /// Adds a source of names; names in it are given as [`NameRef::new`]`(number, offset)`.
    pub(super) fn add_source(&mut self, bytes: Arc<Vec<u8>>) -> u16 {
        self.names.sources.push(bytes);
        u16::try_from(self.names.sources.len()).unwrap_or(u16::MAX)
    }

    /// Keeps a name that is in no file.
    pub(super) fn add_name(&mut self, name: &[u8]) -> NameRef {
        let at = self.names.own.len();
        self.names.own.extend_from_slice(name);
        self.names.own.push(0);
        NameRef::new(0, at as u64)
    }

    pub(super) fn name(&self, name: NameRef) -> &[u8] {
        self.names.get(name)
    }

    pub(super) fn reserve(&mut self, more: usize) {
        self.symbols.reserve(more);
    }

    pub(super) fn push(&mut self, symbol: RawSymbol) {
        self.symbols.push(symbol);
    }

    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// The symbol at `address` of those that the last round has put in order.
    pub(super) fn lookup_mut(&mut self, address: u64) -> Option<&mut RawSymbol> {
        let settled = self.symbols.get_mut(..self.settled)?;
        let after = settled.partition_point(|symbol| symbol.start <= address);
        settled.get_mut(after.checked_sub(1)?).filter(|symbol| address < symbol.end)
    }

    /// Ends a round.
    pub(super) fn settle(&mut self) {
        // Stable: equal starts keep the file's order. Fast on what earlier rounds have sorted.
        self.symbols.sort_by_key(|symbol| symbol.start);
        let mut next = None;
        for symbol in self.symbols.iter_mut().rev() {
            if symbol.end == symbol.start {
                symbol.end = next.unwrap_or_else(|| page_end(symbol.start));
            }
            next = Some(symbol.start);
        }
        let mut kept = Vec::with_capacity(self.symbols.len());
        for group in self.symbols.chunk_by(|a, b| a.start == b.start) {
            match group {
                [only] => kept.push(*only),
                _ => best_of(group, &self.names, &mut kept),
            }
        }
        self.symbols = kept;
        self.settled = self.symbols.len();
    }

    /// The table, after the last round; symbols that were added since (PLT entries) take part in the order only.
    pub(super) fn finish(mut self) -> SymbolTable {
        self.symbols.sort_by_key(|symbol| symbol.start);
        let mut table = SymbolTable { names: self.names, demangle: self.demangle, ..SymbolTable::default() };
        let same_start = self.symbols.chunk_by(|a, b| a.start == b.start);
        let mut starts = Vec::new();
        for group in same_start {
            let Some(first) = group.first() else { continue };
            starts.push(first.start);
            table.ends.push(group.iter().map(|symbol| symbol.end).max().unwrap_or(first.end));
            table.refs.push(if group.len() > 1 { NameRef::of_tie(table.ties.len()) } else { first.name });
            if group.len() > 1 {
                table.ties.push(Tie { candidates: group.into(), best: OnceLock::new() });
            }
        }
        table.starts = Starts::new(starts);
        table.outer = enclosing(&table.ends);
        table
    }
}

impl NameRef {
    pub(super) fn new(source: u16, offset: u64) -> Self {
        Self(u64::from(source) << 48 | (offset & ((1 << 48) - 1)))
    }

    /// Says that a tie by this number has the names.
    fn of_tie(number: usize) -> Self {
        Self::new(TIE, number as u64)
    }

    /// The number of the tie that has the names, if one has.
    fn tie(self) -> Option<usize> {
        (self.0 >> 48 == u64::from(TIE)).then(|| usize::try_from(self.0 & ((1 << 48) - 1)).unwrap_or(usize::MAX))
    }
}

impl Names {
    fn get(&self, name: NameRef) -> &[u8] {
        let offset = usize::try_from(name.0 & ((1 << 48) - 1)).unwrap_or(usize::MAX);
        let source = match (name.0 >> 48) as usize {
            0 => Some(self.own.as_slice()),
            number => self.sources.get(number - 1).map(|source| source.as_slice()),
        };
        let name = source.and_then(|source| source.get(offset..)).unwrap_or_default();
        memchr::memchr(0, name).and_then(|end| name.get(..end)).unwrap_or(name)
    }
}

/// Adds to `kept` the symbols of one start that outrank the others; several if demangling would have to tell.
fn best_of(group: &[RawSymbol], names: &Names, kept: &mut Vec<RawSymbol>) {
    let facts = |symbol: &RawSymbol| {
        (symbol.end > symbol.start, symbol.binding != Binding::Weak, symbol.binding == Binding::Global)
    };
    let best = group.iter().map(facts).max();
    let ifunc = group.iter().any(|symbol| symbol.ifunc);
    let first = kept.len();
    for symbol in group.iter().filter(|symbol| Some(facts(symbol)) == best) {
        let name = names.get(symbol.name);
        let rivals = kept.get_mut(first..).unwrap_or_default();
        let mut beaten = false;
        for rival in rivals {
            let other = names.get(rival.name);
            if other == name || demangle::same_when_shown(other, name) {
                beaten = true;
            } else if !demangle::is_mangled(other) && !demangle::is_mangled(name) {
                // There is at most one plain name among the rivals.
                if shown_rank(name, false) > shown_rank(other, false) {
                    *rival = *symbol;
                }
                beaten = true;
            }
            if beaten {
                break;
            }
        }
        if !beaten {
            kept.push(*symbol);
        }
    }
    kept.iter_mut().skip(first).for_each(|symbol| symbol.ifunc |= ifunc);
}

/// How a shown name ranks among others of its address: fewer underscores first, then the longer one.
fn shown_rank(name: &[u8], demangle: bool) -> (std::cmp::Reverse<usize>, usize) {
    let shown = if demangle { demangle::demangled(name) } else { String::from_utf8_lossy(name) };
    let underscores = shown.bytes().take_while(|&byte| byte == b'_').count();
    (std::cmp::Reverse(underscores), shown.len())
}

/// One past the last byte of the page after the one that `start` is in.
fn page_end(start: u64) -> u64 {
    const PAGE: u64 = 4096;
    start.checked_next_multiple_of(PAGE).and_then(|page| page.checked_add(PAGE)).unwrap_or(u64::MAX)
}

/// For each symbol that ends before an earlier one does: that earlier one, the nearest if there are several.
fn enclosing(ends: &[u64]) -> Vec<(u32, u32)> {
    let mut outer = Vec::new();
    let mut open: Vec<(u32, u64)> = Vec::new();
    for (index, &end) in (0u32..).zip(ends) {
        while open.last().is_some_and(|&(_, open_end)| open_end <= end) {
            open.pop();
        }
        if let Some(&(around, _)) = open.last() {
            outer.push((index, around));
        }
        open.push((index, end));
    }
    outer
}
