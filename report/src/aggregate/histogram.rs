//! Counted keys, and the totals of each event.

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

/// What a sample adds to a histogram: one of these, or one for each of its branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<const N: usize> {
    /// Its key; `None` where it counts in the totals only.
    pub key: Option<[u64; N]>,
    /// Its period, where that is not the sample's own.
    pub period: Option<u64>,
}

/// A histogram over keys of `N` words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram<const N: usize> {
    /// The rows.
    pub rows: FxHashMap<[u64; N], Count>,
    /// All samples of each event, in rows or not.
    pub totals: Vec<Count>,
    /// Counts that wait for [`Histogram::settle`].
    batch: Vec<([u64; N], Count)>,
}

/// How many counts wait before they are looked up.
const BATCH: usize = 128;

impl<const N: usize> Histogram<N> {
    /// Nothing counted, for this many events.
    #[must_use]
    pub fn new(events: usize) -> Self {
        Self { rows: FxHashMap::default(), totals: vec![Count::default(); events], batch: Vec::with_capacity(BATCH) }
    }

    /// Counts samples of an event; where `row` is `None` only in the totals. The row may wait until
    /// [`Histogram::settle`].
    #[inline]
    pub fn count(&mut self, event: usize, row: Option<[u64; N]>, count: Count) {
        if let Some(total) = self.totals.get_mut(event) {
            total.add(count);
        }
        if let Some(row) = row {
            self.add(row, count);
        }
    }

    /// Counts the rows of a sample with this period.
    #[inline]
    pub fn count_rows(&mut self, event: usize, rows: &[Row<N>], period: u64) {
        for row in rows {
            self.count(event, row.key, Count { samples: 1, period: row.period.unwrap_or(period) });
        }
    }

    #[inline]
    fn add(&mut self, row: [u64; N], count: Count) {
        self.batch.push((row, count));
        if self.batch.len() >= BATCH {
            self.settle();
        }
    }

    /// Counts what waits. The rows are more than a core's caches hold; lookups that follow each other closely let it
    /// wait for several of them at a time, which is twice as fast as one lookup after each sample is decoded.
    #[inline(never)]
    pub fn settle(&mut self) {
        for (row, count) in self.batch.drain(..) {
            self.rows.entry(row).or_default().add(count);
        }
    }

    /// The same with other rows; those that become equal are counted together.
    #[must_use]
    pub fn map(mut self, row: impl Fn([u64; N]) -> [u64; N]) -> Self {
        self.settle();
        let mut mapped = Self { totals: self.totals, ..Self::new(0) };
        for (old, count) in self.rows {
            mapped.add(row(old), count);
        }
        mapped.settle();
        mapped
    }

    /// What two have counted together. Sums do not depend on their order, so neither does the result.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let (mut into, mut from) = if self.rows.len() < other.rows.len() { (other, self) } else { (self, other) };
        from.settle();
        for (row, count) in from.rows {
            into.add(row, count);
        }
        into.settle();
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
                h.settle();
                h
            };
            let whole = fill(&samples);
            let (a, b) = samples.split_at(cut.min(samples.len()));
            prop_assert_eq!(&fill(a).merge(fill(b)), &whole);
            prop_assert_eq!(&fill(b).merge(fill(a)), &whole);
            let halved = whole.clone().map(|[key]| [key / 2]).rows.values().map(|c| c.samples).sum::<u64>();
            prop_assert_eq!(halved, whole.rows.values().map(|c| c.samples).sum::<u64>());
        }
    }
}
