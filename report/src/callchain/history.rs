//! Branch history: what was run before a sample, as frames in front of its callers.
//!
//! ```text
//!   branch stack, newest first   a→b  c→d  c→d  e→f          callchain   USER u1 u2 u3
//!   loops removed                a→b  c→d (1 turn)  e→f
//!   chain                        b a  d c  f e               u2 …
//!   in the interner              BRANCHES n (to from info)×n  USER u2 …
//! ```
//!
//! From the caller on the same is read backwards: callers, then the oldest branch from its source to its target, and so on to the
//! newest. All of this is as in perf (`--branch-history`), but for that order, where perf has callers last and targets before
//! their sources, and for the levels of callers, which perf loses where the innermost are left out:
//!
//! - a branch whose source was met before is the beginning of another turn of a loop if what follows it repeats what followed there;
//!   turns that repeat are left out and counted where the loop goes on ([`remove_loops`]). Which sources are remembered depends
//!   on their hashes, so the hash is perf's;
//! - from the callee on, innermost callers are left out that a branch came from, 8 bytes before the return address at most;
//! - as many callers are left out as there are branches, on the side that is looked at last;
//! - a stack of more than 127 branches is taken for damaged.
//!
//! What is known of a branch is part of its two frames (`Frame::branch`), so that sums over equal samples are all that trees need:
//! see [`super::BranchInfo`]. It is left out where no tree shows it.

use recrep_format::abi::{BranchEntry, context};

use super::branch_info::{Jump, from_info, to_info};
use super::source::{ChainLimit, cut};

/// Stands before the branches of a chain; no mark of the kernel.
const BRANCHES: u64 = u64::MAX;

/// More branches than any machine records.
const MOST_BRANCHES: usize = 127;

/// Puts branches in front of callchains.
#[derive(Clone, Debug)]
pub struct History {
    most: ChainLimit,
    annotated: bool,
    jumps: Vec<Jump>,
    calls: Vec<u64>,
}

impl History {
    /// With at most so many branches and callers each; `annotated` says whether trees show what is known of branches.
    #[must_use]
    pub fn new(most: ChainLimit, annotated: bool) -> Self {
        Self { most, annotated, jumps: Vec::new(), calls: Vec::new() }
    }

    /// Puts the branches of a stack, newest first, in front of the callers in `words`. `overlaps` says whether these were
    /// recorded together with them, so that some of both are the same.
    pub fn put(&mut self, stack: impl ExactSizeIterator<Item = BranchEntry>, overlaps: bool, words: &mut Vec<u64>) {
        let count = if stack.len() > MOST_BRANCHES { 0 } else { stack.len().min(self.most.frames) };
        let skipped = if self.most.outermost { stack.len().saturating_sub(count) } else { 0 };
        self.jumps.clear();
        self.jumps.extend(stack.skip(skipped).take(count).map(|branch| Jump { branch, turns: 0, cycles: 0 }));
        let inner = if self.most.outermost { 0 } else { met(&self.jumps, words) };
        if self.most.outermost {
            self.jumps.reverse();
            remove_loops(&mut self.jumps);
            self.jumps.reverse();
        } else {
            remove_loops(&mut self.jumps);
        }
        self.calls.clear();
        std::mem::swap(&mut self.calls, words);
        if overlaps {
            self.leave_out(inner);
        }
        if !self.jumps.is_empty() {
            words.extend([BRANCHES, self.jumps.len() as u64]);
            for jump in &self.jumps {
                let infos =
                    if self.annotated { [to_info(jump), from_info(jump)] } else { [to_info(&NONE), from_info(&NONE)] };
                words.extend([jump.branch.to, infos[0], jump.branch.from, infos[1]]);
            }
        }
        words.extend(&self.calls);
    }

    /// Leaves out the callers that the branches stand for; the level of the others stays.
    fn leave_out(&mut self, inner: usize) {
        let count = self.jumps.len();
        let (start, end) = match self.most.outermost {
            true => (count, self.calls.len()),
            false => (inner, self.calls.len().saturating_sub(count)),
        };
        let start = start.min(self.calls.len());
        let end = end.max(start);
        let is_mark = |word: &&u64| **word >= context::MAX;
        let level = self.calls.get(..start).and_then(|left_out| left_out.iter().rfind(is_mark)).copied();
        self.calls.truncate(end);
        self.calls.splice(..start, level);
        // A level without frames.
        while self.calls.last().is_some_and(|word| is_mark(&word)) {
            self.calls.pop();
        }
        cut(&mut self.calls, self.most);
    }
}

/// How many words at the beginning of a chain are in these branches: marks, and return addresses just behind a branch.
fn met(jumps: &[Jump], chain: &[u64]) -> usize {
    let mut met = 0;
    for jump in jumps {
        let from = jump.branch.from;
        let is_met = |word: &u64| *word >= context::MAX || (from < *word && from >= word.saturating_sub(8));
        met += usize::from(chain.get(met).is_some_and(is_met));
    }
    met
}

