//! A loaded module: its symbols, its functions without symbols, and its source lines.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashSet;

use super::inferred::InferredFunctions;
use crate::query::Demangle;
use crate::symbols::elf::lines::SourceLines;
use crate::symbols::elf::{self, ElfImage, Segment};
use crate::symbols::module::{Module, ModuleKind};
use crate::symbols::names::table::{Symbol, SymbolId, SymbolTable, name_hash};
use crate::symbols::outcome::Outcome;
use crate::symbols::search::kernel::Kernel;
use crate::symbols::search::mapped::Search;
use crate::symbols::shown_names::ShownNames;
use crate::symbols::symbol_cache::SymbolCache;

/// A loaded module: its symbols and the result of the search for them.
#[derive(Debug)]
pub struct Loaded {
    /// Symbols, by the module's kind of address ([`ModuleKind::first_address`]); empty if none were
    /// found.
    pub table: SymbolTable,
    /// Result of the search: every place that was tried.
    pub outcome: Outcome,
    pub module: Module,
    /// [`Module::name`].
    pub(super) name: Box<str>,
    pub(super) demangle: Demangle,
    pub(super) search: Arc<Search>,
    pub(super) kernel: Arc<Kernel>,
    pub(super) lines: OnceLock<SourceLines>,
    pub(super) names: ShownNames,
    /// By symbol.
    pub(super) caches: Vec<SymbolCache>,
    /// Functions where no symbol is, by the numbers that follow those of the symbols.
    pub(super) inferred: OnceLock<Option<InferredFunctions>>,
    /// Hashes of the names that several symbols have.
    pub(super) shared_names: OnceLock<FxHashSet<u64>>,
    pub(super) fingerprint: OnceLock<u64>,
}

/// FileSegments of a module's file, as they lie in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileSegments(Vec<Segment>);

impl FileSegments {
    /// Returns the offset in the file of the address that is `distance` bytes behind that of the
    /// byte at the offset `start`.
    pub(crate) fn offset_behind(&self, start: u64, distance: u64) -> Option<u64> {
        let address = elf::address_of(&self.0, start)?.wrapping_add(distance);
        let segment = self.0.iter().find(|segment| segment.has_address(address))?;
        Some(segment.to_offset(address))
    }
}

impl Loaded {
    /// Returns the segments of the module's file; none if it is not found.
    pub(crate) fn segments(&self) -> FileSegments {
        let of = |_: &Path, image: &ElfImage| Some(FileSegments(image.segments.clone()));
        match self.module.kind {
            ModuleKind::File => self.search.first(&self.module, of).unwrap_or_default(),
            _ => FileSegments::default(),
        }
    }

    /// Returns the module's source lines and inlined functions. The first call searches for the
    /// debug information.
    pub fn lines(&self) -> &SourceLines {
        self.lines.get_or_init(|| {
            let is_file = self.module.kind == ModuleKind::File;
            let file =
                is_file.then(|| self.search.debug_file(&self.module, &mut Outcome::default()));
            let bundled = self.module.bundled().map(|bundled| bundled.lines.clone());
            SourceLines::new(
                file.flatten(),
                bundled.unwrap_or_default(),
                self.demangle,
                &self.search.options,
            )
        })
    }

    /// Returns the functions where the module has no symbols. The first call searches its file for
    /// them.
    fn inferred(&self) -> Option<&InferredFunctions> {
        self.inferred.get_or_init(|| self.infer()).as_ref()
    }

    /// Searches for functions without symbols.
    fn infer(&self) -> Option<InferredFunctions> {
        let of = |_: &Path, image: &ElfImage| InferredFunctions::of(image, &self.name);
        match (&self.module.kind, self.module.bundled()) {
            _ if !self.search.options.inferred => None,
            (ModuleKind::File, Some(bundled)) => InferredFunctions::bundled(bundled, &self.name),
            (ModuleKind::File, None) => self.search.first(&self.module, of),
            // Nothing says where functions of a JIT begin: what its lists lack is one.
            (ModuleKind::PerfMap { .. }, _) => InferredFunctions::of_jit(&self.name),
            _ => None,
        }
    }

    /// Returns an inferred function by its number; `None` if that is a symbol's.
    fn inferred_function(&self, id: SymbolId) -> Option<(&InferredFunctions, SymbolId)> {
        let place = (id.0 as usize).checked_sub(self.table.len())?;
        Some((self.inferred()?, SymbolId(u32::try_from(place).ok()?)))
    }

