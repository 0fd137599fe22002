//! Input of a comparison: runs, and the values of rows in them.

use std::cmp::Ordering;

/// A recording of a side.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideRun {
    /// Start in seconds, from an origin that all runs share; `None` if unknown.
    pub start: Option<f64>,
    /// Length in seconds; `None` if unknown.
    pub seconds: Option<f64>,
    /// Number of samples.
    pub samples: u64,
    /// `true` if it did not end with its workload but at a moment of someone's choice: its length
    /// says nothing about the program.
    pub is_cut: bool,
}

/// What the values of rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Numbers of samples: all periods are equal.
    Samples,
    /// Sums of periods that differ.
    Periods,
}

/// Values of rows by run: base's runs, then new's.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunValues {
    runs: usize,
    /// Row after row.
    values: Vec<f64>,
}

impl RunValues {
    /// Creates rows without values.
    pub(crate) fn new(rows: usize, runs: usize) -> Self {
        Self { runs, values: vec![0.0; rows * runs] }
    }

    /// Adds to the value of a row in a run. A row or run that does not exist takes nothing.
    pub(crate) fn add(&mut self, row: usize, run: usize, value: f64) {
        if run < self.runs
            && let Some(into) = self.values.get_mut(row * self.runs + run)
        {
            *into += value;
        }
    }

    /// Adds the values of a row to those of another, and leaves it none.
    pub(crate) fn join(&mut self, row: usize, into: usize) {
        for run in 0..self.runs {
            let value = self.values.get_mut(row * self.runs + run).map(std::mem::take);
            self.add(into, run, value.unwrap_or_default());
        }
    }

    /// Sets the values of a row.
    pub(crate) fn set(&mut self, row: usize, values: &[f64]) {
        for (run, value) in values.iter().enumerate().take(self.runs) {
            if let Some(into) = self.values.get_mut(row * self.runs + run) {
                *into = *value;
            }
        }
    }

    /// Iterates over rows: the values of all runs.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.runs.max(1))
    }

    /// Returns the sum of each run.
    pub(crate) fn totals(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.runs];
        for row in self.rows() {
            for (total, value) in totals.iter_mut().zip(row) {
                *total += value;
            }
        }
        totals
    }

    /// Returns the values in units of `unit`.
    pub(super) fn scaled(&self, unit: f64) -> Self {
        Self { runs: self.runs, values: self.values.iter().map(|value| value / unit).collect() }
    }
}

/// What is known of a row but its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFacts {
    /// Effective number of samples, (Σp)²/Σp² of its periods p; infinite if periods are equal.
    pub effective: f64,
    /// `true` if its names differ between the sides.
    pub is_renamed: bool,
    /// `true` if it is code that may have another name on the other side.
    pub is_rebuilt: bool,
    /// Number of what its row has besides a function and a module: only rows of one class can be one
    /// piece of code.
    pub class: usize,
}

impl Default for RowFacts {
    fn default() -> Self {
        Self { effective: f64::INFINITY, is_renamed: false, is_rebuilt: false, class: 0 }
    }
}

/// Two sides of runs. Rows are in the order of their keys, so that the order in which they were
/// found does not matter.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    pub base: Vec<SideRun>,
    pub new: Vec<SideRun>,
    pub unit: Unit,
    /// Values without callees: each sample counts for one row.
    pub own: RunValues,
    /// Values with callees, if these are compared; factors and totals still come from `own`.
    pub children: Option<RunValues>,
    /// By row; those that lack are of the usual kind.
    pub facts: Vec<RowFacts>,
    /// `true` if host, CPU model or kernel differ between the sides.
    pub machines_differ: bool,
}

impl Sides {
    /// Returns the value of one sample: the mean period of both sides.
    pub(super) fn sample_value(&self) -> f64 {
        let samples: u64 = self.base.iter().chain(&self.new).map(|run| run.samples).sum();
        let periods: f64 = self.own.totals().iter().sum();
        match self.unit {
            Unit::Periods if samples > 0 && periods > 0.0 => periods / to_float(samples),
            Unit::Periods | Unit::Samples => 1.0,
        }
    }

    /// Returns what is known of a row.
    pub(super) fn facts(&self, row: usize) -> RowFacts {
        self.facts.get(row).copied().unwrap_or_default()
    }

