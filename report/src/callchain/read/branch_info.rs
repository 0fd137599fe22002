//! Information about the branches through a node of a call tree.
//!
//! Each frame of a branch has a word that describes this branch; [`BranchInfo`] is their sum over
//! samples, and is displayed as by perf.
//!
//! ```text
//!   bit    63 62   61…32                31…16        15…8    7…0
//!   to      1  0   kinds                 -            -      predicted, aborted
//!   from    1  1   cycles of a turn      cycles       turns   -
//! ```

use std::fmt;

use recrep_format::abi::{BranchEntry, BranchFlags, BranchKind, BranchNewKind};

/// A branch, and the repeated turns of a loop that were removed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    pub(crate) branch: BranchEntry,
    /// Number of removed turns.
    pub(crate) turns: u64,
    /// Cycles of the turn removed last.
    pub(crate) cycles: u64,
}

/// Set for each frame of a branch.
pub(crate) const BRANCH: u64 = 1 << 63;
/// Set for the source of a branch.
pub(crate) const SOURCE: u64 = 1 << 62;
const PREDICTED: u64 = 1;
const ABORTED: u64 = 1 << 1;
/// Lowest bit of the kinds, or of the cycles of a turn.
const UPPER: u32 = 32;

/// Bit of the first additional kind (`BranchNewKind`), behind those of `BranchKind`.
const ADDITIONAL: u8 = BranchKind::EXTEND_ABI.0;
/// Bit of the kind of branches to another page, and behind it that of branches to another huge
/// page.
const CROSSING: u8 = ADDITIONAL + 8;

/// Returns the word for a branch's target.
pub(crate) fn to_info(jump: &Jump) -> u64 {
    let flags = jump.branch.flags;
    let known = kinds(jump.branch.from, jump.branch.to, flags) << UPPER;
    BRANCH
        | known
        | if flags.predicted() { PREDICTED } else { 0 }
        | if flags.abort() { ABORTED } else { 0 }
}

/// Returns the word for a branch's source.
pub(crate) fn from_info(jump: &Jump) -> u64 {
    let cycles = u64::from(jump.branch.flags.cycles()) << 16;
    // A turn has at most 127 branches, so its cycles do not reach bit 62.
    BRANCH | SOURCE | jump.cycles << UPPER | cycles | jump.turns << 8
}

/// Returns the kinds of a branch, as bits: the number of its kind, for conditional branches 0 or 1
/// by direction.
fn kinds(from: u64, to: u64, flags: BranchFlags) -> u64 {
    // perf counts no kind for a branch from address 0.
    if from == 0 || flags.kind_name().is_empty() {
        return 0;
    }
    let kind = match flags.kind() {
        BranchKind::COND => u8::from(to <= from),
        BranchKind::EXTEND_ABI => ADDITIONAL + flags.new_kind().0,
        kind => kind.0,
    };
    let [is_small, is_huge] = [4 << 10, 2 << 20].map(|size: u64| from / size != to / size);
    1u64 << kind | u64::from(is_small) << (CROSSING + u8::from(is_huge))
}

/// Returns the names of the kinds by their bits, which is the order in which they are displayed.
fn kind_names() -> impl Iterator<Item = &'static str> {
    let named =
        BranchKind::NAMED.iter().take(ADDITIONAL.into()).skip(2).filter_map(|kind| kind.name());
    let additional = BranchNewKind::NAMED.iter().filter_map(|kind| kind.name());
    ["COND_FWD", "COND_BWD"]
        .into_iter()
        .chain(named)
        .chain(additional)
        .chain(["CROSS_4K", "CROSS_2M"])
}

/// Returns whether a frame's word marks it as part of a branch.
pub(crate) fn is_of_branch(word: u64) -> bool {
    word & BRANCH != 0
}

/// Sum of the information about all branches through a frame of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchInfo {
    targets: u64,
    predicted: u64,
    aborted: u64,
    kinds: u64,
    sources: u64,
    cycles: u64,
    turns: u64,
    turn_cycles: u64,
}

