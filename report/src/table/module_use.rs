//! How many samples fell in each module, and how many of them in a function that has a name.
//!
//! Counted from finished rows, which are few, whenever functions are asked for: it costs no sample anything.

use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use crate::callchain::{ChainRef, Stacks};
use crate::count::metrics::share;
use crate::count::{Count, Field, Meta, Rows};
use crate::query::warning::Warning;
use crate::symbols::{Contradiction, Explanation, GUEST, Loaded, Module, Outcome, UNMAPPED, explain};

/// What a module is to a profile.
#[derive(Clone, Debug, Default)]
pub struct ModuleUse {
    /// Samples in it.
    pub all: Count,
    /// Those in a function.
    pub resolved: Count,
    /// Samples that have a caller in it without a function; counted by [`ModuleUses::count_callers`] only.
    pub callers_lack: u64,
    /// Its symbols.
    pub loaded: Option<Arc<Loaded>>,
}

/// What all modules are.
#[derive(Debug, Default)]
pub struct ModuleUses {
    /// By module; `None` is where nothing was mapped.
    pub modules: IndexMap<Option<Module>, ModuleUse>,
    /// Samples of guests, which are in no row.
    pub guest: u64,
}

impl ModuleUses {
    /// Counts finished rows of a file, whose modules these are by their numbers; returns how far their names are proven.
    pub fn count(&mut self, rows: &Rows, modules: &IndexSet<Module>, symbols: &[Option<Arc<Loaded>>]) -> Doubts {
        let mut doubts = Doubts::default();
        let mut counts = vec![(Count::default(), Count::default()); modules.len() + 1];
        for (row, count) in rows.iter() {
            let number = usize::try_from(Field::Module.of(&row)).unwrap_or(usize::MAX);
            let Some((all, resolved)) = counts.get_mut(number) else { continue };
            all.add(count);
            if Meta::unpack(Field::Meta.of(&row)).at.is_symbol {
                resolved.add(count);
            }
        }
        for (number, (all, resolved)) in counts.into_iter().enumerate().filter(|(_, (all, _))| all.samples > 0) {
            let place = number.checked_sub(1);
            let module = place.and_then(|place| modules.get_index(place)).cloned();
            let loaded = place.and_then(|place| symbols.get(place)?.clone());
            if let Some(loaded) = &loaded {
                doubts.add(&loaded.outcome, all.samples, resolved.samples);
            }
            let uses = self.modules.entry(module).or_default();
            uses.all.add(all);
            uses.resolved.add(resolved);
            uses.loaded = uses.loaded.take().or(loaded);
        }
        doubts
    }

    /// Counts callers without a function, once for each sample and module.
    pub fn count_callers(&mut self, rows: &Rows, stacks: &Stacks, modules: &IndexSet<Module>) {
        let mut lacking: Vec<u32> = Vec::new();
        let mut counts = vec![0_u64; modules.len() + 1];
        for (row, count) in rows.iter() {
            lacking.clear();
            let callers = stacks.chain(ChainRef::unpack(Field::Chain.of(&row)).callers).iter();
            let frames = callers.filter_map(|number| stacks.frames.get(*number as usize));
            lacking.extend(frames.filter(|frame| !frame.end.is_symbol).map(|frame| frame.module));
            lacking.sort_unstable();
            lacking.dedup();
            for number in &lacking {
                if let Some(of_module) = counts.get_mut(*number as usize) {
                    *of_module += count.samples;
                }
            }
        }
        for (number, samples) in counts.into_iter().enumerate().filter(|(_, samples)| *samples > 0) {
            let module = number.checked_sub(1).and_then(|place| modules.get_index(place)).cloned();
            self.modules.entry(module).or_default().callers_lack += samples;
        }
    }

    /// All samples, and those with a function.
    #[must_use]
    pub fn total(&self) -> (Count, Count) {
        let mut total = (Count { samples: self.guest, period: 0 }, Count::default());
        for module in self.modules.values() {
            total.0.add(module.all);
            total.1.add(module.resolved);
        }
        total
    }