    /// Returns whether this is the number of a function that has no symbol.
    pub fn is_inferred(&self, id: SymbolId) -> bool {
        id.0 as usize >= self.table.len()
    }

    /// Returns the number of the function at `address`: of a symbol, else of an inferred function.
    pub fn find(&self, address: u64) -> Option<SymbolId> {
        self.find_range(address).0
    }

    /// Like [`Loaded::find`]; also returns a range around `address` in which every address has the
    /// same result.
    #[inline]
    pub fn find_range(&self, address: u64) -> (Option<SymbolId>, Range<u64>) {
        match self.table.find_range(address) {
            (None, gap) => self.find_in_gap(address, gap),
            found => found,
        }
    }

    /// Returns the inferred function at an address in a gap between symbols.
    fn find_in_gap(&self, address: u64, gap: Range<u64>) -> (Option<SymbolId>, Range<u64>) {
        let Some(inferred) = self.inferred() else { return (None, gap) };
        let numbered = inferred.find(address).and_then(|(SymbolId(place), function)| {
            let id = u32::try_from(self.table.len()).ok()?.checked_add(place)?;
            Some((SymbolId(id), function))
        });
        match numbered {
            Some((id, function)) => {
                (Some(id), function.start.max(gap.start)..function.end.min(gap.end))
            }
            None => (None, address..address.saturating_add(1)),
        }
    }

    /// Returns the function with this number, from a lookup in this module.
    pub fn symbol(&self, id: SymbolId) -> Option<Symbol<&[u8]>> {
        self.table.get(id).or_else(|| {
            let (inferred, place) = self.inferred_function(id)?;
            let Symbol { start, end, name } = inferred.get(place)?;
            Some(Symbol { start, end, name: name.as_bytes() })
        })
    }

    /// Returns the first address of the function with this number.
    pub fn start(&self, id: SymbolId) -> Option<u64> {
        self.table.start(id).or_else(|| self.symbol(id).map(|symbol| symbol.start))
    }

    /// Returns the offset from which a file that is in use may be another than the one that was
    /// read.
    pub(super) fn lost(&self) -> Option<u64> {
        let inferred = || self.inferred.get()?.as_ref()?.lost();
        self.table.lost().or_else(inferred)
    }

    /// Returns the name to show for a function returned by a lookup.
    pub fn name(&self, id: SymbolId) -> Option<Cow<'_, str>> {
        if let Some((inferred, place)) = self.inferred_function(id) {
            return Some(Cow::Borrowed(inferred.get(place)?.name));
        }
        let slot = self.names.of(id)?;
        if let Some(name) = slot.get() {
            return Some(Cow::Borrowed(name));
        }
        match self.shown(self.table.get(id)?.name) {
            Cow::Owned(name) => Some(Cow::Borrowed(slot.get_or_init(|| name.into()))),
            plain @ Cow::Borrowed(_) => Some(plain),
        }
    }

    /// Returns the cache for what is made of a function's name.
    pub fn cache(&self, id: SymbolId) -> Option<&SymbolCache> {
        match self.inferred_function(id) {
            Some((inferred, place)) => inferred.cache(place),
            None => self.caches.get(id.0 as usize),
        }
    }

    /// Returns whether several symbols have the name of this one.
    pub(super) fn shares_name(&self, id: SymbolId) -> bool {
        let shared = self.shared_names.get_or_init(|| self.table.shared_names());
        !shared.is_empty()
            && self.table.get(id).is_some_and(|symbol| shared.contains(&name_hash(symbol.name)))
    }

    /// Returns a number that only copies of one file have in common.
    pub(super) fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| self.table.fingerprint())
    }

    /// Returns a name from this module's table with everything that distinguishes functions.
    pub(super) fn whole<'a>(&self, name: &'a [u8]) -> Cow<'a, str> {
        let demangle = if self.demangle == Demangle::No { Demangle::No } else { Demangle::Full };
        demangle.spelt(name)
    }

    /// Returns a name from this module's table as it is shown: demangled if so requested, which for
    /// the kernel's names is a separate option.
    pub fn shown<'a>(&self, name: &'a [u8]) -> Cow<'a, str> {
        self.demangle.spelt(name)
    }
}
