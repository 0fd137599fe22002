//! Reasons why callchains that `rec` unwound lack outer frames, as its recording says, each with its
//! remedy.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recrep_console::units;
use recrep_format::feature::{ChainCause, UnwoundChains};

use crate::count::metrics::share;

/// Callchains of recordings by how the recorder could unwind them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedCauses {
    whole: u64,
    /// Bytes of the largest copy that was too small.
    copy: u64,
    copied: u64,
    /// Most frames that were followed.
    depth: u64,
    deep: u64,
    lost: u64,
    /// Those that ended in code without rules, by module.
    no_rules: BTreeMap<String, u64>,
}

/// Name of the code of JITs in a recording of `rec`.
const JIT: &str = "jit";

impl RecordedCauses {
    pub(crate) fn of(chains: &UnwoundChains<'_>) -> Self {
        let mut causes = Self { whole: chains.whole, ..Self::default() };
        for cut in &chains.cut.0 {
            match cut.cause {
                ChainCause::COPY => {
                    causes.copied += cut.count;
                    causes.copy = causes.copy.max(cut.limit);
                }
                ChainCause::DEPTH => {
                    causes.deep += cut.count;
                    causes.depth = causes.depth.max(cut.limit);
                }
                ChainCause::NO_RULES => {
                    let module = cut.module.to_text().into_owned();
                    *causes.no_rules.entry(module).or_default() += cut.count;
                }
                _ => causes.lost += cut.count,
            }
        }
        causes
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.copied += other.copied;
        self.copy = self.copy.max(other.copy);
        self.deep += other.deep;
        self.depth = self.depth.max(other.depth);
        self.lost += other.lost;
        for (module, count) in other.no_rules {
            *self.no_rules.entry(module).or_default() += count;
        }
    }

    /// Returns whether most of the recordings' broken callchains are those of copies.
    pub(crate) fn are_copies(&self) -> bool {
        self.copied > self.deep + self.lost + self.no_rules.values().sum::<u64>()
    }

    /// Returns the reasons with their shares of all callchains that were unwound, the most frequent
    /// first, each with its remedy; `None` if the recording has none.
    pub(crate) fn reasons(&self) -> Option<String> {
        let no_rules: u64 = self.no_rules.values().sum();
        let cut = self.copied + self.deep + self.lost + no_rules;
        let all = self.whole + cut;
        let copy = units::bytes(self.copy);
        let jit = match self.no_rules.contains_key(JIT) {
            true => "; code of JITs needs frame pointers, or a jitdump",
            false => "; build it with call frame information",
        };
        let modules = largest(&self.no_rules, all);
        let mut reasons = [
            (
                self.copied,
                format!(
                    "copies of {copy} of the stack are too small ({:.1}%; --call-graph \
                     unwind,SIZE)",
                    share(self.copied, all)
                ),
            ),
            (no_rules, format!("no unwind rules ({modules}{jit})")),
            (
                self.deep,
                format!(
                    "more than {} frames ({:.1}%; --max-stack)",
                    units::grouped(self.depth),
                    share(self.deep, all)
                ),
            ),
            (self.lost, format!("contradictory stacks ({:.1}%)", share(self.lost, all))),
        ];
        reasons.sort_by_key(|(count, _)| Reverse(*count));
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<String> = reasons.map(|(_, reason)| reason).collect();
        (cut > 0).then(|| reasons.join(", "))
    }
}

/// Returns the modules with the largest counts, and their shares.
pub(crate) fn largest(modules: &BTreeMap<String, u64>, all: u64) -> String {
    const SHOWN: usize = 3;
    let mut sorted: Vec<(&String, u64)> =
        modules.iter().map(|(name, count)| (name, *count)).collect();
    sorted.sort_by_key(|(_, count)| Reverse(*count));
    let shown = sorted.iter().take(SHOWN);
    let mut texts: Vec<String> =
        shown.map(|(name, count)| format!("{name} {:.1}%", share(*count, all))).collect();
    texts.extend((sorted.len() > SHOWN).then(|| "…".to_owned()));
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use recrep_format::feature::{CutChains, HeaderString};
    use recrep_format::wire::List;

    use super::*;

    #[test]
    fn each_reason_has_its_own_remedy_the_most_frequent_first() {
        let cut = |cause, module, limit, count| CutChains {
            cause,
            module: HeaderString::new(module),
            limit,
            count,
        };
        let of = |cut: Vec<CutChains<'_>>| {
            RecordedCauses::of(&UnwoundChains { whole: 900, cut: List(cut) }).reasons()
        };
        assert_eq!(of(Vec::new()), None);
        let jit = of(vec![cut(ChainCause::NO_RULES, "jit", 0, 100)]).unwrap();
        assert!(jit.starts_with("no unwind rules (jit 10.0%; code of JITs"), "{jit}");
        assert!(!jit.contains("copies"));
        let all = of(vec![
            cut(ChainCause::COPY, "", 8192, 40),
            cut(ChainCause::NO_RULES, "libx.so", 0, 50),
            cut(ChainCause::DEPTH, "", 1024, 10),
        ]);
        assert_eq!(
            all.unwrap(),
            "no unwind rules (libx.so 5.0%; build it with call frame information), copies of \
             8.0 KiB of the stack are too small (4.0%; --call-graph unwind,SIZE), more than 1,024 \
             frames (1.0%; --max-stack)"
        );
    }
}
