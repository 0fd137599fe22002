//! Samples that carry counter readings (`PERF_SAMPLE_READ`): their periods are differences.
//!
//! Such a sample counts for each counter that it reads, with what that counter gained since its last reading as the
//! period; where it gained nothing, it does not count. A worker knows the last reading only within its
//! piece, so the first reading of each counter in a piece waits until the pieces are put in a row:
//!
//! ```text
//!   piece 0: id 7: 100, 130     first 100 → waits; 130 → 30        last 130
//!   piece 1: id 7: 150          first 150 → waits                  last 150
//!   in order:       100 - 0,  150 - 130
//! ```

use rustc_hash::FxHashMap;

use super::histogram::{Histogram, Row};

/// Readings in one piece.
#[derive(Clone, Debug)]
pub struct PieceReads<const N: usize> {
    /// The piece's place.
    pub piece: usize,
    counters: FxHashMap<u64, Readings<N>>,
}

#[derive(Clone, Debug)]
struct Readings<const N: usize> {
    first: u64,
    event: usize,
    rows: Box<[Row<N>]>,
    last: u64,
}

impl<const N: usize> PieceReads<N> {
    /// No readings yet.
    #[must_use]
    pub fn new(piece: usize) -> Self {
        Self { piece, counters: FxHashMap::default() }
    }

    /// The same with other keys.
    #[must_use]
    pub fn map(mut self, key: impl Fn([u64; N]) -> [u64; N]) -> Self {
        for row in self.counters.values_mut().flat_map(|readings| readings.rows.iter_mut()) {
            row.key = row.key.map(&key);
        }
        self
    }

    /// Takes a reading of counter `id`; the period if it is known, which is when it is not the first.
    pub fn read(&mut self, id: u64, value: u64, event: usize, rows: impl FnOnce() -> Box<[Row<N>]>) -> Option<u64> {
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

/// The readings of all pieces.
#[derive(Clone, Debug, Default)]
pub struct Reads<const N: usize> {
    /// In any order.
    pub pieces: Vec<PieceReads<N>>,
}

impl<const N: usize> Reads<N> {
    /// Counts the readings that waited.
    pub fn settle(mut self, histogram: &mut Histogram<N>) {
        self.pieces.sort_by_key(|p| p.piece);
        let mut last = FxHashMap::<u64, u64>::default();
        for piece in self.pieces {
            for (id, readings) in piece.counters {
                let before = last.insert(id, readings.last).unwrap_or(0);
                let period = readings.first.wrapping_sub(before);
                if period != 0 {
                    histogram.count_rows(readings.event, &readings.rows, period);
                }
            }
        }
        histogram.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Count;

    #[test]
    fn differences_do_not_depend_on_where_the_pieces_are_cut() {
        let values = [100, 130, 130, 150, 200];
        for cut in 0..=values.len() {
            let mut histogram = Histogram::<1>::new(1);
            let mut reads = Reads::default();
            let (a, b) = values.split_at(cut);
            for (piece, part) in [(1, b), (0, a)] {
                let mut piece = PieceReads::new(piece);
                for value in part {
                    let row = Row { key: Some([5]), period: None };
                    if let Some(period) = piece.read(7, *value, 0, || [row].into())
                        && period != 0
                    {
                        histogram.count(0, Some([5]), Count { samples: 1, period });
                    }
                }
                reads.pieces.push(piece);
            }
            reads.settle(&mut histogram);
            assert_eq!(histogram.rows[&[5]], Count { samples: 4, period: 200 }, "cut at {cut}");
        }
    }
}