    /// The modules, those with most samples without a function first where `unresolved` is asked for, else those with most.
    #[must_use]
    pub fn sorted(&self, unresolved: bool) -> Vec<(Option<&Module>, &ModuleUse)> {
        let mut all: Vec<_> = self.modules.iter().map(|(module, uses)| (module.as_ref(), uses)).collect();
        let size = |uses: &ModuleUse| if unresolved { uses.lacks() } else { uses.all.samples };
        all.sort_by(|(a, a_use), (b, b_use)| size(b_use).cmp(&size(a_use)).then_with(|| a.cmp(b)));
        all
    }

    /// A sentence about what has no function, if that is more than a twentieth.
    #[must_use]
    pub fn footer(&self) -> Option<String> {
        const SHOWN: usize = 3;
        let (all, resolved) = self.total();
        let lacking = all.samples - resolved.samples.min(all.samples);
        if lacking.saturating_mul(20) <= all.samples {
            return None;
        }
        let mut parts: Vec<String> = Vec::new();
        let is_told = |uses: &ModuleUse| uses.lacks().saturating_mul(100) >= all.samples;
        for (module, uses) in self.sorted(true).into_iter().filter(|(_, uses)| is_told(uses)).take(SHOWN) {
            let name = module.map_or("[unknown]".into(), Module::name);
            let reason = uses.explanation(module).map_or("", |reason| reason.code);
            let refused = |loaded: &Arc<Loaded>| Some(loaded.outcome.not_fetched().next_back()?.1.to_string());
            let fetch = uses.loaded.as_ref().and_then(refused);
            let fetch = fetch.map(|why| format!("; {why}")).unwrap_or_default();
            parts.push(format!("{name} {:.1}% ({reason}{fetch})", share(uses.lacks(), all.samples)));
        }
        if self.guest > 0 {
            parts.push(format!("[guest] {:.1}%", share(self.guest, all.samples)));
        }
        let percent = share(lacking, all.samples);
        Some(format!("{percent:.1}% of the samples have no function: {}; `rep modules` tells why", parts.join(", ")))
    }
}

/// Samples without a function because nothing proves that a file is the recorded one, and samples whose function comes from a file that the
/// recording contradicts.
#[derive(Debug, Default)]
pub struct Doubts {
    all: u64,
    unproven: u64,
    contradicted: u64,
    first: Option<Contradiction>,
}

impl Doubts {
    /// Adds samples of a module, and those of them with a function.
    pub fn add(&mut self, outcome: &Outcome, all: u64, resolved: u64) {
        self.all += all;
        if outcome.unproven().is_some() {
            self.unproven += all - resolved.min(all);
        }
        if let Some(contradiction) = outcome.contradiction.as_ref().filter(|_| resolved > 0) {
            self.contradicted += resolved;
            self.first.get_or_insert_with(|| contradiction.clone());
        }
    }

    /// One warning for each of both; `what` was counted.
    #[must_use]
    pub fn warnings(&self, what: &str) -> Vec<Warning> {
        let Self { all, unproven, contradicted, .. } = self;
        let mut warnings = Vec::new();
        if *unproven > 0 {
            let message = format!(
                "{unproven} of {all} {what} have no function because nothing shows that the files here are the recorded ones: \
                 `rep modules` says what is missing; --trust-paths uses the files at the recorded paths, --symfs, --kallsyms and \
                 --vmlinux name others"
            );
            warnings.push(Warning::new("unproven-names", message));
        }
        if let Some(first) = &self.first {
            let message =
                format!("{contradicted} of {all} {what} have functions from another version of their file: {first}");
            warnings.push(Warning::new("contradicted-names", message));
        }
        warnings
    }
}

impl ModuleUse {
    /// How many samples have no function.
    #[must_use]
    pub fn lacks(&self) -> u64 {
        self.all.samples - self.resolved.samples.min(self.all.samples)
    }

    /// Why some have none; nothing where all have.
    #[must_use]
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

/// Why samples of guests have no function.
pub const OF_GUESTS: Explanation = GUEST;
