//! Number of samples in each module, and of those with a resolved function.
//!
//! They are counted from finished rows, which are few, so they add no cost per sample.

use std::cmp::Reverse;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::count::Count;
use crate::count::metrics::share;
use crate::query::Warning;
use crate::symbols::{Explanation, Loaded, Module, Outcome, UNMAPPED, explain};

/// Sample counts and symbols of a module.
#[derive(Clone, Debug, Default)]
pub struct ModuleUse {
    pub all: Count,
    /// Samples with a resolved function.
    pub resolved: Count,
    /// Samples in functions that have no name.
    pub inferred: Count,
    /// Samples with an unresolved caller in the module; only if that is asked for.
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

    pub(crate) fn add(&mut self, module: Option<Module>, other: ModuleUse) {
        let uses = self.modules.entry(module).or_default();
        uses.all.add(other.all);
        uses.resolved.add(other.resolved);
        uses.inferred.add(other.inferred);
        uses.unresolved_callers += other.unresolved_callers;
        uses.loaded = uses.loaded.take().or(other.loaded);
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

    /// Returns the number of samples in functions that have no name.
    pub fn inferred(&self) -> u64 {
        self.modules.values().map(|module| module.inferred.samples).sum()
    }

    /// Returns the modules sorted by samples, largest first; with `unresolved`, by unresolved
    /// samples.
    pub fn sorted(&self, unresolved: bool) -> Vec<(Option<&Module>, &ModuleUse)> {
        let mut all: Vec<_> =
            self.modules.iter().map(|(module, uses)| (module.as_ref(), uses)).collect();
        all.sort_by_key(|(module, uses)| {
            (Reverse(if unresolved { uses.lacks() } else { uses.all.samples }), *module)
        });
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
        let mut listed = self.sorted(true);
        listed.retain(|(_, uses)| uses.lacks().saturating_mul(100) >= all.samples);
        for (module, uses) in listed.into_iter().take(SHOWN) {
            let name = module.map_or("[unknown]".into(), Module::name);
            let reason = uses.explanation(module).map_or("", |reason| reason.code);
            let loaded = uses.loaded.as_ref();
            let refused = loaded.and_then(|loaded| loaded.outcome.not_fetched().next_back());
            let fetch = refused.map(|(_, why)| format!("; {why}")).unwrap_or_default();
            parts
                .push(format!("{name} {:.1}% ({reason}{fetch})", share(uses.lacks(), all.samples)));
        }
        let percent = share(lacking, all.samples);
        let parts = parts.join(", ");
        let inferred = match self.inferred() {
            0 => String::new(),
            inferred => format!(
                "; another {:.1}% are in functions of unknown name, shown as module+0xSTART",
                share(inferred, all.samples)
            ),
        };
        Some(format!(
            "{percent:.1}% of the samples have no function name: {parts}{inferred}; why, and what \
             helps: rep modules"
        ))
    }
}

/// Samples or addresses in a module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NamedShare {
    pub all: u64,
    /// Those with a function.
    pub resolved: u64,
    /// Those with a function whose name is right only under a condition.
    pub judged: u64,
}

/// Samples that are unresolved because no file is proven to be the recorded one, and samples
/// resolved with a file whose build ID is not the recorded one.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    all: u64,
    unproven: u64,
    contradicted: u64,
    first: Option<String>,
    /// Conditions under which names are right, with the number of samples that have such names.
    notes: Vec<(String, u64)>,
}

impl Doubts {
    /// Adds samples of a module.
    pub(crate) fn add(
        &mut self,
        outcome: &Outcome,
        NamedShare { all, resolved, judged }: NamedShare,
    ) {
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
    pub(crate) fn warnings(&self, what: &str) -> Vec<Warning> {
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