/// Leaves out what repeats.
fn remove_loops(jumps: &mut Vec<Jump>) {
    let mut sources = [None; SLOTS];
    let mut place = 0;
    while let Some(from) = jumps.get(place).map(|jump| jump.branch.from) {
        let Some(slot) = sources.get_mut(slot(from)) else { break };
        let first = *slot.get_or_insert(place);
        let len = (place - first).min(jumps.len() - place);
        let sources_from = |start: usize| jumps.iter().skip(start).take(len).map(|jump| jump.branch.from);
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

/// How many sources are remembered.
const SLOTS: usize = 127;

/// Where a source is remembered.
fn slot(from: u64) -> usize {
    const GOLDEN_RATIO: u64 = 0x61c8_8646_80b5_83eb;
    usize::try_from(from.wrapping_mul(GOLDEN_RATIO) >> 57).unwrap_or(0) % SLOTS
}

/// What is said of a branch where nothing is.
const NONE: Jump =
    Jump { branch: BranchEntry { from: 0, to: 0, flags: recrep_format::abi::BranchFlags(0) }, turns: 0, cycles: 0 };

/// The branches of a chain (pairs of an address and what is known of it, target before source), and its callers.
pub(super) fn parts(words: &[u64]) -> (&[u64], &[u64]) {
    match words {
        [BRANCHES, count, rest @ ..] => {
            rest.split_at_checked(usize::try_from(*count).map_or(usize::MAX, |count| 4 * count)).unwrap_or((&[], rest))
        }
        _ => (&[], words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recrep_format::abi::BranchFlags;

    fn branches(sources: &[u64]) -> Vec<BranchEntry> {
        let branch = |from: &u64| BranchEntry { from: *from, to: from + 0x1000, flags: BranchFlags(from << 4) };
        sources.iter().map(branch).collect()
    }

    fn looped(sources: &[u64]) -> Vec<(u64, u64, u64)> {
        let jump = |branch| Jump { branch, turns: 0, cycles: 0 };
        let mut jumps = branches(sources).into_iter().map(jump).collect();
        remove_loops(&mut jumps);
        jumps.iter().map(|jump| (jump.branch.from, jump.turns, jump.cycles)).collect()
    }

    #[test]
    fn turns_of_loops_are_counted_once() {
        assert_eq!(looped(&[1, 2, 3]), [(1, 0, 0), (2, 0, 0), (3, 0, 0)]);
        // Two turns of 1, 2 and what came before: the second is told at the branch behind it.
        assert_eq!(looped(&[1, 2, 1, 2, 9]), [(1, 0, 0), (2, 0, 0), (9, 1, 3)]);
        // The same branches on another way are no turn.
        assert_eq!(looped(&[1, 2, 1, 3]), [(1, 0, 0), (2, 0, 0), (1, 0, 0), (3, 0, 0)]);
        // What is cut off at the end of the stack may be one.
        assert_eq!(looped(&[1, 2, 1]), [(1, 0, 0), (2, 0, 0)]);
        // Each place is looked at once, so some turns stay.
        assert_eq!(looped(&[5, 5, 5, 5, 7]), [(5, 0, 0), (5, 1, 5), (5, 0, 0), (7, 0, 0)]);
    }

    fn chain(most: ChainLimit, sources: &[u64], calls: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let mut words = calls.to_vec();
        History::new(most, false).put(branches(sources).into_iter(), true, &mut words);
        let (jumps, calls) = parts(&words);
        (jumps.iter().step_by(2).copied().collect(), calls.to_vec())
    }

    #[test]
    fn branches_take_the_place_of_callers() {
        let calls = [context::USER, 0x104, 0x204, 0x304, 0x404, 0x504];
        let callee = ChainLimit { frames: 127, outermost: false };
        // The mark is met by the first branch, 0x104 by the second; two callers of the far end are left out.
        assert_eq!(
            chain(callee, &[0x900, 0x100], &calls),
            (vec![0x1900, 0x900, 0x1100, 0x100], vec![context::USER, 0x204, 0x304])
        );
        // From the caller on none is met, and the innermost are left out.
        let caller = ChainLimit { outermost: true, ..callee };
        assert_eq!(chain(caller, &[0x900, 0x100], &calls).1, [context::USER, 0x204, 0x304, 0x404, 0x504]);
        // Nothing is left of so few.
        assert_eq!(chain(callee, &[0x900, 0x100], &calls[..3]).1, [0u64; 0]);
        assert_eq!(chain(callee, &[], &calls), (vec![], calls.to_vec()));
    }

    #[test]
    fn the_newest_branches_are_kept_or_the_oldest() {
        let two = |outermost| chain(ChainLimit { frames: 2, outermost }, &[1, 2, 3], &[]).0;
        assert_eq!(two(false), [0x1001, 1, 0x1002, 2]);
        assert_eq!(two(true), [0x1002, 2, 0x1003, 3]);
        let many: Vec<u64> = (0..128).collect();
        assert_eq!(chain(ChainLimit { frames: 127, outermost: false }, &many, &[context::USER, 8]).0, [0u64; 0]);
    }
}
