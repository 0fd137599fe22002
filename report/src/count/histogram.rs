//! Histogram of one worker: counts by key, and totals by event.

use recrep_format::bytes::read_early;

use super::partition::{
    PARTITIONS, PLACES, Partition, Sum, are_equal, for_width, hash, of_place, place,
};

/// Count of a key: samples and period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of samples.
    pub samples: u64,
    /// Sum of their periods.
    pub period: u64,
}

impl Count {
    /// Adds another count. Periods come from the file, so their sum may overflow and must not
    /// panic.
    #[inline]
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.period = self.period.wrapping_add(other.period);
    }
}

impl Sum for Count {
    #[inline]
    fn add(&mut self, other: &Self) {
        Self::add(self, *other);
    }
}

/// The value of keys that are only numbered.
impl Sum for () {
    fn add(&mut self, _: &Self) {}
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |mut sum, count| {
            sum.add(count);
            sum
        })
    }
}

/// Rows that a sample adds to a histogram: one, or one per branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampleRows {
    /// Number of rows.
    pub count: u64,
    /// Keys of the rows, concatenated; empty if the rows count in the totals only.
    pub keys: Vec<u64>,
    /// Period of each row, if it is not the sample's.
    pub period: Option<u64>,
}

/// Number of keys that are looked up at a time.
const BATCH: usize = 32;

/// Histogram over keys of a fixed number of words.
///
/// The most recent keys are counted in a direct-mapped cache in front of the hash tables. Most
/// programs have few hot addresses, so most samples never reach a table. Slots are looked up for 32
/// keys at a time: the processor then waits for several of them at once.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    width: usize,
    /// Keys that are looked up next, as they are in slots, and their places: the first `waiting`
    /// are in use.
    next: Vec<u64>,
    places: [usize; BATCH],
    waiting: usize,
    /// Cache slots, indexed by [`place`]: samples and period since the key was put there, then the
    /// key. Samples are 0 if the slot is empty. There are none before the first key.
    recent: Vec<u64>,
    /// Indexes of the used slots.
    used: Vec<usize>,
    partitions: Vec<Partition<Count>>,
    totals: Vec<Count>,
}

impl Histogram {
    /// Creates an empty histogram for keys of `width` words and for `events` events.
    pub(crate) fn new(width: usize, events: usize) -> Self {
        Self {
            width,
            next: vec![0; BATCH * (2 + width)],
            places: [0; BATCH],
            waiting: 0,
            recent: Vec::new(),
            used: Vec::new(),
            partitions: Partition::table(width),
            totals: vec![Count::default(); events],
        }
    }

    /// Adds to the totals of an event.
    #[inline]
    pub(crate) fn count_total(&mut self, event: usize, count: Count) {
        if let Some(total) = self.totals.get_mut(event) {
            total.add(count);
        }
    }

    /// Counts the rows of a sample; `period` applies unless the rows have their own.
    pub(crate) fn count_rows(&mut self, event: usize, rows: &SampleRows, period: u64) {
        let period = rows.period.unwrap_or(period);
        self.count_total(
            event,
            Count { samples: rows.count, period: period.wrapping_mul(rows.count) },
        );
        for key in rows.keys.chunks_exact(self.width.max(1)) {
            self.add(key, Count { samples: 1, period });
        }
    }

