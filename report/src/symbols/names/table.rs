//! The symbols of one module, ready for lookups by address.
//!
//! ```text
//!   packed  [ 0x1000..0x1040, name | 0x1040..0x10f0, name | 0x1200..0x1300, tie 0 | … ]
//!             sorted; a lookup uses a coarse index, then searches a few of these;
//!             a name is a position in its source
//!   outer   [ 3 → 1, … ]      inner → enclosing symbol, only for nested symbols
//!   ties    [ (a, b, c), … ]  several names for one start, decided at the first hit
//! ```
//!
//! # One symbol for each start
//! Files have many names for one address. A table is built in rounds (first `.symtab`, then
//! `.dynsym`), and each round ends with:
//!
//! 1. Sort by start, equal starts in the file's order, symbols of earlier rounds first.
//! 2. Of the symbols that share a start, keep those with a size, if there are any. Which of them
//!    gives the name, [`aliases`](super::aliases) decides.
//!
//! What a symbol without a size covers is decided last (`elf::extents`).
//!
//! Reading the names of every alias in a library costs more than everything else here, so they are
//! stored as a tie, which is decided when it is hit.
//!
//! # Nested symbols
//! Outlined parts and entries with a size lie within a larger symbol. The one that starts last wins;
//! after its end, the enclosing symbol continues. (In perf the result depends on the shape of its
//! tree.)

use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::OnceLock;

use object::elf::STB_GLOBAL;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::input::map::Bytes;
use crate::symbols::names::aliases::{best, rivals};
use crate::symbols::names::coarse::Coarse;
pub(crate) use crate::symbols::names::packed::{NameRef, PackedSymbol, Symbol, name_at, name_hash};
use crate::symbols::names::packed::{PackedNames, TIE};

/// Number of a symbol in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// The sorted symbols of one module.
#[derive(Debug, Default)]
pub struct SymbolTable {
    packed: Vec<PackedSymbol>,
    coarse: Coarse,
    outer: Vec<(u32, u32)>,
    ties: Vec<Tie>,
    names: PackedNames,
    demangle: bool,
}

/// Symbols with the same addresses, of which one gives the name.
#[derive(Debug)]
struct Tie {
    candidates: Box<[PackedSymbol]>,
    best: OnceLock<Option<PackedSymbol>>,
}

/// Functions that a table lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Listing {
    /// Those that a file exports.
    #[default]
    Dynamic,
    /// Those that all parts of a program see.
    Global,
    Whole,
}

#[derive(Debug, Default)]
pub(crate) struct TableBuilder {
    pub(crate) symbols: Vec<PackedSymbol>,
    /// Number of leading `symbols` sorted by earlier rounds.
    settled: usize,
    /// Addresses beyond which no symbol without a size goes on: ends of sections, and symbols that
    /// name nothing.
    pub(crate) bounds: Vec<u64>,
    pub(crate) listing: Listing,
    pub(crate) names: PackedNames,
    demangle: bool,
}

impl SymbolTable {
    /// Builds the table of symbols whose starts ascend, with names from one source.
    pub(crate) fn from_sorted(packed: Vec<PackedSymbol>, names: Bytes) -> Self {
        let names = PackedNames { sources: vec![names], own: Vec::new() };
        let coarse = Coarse::new(&packed, |symbol| symbol.start);
        let outer = enclosing(packed.iter().map(|symbol| symbol.end));
        Self { packed, coarse, outer, names, ..Self::default() }
    }

    pub fn lookup(&self, address: u64) -> Option<Symbol<&[u8]>> {
        self.get(self.find(address)?)
    }

    /// Returns the first address of the symbol with this number.
    pub fn start(&self, id: SymbolId) -> Option<u64> {
        self.packed.get(id.0 as usize).map(|symbol| symbol.start)
    }

    /// Returns the number of the symbol at `address`. Faster than [`SymbolTable::lookup`], which
    /// also reads the name.
    pub fn find(&self, address: u64) -> Option<SymbolId> {
        self.find_range(address).0
    }

    /// Like [`SymbolTable::find`]; also returns a range around `address` in which every address has
    /// the same result.
    #[inline]
    pub fn find_range(&self, address: u64) -> (Option<SymbolId>, Range<u64>) {
        let start = |at: usize| self.packed.get(at).map_or(u64::MAX, |symbol| symbol.start);
        let Some(at) = self.coarse.find(&self.packed, |symbol| symbol.start, address) else {
            return (None, 0..start(0));
        };
        let (mut from, until) = (start(at), start(at + 1));
        let mut index = u32::try_from(at).ok();
        while let Some(id) = index
            && let Some(&PackedSymbol { end, .. }) = self.packed.get(id as usize)
        {
            if address < end {
                return (Some(SymbolId(id)), from..until.min(end));
            }
            // The symbol ended before; one that encloses it may go on.
            from = from.max(end);
            let outer = self.outer.binary_search_by_key(&id, |&(inner, _)| inner);
            index = outer.ok().and_then(|at| self.outer.get(at)).map(|&(_, outer)| outer);
        }
        (None, from..until)
    }

