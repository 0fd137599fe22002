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

/// A histogram over keys of `N` words.
#[derive(Clone, Debug)]
pub struct Histogram<const N: usize> {
    /// The rows, as keys.
    pub rows: FxHashMap<[u64; N], Count>,
    /// All samples of each event, in rows or not.
    pub totals: Vec<Count>,
}

impl<const N: usize> Histogram<N> {
    /// Nothing counted, for this many events.
    #[must_use]
    pub fn new(events: usize) -> Self {
        Self { rows: FxHashMap::default(), totals: vec![Count::default(); events] }
    }

    /// Counts samples of an event; where `key` is `None` only in the totals.
    #[inline]
    pub fn count(&mut self, event: usize, key: Option<[u64; N]>, count: Count) {
        if let Some(total) = self.totals.get_mut(event) {
            total.add(count);
        }
        if let Some(key) = key {
            self.rows.entry(key).or_default().add(count);
        }
    }

    /// Adds what another worker has counted. Sums do not depend on their order, so neither does the result.
    pub fn merge(&mut self, other: Self) {
        let (mut into, from) = if self.rows.len() < other.rows.len() {
            (other.rows, std::mem::take(&mut self.rows))
        } else {
            (std::mem::take(&mut self.rows), other.rows)
        };
        for (key, count) in from {
            into.entry(key).or_default().add(count);
        }
        self.rows = into;
        for (total, count) in self.totals.iter_mut().zip(other.totals) {
            total.add(count);
        }
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
            let mut forth = fill(a);
            forth.merge(fill(b));
            let mut back = fill(b);
            back.merge(fill(a));
            prop_assert_eq!(&forth.rows, &whole.rows);
            prop_assert_eq!(&back.rows, &whole.rows);
            prop_assert_eq!(&forth.totals, &whole.totals);
        }
    }
}
