//! How callchains from copied stacks ended, and the warnings about incomplete ones.

use std::collections::BTreeMap;

use recrep_unwind::{Cause, End};
use rustc_hash::FxHashMap;

use super::causes::{RecordedCauses, largest};
use crate::callchain::rules::unwind::StackUnwinder;
use crate::count::metrics::share;
use crate::query::Warning;

/// Numbers of chains by their ends, of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerEnds {
    unwound: FxHashMap<End, u64>,
    /// Chains that their recorder completed, or had to cut short.
    pub(crate) recorded: [u64; 2],
}

/// Numbers of chains by their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainEnds {
    all: u64,
    /// Those for which too little stack was copied.
    copied: u64,
    /// Those that the recorder could not complete.
    recorded: u64,
    /// Why it could not.
    causes: RecordedCauses,
    unmapped: u64,
    lost: u64,
    /// Those that ended in code without rules, by module.
    no_rules: BTreeMap<String, u64>,
    /// Those that ended in files that cannot be read.
    unreadable: BTreeMap<String, u64>,
}

impl WorkerEnds {
    pub(crate) fn add(&mut self, end: End) {
        *self.unwound.entry(end).or_default() += 1;
    }

    /// Returns the numbers by the names of modules.
    pub(crate) fn named(&self, unwinder: &StackUnwinder<'_>) -> ChainEnds {
        let [whole, cut] = self.recorded;
        let mut ends = ChainEnds { all: whole + cut, recorded: cut, ..ChainEnds::default() };
        for (end, count) in &self.unwound {
            ends.all += count;
            let End::Cut(cause) = *end else { continue };
            *match cause {
                Cause::Copy => &mut ends.copied,
                Cause::Unmapped => &mut ends.unmapped,
                Cause::Lost => &mut ends.lost,
                Cause::NoRules(module) => ends.no_rules.entry(unwinder.name(module)).or_default(),
                Cause::Unreadable(module) => {
                    ends.unreadable.entry(unwinder.name(module)).or_default()
                }
            } += count;
        }
        ends
    }
}

impl ChainEnds {
    pub fn add(&mut self, other: Self) {
        self.all += other.all;
        self.copied += other.copied;
        self.recorded += other.recorded;
        self.causes.add(other.causes);
        self.unmapped += other.unmapped;
        self.lost += other.lost;
        for (into, from) in
            [(&mut self.no_rules, other.no_rules), (&mut self.unreadable, other.unreadable)]
        {
            for (module, count) in from {
                *into.entry(module).or_default() += count;
            }
        }
    }

    /// Takes note of what the recording says of callchains that its recorder unwound.
    pub(crate) fn take_causes(&mut self, causes: RecordedCauses) {
        self.causes = causes;
    }

    /// Returns a warning for each reason why chains are incomplete: how many, and the remedy.
    pub fn warnings(&self) -> Vec<Warning> {
        let all = self.all;
        let lack = |count: u64| {
            format!("{count} of {all} callchains ({:.1}%) lack outer frames", share(count, all))
        };
        let mut warnings = Vec::new();
        if self.copied > 0 {
            let reason =
                "too little stack was copied; record with a larger copy (--call-graph dwarf,SIZE)";
            let message = format!("{}: {reason}", lack(self.copied));
            warnings.push(Warning::about(self.copied, "truncated-stack", message));
        }
        if self.recorded > 0 {
            let code =
                if self.causes.are_copies() { "truncated-stack" } else { "incomplete-callchain" };
            let reasons = self.causes.reasons();
            let reasons = reasons.as_deref().unwrap_or("their recorder does not say why");
            let message = format!("{}: {reasons}", lack(self.recorded));
            warnings.push(Warning::new(code, message));
        }
        let [no_rules, unreadable] =
            [&self.no_rules, &self.unreadable].map(|of| of.values().sum::<u64>());
        let rest = no_rules + unreadable + self.unmapped + self.lost;
        if rest > 0 {
            let mut reasons = Vec::new();
            if no_rules > 0 {
                let modules = largest(&self.no_rules, all);
                reasons.push(format!(
                    "no unwind rules ({modules}; a JIT's code has them in a jitdump: -k mono)"
                ));
            }
            if unreadable > 0 {
                let modules = largest(&self.unreadable, all);
                reasons.push(format!("files that cannot be read ({modules}; see rep modules)"));
            }
            for (count, reason) in
                [(self.unmapped, "unmapped addresses"), (self.lost, "contradictory stacks")]
            {
                if count > 0 {
                    reasons.push(format!("{reason} ({:.1}%)", share(count, all)));
                }
            }
            let message = format!("{}: {}", lack(rest), reasons.join(", "));
            warnings.push(Warning::about(rest, "incomplete-callchain", message));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_with_its_share() {
        let of = |modules: &[(&str, u64)]| {
            modules.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let mut ends = ChainEnds { all: 900, copied: 9, ..ChainEnds::default() };
        let texts = |ends: &ChainEnds| {
            ends.warnings().into_iter().map(|told| told.message).collect::<Vec<_>>()
        };
        let copied = "9 of 900 callchains (1.0%) lack outer frames: too little stack was copied; \
                      record with a larger copy (--call-graph dwarf,SIZE)";
        assert_eq!(texts(&ends), [copied]);
        ends.add(ChainEnds {
            all: 100,
            unmapped: 1,
            no_rules: of(&[("a", 10), ("b", 20), ("c", 5), ("d", 10)]),
            unreadable: of(&[("e", 4)]),
            ..ChainEnds::default()
        });
        let rest = "50 of 1000 callchains (5.0%) lack outer frames: no unwind rules (b 2.0%, a \
                    1.0%, d 1.0%, …; a JIT's code has them in a jitdump: -k mono), files that \
                    cannot be read (e 0.4%; see rep modules), unmapped addresses (0.1%)";
        assert_eq!(texts(&ends)[1], rest);
        let recorded = ChainEnds { all: 9, recorded: 1, ..ChainEnds::default() };
        assert!(texts(&recorded)[0].ends_with("outer frames: their recorder does not say why"));
        assert_eq!(ChainEnds { all: 9, ..ChainEnds::default() }.warnings(), []);
    }
}
