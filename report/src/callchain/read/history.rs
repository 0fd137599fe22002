//! Branch history: the branches taken before a sample, as frames in front of its callers.
//!
//! ```text
//!   branch stack, newest first   a→b  c→d  c→d  e→f          callchain   USER u1 u2 u3
//!   loops removed                a→b  c→d  e→f (1 turn)
//!   chain                        b a  d c  f e               u2 …
//!   in the words                 BRANCHES n (to info from info)×n  USER u2 …
//! ```
//!
//! In caller order the same chain is read backwards: callers first, then the branches from the
//! oldest to the newest, each from its source to its target. Everything is as in perf
//! (`--branch-history`), except that in caller order perf has callers last and targets before their
//! sources, and that perf loses the callers' CPU mode where the innermost callers are dropped:
//!
//! - a branch whose source occurred before starts another turn of a loop if the branches that
//!   follow it repeat those that followed there; repeated turns are removed and counted at the
//!   branch where the loop continues ([`remove_loops`]). Which sources are remembered depends on
//!   their hashes, so the hash function is perf's;
//! - in callee order, an innermost caller is dropped if a branch came from at most 8 bytes before
//!   its return address;
//! - as many callers are dropped as there are branches, at the end that is displayed last;
//! - a stack of more than 127 branches is treated as damaged.
//!
//! Information about a branch is part of its two frames (`Frame::branch`), so that trees need only
//! sums over equal samples: see [`crate::callchain::BranchInfo`]. It is omitted if no tree shows it.

use recrep_format::abi::{BranchEntry, context};

use super::branch_info::{BRANCH, Jump, SOURCE, from_info, to_info};
use super::source::{ChainLimit, cut};

/// Marker before the branches of a chain; not one of the kernel's context markers.
const BRANCHES: u64 = u64::MAX;

/// Maximum size of a branch stack; larger ones are treated as damaged.
const MAX_BRANCHES: usize = 127;

/// Puts branches in front of callchains.
#[derive(Clone, Debug)]
pub(crate) struct History {
    most: ChainLimit,
    annotated: bool,
    jumps: Vec<Jump>,
    calls: Vec<u64>,
}

impl History {
    /// Creates a history with at most `most` branches and as many callers. `annotated` says whether
    /// trees show branch information.
    pub(crate) fn new(most: ChainLimit, annotated: bool) -> Self {
        Self { most, annotated, jumps: Vec::new(), calls: Vec::new() }
    }

    /// Puts the branches of a stack, newest first, in front of the callers in `words`. `joint` says
    /// whether the callers were recorded together with the branches, so that some calls are in
    /// both.
    pub(crate) fn put(
        &mut self,
        stack: impl ExactSizeIterator<Item = BranchEntry>,
        joint: bool,
        words: &mut Vec<u64>,
    ) {
        let count = if stack.len() > MAX_BRANCHES { 0 } else { stack.len().min(self.most.frames) };
        let skipped = if self.most.outermost { stack.len().saturating_sub(count) } else { 0 };
        self.jumps.clear();
        self.jumps.extend(stack.skip(skipped).take(count).map(|branch| Jump {
            branch,
            turns: 0,
            cycles: 0,
        }));
        let inner = if self.most.outermost { 0 } else { overlap(&self.jumps, words) };
        if self.most.outermost {
            self.jumps.reverse();
            remove_loops(&mut self.jumps);
            self.jumps.reverse();
        } else {
            remove_loops(&mut self.jumps);
        }
        self.calls.clear();
        std::mem::swap(&mut self.calls, words);
        if joint {
            self.drop_callers(inner);
        }
        if !self.jumps.is_empty() {
            words.extend([BRANCHES, self.jumps.len() as u64]);
            for jump in &self.jumps {
                let [to, from] = if self.annotated {
                    [to_info(jump), from_info(jump)]
                } else {
                    [BRANCH, BRANCH | SOURCE]
                };
                words.extend([jump.branch.to, to, jump.branch.from, from]);
            }
        }
        words.extend(&self.calls);
    }

    /// Drops the callers that the branches stand for; the context marker of the remaining ones
    /// stays.
    fn drop_callers(&mut self, inner: usize) {
        let count = self.jumps.len();
        let (start, end) = match self.most.outermost {
            true => (count, self.calls.len()),
            false => (inner, self.calls.len().saturating_sub(count)),
        };
        let start = start.min(self.calls.len());
        let end = end.max(start);
        let dropped = self.calls.get(..start).unwrap_or_default();
        let marker = dropped.iter().copied().rfind(|word| *word >= context::MAX);
        self.calls.truncate(end);
        self.calls.splice(..start, marker);
        // A marker without frames.
        while self.calls.last().is_some_and(|word| *word >= context::MAX) {
            self.calls.pop();
        }
        cut(&mut self.calls, self.most);
    }
}

/// Returns how many words at the beginning of a chain the branches repeat: context markers, and
/// return addresses just behind a branch.
fn overlap(jumps: &[Jump], chain: &[u64]) -> usize {
    let mut count = 0;
    for jump in jumps {
        let from = jump.branch.from;
        let is_repeated =
            |word: &u64| *word >= context::MAX || (from < *word && from >= word.saturating_sub(8));
        count += usize::from(chain.get(count).is_some_and(is_repeated));
    }
    count
}