impl BranchInfo {
    /// Adds a frame's word for so many samples.
    pub fn add(&mut self, word: u64, samples: u64) {
        let upper = word >> UPPER & 0x3fff_ffff;
        if word & (BRANCH | SOURCE) == BRANCH {
            add_each(&mut self.targets, 1, samples);
            add_each(&mut self.predicted, u64::from(word & PREDICTED != 0), samples);
            add_each(&mut self.aborted, u64::from(word & ABORTED != 0), samples);
            self.kinds |= upper;
        } else if word & BRANCH != 0 {
            add_each(&mut self.sources, 1, samples);
            add_each(&mut self.cycles, word >> 16 & 0xffff, samples);
            add_each(&mut self.turns, word >> 8 & 0xff, samples);
            add_each(&mut self.turn_cycles, upper, samples);
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "only one decimal is printed")]
    fn target_texts(&self) -> Vec<String> {
        let [predicted, aborted] =
            [self.predicted, self.aborted].map(|part| part as f64 * 100.0 / self.targets as f64);
        let named = kind_names().enumerate().filter(|(place, _)| self.kinds >> place & 1 == 1);
        let mut all: Vec<String> = named.map(|(_, kind)| kind.to_owned()).collect();
        if self.predicted < self.targets {
            all.push(format!("predicted:{predicted:.1}%"));
        }
        if aborted >= 0.1 {
            all.push(format!("abort:{aborted:.1}%"));
        }
        all
    }

    /// Returns means, rounded down.
    fn source_texts(&self) -> Vec<String> {
        let (cycles, turns) = (self.cycles / self.sources.max(1), self.turns / self.sources.max(1));
        let mut all = Vec::new();
        if cycles > 0 {
            all.push(format!("cycles:{cycles}"));
        }
        if turns > 0 {
            all.push(format!("iter:{turns}"));
            all.push(format!("avg_cycles:{}", self.turn_cycles / self.turns));
        }
        all
    }
}

/// Adds what each of so many samples has.
fn add_each(into: &mut u64, each: u64, samples: u64) {
    *into = into.saturating_add(each.saturating_mul(samples));
}

/// Prints the text after a function's name: about branches to it, or about branches from it if
/// these are more; nothing if there is nothing to report.
impl fmt::Display for BranchInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = match (self.targets, self.sources) {
            (0, 0) => vec!["calltrace".to_owned()],
            (targets, sources) if targets >= sources => self.target_texts(),
            _ => self.source_texts(),
        };
        if texts.is_empty() { Ok(()) } else { write!(f, " ({})", texts.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jump(from: u64, to: u64, flags: u64) -> Jump {
        Jump {
            branch: BranchEntry { from, to, flags: BranchFlags(flags) },
            turns: 3,
            cycles: 127 * 0xffff,
        }
    }

    fn text(words: &[(u64, u64)]) -> String {
        let mut info = BranchInfo::default();
        words.iter().for_each(|(word, samples)| info.add(*word, *samples));
        info.to_string()
    }

    #[test]
    fn targets_show_predictions_and_sources_show_cycles() {
        let (good, bad) = (jump(0x10, 0x20, 2 | 7 << 4), jump(0x10, 0x20, 1 | 8 | 10 << 4));
        assert_eq!(text(&[(to_info(&good), 5)]), "");
        assert_eq!(
            text(&[(to_info(&good), 2), (to_info(&bad), 1)]),
            " (predicted:66.7% abort:33.3%)"
        );
        assert_eq!(
            text(&[(from_info(&good), 2), (from_info(&bad), 2)]),
            " (cycles:8 iter:3 avg_cycles:2774315)"
        );
        assert_eq!(text(&[(0, 5)]), " (calltrace)");
    }

    #[test]
    fn kinds_are_shown_in_order() {
        let (ahead, back) = (jump(0x10, 0x2000, 2 | 1 << 20), jump(0x2000, 0x10, 2 | 1 << 20));
        let call = jump(0x10, 0x40_0000, 2 | 4 << 20);
        let all = [&ahead, &back, &call].map(|jump| (to_info(jump), 1));
        assert_eq!(text(&all), " (COND_FWD COND_BWD CALL CROSS_4K CROSS_2M)");
        assert_eq!(
            text(&[(to_info(&jump(0x10, 0x20, 2 | 15 << 20 | 1 << 26)), 1)]),
            " (FAULT_DATA)"
        );
    }

    #[test]
    fn every_kind_of_the_flags_is_shown() {
        for kind in (2..15).map(|kind| kind << 20).chain((0..8).map(|new| 15 << 20 | new << 26)) {
            let name = BranchFlags(kind).kind_name();
            assert_eq!(text(&[(to_info(&jump(0x10, 0x20, 2 | kind)), 1)]), format!(" ({name})"));
        }
    }
}
