//! Places and names of a sample's addresses.

use std::cell::OnceCell;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use recrep_format::abi::CpuMode;
use rustc_hash::FxHashMap;

use super::fields::{Fields, OutputField};
use super::row::FieldValue;
use super::sample::ScriptSample;
use crate::profile::modules::{Doubts, NamedShare};
use crate::samples::Session;
use crate::symbols::{
    Attempt, Functions, Loaded, Module, ModuleKind, Source, SourceFrame, SymbolId,
};
use crate::terminal::digits;
use crate::terminal::escape::escape;
use crate::timeline::{ModuleId, Moment, Place, Task};

/// A function of a module.
pub(super) struct FoundFunction {
    /// Its name, escaped.
    pub(super) name: Arc<str>,
    start: u64,
    /// `true` if the name is right only under a condition.
    is_judged: bool,
}

impl FoundFunction {
    /// Returns the offset of an address of the module in it.
    pub(super) fn offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start)
    }
}

/// Finds places and names for one worker; names are made once.
pub(super) struct Finder<'s> {
    session: &'s Session<'s>,
    functions: &'s Functions<'s>,
    kernel_path: bool,
    /// Names of functions, escaped, by module and symbol.
    names: FxHashMap<(u32, u32), Arc<str>>,
    /// Text of each module without an offset, once it was printed.
    dsos: Vec<OnceCell<Box<str>>>,
    inlined: FxHashMap<(u32, u64), Arc<[SourceFrame]>>,
    lookups: Vec<Lookups>,
    /// Position of the record at hand in the listing.
    pub(super) now: usize,
}

/// Lookups of addresses in a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lookups {
    all: u64,
    /// Lookups that found a function.
    found: u64,
    /// Lookups that found one whose name is right only under a condition.
    judged: u64,
    /// Position of the first record with a lookup that found a function.
    first: Option<usize>,
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lookup {
    is_found: bool,
    is_judged: bool,
}

impl Lookup {
    pub(super) fn of(function: Option<&FoundFunction>) -> Self {
        Self {
            is_found: function.is_some(),
            is_judged: function.is_some_and(|function| function.is_judged),
        }
    }
}

impl Lookups {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.found += other.found;
        self.judged += other.judged;
        self.first = self.first.into_iter().chain(other.first).min();
    }
}

impl<'s> Finder<'s> {
    pub(super) fn new(
        session: &'s Session<'s>,
        functions: &'s Functions<'s>,
        kernel_path: bool,
    ) -> Self {
        let modules = session.side_band.modules.len();
        Self {
            session,
            functions,
            kernel_path,
            names: FxHashMap::default(),
            dsos: vec![OnceCell::new(); modules],
            inlined: FxHashMap::default(),
            lookups: vec![Lookups::default(); modules],
            now: 0,
        }
    }

    pub(super) fn place(&self, mode: CpuMode, task: &Task, ip: u64, at: Moment) -> Place {
        self.session.timeline.place(mode, task.space, ip, at)
    }

    pub(super) fn place_of(&self, s: &ScriptSample<'_>) -> Place {
        self.place(s.mode, &s.task, s.ip(), s.at)
    }

    /// Returns the place of an address that may belong to the other CPU mode: code of one, data or
    /// a branch's end in the other.
    pub(super) fn place_of_either(&self, s: &ScriptSample<'_>, address: u64) -> Place {
        let place = self.place(s.mode, &s.task, address, s.at);
        let other = if s.mode == CpuMode::Kernel { CpuMode::User } else { CpuMode::Kernel };
        if place.module.is_some() || s.mode.is_guest() {
            place
        } else {
            self.place(other, &s.task, address, s.at)
        }
    }

