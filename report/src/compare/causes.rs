//! Causes of marked rows: callees that changed, and neighbours that took their time.

use super::comparison::Comparison;
use super::estimate::Estimate;
use super::result::RowChange;

/// A caller and its callee, of which one may have lost to the other what it counted: code that is
/// inlined by one build and not by the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// Number of the row that lost.
    pub from: usize,
    /// Number of the row that gained.
    pub to: usize,
    /// The estimate of both as one row; `None` if they have no samples.
    pub together: Option<Estimate>,
}

impl Comparison {
    /// Estimates values that are no row of the input, such as the sum of two rows, in its unit.
    pub(crate) fn estimate(&self, values: &[f64]) -> Option<Estimate> {
        let scaled: Vec<f64> = values.iter().map(|value| value / self.sample_value).collect();
        self.model.estimate(&scaled)
    }

    /// Returns whether a marked caller is marked because of its callees: given its values in all
    /// runs without the samples of marked callees, whether the rest would not be marked.
    pub(crate) fn is_explained(&self, rest: &[f64], min_impact: f64) -> bool {
        let Some(estimate) = self.estimate(rest) else { return true };
        // The rest takes the caller's place among all rows.
        let marked = self.rows.iter().filter(|row| row.marked).map(|row| row.change.p);
        let limit = marked.fold(0.0, f64::max);
        let rest = RowChange::of(0, &estimate, self.all, None);
        rest.change.p > limit || rest.impact.abs() < min_impact
    }

    /// Finds pairs of neighbours, caller and callee in any order, between which time moved: both
    /// are marked, and what one lost is within the interval of what the other gained. `values` are
    /// those of a row in all runs.
    pub(crate) fn moved<'v>(
        &self,
        neighbours: &[(usize, usize)],
        values: impl Fn(usize) -> &'v [f64],
    ) -> Vec<Moved> {
        let marked = |number: usize| {
            let place = self.rows.binary_search_by_key(&number, |row| row.row).ok()?;
            self.rows.get(place).filter(|row| row.marked)
        };
        let pairs = neighbours.iter().filter_map(|(a, b)| {
            let (a, b) = (marked(*a)?, marked(*b)?);
            let (from, to) = if a.impact < b.impact { (a, b) } else { (b, a) };
            let (low, high) = self.gain(to)?;
            let is_moved = from.impact < 0.0 && (low..=high).contains(&-from.impact);
            is_moved.then(|| {
                let sum = values(from.row).iter().zip(values(to.row)).map(|(a, b)| a + b);
                let together = self.estimate(&sum.collect::<Vec<f64>>());
                Moved { from: from.row, to: to.row, together }
            })
        });
        pairs.collect()
    }

    /// Returns the interval of what a row gained, as a part of all time; `None` if it has no end.
    fn gain(&self, row: &RowChange) -> Option<(f64, f64)> {
        if row.base > 0.0 {
            return Some((row.change.low? * row.base_share, row.change.high? * row.base_share));
        }
        // All of a new row is a gain, and as certain as its samples are many.
        let reach = self.model.reach_of_new(row.new, row.dispersion);
        Some((row.impact * (-reach).exp(), row.impact * reach.exp()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sides::tests::in_turn;
    use super::super::{Options, compare};

    fn rows(sizes: &[(f64, f64)]) -> Vec<Vec<f64>> {
        let row = |(base, new): &(f64, f64)| {
            let size = |run: usize| if run < 5 { *base } else { *new };
            let sign = |run: usize| if run.is_multiple_of(2) { 1.01 } else { 0.99 };
            (0..10).map(|run| size(run) * sign(run)).collect()
        };
        sizes.iter().map(row).collect()
    }

    const SIZES: [(f64, f64); 8] = [
        (1000.0, 1300.0),
        (300.0, 0.0),
        (500.0, 500.0),
        (400.0, 400.0),
        (300.0, 300.0),
        (250.0, 250.0),
        (200.0, 400.0),
        (0.0, 300.0),
    ];

    #[test]
    fn time_that_moved_between_neighbours_is_found() {
        let rows = rows(&SIZES);
        let found = compare(&in_turn(&rows, 5), &Options::default()).unwrap();
        let values = |row: usize| rows[row].as_slice();
        let moved = found.moved(&[(0, 1), (1, 2), (1, 6), (7, 1)], values);
        let pairs: Vec<_> = moved.iter().map(|moved| (moved.from, moved.to)).collect();
        // Row 1 lost as much as row 0 or row 7 gained; row 2 did not change, row 6 gained less.
        assert_eq!(pairs, [(1, 0), (1, 7)]);
        let together = moved[0].together.unwrap();
        assert!(together.change.relative.unwrap().abs() < 0.05, "{together:?}");
    }

    #[test]
    fn a_caller_is_explained_by_callees_that_changed() {
        let rows = rows(&SIZES);
        let found = compare(&in_turn(&rows, 5), &Options::default()).unwrap();
        assert!(found.rows[0].marked);
        // Of row 0 nothing but what did not change is left, or half of its gain.
        assert!(found.is_explained(&rows[2], 0.005));
        assert!(found.is_explained(&[0.0; 10], 0.005));
        assert!(!found.is_explained(&rows[6], 0.005));
        assert!(found.is_explained(&rows[6], 0.5), "it matters little");
    }
}
