//! Samples with counter values (`PERF_SAMPLE_READ`): their periods are differences of values.
//!
//! Such a sample counts for each counter that it reads. The period is the increment since the counter's last value; an
//! increment of zero is not counted. The values of a counter are in the order of the file, since they come through one
//! ring. A worker knows the last value only within its piece, so the first value of each counter in a piece waits until
//! all pieces are read and sorted:
//!
//! ```text
//!   piece 0: id 7: 100, 130     first 100 → waits; 130 → 30        last 130
//!   piece 1: id 7: 150          first 150 → waits                  last 150
//!   in order:       100 - 0,  150 - 130
//! ```
//!
//! Counters never go back by themselves. After a value lower than the one before (somebody reset the counter, or records
//! are lost), the increment is unknown: that sample is not counted, and the next increment starts from its value.

use rustc_hash::FxHashMap;

use super::histogram::{Histogram, SampleRows};

/// What a count of such values means.
pub(crate) const LOWER_VALUES: &str = "counter values in samples are lower than the value before (reset, or records \
                                       lost?): the increment is unknown and left out";

/// A counter whose values follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CounterKey {
    /// Event ID.
    pub id: u64,
    /// The thread whose counter it is, packed, if each thread that inherited it has its own; else 0.
    pub thread: u64,
}

/// Returns the increment from the value `before`; `None` if it is unknown, because the value is lower.
pub(crate) fn increment(before: u64, value: u64) -> Option<u64> {
    value.checked_sub(before)
}

/// Counter values in one piece.
#[derive(Clone, Debug)]
pub(crate) struct PieceReads {
    pub piece: usize,
    counters: FxHashMap<CounterKey, Readings>,
    /// Number of values that are lower than the one before.
    lower: u64,
}

#[derive(Clone, Debug)]
struct Readings {
    first: u64,
    event: usize,
    rows: SampleRows,
    last: u64,
}

impl PieceReads {
    pub(crate) fn new(piece: usize) -> Self {
        Self { piece, counters: FxHashMap::default(), lower: 0 }
    }

    /// Replaces the waiting keys, of `width` words each: `change` appends the new key of each.
    #[must_use]
    pub(crate) fn map(mut self, width: usize, mut change: impl FnMut(&[u64], &mut Vec<u64>)) -> Self {
        for readings in self.counters.values_mut() {
            let mut changed = Vec::new();
            readings.rows.keys.chunks_exact(width).for_each(|key| change(key, &mut changed));
            readings.rows.keys = changed;
        }
        self
    }

    /// Records a value of a counter. Returns the period, 0 if it is unknown; `None` for the first value in the piece,
    /// whose rows wait.
    pub(crate) fn read(
        &mut self,
        counter: CounterKey,
        value: u64,
        event: usize,
        rows: impl FnOnce() -> SampleRows,
    ) -> Option<u64> {
        match self.counters.get_mut(&counter) {
            Some(readings) => {
                let period = increment(readings.last, value);
                self.lower += u64::from(period.is_none());
                readings.last = value;
                Some(period.unwrap_or(0))
            }
            None => {
                self.counters.insert(counter, Readings { first: value, event, rows: rows(), last: value });
                None
            }
        }
    }
}

/// Counts the first values of all pieces, which waited, and returns the number of values in all pieces that are lower
/// than the one before. The pieces may be in any order.
pub(crate) fn settle_reads(mut pieces: Vec<PieceReads>, histogram: &mut Histogram) -> u64 {
    pieces.sort_by_key(|p| p.piece);
    let mut last = FxHashMap::<CounterKey, u64>::default();
    let mut lower = 0;
    for piece in pieces {
        lower += piece.lower;
        for (counter, readings) in piece.counters {
            let before = last.insert(counter, readings.last).unwrap_or(0);
            match increment(before, readings.first) {
                None => lower += 1,
                Some(0) => {}
                Some(period) => histogram.count_rows(readings.event, &readings.rows, period),
            }
        }
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::{Count, Partition};

    #[test]
    fn periods_do_not_depend_on_where_pieces_are_cut() {
        // Two threads have counters of one ID; that of thread 1 is reset once.
        let values = [(1, 100), (2, 40), (1, 130), (1, 130), (1, 150), (2, 90), (1, 20), (1, 70)];
        for cut in 0..=values.len() {
            let mut histogram = Histogram::new(1, 1);
            let mut reads = Vec::new();
            let (a, b) = values.split_at(cut);
            let row = || SampleRows { count: 1, keys: vec![5], period: None };
            for (piece, part) in [(1, b), (0, a)] {
                let mut piece = PieceReads::new(piece);
                for (thread, value) in part {
                    if let Some(period) = piece.read(CounterKey { id: 7, thread: *thread }, *value, 0, row)
                        && period != 0
                    {
                        histogram.count_rows(0, &row(), period);
                    }
                }
                reads.push(piece);
            }
            assert_eq!(settle_reads(reads, &mut histogram), 1, "cut at {cut}");
            let all = Count { samples: 6, period: 150 + 50 + 90 };
            let (table, totals) = histogram.finish();
            assert_eq!(totals, [all], "cut at {cut}");
            let counts = table.iter().flat_map(Partition::iter).map(|(_, count)| *count);
            assert_eq!(counts.sum::<Count>(), all, "cut at {cut}");
        }
    }
}
