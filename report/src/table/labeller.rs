//! Resolution of the counted keys of one file.

use rayon::prelude::*;

use super::side::{LoadedSymbols, function, module_of};
use crate::query::Query;
use crate::query::key::{Field, Key, KeyAddress, Meta};
use crate::symbols::labels::AnswerLabels;
use crate::symbols::{Functions, LineId, Loaded, Module};
use crate::timeline::Timeline;
use crate::timeline::cgroups::Groups;
use crate::tracepoints::Traced;

/// Meaning of the numbers in the keys of one file.
#[derive(Debug)]
pub struct Labeller<'f> {
    /// The query.
    pub query: &'f Query,
    /// [`Query::fields`], for what is asked of each key.
    pub fields: Vec<Field>,
    /// Comms and threads.
    pub timeline: &'f Timeline,
    /// Modules, indexed by their numbers.
    pub modules: Vec<&'f Module>,
    /// Names of the events.
    pub events: &'f [String],
    /// Texts of cells and frames.
    pub labels: &'f AnswerLabels,
    /// Sockets, cgroups and their namespaces.
    pub groups: &'f Groups,
    /// Tracepoint data, if the query needs it.
    pub traced: Option<&'f Traced<'f>>,
}

impl Labeller<'_> {
    /// Loads the symbols of all modules that were hit. Returns an empty list if the query needs no functions.
    pub fn load(&self, hits: &[bool], functions: &Functions<'_>) -> LoadedSymbols {
        let is_needed = self.query.chains.counted || self.query.needs_symbols() || self.query.needs_lines();
        if !is_needed && !self.query.filters.by_symbol() {
            return Vec::new();
        }
        let load = |(module, hit): (usize, &bool)| if *hit { functions.loaded(module).cloned() } else { None };
        hits.par_iter().enumerate().map(load).collect()
    }

    /// Returns a module, given its number in a key.
    pub(super) fn module(&self, number: u64) -> Option<&Module> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.modules.get(index).copied()
    }

    /// Replaces the addresses of a key by symbol numbers, and sets its source lines if the query needs them.
    pub fn resolve(&self, mut key: Key, symbols: &LoadedSymbols) -> Key {
        let mut meta = Meta::unpack(Field::Meta.of(&key));
        let ends = [(KeyAddress::At, &mut meta.at), (KeyAddress::From, &mut meta.from)];
        for (side, end) in ends {
            if end.is_symbol {
                continue;
            }
            let module = module_of(symbols, side.module().of(&key));
            if let Some(loaded) = module.filter(|_| self.fields.contains(&side.line())) {
                *side.line().of_mut(&mut key) = u64::from(self.line(loaded, side.address().of(&key)).0) + 1;
            }
            if let Some((module, symbol)) = module.and_then(|m| Some((m, m.table.find(side.address().of(&key))?))) {
                end.is_symbol = true;
                if side == KeyAddress::At && self.fields.contains(&Field::Offset) {
                    let start = module.table.get(symbol).map_or(0, |symbol| symbol.start);
                    *Field::Offset.of_mut(&mut key) = Field::Address.of(&key).wrapping_sub(start);
                }
                *side.address().of_mut(&mut key) = u64::from(symbol.0);
            }
        }
        *Field::Meta.of_mut(&mut key) = meta.pack();
        key
    }

    /// Returns the source line of an address. If it is unknown, the text is `function+offset`, or `module[address]`
    /// without a function, as in perf.
    pub(super) fn line(&self, loaded: &Loaded, address: u64) -> LineId {
        loaded.lines().line(address, || match loaded.table.lookup(address) {
            Some(symbol) => format!("{}+{}", loaded.shown(symbol.name), address.wrapping_sub(symbol.start)),
            None => format!("{}[{address:x}]", loaded.module.name()),
        })
    }

    /// Returns whether the row passes the symbol filters.
    pub fn takes(&self, row: &Key, symbols: &LoadedSymbols) -> bool {
        let filters = &self.query.filters;
        let by_name = filters.symbols.is_some() || filters.symbol_part.is_some();
        let is_resolved = || Meta::unpack(Field::Meta.of(row)).is_resolved(self.query.mode.is_of_branches());
        let is_named = || {
            function(symbols, row, KeyAddress::At).is_some_and(|name| {
                filters.symbols.as_ref().is_none_or(|names| names.contains(name.as_ref()))
                    && filters.symbol_part.as_ref().is_none_or(|part| name.contains(part.as_str()))
            })
        };
        (!filters.resolved || is_resolved()) && (!by_name || is_named())
    }
}
