//! Counted keys, and the totals of each event.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// What a key has gathered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Samples.
    pub samples: u64,
    /// The sum of their periods.
    pub period: u64,
}

impl Count {
    /// Adds another count. Periods come from the file, so their sum must not be able to end the program.
    #[inline]
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.period = self.period.wrapping_add(other.period);
    }
}

/// A histogram over keys of `N` words.
pub type Histogram<const N: usize> = Counted<[u64; N]>;

/// Rows of any kind and what they have gathered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted<R: Hash + Eq> {
    /// The rows.
    pub rows: FxHashMap<R, Count>,
    /// All samples of each event, in rows or not.
    pub totals: Vec<Count>,
}

impl<R: Hash + Eq> Default for Counted<R> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<R: Hash + Eq> Counted<R> {
    /// Nothing counted, for this many events.
    #[must_use]
    pub fn new(events: usize) -> Self {
        Self { rows: FxHashMap::default(), totals: vec![Count::default(); events] }
    }

    /// Counts samples of an event; where `row` is `None` only in the totals.
    #[inline]
    pub fn count(&mut self, event: usize, row: Option<R>, count: Count) {
        if let Some(total) = self.totals.get_mut(event) {
            total.add(count);
        }
        if let Some(row) = row {
            self.rows.entry(row).or_default().add(count);
        }
    }

    /// The same with other rows; those that become equal are counted together.
    #[must_use]
    pub fn map<S: Hash + Eq>(self, row: impl Fn(R) -> S) -> Counted<S> {
        let mut rows = FxHashMap::<S, Count>::default();
        for (old, count) in self.rows {
            rows.entry(row(old)).or_default().add(count);
        }
        Counted { rows, totals: self.totals }
    }

    /// What two have counted together. Sums do not depend on their order, so neither does the result.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let (mut into, from) = if self.rows.len() < other.rows.len() { (other, self) } else { (self, other) };
        for (row, count) in from.rows {
            into.rows.entry(row).or_default().add(count);
        }
        for (total, count) in into.totals.iter_mut().zip(from.totals) {
            total.add(count);
        }
        into
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merged_parts_are_the_whole(
            samples in prop::collection::vec((0u64..5, 0usize..2, any::<u64>()), 0..200),
            cut in 0usize..200,
        ) {
            let fill = |part: &[(u64, usize, u64)]| {
                let mut h = Histogram::<1>::new(2);
                for &(key, event, period) in part {
                    h.count(event, (key > 0).then_some([key]), Count { samples: 1, period });
                }
                h
            };
            let whole = fill(&samples);
            let (a, b) = samples.split_at(cut.min(samples.len()));
            prop_assert_eq!(&fill(a).merge(fill(b)), &whole);
            prop_assert_eq!(&fill(b).merge(fill(a)), &whole);
            let halved = whole.clone().map(|[key]| key / 2).rows.values().map(|c| c.samples).sum::<u64>();
            prop_assert_eq!(halved, whole.rows.values().map(|c| c.samples).sum::<u64>());
        }
    }
}
