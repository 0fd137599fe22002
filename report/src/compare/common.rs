//! What all functions share: a factor for each run, from the rows that agree on it.
//!
//! A run on a slower machine takes more of everything. The factor is a weighted mean of all rows'
//! logarithms, without those that changed: a first guess is a median, then rows that stand out
//! between the sides are left out, three times.

use super::distribution::Student;
use super::estimate::{Factors, LEAST_ROWS, Typical};
use super::result::Effect;
use super::sides::{RunShape, RunValues, to_float};

/// Rows with fewer samples than this, or than two a run, say nothing of a run's factor.
const LEAST_SAMPLES: f64 = 20.0;
const LEAST_SAMPLES_A_RUN: f64 = 2.0;

/// Fewer runs than this have no factors.
const LEAST_RUNS: usize = 4;

/// Part of all weight that one row may have: a factor from few functions is one function's.
const LARGEST_WEIGHT: f64 = 0.2;

/// Rows whose sides differ from the common change by more standard errors are left out.
const OUTLIER: f64 = 2.5;

/// A row within as many standard errors is not changed.
const UNCHANGED: f64 = 2.0;

/// A row takes part in the vote if the two explanations differ by more than this in t².
const VOTE: f64 = 4.0;

/// Factors of runs, as logarithms.
#[derive(Clone, Debug)]
pub(super) struct CommonFactor {
    /// Factor of each run, relative to the mean of its side, without what chance explains.
    pub own: Vec<f64>,
    /// D: new's mean less base's.
    pub between: f64,
    /// Variance of a run's factor by sampling alone.
    pub sampling: f64,
    /// Variance of factors about the mean of their side.
    pub variance: f64,
    /// `between` as a change.
    pub change: Effect,
    /// Rows that the same change explains, less rows that it does not (votes on whether the
    /// machine or single functions changed).
    pub votes: Votes,
}

/// Numbers of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Votes {
    /// Rows that did not change, and would have if the common change were taken out.
    pub still: u64,
    /// Rows that changed, and would not have if it were taken out.
    pub moved: u64,
}

/// A row that tells of factors.
struct Telling<'c> {
    values: &'c [f64],
    /// Mean number of samples a run.
    mean: f64,
    /// ln((Y+½)/(mean+½)) of each run.
    logs: Vec<f64>,
}

impl<'c> Telling<'c> {
    fn of(values: &'c [f64], shape: RunShape) -> Option<Self> {
        let (sum, runs) = (values.iter().sum::<f64>(), to_float(shape.runs()));
        if sum < LEAST_SAMPLES.max(LEAST_SAMPLES_A_RUN * runs) {
            return None;
        }
        let mean = sum / runs;
        let logs = values.iter().map(|value| ((value + 0.5) / (mean + 0.5)).ln()).collect();
        Some(Self { values, mean, logs })
    }

    /// Returns how far the sides differ from the common change, in standard errors.
    fn distance(&self, factors: &[f64], dispersion: f64, shape: RunShape) -> f64 {
        let rest: Vec<f64> = self.logs.iter().zip(factors).map(|(log, c)| log - c).collect();
        let (base, new) = shape.means(&rest);
        (new - base) / (dispersion / self.mean * shape.per_run()).sqrt()
    }
}

impl CommonFactor {
    /// Finds the factors; `None` with too few runs or rows to tell.
    pub(super) fn of(own: &RunValues, shape: RunShape) -> Option<Self> {
        let rows: Vec<_> = own.rows().filter_map(|values| Telling::of(values, shape)).collect();
        if rows.len() < LEAST_ROWS || shape.runs() < LEAST_RUNS {
            return None;
        }
        let mut logs = first_guess(&rows, shape);
        let mut sampling = 0.0;
        for _ in 0..3 {
            let dispersions = dispersions(&rows, &logs, shape);
            (logs, sampling) = improve(&rows, &dispersions, &logs, shape);
        }
        Some(Self::of_logs(&rows, &logs, sampling, shape))
    }