    /// Returns for each row of `own` whether its share, the mean of both sides, is below `share`: of
    /// whole callchains, these are better joined to one row.
    pub(crate) fn small_rows(&self, share: f64) -> Vec<bool> {
        let shape = RunShape { base: self.base.len(), new: self.new.len() };
        let (all_base, all_new) = shape.sums(&self.own.totals());
        let is_small = |values: &[f64]| {
            let (base, new) = shape.sums(values);
            f64::midpoint(part_of(base, all_base), part_of(new, all_new)) < share
        };
        self.own.rows().map(is_small).collect()
    }

    /// Finds out whether the sides were recorded in turn: base starts first in a quarter to three
    /// quarters of all pairs of runs.
    pub(super) fn turns(&self) -> Turns {
        let starts =
            |runs: &[SideRun]| runs.iter().map(|run| run.start).collect::<Option<Vec<f64>>>();
        let (Some(base), Some(new)) = (starts(&self.base), starts(&self.new)) else {
            return Turns { in_turn: false, apart_seconds: None };
        };
        // Equal starts count for both orders.
        let pairs = base.iter().flat_map(|a| {
            new.iter().map(|b| match a.total_cmp(b) {
                Ordering::Less => 1.0,
                Ordering::Equal => 0.5,
                Ordering::Greater => 0.0,
            })
        });
        let part = mean(&pairs.collect::<Vec<f64>>());
        Turns {
            in_turn: (0.25..=0.75).contains(&part) && !self.machines_differ,
            apart_seconds: Some((mean(&new) - mean(&base)).abs()),
        }
    }
}

/// The order in which the sides were recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Turns {
    /// `true` if runs of the sides took turns on one machine, so that both saw the same drift.
    pub in_turn: bool,
    /// Seconds between the sides' mean starts; `None` if a start is unknown.
    pub apart_seconds: Option<f64>,
}

/// Numbers of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunShape {
    pub base: usize,
    pub new: usize,
}

impl RunShape {
    /// Returns the shape of sides that both have runs.
    pub(super) fn of(sides: &Sides) -> Option<Self> {
        let shape = Self { base: sides.base.len(), new: sides.new.len() };
        (shape.base > 0 && shape.new > 0).then_some(shape)
    }

    pub(super) fn runs(self) -> usize {
        self.base + self.new
    }

    /// Returns the number of runs of the smaller side.
    pub(super) fn least(self) -> usize {
        self.base.min(self.new)
    }

    /// Degrees of freedom of what differs from run to run on both sides.
    pub(super) fn degrees(self) -> f64 {
        to_float(self.runs().saturating_sub(2))
    }

    /// Returns 1/n1 + 1/n2: a difference of means has this many times a run's variance.
    pub(super) fn per_run(self) -> f64 {
        1.0 / to_float(self.base) + 1.0 / to_float(self.new)
    }

    /// Splits the values of all runs into those of base and of new.
    pub(super) fn split(self, values: &[f64]) -> (&[f64], &[f64]) {
        values.split_at_checked(self.base).unwrap_or((values, &[]))
    }

    /// Returns the sums of each side.
    pub(super) fn sums(self, values: &[f64]) -> (f64, f64) {
        let (base, new) = self.split(values);
        (base.iter().sum(), new.iter().sum())
    }

    /// Returns the means of each side.
    pub(super) fn means(self, values: &[f64]) -> (f64, f64) {
        let (base, new) = self.split(values);
        (mean(base), mean(new))
    }

    /// Returns the variance of runs about the mean of their side, of both sides pooled.
    pub(super) fn pooled_variance(self, values: &[f64]) -> f64 {
        let (base, new) = self.split(values);
        (deviations(base) + deviations(new)) / self.degrees().max(1.0)
    }
}

/// Returns a number of things as a real one; exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "nothing here is counted beyond 2^53")]
pub(super) fn to_float(number: impl TryInto<u64>) -> f64 {
    number.try_into().unwrap_or(u64::MAX) as f64
}

/// Returns a part of all; 0 of nothing.
pub(super) fn part_of(part: f64, all: f64) -> f64 {
    if all > 0.0 { part / all } else { 0.0 }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / to_float(values.len().max(1))
}