    /// Adds to the count of a key.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u64], count: Count) {
        // The length of an array is known where this is inlined; that of `width` is the same.
        let size = 2 + key.len();
        let next = self.next.get_mut(self.waiting * size..).and_then(|next| next.get_mut(..size));
        let Some(([samples, period], into)) = next.and_then(<[u64]>::split_first_chunk_mut) else {
            return;
        };
        (*samples, *period) = (count.samples, count.period);
        copy(key, into);
        if let Some(at) = self.places.get_mut(self.waiting) {
            *at = place(hash(key));
        }
        self.waiting += 1;
        if self.waiting == BATCH {
            self.look_up();
        }
    }

    /// Returns the number of words of a count and its key.
    #[inline]
    fn size<const WIDTH: usize>(&self) -> usize {
        2 + if WIDTH > 0 { WIDTH } else { self.width }
    }

    /// Adds the counts of the next keys.
    fn look_up(&mut self) {
        for_width!(self.width, self.look_up_all());
    }

    fn look_up_all<const WIDTH: usize>(&mut self) {
        let size = self.size::<WIDTH>();
        let waiting = std::mem::take(&mut self.waiting);
        if self.recent.is_empty() && waiting > 0 {
            // Zeroed by the system: unused pages cost nothing.
            self.recent = vec![0; PLACES * size];
        }
        let Self { next, places, recent, used, partitions, .. } = self;
        let places = places.get(..waiting).unwrap_or_default();
        let ends = places.iter().flat_map(|place| [place * size, (place + 1) * size - 1]);
        read_early(ends.filter_map(|at| recent.get(at).copied()));
        for (place, entry) in places.iter().zip(next.chunks_exact(size)) {
            let slot = recent.get_mut(place * size..).and_then(|slots| slots.get_mut(..size));
            let Some(([samples, period], key)) = slot.and_then(<[u64]>::split_first_chunk_mut)
            else {
                continue;
            };
            let Some((&[new_samples, new_period], new)) = entry.split_first_chunk() else {
                continue;
            };
            if *samples > 0 && are_equal(key, new) {
                *samples += new_samples;
                *period = period.wrapping_add(new_period);
                continue;
            }
            if *samples == 0 {
                used.push(*place);
            } else if let Some(partition) = partitions.get_mut(of_place(*place)) {
                partition.push(key, Count { samples: *samples, period: *period });
            }
            (*samples, *period) = (new_samples, new_period);
            copy(new, key);
        }
    }

    /// Returns the table of counts by key, and the totals by event.
    pub(crate) fn finish(mut self) -> (Vec<Partition<Count>>, Vec<Count>) {
        self.settle();
        debug_assert_eq!(self.partitions.len(), PARTITIONS);
        (self.partitions, self.totals)
    }

    /// Moves the counts of recent keys to the table.
    pub(crate) fn settle(&mut self) {
        self.look_up();
        let (recent, size) = (std::mem::take(&mut self.recent), 2 + self.width);
        for place in self.used.drain(..) {
            let slot =
                recent.get(place * size..(place + 1) * size).and_then(<[u64]>::split_first_chunk);
            if let Some((([samples, period], key), partition)) =
                slot.zip(self.partitions.get_mut(of_place(place)))
            {
                partition.push(key, Count { samples: *samples, period: *period });
            }
        }
    }
}

/// Copies a key. Keys are short, so a call of memcpy would take longer.
#[inline]
fn copy(from: &[u64], to: &mut [u64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// Adds another worker's totals to `all`.
pub(crate) fn add_totals(all: &mut Vec<Count>, totals: &[Count]) {
    all.resize(all.len().max(totals.len()), Count::default());
    all.iter_mut().zip(totals).for_each(|(all, one)| all.add(*one));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::partition::merged;
    use super::*;

    proptest! {
        #[test]
        fn merged_histograms_equal_one_histogram(
            samples in prop::collection::vec((0u64..9000, 0usize..2, any::<u64>()), 0..400),
            cut in 0usize..400,
        ) {
            let (mut expected, mut totals) = (BTreeMap::<u64, Count>::new(), vec![Count::default(); 2]);
            for &(key, event, period) in &samples {
                let count = Count { samples: 1, period };
                totals[event].add(count);
                if key > 0 {
                    expected.entry(key).or_default().add(count);
                }
            }
            let (a, b) = samples.split_at(cut.min(samples.len()));
            let (mut tables, mut all) = (Vec::new(), Vec::new());
            for part in [a, b] {
                let mut histogram = Histogram::new(1, 2);
                for &(key, event, period) in part {
                    let keys = if key > 0 { vec![key] } else { Vec::new() };
                    histogram.count_rows(event, &SampleRows { count: 1, keys, period: None }, period);
                }
                let (table, own) = histogram.finish();
                tables.push(table);
                add_totals(&mut all, &own);
            }
            let merged = merged(tables);
            let found: Vec<(u64, Count)> =
                merged.iter().flat_map(|one| one.iter().map(|(key, count)| (key[0], *count))).collect();
            prop_assert_eq!(found.len(), expected.len());
            prop_assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected);
            prop_assert_eq!(all, totals);
        }
    }
}
