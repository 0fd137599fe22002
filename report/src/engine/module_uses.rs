//! Counts the samples of each module from named rows, which are few, so that they cost nothing per
//! sample.

use std::sync::Arc;

use rayon::prelude::*;

use super::Labeller;
use super::labeller::frame_at;
use crate::callchain::{ChainRef, Frame, Stacks};
use crate::count::{Count, Rows};
use crate::profile::modules::{Doubts, ModuleUse, ModuleUses, NamedShare};
use crate::query::{Field, Key, KeyAddress, Meta};
use crate::symbols::{Loaded, Module, SymbolId};

impl Labeller<'_> {
    /// Counts the finished rows of a file. Returns the samples whose names are missing or doubtful
    /// because no file is proven to be the recorded one.
    pub(crate) fn count_modules(&self, rows: &Rows, uses: &mut ModuleUses) -> Doubts {
        /// Number of rows that a core counts at a time.
        const PART: usize = 1 << 14;
        let mut doubts = Doubts::default();
        let none = vec![ModuleRows::default(); self.modules.len() + 1];
        let counts = (0..rows.len())
            .into_par_iter()
            .with_min_len(PART)
            .fold(
                || none.clone(),
                |counts, row| self.with_row(counts, &rows.key(row), rows.count(row)),
            )
            .reduce(|| none.clone(), ModuleRows::sums);
        for (number, of_module) in
            (0..).zip(counts).filter(|(_, of_module)| of_module.all.samples > 0)
        {
            let ModuleRows { all, resolved, inferred, judged } = of_module;
            let (module, loaded) = self.module_of(number);
            if let Some(loaded) = &loaded {
                let named = NamedShare { all: all.samples, resolved: resolved.samples, judged };
                doubts.add(&loaded.outcome, named);
            }
            uses.add(module, ModuleUse { all, resolved, inferred, unresolved_callers: 0, loaded });
        }
        doubts
    }

    /// Adds a row to the counts of its module.
    fn with_row(&self, mut counts: Vec<ModuleRows>, key: &Key, count: Count) -> Vec<ModuleRows> {
        let number = Field::Module.of(key);
        let of_module = usize::try_from(number).ok().and_then(|number| counts.get_mut(number));
        let Some(of_module) = of_module else { return counts };
        of_module.all.add(count);
        let end = Meta::unpack(Field::Meta.of(key)).at;
        if self.is_inferred(&frame_at(key, KeyAddress::At)) {
            of_module.inferred.add(count);
        } else if end.is_symbol {
            of_module.resolved.add(count);
            let function = u32::try_from(Field::Address.of(key)).ok().filter(|_| !end.is_inlined);
            let is_judged = self
                .loaded(number)
                .is_some_and(|loaded| loaded.outcome.is_judged(function.map(SymbolId)));
            of_module.judged += if is_judged { count.samples } else { 0 };
        }
        counts
    }

    /// Counts unresolved callers, once per sample and module.
    pub(crate) fn count_callers(&self, rows: &Rows, stacks: &Stacks, uses: &mut ModuleUses) {
        let mut lacking: Vec<u32> = Vec::new();
        let mut counts = vec![0_u64; self.modules.len() + 1];
        for (row, count) in rows.iter() {
            lacking.clear();
            let callers = stacks.chains.frames(ChainRef::unpack(Field::Chain.of(&row)).callers);
            let frames = callers.filter_map(|number| stacks.frame(number));
            let is_lacking = |frame: &&Frame| !frame.end.is_symbol || self.is_inferred(frame);
            lacking.extend(frames.filter(is_lacking).map(|frame| frame.module));
            lacking.sort_unstable();
            lacking.dedup();
            for number in &lacking {
                if let Some(of_module) = counts.get_mut(*number as usize) {
                    *of_module += count.samples;
                }
            }
        }
        for (number, unresolved_callers) in (0..).zip(counts).filter(|(_, samples)| *samples > 0) {
            let (module, _) = self.module_of(number);
            uses.add(module, ModuleUse { unresolved_callers, ..ModuleUse::default() });
        }
    }

    /// Returns a module, given its number in a key, as it was loaded, and its symbols; `None` if
    /// nothing was mapped.
    fn module_of(&self, number: u64) -> (Option<Module>, Option<Arc<Loaded>>) {
        let loaded = self.loaded(number);
        let module = loaded.map(|loaded| &loaded.module).or_else(|| self.module(number));
        (module.cloned(), loaded.cloned())
    }
}

/// Counts of the rows in a module.
#[derive(Clone, Copy, Debug, Default)]
struct ModuleRows {
    all: Count,
    resolved: Count,
    /// Samples in functions without names.
    inferred: Count,
    /// Samples whose names are right only under a condition.
    judged: u64,
}

impl ModuleRows {
    /// Returns the sums of counts by module.
    fn sums(mut counts: Vec<Self>, others: Vec<Self>) -> Vec<Self> {
        for (of_module, other) in counts.iter_mut().zip(others) {
            of_module.all.add(other.all);
            of_module.resolved.add(other.resolved);
            of_module.inferred.add(other.inferred);
            of_module.judged += other.judged;
        }
        counts
    }
}