/// Returns the sum of squares of deviations from the mean.
pub(super) fn deviations(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let is_even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if is_even => Some(f64::midpoint(lower, upper)),
        _ => Some(upper),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns sides with these rows, recorded in turn from second 0 on, two seconds a run.
    pub(in crate::compare) fn in_turn(rows: &[Vec<f64>], base: usize) -> Sides {
        let runs = rows.first().map_or(0, Vec::len);
        let mut own = RunValues::new(rows.len(), runs);
        for (row, values) in rows.iter().enumerate() {
            for (run, value) in values.iter().enumerate() {
                own.add(row, run, *value);
            }
        }
        let side = |runs: usize, first: f64| {
            let start = |run| Some(first + 4.0 * to_float(run));
            let run = |run| SideRun { start: start(run), seconds: Some(2.0), ..SideRun::default() };
            (0..runs).map(run).collect()
        };
        Sides {
            base: side(base, 0.0),
            new: side(runs - base, 2.0),
            unit: Unit::Samples,
            own,
            children: None,
            facts: Vec::new(),
            machines_differ: false,
        }
    }

    #[test]
    fn runs_in_turn_are_told_from_runs_apart() {
        let turns = |base: &[Option<f64>], new: &[Option<f64>], machines_differ| {
            let runs = |starts: &[Option<f64>]| {
                starts.iter().map(|start| SideRun { start: *start, ..SideRun::default() }).collect()
            };
            let (base, new) = (runs(base), runs(new));
            Sides { base, new, machines_differ, ..in_turn(&[], 0) }.turns()
        };
        let (base, new) = ([Some(0.0), Some(6.0)], [Some(3.0), Some(9.0)]);
        assert!(turns(&base, &new, false).in_turn);
        assert!(!turns(&base, &new, true).in_turn, "drift of two machines is not one");
        let apart = turns(&base, &[Some(600.0), Some(606.0)], false);
        assert_eq!(apart, Turns { in_turn: false, apart_seconds: Some(600.0) });
        let apart = turns(&[Some(600.0), Some(606.0)], &base, false);
        assert_eq!(apart, Turns { in_turn: false, apart_seconds: Some(600.0) });
        let unknown = turns(&base, &[Some(3.0), None], false);
        assert_eq!(unknown, Turns { in_turn: false, apart_seconds: None });
        // One run a side cannot take turns, but runs of one moment do.
        assert!(!turns(&[Some(0.0)], &[Some(3.0)], false).in_turn);
        assert!(turns(&[Some(0.0)], &[Some(0.0)], false).in_turn);
    }

    #[test]
    fn periods_count_in_mean_periods() {
        let mut sides = in_turn(&[vec![300.0, 500.0], vec![100.0, 100.0]], 1);
        assert_eq!(sides.sample_value(), 1.0);
        sides.unit = Unit::Periods;
        assert_eq!(sides.sample_value(), 1.0, "nothing to divide by");
        sides.base[0].samples = 4;
        sides.new[0].samples = 6;
        assert_eq!(sides.sample_value(), 100.0);
    }

    #[test]
    fn small_rows_are_those_of_little_time_on_both_sides() {
        let rows = [vec![98.0, 97.0], vec![2.0, 0.0], vec![0.0, 3.0], vec![0.0, 0.0]];
        assert_eq!(in_turn(&rows, 1).small_rows(0.015), [false, true, false, true]);
        assert_eq!(in_turn(&[vec![0.0, 0.0]], 1).small_rows(0.1), [true]);
    }

    #[test]
    fn a_value_of_no_row_is_not_added_to_another() {
        let mut counts = RunValues::new(2, 2);
        counts.add(0, 2, 1.0);
        counts.add(2, 0, 1.0);
        counts.add(1, 1, 3.0);
        assert_eq!(counts.rows().collect::<Vec<_>>(), [[0.0, 0.0], [0.0, 3.0]]);
        assert_eq!(counts.totals(), [0.0, 3.0]);
    }

    #[test]
    fn the_median_of_an_even_number_is_between() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn variances_of_both_sides_are_pooled() {
        let shape = RunShape { base: 2, new: 3 };
        // Squares about 2: 1 + 1; about 5: 9 + 9; three degrees.
        assert_eq!(shape.pooled_variance(&[1.0, 3.0, 2.0, 5.0, 8.0]), 20.0 / 3.0);
    }
}