    pub(super) fn module(&self, id: Option<ModuleId>) -> Option<&'s Module> {
        self.session.side_band.modules.get_index(id?.0 as usize)
    }

    fn loaded(&self, module: ModuleId) -> Option<&'s Loaded> {
        self.functions.loaded(module.0 as usize).map(|loaded| &**loaded)
    }

    /// Appends a module as `perf script` prints it: its whole path in parentheses; if it is a
    /// file's, with the offset in it if one is given.
    pub(super) fn dso(&self, module: Option<ModuleId>, offset: Option<u64>, out: &mut Vec<u8>) {
        let Some(module) = module else { return out.extend_from_slice(b" ([unknown])") };
        if offset.is_some() {
            return out.extend_from_slice(self.dso_text(module, offset).as_bytes());
        }
        if let Some(text) = self.dsos.get(module.0 as usize) {
            out.extend_from_slice(
                text.get_or_init(|| self.dso_text(module, None).into()).as_bytes(),
            );
        }
    }

    fn dso_text(&self, id: ModuleId, offset: Option<u64>) -> String {
        match (self.dso_name(id, offset.is_some()), offset) {
            (Some((name, true)), Some(offset)) => format!(" ({name}+{})", hex(offset)),
            (Some((name, _)), _) => format!(" ({name})"),
            (None, _) => " ([unknown])".into(),
        }
    }

    /// Returns the name of a module, escaped, and whether addresses in it are offsets in a file.
    pub(super) fn dso_name(&self, id: ModuleId, has_offset: bool) -> Option<(String, bool)> {
        let module = self.module(Some(id))?;
        let is_file = match module.kind {
            ModuleKind::PerfMap { .. } | ModuleKind::KernelSymbol { .. } => false,
            // Not if they came from a list of them.
            ModuleKind::Kernel => self.kernel_from(id, Source::Kallsyms).is_none(),
            _ => true,
        };
        let whole_path = match module.kind {
            ModuleKind::Kernel if self.kernel_path || has_offset => {
                self.kernel_from(id, Source::Vmlinux).map(|image| image.path.to_string_lossy())
            }
            ModuleKind::KernelModule { .. } if self.kernel_path => {
                Some(String::from_utf8_lossy(&module.path))
            }
            _ => None,
        };
        let name = whole_path.unwrap_or_else(|| module.long_name());
        Some((escape(&name).into_owned(), is_file))
    }

    /// Returns the place where the kernel's symbols were found, if it is of this kind.
    fn kernel_from(&self, kernel: ModuleId, source: Source) -> Option<&'s Attempt> {
        self.loaded(kernel)?.outcome.found().find(|attempt| attempt.source == source)
    }

    pub(super) fn symbol(&mut self, place: Place) -> Option<FoundFunction> {
        let function = place.module.and_then(|module| {
            let symbol = self.loaded(module)?.find(place.address)?;
            self.function(module, symbol)
        });
        self.count(place.module, 1, Lookup::of(function.as_ref()));
        function
    }

    /// Returns a function of a module.
    pub(super) fn function(&mut self, module: ModuleId, symbol: SymbolId) -> Option<FoundFunction> {
        let loaded = self.loaded(module)?;
        let name = match self.names.entry((module.0, symbol.0)) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(escape(&loaded.name(symbol)?).into()).clone(),
        };
        let is_judged = loaded.outcome.is_judged(Some(symbol));
        Some(FoundFunction { name, start: loaded.start(symbol)?, is_judged })
    }

    /// Returns the number of lookups in the module of a place.
    pub(super) fn lookups(&self, place: Place) -> u64 {
        let lookups = place.module.and_then(|module| self.lookups.get(module.0 as usize));
        lookups.map_or(0, |lookups| lookups.all)
    }

    /// Counts lookups of an address in a module for the record at hand.
    pub(super) fn count(&mut self, module: Option<ModuleId>, times: u64, lookup: Lookup) {
        if let Some(all) = module.and_then(|module| self.lookups.get_mut(module.0 as usize)) {
            let [found, judged] =
                [lookup.is_found, lookup.is_judged].map(|is_so| if is_so { times } else { 0 });
            all.add(Lookups {
                all: times,
                found,
                judged,
                first: lookup.is_found.then_some(self.now),
            });
        }
    }

    /// Returns the doubts about the names that these workers found.
    pub(super) fn doubts(all: impl IntoIterator<Item = Self>, functions: &Functions<'_>) -> Doubts {
        let mut modules: Vec<(Lookups, usize)> = Vec::new();
        for finder in all {
            (modules.len()..finder.lookups.len())
                .for_each(|module| modules.push((Lookups::default(), module)));
            modules.iter_mut().zip(finder.lookups).for_each(|((all, _), lookups)| all.add(lookups));
        }
        modules.retain(|(lookups, _)| lookups.all > 0);
        // The first doubt is the one that is shown.
        modules.sort_by_key(|(lookups, _)| lookups.first.unwrap_or(usize::MAX));
        let mut doubts = Doubts::default();
        for (lookups, loaded) in
            modules.iter().filter_map(|(lookups, at)| Some((lookups, functions.loaded(*at)?)))
        {
            let Lookups { all, found, judged, .. } = *lookups;
            doubts.add(&loaded.outcome, NamedShare { all, resolved: found, judged });
        }
        doubts
    }

    /// Returns the functions that debug information has at an address of a module, innermost first.
    pub(super) fn inlined(&mut self, place: Place, address: u64) -> Arc<[SourceFrame]> {
        let Some(module) = place.module else { return [].into() };
        if let Some(known) = self.inlined.get(&(module.0, address)) {
            return known.clone();
        }
        let found: Arc<[SourceFrame]> =
            self.loaded(module).map_or([].into(), |loaded| loaded.lines().frames(address).into());
        self.inlined.insert((module.0, address), found.clone());
        found
    }

    /// Returns what a field says of the function or the module at a place.
    pub(super) fn name_value(&mut self, field: OutputField, place: Place) -> FieldValue<'static> {
        let value = match field {
            OutputField::Sym => self.symbol(place).map(|function| FieldValue::Name(function.name)),
            OutputField::SymOff => {
                let function = self.symbol(place);
                function.map(|function| FieldValue::Hex(function.offset(place.address)))
            }
            _ => {
                let has_offset = field == OutputField::DsOff;
                let named = place.module.and_then(|module| self.dso_name(module, has_offset));
                named.and_then(|(name, is_file)| match has_offset {
                    true => is_file.then_some(FieldValue::Hex(place.address)),
                    false => Some(FieldValue::Text(name.into())),
                })
            }
        };
        value.unwrap_or(FieldValue::Missing)
    }

    /// Appends function and module of a place, as far as the columns have them.
    pub(super) fn names(&mut self, place: Place, fields: &Fields, out: &mut Vec<u8>) {
        let function = if fields.has(OutputField::Sym) { self.symbol(place) } else { None };
        self.print(function.as_ref(), place.module, place.address, fields, out);
    }

    /// Appends a function, and its module with the address in it, as far as the columns have them.
    #[inline]
    pub(super) fn print(
        &self,
        function: Option<&FoundFunction>,
        module: Option<ModuleId>,
        address: u64,
        fields: &Fields,
        out: &mut Vec<u8>,
    ) {
        if fields.has(OutputField::Sym) {
            match function {
                Some(function) => {
                    print_function(&function.name, function.offset(address), fields, out);
                }
                None => out.extend_from_slice(b" [unknown]"),
            }
        }
        if fields.has(OutputField::Dso) {
            self.dso(module, fields.has(OutputField::DsOff).then_some(address), out);
        }
    }
}

/// Appends the name of a function, and the offset if the columns have it.
pub(super) fn print_function(name: &str, offset: u64, fields: &Fields, out: &mut Vec<u8>) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    if fields.has(OutputField::SymOff) {
        out.extend_from_slice(b"+0x");
        digits::hex(out, offset, 0);
    }
}

/// Formats a number as C's `%#x` does.
pub(super) fn hex(number: u64) -> String {
    if number == 0 { "0".into() } else { format!("{number:#x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_is_the_earliest_in_whatever_order_they_are_printed() {
        let found = |at| Lookups { all: 1, found: 1, judged: 1, first: Some(at) };
        let mut all = Lookups { all: 1, ..Lookups::default() };
        [found(7), found(3), found(5)].into_iter().for_each(|lookups| all.add(lookups));
        assert_eq!(all, Lookups { all: 4, found: 3, judged: 3, first: Some(3) });
    }
}