/// Removes repeated turns of loops.
fn remove_loops(jumps: &mut Vec<Jump>) {
    let mut sources = [None; SLOTS];
    let mut place = 0;
    while let Some(from) = jumps.get(place).map(|jump| jump.branch.from) {
        let Some(slot) = sources.get_mut(slot(from)) else { break };
        let first = *slot.get_or_insert(place);
        let len = (place - first).min(jumps.len() - place);
        let sources_from =
            |start: usize| jumps.iter().skip(start).take(len).map(|jump| jump.branch.from);
        if len > 0 && sources_from(first).eq(sources_from(place)) {
            let turn = jumps.drain(place..place + len);
            let cycles = turn.map(|jump| u64::from(jump.branch.flags.cycles())).sum();
            if let Some(next) = jumps.get_mut(place) {
                (next.turns, next.cycles) = (next.turns + 1, cycles);
            }
        }
        place += 1;
    }
}

/// Number of sources that are remembered.
const SLOTS: usize = 127;

/// Returns the slot in which a source is remembered.
fn slot(from: u64) -> usize {
    const GOLDEN_RATIO: u64 = 0x61c8_8646_80b5_83eb;
    usize::try_from(from.wrapping_mul(GOLDEN_RATIO) >> 57).unwrap_or(0) % SLOTS
}

/// Splits a chain into branches (pairs of an address and its branch information, target before
/// source) and callers.
pub(crate) fn parts(words: &[u64]) -> (&[u64], &[u64]) {
    match words {
        [BRANCHES, count, rest @ ..] => rest
            .split_at_checked(usize::try_from(*count).map_or(usize::MAX, |count| 4 * count))
            .unwrap_or((&[], rest)),
        _ => (&[], words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recrep_format::abi::BranchFlags;

    fn branches(sources: &[u64]) -> Vec<BranchEntry> {
        let branch = |from: &u64| BranchEntry {
            from: *from,
            to: from + 0x1000,
            flags: BranchFlags(from << 4),
        };
        sources.iter().map(branch).collect()
    }

    fn without_loops(sources: &[u64]) -> Vec<(u64, u64, u64)> {
        let jump = |branch| Jump { branch, turns: 0, cycles: 0 };
        let mut jumps = branches(sources).into_iter().map(jump).collect();
        remove_loops(&mut jumps);
        jumps.iter().map(|jump| (jump.branch.from, jump.turns, jump.cycles)).collect()
    }

    #[test]
    fn repeated_turns_are_counted_and_removed() {
        assert_eq!(without_loops(&[1, 2, 3]), [(1, 0, 0), (2, 0, 0), (3, 0, 0)]);
        // Two turns of 1, 2: the second is counted at the branch behind it.
        assert_eq!(without_loops(&[1, 2, 1, 2, 9]), [(1, 0, 0), (2, 0, 0), (9, 1, 3)]);
        // Not a turn: the branch that follows differs.
        assert_eq!(without_loops(&[1, 2, 1, 3]), [(1, 0, 0), (2, 0, 0), (1, 0, 0), (3, 0, 0)]);
        // A turn that the end of the stack cuts off is removed too.
        assert_eq!(without_loops(&[1, 2, 1]), [(1, 0, 0), (2, 0, 0)]);
        // Each position is checked once, so some turns stay.
        assert_eq!(without_loops(&[5, 5, 5, 5, 7]), [(5, 0, 0), (5, 1, 5), (5, 0, 0), (7, 0, 0)]);
    }

    fn chain(most: ChainLimit, sources: &[u64], calls: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let mut words = calls.to_vec();
        History::new(most, false).put(branches(sources).into_iter(), true, &mut words);
        let (jumps, calls) = parts(&words);
        (jumps.iter().step_by(2).copied().collect(), calls.to_vec())
    }

    #[test]
    fn branches_replace_callers() {
        let calls = [context::USER, 0x104, 0x204, 0x304, 0x404, 0x504];
        let callee = ChainLimit { frames: 127, outermost: false };
        // The marker matches the first branch, 0x104 the second; two outermost callers are dropped.
        assert_eq!(
            chain(callee, &[0x900, 0x100], &calls),
            (vec![0x1900, 0x900, 0x1100, 0x100], vec![context::USER, 0x204, 0x304])
        );
        // In caller order nothing is matched, and the innermost callers are dropped.
        let caller = ChainLimit { outermost: true, ..callee };
        assert_eq!(
            chain(caller, &[0x900, 0x100], &calls).1,
            [context::USER, 0x204, 0x304, 0x404, 0x504]
        );
        // No caller is left.
        assert_eq!(chain(callee, &[0x900, 0x100], &calls[..3]).1, [0u64; 0]);
        assert_eq!(chain(callee, &[], &calls), (vec![], calls.to_vec()));
    }

    #[test]
    fn the_newest_or_the_oldest_branches_are_kept() {
        let two = |outermost| chain(ChainLimit { frames: 2, outermost }, &[1, 2, 3], &[]).0;
        assert_eq!(two(false), [0x1001, 1, 0x1002, 2]);
        assert_eq!(two(true), [0x1002, 2, 0x1003, 3]);
        let many: Vec<u64> = (0..128).collect();
        assert_eq!(
            chain(ChainLimit { frames: 127, outermost: false }, &many, &[context::USER, 8]).0,
            [0u64; 0]
        );
    }
}