    fn of_logs(rows: &[Telling<'_>], logs: &[f64], sampling: f64, shape: RunShape) -> Self {
        let (base, new) = shape.means(logs);
        let between = new - base;
        let variance = shape.pooled_variance(logs);
        // What chance explains of the factors' spread is not taken out of the rows.
        let kept = if variance > 0.0 { (1.0 - sampling / variance).max(0.0) } else { 0.0 };
        let centered = logs.iter().enumerate().map(|(run, log)| {
            let mean = if run < shape.base { base } else { new };
            (log - mean) * kept
        });
        let own: Vec<f64> = centered.collect();

        let student = Student::new(shape.degrees());
        let error = (variance * shape.per_run()).sqrt();
        let p = if error > 0.0 { student.two_sided(between / error) } else { 1.0 };
        let reach = student.exceeded(0.025) * error;
        let change = Effect {
            relative: Some(between.exp_m1()),
            low: Some((between - reach).exp_m1()),
            high: Some((between + reach).exp_m1()),
            p,
        };
        let votes = votes(rows, &own, between, shape);
        Self { own, between, sampling, variance, change, votes }
    }
}

/// Returns a median over rows for each run, with one's weight capped.
fn first_guess(rows: &[Telling<'_>], shape: RunShape) -> Vec<f64> {
    let cap = rows.iter().map(|row| row.mean).sum::<f64>() / 5.0;
    let of_run = |run: usize| {
        let logs = rows.iter().filter_map(|row| Some((*row.logs.get(run)?, row.mean.min(cap))));
        weighted_median(logs.collect())
    };
    (0..shape.runs()).map(of_run).collect()
}

/// Returns the first value at which the weights of the sorted values reach half of their sum.
fn weighted_median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let reached = values.iter().find(|(_, weight)| {
        sum += weight;
        sum >= half
    });
    reached.or(values.last()).map_or(0.0, |(value, _)| *value)
}

/// Returns the dispersion of each row, given the logarithms of factors.
fn dispersions(rows: &[Telling<'_>], logs: &[f64], shape: RunShape) -> Vec<f64> {
    let factors = Factors::of_logs(logs, shape);
    let own: Vec<f64> = rows.iter().map(|row| factors.dispersion(row.values, shape)).collect();
    let samples = rows.iter().map(|row| row.values.iter().sum());
    let typical = Typical::of(samples.zip(own.iter().copied()), shape);
    own.into_iter().map(|own| typical.shrunk(own)).collect()
}

/// Returns better logarithms of factors, from the rows that agree on the present ones, and the
/// variance that sampling gives them.
fn improve(
    rows: &[Telling<'_>],
    dispersions: &[f64],
    logs: &[f64],
    shape: RunShape,
) -> (Vec<f64>, f64) {
    let all = || rows.iter().zip(dispersions.iter().copied());
    let agrees = |(row, dispersion): &(&Telling<'_>, f64)| {
        row.distance(logs, *dispersion, shape).abs() < OUTLIER
    };
    let mut kept: Vec<(&Telling<'_>, f64)> = all().filter(agrees).collect();
    if kept.is_empty() {
        kept = all().collect();
    }
    let cap = LARGEST_WEIGHT * kept.iter().map(|(row, phi)| row.mean / phi).sum::<f64>();
    let (mut sums, mut weights, mut variance) = (vec![0.0; shape.runs()], 0.0, 0.0);
    for (row, dispersion) in kept {
        let weight = (row.mean / dispersion).min(cap);
        weights += weight;
        variance += weight.powi(2) * dispersion / row.mean;
        for (sum, log) in sums.iter_mut().zip(&row.logs) {
            *sum += weight * log;
        }
    }
    (sums.into_iter().map(|sum| sum / weights).collect(), variance / weights.powi(2))
}

/// Counts rows that speak against and for taking the common change out.
fn votes(rows: &[Telling<'_>], own: &[f64], between: f64, shape: RunShape) -> Votes {
    let dispersions = dispersions(rows, own, shape);
    let factors = Factors::of_logs(own, shape);
    let mut votes = Votes::default();
    for (row, dispersion) in rows.iter().zip(dispersions) {
        let (base, new) = shape.sums(row.values);
        let (base, new) = (base + 0.5, new + 0.5);
        let log = (new / base).ln() - factors.log_ratio();
        let error = (dispersion * (1.0 / base + 1.0 / new)).sqrt();
        let (with, without) = ((log / error).powi(2), ((log - between) / error).powi(2));
        let limit = UNCHANGED.powi(2);
        votes.still += u64::from(with < limit && without - with > VOTE);
        votes.moved += u64::from(without < limit && with - without > VOTE);
    }
    votes
}

#[cfg(test)]
mod tests {
    use super::super::sides::tests::in_turn;
    use super::*;

    /// Rows of sizes that differ, each run's times its factor.
    pub(in crate::compare) fn rows(factors: &[f64]) -> Vec<Vec<f64>> {
        let sizes = [1000.0, 400.0, 300.0, 250.0, 200.0, 150.0, 100.0];
        sizes.map(|size| factors.iter().map(|factor| size * factor).collect()).into()
    }

    fn common(rows: &[Vec<f64>], base: usize) -> Option<CommonFactor> {
        let sides = in_turn(rows, base);
        CommonFactor::of(&sides.own, RunShape::of(&sides).unwrap())
    }

    #[test]
    fn a_factor_is_found_whatever_one_row_does() {
        let mut all = rows(&[1.0, 1.1, 0.9, 1.2, 1.32, 1.08]);
        let found = common(&all, 3).unwrap();
        assert!((found.between - 1.2_f64.ln()).abs() < 1e-3, "{found:?}");
        // The row with most samples takes three times as many on one side.
        all[0][3..].iter_mut().for_each(|value| *value *= 3.0);
        let found = common(&all, 3).unwrap();
        assert!((found.between - 1.2_f64.ln()).abs() < 1e-3, "{found:?}");
        // The second run's factor, shrunk by what chance explains of it.
        assert!(found.own[1] > 0.05 && found.own[1] < 1.1_f64.ln(), "{found:?}");
    }

    #[test]
    fn equal_runs_have_no_factors() {
        let found = common(&rows(&[1.0; 6]), 3).unwrap();
        assert_eq!((found.own, found.change.p), (vec![0.0; 6], 1.0));
    }

    #[test]
    fn few_rows_or_runs_tell_of_no_factor() {
        let all = rows(&[1.0, 1.1, 1.2, 1.3]);
        assert!(common(&all, 2).is_some());
        assert!(common(&all[..4], 2).is_none());
        assert!(common(&rows(&[1.0, 1.1, 1.2]), 2).is_none());
        let small: Vec<_> = all.iter().map(|row| vec![1.0; row.len()]).collect();
        assert!(common(&small, 2).is_none());
    }

    #[test]
    fn rows_that_stand_still_speak_for_the_machine() {
        // Three large rows stand still, four change.
        let mut all = rows(&[1.0, 1.01, 0.99, 1.0, 1.01, 0.99]);
        for row in &mut all[3..] {
            row[3..].iter_mut().for_each(|value| *value *= 2.0);
        }
        let sides = in_turn(&all, 3);
        let shape = RunShape::of(&sides).unwrap();
        let rows: Vec<_> = sides.own.rows().filter_map(|row| Telling::of(row, shape)).collect();
        let found = votes(&rows, &[0.0; 6], 2.0_f64.ln(), shape);
        assert_eq!(found, Votes { still: 3, moved: 4 });
    }

    #[test]
    fn a_weighted_median_has_half_of_the_weight_up_to_it() {
        assert_eq!(weighted_median(vec![(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)]), 2.0);
        assert_eq!(weighted_median(vec![(1.0, 1.0), (2.0, 1.0)]), 1.0);
        assert_eq!(weighted_median(vec![(1.0, 1.0), (2.0, 5.0), (3.0, 1.0)]), 2.0);
    }
}
