//! Number of samples in each module, and of those with a resolved function.
//!
//! They are counted from finished rows, which are few, so they add no cost per sample.

use std::sync::Arc;

use indexmap::IndexMap;
use rayon::prelude::*;

use crate::callchain::{ChainRef, Stacks};
use crate::count::metrics::share;
use crate::count::{Count, Rows};
use crate::query::{Field, Meta, Warning};
use crate::symbols::{Explanation, Loaded, Module, Outcome, SymbolId, UNMAPPED, explain};
use crate::table::Labeller;

/// Sample counts and symbols of a module.
#[derive(Clone, Debug, Default)]
pub struct ModuleUse {
    pub all: Count,
    /// Samples with a resolved function.
    pub resolved: Count,
    /// Samples with an unresolved caller in the module; counted by [`ModuleUses::count_callers`]
    /// only.
    pub unresolved_callers: u64,
    /// Symbols of the module, if loaded.
    pub loaded: Option<Arc<Loaded>>,
}

/// Sample counts of all modules.
#[derive(Debug, Default)]
pub struct ModuleUses {
    /// Counts by module; `None` stands for addresses where nothing was mapped.
    pub modules: IndexMap<Option<Module>, ModuleUse>,
}

impl ModuleUses {
    pub fn append(&mut self, other: Self) {
        other.modules.into_iter().for_each(|(module, uses)| self.add(module, uses));
    }

    fn add(&mut self, module: Option<Module>, other: ModuleUse) {
        let uses = self.modules.entry(module).or_default();
        uses.all.add(other.all);
        uses.resolved.add(other.resolved);
        uses.unresolved_callers += other.unresolved_callers;
        uses.loaded = uses.loaded.take().or(other.loaded);
    }

    /// Counts the finished rows of a file. Returns the samples whose names are missing or doubtful
    /// because no file is proven to be the recorded one.
    pub fn count(&mut self, rows: &Rows, labeller: &Labeller<'_>) -> Doubts {
        /// Number of rows that a core counts at a time.
        const PART: usize = 1 << 14;
        let mut doubts = Doubts::default();
        let none = || vec![ModuleRows::default(); labeller.modules.len() + 1];
        let with = |mut counts: Vec<ModuleRows>, row: usize| {
            let (key, count) = (rows.key(row), rows.count(row));
            let number = usize::try_from(Field::Module.of(&key)).unwrap_or(usize::MAX);
            if let Some(of_module) = counts.get_mut(number) {
                of_module.all.add(count);
                let end = Meta::unpack(Field::Meta.of(&key)).at;
                if end.is_symbol {
                    of_module.resolved.add(count);
                    let function =
                        u32::try_from(Field::Address.of(&key)).ok().filter(|_| !end.is_inlined);
                    let loaded = labeller.loaded(number as u64);
                    let is_judged = loaded
                        .is_some_and(|loaded| loaded.outcome.is_judged(function.map(SymbolId)));
                    of_module.judged += if is_judged { count.samples } else { 0 };
                }
            }
            counts
        };
        let both = |mut counts: Vec<ModuleRows>, others: Vec<ModuleRows>| {
            for (of_module, other) in counts.iter_mut().zip(others) {
                of_module.all.add(other.all);
                of_module.resolved.add(other.resolved);
                of_module.judged += other.judged;
            }
            counts
        };
        let counts =
            (0..rows.len()).into_par_iter().with_min_len(PART).fold(none, with).reduce(none, both);
        for (number, of_module) in
            (0..).zip(counts).filter(|(_, of_module)| of_module.all.samples > 0)
        {
            let ModuleRows { all, resolved, judged } = of_module;
            let (module, loaded) = module_of(number, labeller);
            if let Some(loaded) = &loaded {
                let named = Named { all: all.samples, resolved: resolved.samples, judged };
                doubts.add(&loaded.outcome, named);
            }
            self.add(module, ModuleUse { all, resolved, unresolved_callers: 0, loaded });
        }
        doubts
    }

    /// Counts unresolved callers, once per sample and module.
    pub fn count_callers(&mut self, rows: &Rows, stacks: &Stacks, labeller: &Labeller<'_>) {
        let mut lacking: Vec<u32> = Vec::new();
        let mut counts = vec![0_u64; labeller.modules.len() + 1];
        for (row, count) in rows.iter() {
            lacking.clear();
            let callers = stacks.chains.frames(ChainRef::unpack(Field::Chain.of(&row)).callers);
            let frames = callers.filter_map(|number| stacks.frame(number));
            lacking.extend(frames.filter(|frame| !frame.end.is_symbol).map(|frame| frame.module));
            lacking.sort_unstable();
            lacking.dedup();
            for number in &lacking {
                if let Some(of_module) = counts.get_mut(*number as usize) {
                    *of_module += count.samples;
                }
            }
        }
        for (number, unresolved_callers) in (0..).zip(counts).filter(|(_, samples)| *samples > 0) {
            let (module, _) = module_of(number, labeller);
            self.add(module, ModuleUse { unresolved_callers, ..ModuleUse::default() });
        }
    }

    /// Returns the counts of all samples and of resolved samples.
    pub fn total(&self) -> (Count, Count) {
        let mut total = (Count::default(), Count::default());
        for module in self.modules.values() {
            total.0.add(module.all);
            total.1.add(module.resolved);
        }
        total
    }

