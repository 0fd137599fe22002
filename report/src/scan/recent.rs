//! Rows of recent branches.
//!
//! The row of a branch follows from its source, target and flags, if the query needs it the branch
//! before, and from its *context*: the rest of the sample's key, and the epoch of the address
//! space. Programs take the same branches again and again, so the rows of recent ones stay in a
//! direct-mapped cache.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::count::{Count, Histogram, Layout};
use crate::timeline::{SpaceEpoch, SpaceId};

/// Number of slots.
const SLOTS: usize = 1 << 16;

/// Number of contexts that are remembered at a time.
const CONTEXTS: u32 = 1 << 12;

/// Rows of recent branches.
#[derive(Debug, Default)]
pub(super) struct RecentBranches {
    slots: Vec<BranchSlot>,
    /// Packed keys of the slots' rows.
    keys: Vec<u64>,
    width: usize,
    /// Numbers of contexts: packed keys, each followed by the words of an epoch.
    contexts: FxHashMap<Box<[u64]>, u32>,
    /// The context that was asked for last and its number, the highest or an earlier one; 0 stands
    /// for none.
    last: (Vec<u64>, u32),
    /// Number of contexts so far.
    count: u32,
}

/// Data of a branch that decide its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Branch {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Bits of the flags that the query needs.
    pub(super) flags: u64,
    /// Source of the branch before, if the query needs it.
    pub(super) before: u64,
    pub(super) context: u32,
}

/// A branch and the number of times that it was taken since it was put here.
#[derive(Clone, Copy, Debug, Default)]
struct BranchSlot {
    branch: Branch,
    taken: u64,
}

impl RecentBranches {
    /// Creates a cache of rows with this layout; it takes no memory before the first one.
    pub(super) fn new(layout: &Layout) -> Self {
        Self { width: layout.len(), ..Self::default() }
    }

    /// Returns the number of the context with this packed key: greater than 0.
    pub(super) fn context(
        &mut self,
        key: &[u64],
        SpaceEpoch { space, mapped, kernel }: SpaceEpoch,
    ) -> u32 {
        let space = space.map_or(0, |SpaceId(space)| u64::from(space) + 1);
        let epoch = [space, u64::from(mapped) << 32 | u64::from(kernel)];
        let (words, last) = &mut self.last;
        if words.iter().eq(key.iter().chain(&epoch)) {
            return *last;
        }
        words.clear();
        words.extend(key.iter().chain(&epoch));
        *last = self.contexts.get(words.as_slice()).copied().unwrap_or(0);
        if *last == 0 {
            // Where every sample has a context of its own, as with times, the contexts before do
            // not come again.
            if self.count.is_multiple_of(CONTEXTS) {
                self.contexts.clear();
            }
            self.count += 1;
            *last = self.count;
            self.contexts.insert(words.as_slice().into(), self.count);
        }
        *last
    }

    /// Returns the slot for a branch, and whether its row is there.
    #[inline]
    pub(super) fn find(&self, branch: &Branch) -> (usize, bool) {
        let place = usize::try_from(FxBuildHasher.hash_one(branch)).unwrap_or(0) & (SLOTS - 1);
        (place, self.slots.get(place).is_some_and(|slot| slot.branch == *branch))
    }

    /// Counts the branch in a slot.
    #[inline]
    pub(super) fn take(&mut self, place: usize) {
        if let Some(slot) = self.slots.get_mut(place) {
            slot.taken += 1;
        }
    }

    /// Returns the packed key in a slot.
    pub(super) fn key(&self, place: usize) -> &[u64] {
        self.keys.get(place * self.width..(place + 1) * self.width).unwrap_or_default()
    }

    /// Puts the row of a branch into a slot. What was counted there goes into the histogram.
    pub(super) fn replace(
        &mut self,
        place: usize,
        branch: Branch,
        key: &[u64],
        histogram: &mut Histogram,
    ) {
        self.slots.resize(SLOTS, BranchSlot::default());
        self.keys.resize(SLOTS * self.width, 0);
        self.settle_one(place, histogram);
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = BranchSlot { branch, taken: 0 };
        }
        for (have, word) in self.keys.iter_mut().skip(place * self.width).zip(key) {
            *have = *word;
        }
    }

    /// Adds all counts to the histogram.
    pub(super) fn settle(&mut self, histogram: &mut Histogram) {
        for place in 0..self.slots.len() {
            self.settle_one(place, histogram);
        }
    }

    fn settle_one(&mut self, place: usize, histogram: &mut Histogram) {
        let taken = self.slots.get_mut(place).map_or(0, |slot| std::mem::take(&mut slot.taken));
        if taken > 0 {
            histogram.add(self.key(place), Count { samples: taken, period: taken });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::cli::args;

    fn recent() -> RecentBranches {
        let query = args::parse("rep -b -s comm".split(' ').map(Into::into)).unwrap();
        RecentBranches::new(&Layout::of(&query))
    }

    #[test]
    fn contexts_have_numbers_of_their_own() {
        let mut recent = recent();
        let epoch = |mapped| SpaceEpoch { space: None, mapped, kernel: 0 };
        let keys = [(1, 0), (2, 0), (1, 1), (1, 0), (2, 0)];
        let numbers = keys.map(|(key, mapped)| recent.context(&[key, 0], epoch(mapped)));
        assert_eq!((numbers[0], numbers[1]), (numbers[3], numbers[4]));
        let mut all: Vec<u32> =
            (0..2 * u64::from(CONTEXTS)).map(|key| recent.context(&[key, 7], epoch(0))).collect();
        all.extend(&numbers[..3]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2 * CONTEXTS as usize + 3);
        assert!(!all.contains(&0), "0 is the context of empty slots");
    }

    proptest! {
        #[test]
        fn branches_that_share_a_slot_keep_their_counts(taken in prop::collection::vec(0usize..3, 0..50)) {
            static RIVALS: LazyLock<Vec<Branch>> = LazyLock::new(|| {
                let (recent, branch) = (recent(), |from| Branch { from, context: 1, ..Branch::default() });
                (0..).map(branch).filter(|branch| recent.find(branch).0 == 0).take(3).collect()
            });
            let (mut recent, rivals) = (recent(), &*RIVALS);
            let mut histogram = Histogram::new(2, 1);
            for number in &taken {
                let (place, is_recent) = recent.find(&rivals[*number]);
                if !is_recent {
                    recent.replace(place, rivals[*number], &[*number as u64, 7], &mut histogram);
                }
                recent.take(place);
            }
            recent.settle(&mut histogram);
            let mut found = [0; 3];
            for mut partition in histogram.finish().0 {
                partition.settle();
                partition.iter().for_each(|(key, count)| found[usize::try_from(key[0]).unwrap()] += count.samples);
            }
            let expected = [0, 1, 2].map(|number| taken.iter().filter(|one| **one == number).count() as u64);
            prop_assert_eq!(found, expected);
        }
    }
}
