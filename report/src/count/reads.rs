//! Samples with counter values (`PERF_SAMPLE_READ`): their periods are differences of values.
//!
//! Such a sample counts for each counter that it reads. The period is the increment since the counter's last value; an
//! increment of zero is not counted. A worker knows the last value only within its piece, so the first value of each
//! counter in a piece waits until all pieces are read and sorted:
//!
//! ```text
//!   piece 0: id 7: 100, 130     first 100 → waits; 130 → 30        last 130
//!   piece 1: id 7: 150          first 150 → waits                  last 150
//!   in order:       100 - 0,  150 - 130
//! ```

use rustc_hash::FxHashMap;

use super::histogram::{Histogram, SampleRows};

/// Counter values in one piece.
#[derive(Clone, Debug)]
pub(crate) struct PieceReads {
    pub piece: usize,
    counters: FxHashMap<u64, Readings>,
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
        Self { piece, counters: FxHashMap::default() }
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

    /// Records a value of counter `id`. Returns the period; `None` for the first value in the piece, whose rows wait.
    pub(crate) fn read(&mut self, id: u64, value: u64, event: usize, rows: impl FnOnce() -> SampleRows) -> Option<u64> {
        match self.counters.get_mut(&id) {
            Some(readings) => {
                let period = value.wrapping_sub(readings.last);
                readings.last = value;
                Some(period)
            }
            None => {
                self.counters.insert(id, Readings { first: value, event, rows: rows(), last: value });
                None
            }
        }
    }
}

/// Counts the first values of all pieces, which waited. The pieces may be in any order.
pub(crate) fn settle_reads(mut pieces: Vec<PieceReads>, histogram: &mut Histogram) {
    pieces.sort_by_key(|p| p.piece);
    let mut last = FxHashMap::<u64, u64>::default();
    for piece in pieces {
        for (id, readings) in piece.counters {
            let before = last.insert(id, readings.last).unwrap_or(0);
            let period = readings.first.wrapping_sub(before);
            if period != 0 {
                histogram.count_rows(readings.event, &readings.rows, period);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::{Count, Partition};

    #[test]
    fn periods_do_not_depend_on_where_pieces_are_cut() {
        let values = [100, 130, 130, 150, 200];
        for cut in 0..=values.len() {
            let mut histogram = Histogram::new(1, 1);
            let mut reads = Vec::new();
            let (a, b) = values.split_at(cut);
            let row = || SampleRows { count: 1, keys: vec![5], period: None };
            for (piece, part) in [(1, b), (0, a)] {
                let mut piece = PieceReads::new(piece);
                for value in part {
                    if let Some(period) = piece.read(7, *value, 0, row)
                        && period != 0
                    {
                        histogram.count_rows(0, &row(), period);
                    }
                }
                reads.push(piece);
            }
            settle_reads(reads, &mut histogram);
            let all = Count { samples: 4, period: 200 };
            let (table, totals) = histogram.finish();
            assert_eq!(totals, [all], "cut at {cut}");
            let counts = table.iter().flat_map(Partition::iter).map(|(_, count)| *count);
            assert_eq!(counts.sum::<Count>(), all, "cut at {cut}");
        }
    }
}