    /// Returns the symbol with the number `id`, from a lookup in this table.
    pub fn get(&self, id: SymbolId) -> Option<Symbol<&[u8]>> {
        let PackedSymbol { start, end, name } = self.packed(id)?;
        Some(Symbol { start, end, name: self.names.get(name) })
    }

    /// Returns addresses and name of a symbol; decides its tie, if there is one.
    #[inline]
    fn packed(&self, id: SymbolId) -> Option<PackedSymbol> {
        let symbol = *self.packed.get(id.0 as usize)?;
        let Some(tie) = symbol.name.tie() else { return Some(symbol) };
        let tie = self.ties.get(tie)?;
        let best = tie
            .best
            .get_or_init(|| best(rivals(&tie.candidates, &self.names), &self.names, self.demangle));
        let best = (*best)?;
        Some(PackedSymbol { name: best.name, ..symbol })
    }

    /// Returns the offset from which a file that has the names may be another than the one that was
    /// read.
    pub(crate) fn lost(&self) -> Option<u64> {
        self.names.sources.iter().find_map(Bytes::lost)
    }

    /// Returns a hash of all symbols and names: that of a copy of the file is equal.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = FxBuildHasher.build_hasher();
        for PackedSymbol { start, end, name } in &self.packed {
            (start, end, name).hash(&mut hasher);
        }
        for tie in self.ties.iter().flat_map(|tie| &*tie.candidates) {
            (tie.start, tie.name).hash(&mut hasher);
        }
        for source in &self.names.sources {
            source.hash(&mut hasher);
        }
        self.names.own.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the [`name_hash`] of each name that symbols with several starts have.
    pub(crate) fn shared_names(&self) -> FxHashSet<u64> {
        let all = || {
            self.packed.iter().flat_map(|symbol| {
                match symbol.tie().and_then(|tie| self.ties.get(tie)) {
                    Some(tie) => &*tie.candidates,
                    None => std::slice::from_ref(symbol),
                }
            })
        };
        // The global names of a file differ.
        if !all().any(|symbol| symbol.name.is_local()) {
            return FxHashSet::default();
        }
        let mut all: Vec<(u64, u64)> =
            all().map(|symbol| (name_hash(self.names.get(symbol.name)), symbol.start)).collect();
        // Most names are found to be the only ones of their part of the hashes.
        let parts = (all.len() * 16).next_power_of_two();
        let mut filter = [vec![false; parts], vec![false; parts]];
        let part = |hash: u64| usize::try_from(hash >> 32).unwrap_or(0) & (parts - 1);
        for (hash, _) in &all {
            let [seen, shared] = &mut filter;
            if let (Some(seen), Some(shared)) =
                (seen.get_mut(part(*hash)), shared.get_mut(part(*hash)))
            {
                *shared |= *seen;
                *seen = true;
            }
        }
        let [_, shared] = filter;
        all.retain(|(hash, _)| shared.get(part(*hash)) == Some(&true));
        all.sort_unstable();
        let of_names = all.chunk_by(|a, b| a.0 == b.0);
        let shared = of_names.filter_map(|of_name| {
            let (first, last) = (of_name.first()?, of_name.last()?);
            (first.1 != last.1).then_some(first.0)
        });
        shared.collect()
    }

    /// Returns the number of symbols, one per start.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// Returns all symbols, sorted by start.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<&[u8]>> {
        (0u32..).map_while(|index| self.get(SymbolId(index)))
    }
}

impl TableBuilder {
    pub(crate) fn new(demangle: bool) -> Self {
        Self { demangle, ..Self::default() }
    }

    /// Adds a source of names and returns its number; its names are referred to by
    /// [`NameRef::new`]`(number, offset)`.
    pub(crate) fn add_source(&mut self, bytes: Bytes) -> u8 {
        self.names.sources.push(bytes);
        u8::try_from(self.names.sources.len()).unwrap_or(u8::MAX)
    }

    /// Adds a global symbol whose name is not in a file.
    pub(crate) fn add(&mut self, name: &[u8], start: u64, end: u64) {
        let name_at = NameRef::new(0, self.names.own.len() as u64).ranked(STB_GLOBAL, false);
        self.names.own.extend_from_slice(name);
        self.names.own.push(0);
        self.symbols.push(PackedSymbol { start, end, name: name_at });
    }

    pub(crate) fn name(&self, name: NameRef) -> &[u8] {
        self.names.get(name)
    }

    /// Returns the start of the symbol with this name, as its file spells it.
    pub(crate) fn named(&self, name: &[u8]) -> Option<u64> {
        self.symbols.iter().find(|symbol| self.name(symbol.name) == name).map(|symbol| symbol.start)
    }