    /// Returns the modules sorted by samples, largest first; with `unresolved`, by unresolved
    /// samples.
    pub fn sorted(&self, unresolved: bool) -> Vec<(Option<&Module>, &ModuleUse)> {
        let mut all: Vec<_> =
            self.modules.iter().map(|(module, uses)| (module.as_ref(), uses)).collect();
        let size = |uses: &ModuleUse| if unresolved { uses.lacks() } else { uses.all.samples };
        all.sort_by(|(a, a_use), (b, b_use)| size(b_use).cmp(&size(a_use)).then_with(|| a.cmp(b)));
        all
    }

    /// Returns a sentence about unresolved samples if they are more than 5 % of all.
    pub fn footer(&self) -> Option<String> {
        const SHOWN: usize = 3;
        let (all, resolved) = self.total();
        let lacking = all.samples - resolved.samples.min(all.samples);
        if lacking.saturating_mul(20) <= all.samples {
            return None;
        }
        let mut parts: Vec<String> = Vec::new();
        let is_listed = |uses: &ModuleUse| uses.lacks().saturating_mul(100) >= all.samples;
        for (module, uses) in
            self.sorted(true).into_iter().filter(|(_, uses)| is_listed(uses)).take(SHOWN)
        {
            let name = module.map_or("[unknown]".into(), Module::name);
            let reason = uses.explanation(module).map_or("", |reason| reason.code);
            let refused = |loaded: &Arc<Loaded>| {
                Some(loaded.outcome.not_fetched().next_back()?.1.to_string())
            };
            let fetch = uses.loaded.as_ref().and_then(refused);
            let fetch = fetch.map(|why| format!("; {why}")).unwrap_or_default();
            parts
                .push(format!("{name} {:.1}% ({reason}{fetch})", share(uses.lacks(), all.samples)));
        }
        let percent = share(lacking, all.samples);
        let parts = parts.join(", ");
        Some(format!(
            "{percent:.1}% of the samples have no function name: {parts}; why, and what helps: \
             rep modules"
        ))
    }
}

/// Returns a module, given its number in a key, as it was loaded, and its symbols; `None` if
/// nothing was mapped.
fn module_of(number: u64, labeller: &Labeller<'_>) -> (Option<Module>, Option<Arc<Loaded>>) {
    let loaded = labeller.loaded(number);
    let module = loaded.map(|loaded| &loaded.module).or_else(|| labeller.module(number));
    (module.cloned(), loaded.cloned())
}

/// Counts of the rows in a module.
#[derive(Clone, Copy, Debug, Default)]
struct ModuleRows {
    all: Count,
    resolved: Count,
    /// Samples whose names are right only under a condition.
    judged: u64,
}

/// Samples or addresses in a module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named {
    pub all: u64,
    /// Those with a function.
    pub resolved: u64,
    /// Those with a function whose name is right only under a condition.
    pub judged: u64,
}

/// Samples that are unresolved because no file is proven to be the recorded one, and samples
/// resolved with a file whose build ID is not the recorded one.
#[derive(Debug, Default)]
pub struct Doubts {
    all: u64,
    unproven: u64,
    contradicted: u64,
    first: Option<String>,
    /// Conditions under which names are right, with the number of samples that have such names.
    notes: Vec<(String, u64)>,
}

impl Doubts {
    /// Adds samples of a module.
    pub fn add(&mut self, outcome: &Outcome, Named { all, resolved, judged }: Named) {
        self.all += all;
        if outcome.unproven().is_some() {
            self.unproven += all - resolved.min(all);
        }
        if let Some(note) = outcome.note.as_ref().filter(|_| judged > 0) {
            match self.notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, count)) => *count += judged,
                None => self.notes.push((note.clone().into_owned(), judged)),
            }
        }
        if let Some(contradiction) = outcome.contradiction.as_ref().filter(|_| resolved > 0) {
            self.contradicted += resolved;
            self.first.get_or_insert_with(|| contradiction.clone());
        }
    }

    /// Returns a warning for each kind of doubt, and for each condition; `what` names the counted
    /// items, e.g. `samples`.
    pub fn warnings(&self, what: &str) -> Vec<Warning> {
        let Self { all, unproven, contradicted, .. } = self;
        let mut warnings = Vec::new();
        if *unproven > 0 {
            let message = format!(
                "{unproven} of {all} {what} have no function because nothing shows that the files \
                 here are the recorded ones: `rep modules` says what is missing; --trust-paths \
                 uses the files at the recorded paths, --symfs, --kallsyms and --vmlinux name \
                 others"
            );
            warnings.push(Warning::new("unproven-names", message));
        }
        if let Some(first) = &self.first {
            let message = format!(
                "{contradicted} of {all} {what} have functions from another version of their \
                 file: {first}"
            );
            warnings.push(Warning::new("contradicted-names", message));
        }
        for (note, judged) in &self.notes {
            let message =
                format!("the functions of {judged} of {all} {what} are a judgement: {note}");
            warnings.push(Warning::new("judged-names", message));
        }
        warnings
    }
}

impl ModuleUse {
    /// Returns the number of unresolved samples.
    pub fn lacks(&self) -> u64 {
        self.all.samples - self.resolved.samples.min(self.all.samples)
    }

    /// Returns why samples are unresolved; `None` if all are resolved.
    pub fn explanation(&self, module: Option<&Module>) -> Option<Explanation> {
        if self.lacks() == 0 {
            return None;
        }
        Some(match (module, &self.loaded) {
            (Some(module), Some(loaded)) => explain(module, &loaded.outcome),
            _ => UNMAPPED,
        })
    }
}
