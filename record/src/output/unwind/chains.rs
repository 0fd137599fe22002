//! Counts of callchains by how they ended.

use std::collections::BTreeMap;

use recrep_console::units;
use recrep_format::feature::{ChainCause, CutChains, HeaderString, UnwoundChains};
use recrep_format::wire::List;

/// Maximum number of frames where no other is asked for: whole chains where they are possible, and
/// bounded work for a sample.
pub(super) const MOST_FRAMES: usize = 1024;

/// Number of callchains that are whole, and of those that are not by the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chains {
    pub(super) whole: u64,
    /// The copy ends before a word that is needed.
    pub(super) cut: u64,
    /// Code without rules, by module.
    pub(super) no_rules: BTreeMap<String, u64>,
    /// More frames than are followed.
    pub(super) deep: u64,
    /// A word that is needed is nowhere, or a rule makes no sense.
    pub(super) lost: u64,
    /// The mappings are unknown, or cannot be read: the stack is in the file.
    pub(super) kept: u64,
    /// Greatest number of bytes of a copy that was too small.
    pub(super) copy: u64,
}

/// Number of modules that are counted one by one.
const MOST_MODULES: usize = 64;

impl Chains {
    pub(super) fn add_without_rules(&mut self, module: String, count: u64) {
        let is_known = self.no_rules.contains_key(&module);
        let module = if is_known || self.no_rules.len() < MOST_MODULES {
            module
        } else {
            "others".to_owned()
        };
        *self.no_rules.entry(module).or_default() += count;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.whole += other.whole;
        self.cut += other.cut;
        self.deep += other.deep;
        self.lost += other.lost;
        self.kept += other.kept;
        self.copy = self.copy.max(other.copy);
        for (module, count) in &other.no_rules {
            self.add_without_rules(module.clone(), *count);
        }
    }

    pub(super) fn add_cut(&mut self, copy: u64) {
        self.cut += 1;
        self.copy = self.copy.max(copy);
    }

    /// Returns what the file says of them; nothing if none was unwound.
    pub(crate) fn ends(&self) -> Option<UnwoundChains<'_>> {
        let of = |cause, module, limit, count| CutChains {
            cause,
            module: HeaderString::new(module),
            limit,
            count,
        };
        let mut cut: Vec<_> = self
            .no_rules
            .iter()
            .map(|(module, count)| of(ChainCause::NO_RULES, module, 0, *count))
            .collect();
        cut.extend([
            of(ChainCause::COPY, "", self.copy, self.cut),
            of(ChainCause::DEPTH, "", MOST_FRAMES as u64, self.deep),
            of(ChainCause::LOST, "", 0, self.lost),
        ]);
        cut.retain(|cut| cut.count > 0);
        let is_any = self.whole > 0 || !cut.is_empty();
        is_any.then_some(UnwoundChains { whole: self.whole, cut: List(cut) })
    }

    /// Returns what the summary line says of them; nothing if there are none.
    pub(crate) fn summary(&self) -> Option<String> {
        let no_rules: u64 = self.no_rules.values().sum();
        let all = self.whole + self.cut + self.deep + no_rules + self.lost + self.kept;
        let mut modules: Vec<_> = self.no_rules.iter().collect();
        modules.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let modules: Vec<&str> = modules.iter().take(2).map(|(name, _)| name.as_str()).collect();
        let mut reasons = [
            (self.cut, format!("cut: copy of {}K", self.copy.div_ceil(1024))),
            (no_rules, format!("no unwind rules: {}", modules.join(", "))),
            (self.deep, format!("deeper than {} frames", units::grouped(MOST_FRAMES as u64))),
            (self.lost, "no way on".to_owned()),
            (self.kept, "stacks left in the file".to_owned()),
        ];
        reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let reasons = reasons.iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<_> =
            reasons.map(|(count, why)| format!("{} {why}", percent(*count, all))).collect();
        let why =
            if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
        (all > 0).then(|| format!("{} of callchains whole{why}", percent(self.whole, all)))
    }
}

fn percent(count: u64, all: u64) -> String {
    match (1000 * count).checked_div(all).unwrap_or(0) {
        0 => "under 0.1 %".to_owned(),
        tenths => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_the_share_and_the_reasons_largest_first() {
        let mut chains = Chains { whole: 989, cut: 3, copy: 16384, ..Chains::default() };
        chains.add_without_rules("jit".to_owned(), 7);
        chains.add_without_rules("libx.so".to_owned(), 1);
        assert_eq!(
            chains.summary().unwrap(),
            "98.9 % of callchains whole (0.8 % no unwind rules: jit, libx.so; 0.3 % cut: copy of \
             16K)"
        );
        let some = Chains { whole: 9999, kept: 1, ..Chains::default() };
        assert_eq!(
            some.summary().unwrap(),
            "99.9 % of callchains whole (under 0.1 % stacks left in the file)"
        );
        let deep = Chains { whole: 1, deep: 1, ..Chains::default() };
        assert_eq!(
            deep.summary().unwrap(),
            "50.0 % of callchains whole (50.0 % deeper than 1,024 frames)"
        );
        let whole = Chains { whole: 5, ..Chains::default() };
        assert_eq!(whole.summary().unwrap(), "100.0 % of callchains whole");
        assert_eq!(Chains::default().summary(), None);
        let mut sum = Chains::default();
        sum.add(&chains);
        assert_eq!(sum, chains);
    }

    #[test]
    fn not_all_names_of_endlessly_many_modules_are_kept() {
        let mut chains = Chains::default();
        for number in 0..1000 {
            chains.add_without_rules(number.to_string(), 1);
        }
        assert_eq!((chains.no_rules.len(), chains.no_rules["others"]), (65, 936));
    }
}