    /// Moves all symbols to lower addresses.
    pub(crate) fn move_down(&mut self, by: u64) {
        for PackedSymbol { start, end, .. } in &mut self.symbols {
            (*start, *end) = (start.wrapping_sub(by), end.wrapping_sub(by));
        }
        for bound in &mut self.bounds {
            *bound = bound.wrapping_sub(by);
        }
    }

    /// Adds an address beyond which no symbol without a size goes on.
    pub(crate) fn add_bound(&mut self, at: u64) {
        self.bounds.push(at);
    }

    /// Returns the symbol that begins at `start`, of those that earlier rounds sorted.
    pub(crate) fn at(&self, start: u64) -> Option<PackedSymbol> {
        let settled = self.symbols.get(..self.settled)?;
        let from = settled.get(settled.partition_point(|symbol| symbol.start < start)..)?;
        rivals(from.get(..from.partition_point(|symbol| symbol.start == start))?, &self.names).pop()
    }

    /// Ends a round: sorts the symbols, and removes those without a size that share a start with one
    /// that has it.
    pub(crate) fn settle(&mut self) {
        self.sort();
        for group in self.symbols.chunk_by_mut(same_start).filter(|group| group.len() > 1) {
            let has_sized = group.iter().any(PackedSymbol::has_size);
            let is_ifunc = group.iter().any(|symbol| symbol.name.is_ifunc());
            for symbol in group {
                symbol.name = if symbol.has_size() == has_sized {
                    symbol.name.with_ifunc(is_ifunc)
                } else {
                    NameRef::NONE
                };
            }
        }
        self.symbols.retain(|symbol| symbol.name != NameRef::NONE);
        self.settled = self.symbols.len();
    }

    /// Removes the symbols for which `keeps` has `false`.
    pub(crate) fn keep_only(&mut self, keeps: &[bool]) {
        let mut keeps = keeps.iter();
        self.symbols.retain(|_| keeps.next() != Some(&false));
        self.settled = self.symbols.len();
    }

    /// Sorts by start. Equal starts keep the file's order, those of earlier rounds first.
    fn sort(&mut self) {
        radsort::sort_by_key(self.symbols.get_mut(self.settled..).unwrap_or_default(), |symbol| {
            symbol.start
        });
        // Stable, and fast: it merges two sorted parts.
        self.symbols.sort_by_key(|symbol| symbol.start);
    }

    /// Builds the table. Symbols added since the last round (PLT entries) are only sorted in.
    pub(crate) fn finish(mut self) -> SymbolTable {
        self.sort();
        let Self { symbols: mut packed, names, demangle, .. } = self;
        let mut ties = Vec::new();
        let unite = |group: &mut [PackedSymbol]| unite(group, &names, demangle, &mut ties);
        let outer = enclosing(packed.chunk_by_mut(same_start).map(unite));
        packed.retain(|symbol| symbol.name != NameRef::NONE);
        let coarse = Coarse::new(&packed, |symbol| symbol.start);
        SymbolTable { packed, coarse, outer, ties, names, demangle }
    }
}

fn same_start(a: &PackedSymbol, b: &PackedSymbol) -> bool {
    a.start == b.start
}

/// Keeps one of the symbols of a start, in the first slot, and returns the last of their ends.
fn unite(
    group: &mut [PackedSymbol],
    names: &PackedNames,
    demangle: bool,
    ties: &mut Vec<Tie>,
) -> u64 {
    let all: Box<[PackedSymbol]> = match group {
        [] => return 0,
        [only] => return only.end,
        _ => (&*group).into(),
    };
    for symbol in &mut *group {
        symbol.name = NameRef::NONE;
    }
    let Some(first) = group.first_mut() else { return 0 };
    if all.iter().all(|symbol| symbol.end == first.end) {
        first.name = NameRef::new(TIE, ties.len() as u64);
        ties.push(Tie { candidates: all, best: OnceLock::new() });
        return first.end;
    }
    // Where the symbol ends, and with it which one encloses others, depends on the names.
    let rivals = rivals(&all, names);
    let last = rivals.iter().map(|symbol| symbol.end).max().unwrap_or(first.end);
    if let Some(best) = best(rivals, names, demangle) {
        *first = best;
    }
    last
}

/// Returns the end of the page after the one with `start`; for a `start` on a page boundary, the
/// end of its own page.
pub(crate) fn page_end(start: u64) -> u64 {
    const PAGE: u64 = 4096;
    start.checked_next_multiple_of(PAGE).and_then(|page| page.checked_add(PAGE)).unwrap_or(u64::MAX)
}

/// Returns, for each symbol that ends before an earlier one does, that earlier one; the nearest if
/// there are several.
fn enclosing(ends: impl Iterator<Item = u64>) -> Vec<(u32, u32)> {
    let mut outer = Vec::new();
    let mut open: Vec<(u32, u64)> = Vec::new();
    for (index, end) in (0u32..).zip(ends) {
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
