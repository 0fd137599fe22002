//! Judgement over all rows: which stand out among so many, and what would have.

use super::distribution::Student;
use super::estimate::{BORROWED, Model};
use super::result::{LEAST_RUNS, Options, RowChange, Status};
use super::sides::{RunShape, Sides, mean, to_float};

/// Rows with fewer samples can hardly show anything, and only weaken the others' tests.
const LEAST_SAMPLES: f64 = 20.0;

/// Share from which on a row is large: the verdict speaks of these.
const LARGE: f64 = 0.05;

/// More runs than this are not proposed.
const MOST_RUNS: usize = 50;

/// Dispersion from which on longer runs do not help: the function differs between runs.
const RESTLESS: f64 = 3.0;

/// Runs that would resolve the large rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Needed {
    /// Number of runs a side, in all; `None` for more than 50.
    pub runs: Option<usize>,
    /// Mean length of the runs so far, in seconds.
    pub seconds: Option<f64>,
    /// `true` if an unresolved row differs so much between runs that longer ones do not help.
    pub is_restless: bool,
}

/// What is known of all rows together.
pub(super) struct Judged {
    /// Number of rows that share the correction.
    pub family: usize,
    /// Numbers of the large rows that would not have shown a change.
    pub unresolved: Vec<usize>,
    pub needed: Option<Needed>,
}

/// Judges rows in the light of all.
pub(super) fn judge(
    rows: &mut [RowChange],
    sides: &Sides,
    shape: RunShape,
    model: &Model,
    options: &Options,
) -> Judged {
    let is_asked = |row: &RowChange| {
        // A few long waits are no sample, however many periods they count.
        row.base + row.new >= LEAST_SAMPLES
            && sides.facts(row.row).effective >= LEAST_SAMPLES
            && row.mean_share() >= options.min_impact / 2.0
    };
    let mut asked: Vec<&mut RowChange> = rows.iter_mut().filter(|row| is_asked(row)).collect();
    let family = asked.len();
    let p: Vec<f64> = asked.iter().map(|row| row.change.p).collect();
    for (row, adjusted) in asked.iter_mut().zip(benjamini_hochberg(&p)) {
        row.adjusted_p = Some(adjusted);
    }
    let reach = reach(&model.student, options.level, family);
    for row in rows.iter_mut() {
        row.resolution = (reach * row.error).exp_m1();
        row.marked = shape.least() >= LEAST_RUNS
            && row.adjusted_p.is_some_and(|p| p < options.level)
            && row.impact.abs() >= options.min_impact;
        row.status = match row.adjusted_p {
            _ if row.marked && row.base == 0.0 => Status::New,
            _ if row.marked && row.new == 0.0 => Status::Gone,
            _ if row.marked => Status::Changed,
            _ if sides.facts(row.row).is_renamed => Status::Renamed,
            None => Status::Small,
            Some(_) if row.resolution <= options.resolve => Status::Same,
            Some(_) => Status::Unclear,
        };
    }
    let large = large(rows);
    let is_unresolved = |row: &&&RowChange| row.resolution > options.resolve;
    let unresolved: Vec<&RowChange> = large.iter().filter(is_unresolved).copied().collect();
    let is_needed = shape.least() >= LEAST_RUNS && !unresolved.is_empty();
    let needed = is_needed.then(|| Needed {
        runs: runs_needed(&large, shape, model, family, options),
        seconds: mean_length(sides),
        is_restless: unresolved.iter().any(|row| row.dispersion > RESTLESS),
    });
    Judged { family, unresolved: unresolved.iter().map(|row| row.row).collect(), needed }
}

/// Distance by which 80 of 100 estimates exceed another value, in standard errors.
const POWER_80: f64 = 0.84;

/// Returns how many standard errors a change must have to be found in 80 of 100 comparisons, if
/// `family` rows share the correction.
fn reach(student: &Student, level: f64, family: usize) -> f64 {
    student.exceeded(level / (2.0 * to_float(family.max(1)))) + POWER_80
}

/// Returns the large rows, or the largest if none is.
fn large(rows: &[RowChange]) -> Vec<&RowChange> {
    let large: Vec<&RowChange> = rows.iter().filter(|row| row.mean_share() >= LARGE).collect();
    if !large.is_empty() {
        return large;
    }
    let largest = rows.iter().rev().max_by(|a, b| a.mean_share().total_cmp(&b.mean_share()));
    largest.into_iter().collect()
}

/// Returns the least number of runs a side that would resolve all large rows, recorded in turn or
/// apart as these were; `None` for more than 50.
fn runs_needed(
    large: &[&RowChange],
    shape: RunShape,
    model: &Model,
    family: usize,
    options: &Options,
) -> Option<usize> {
    let (base_runs, new_runs) = (to_float(shape.base), to_float(shape.new));
    // Variance of a row of one run a side.
    let variance = |row: &&RowChange| {
        let least = |samples: f64| if samples > 0.0 { samples } else { 0.5 };
        row.dispersion * (base_runs / least(row.base) + new_runs / least(row.new))
    };
    let worst = large.iter().map(variance).max_by(f64::total_cmp)?;
    (LEAST_RUNS..=MOST_RUNS).find(|runs| {
        let runs = to_float(*runs);
        let student = Student::new(2.0 * runs - 2.0 + BORROWED);
        let error = (worst / runs + model.drift()).sqrt();
        (reach(&student, options.level, family) * error).exp_m1() <= options.resolve
    })
}

/// Returns the mean length of all runs in seconds; `None` if one is unknown.
fn mean_length(sides: &Sides) -> Option<f64> {
    let runs = sides.base.iter().chain(&sides.new);
    let seconds = runs.map(|run| run.seconds).collect::<Option<Vec<f64>>>()?;
    Some(mean(&seconds))
}

/// Returns the order of values, smallest first, equal ones by number.
fn ascending(p: &[f64]) -> Vec<(usize, f64)> {
    let mut order: Vec<(usize, f64)> = p.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    order
}

/// Corrects probabilities for their number, so that of those below a level at most that part is by
/// chance (Benjamini and Hochberg).
pub(super) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (below, (at, p)) in ascending(p).into_iter().enumerate().rev() {
        least = least.min(p * to_float(adjusted.len()) / to_float(below + 1));
        if let Some(into) = adjusted.get_mut(at) {
            *into = least;
        }
    }
    adjusted
}

/// Corrects probabilities for their number, so that with all below a level there is no error but
/// at that rate (Holm).
pub(super) fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (below, (at, p)) in ascending(p).into_iter().enumerate() {
        largest = largest.max(p * to_float(adjusted.len() - below)).min(1.0);
        if let Some(into) = adjusted.get_mut(at) {
            *into = largest;
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::sides::tests::in_turn;
    use crate::compare::{Comparison, RowFacts, Verdict, compare};

    #[test]
    fn corrections_are_those_computed_by_hand() {
        let p = [0.04, 0.01, 0.9, 0.03];
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        // 0.01·4/1, 0.03·4/2 = 0.06 and 0.04·4/3 = 0.0533: the larger is no more than the smaller.
        let found = benjamini_hochberg(&p);
        assert!(close(&found, &[0.16 / 3.0, 0.04, 0.9, 0.16 / 3.0]), "{found:?}");
        // 0.01·4, 0.03·3, 0.04·2 = 0.08 but no less than the one before, 0.9.
        let found = holm(&p);
        assert!(close(&found, &[0.09, 0.04, 0.9, 0.09]), "{found:?}");
        assert!(benjamini_hochberg(&[]).is_empty() && holm(&[]).is_empty());
    }

    /// One row that changed by `factor` among six that did not, in runs that scatter by `spread`.
    fn compared(factor: f64, spread: f64, scale: f64) -> Comparison {
        let sizes = [400.0, 2000.0, 300.0, 250.0, 200.0, 150.0, 1.0];
        let value = |row: usize, size: f64, run: usize| {
            let sign = if (run + row).is_multiple_of(2) { 1.0 } else { -1.0 };
            let changed = if row == 0 && run >= 3 { factor } else { 1.0 };
            size * scale * (1.0 + sign * spread) * changed
        };
        let rows = sizes.iter().enumerate();
        let rows = rows.map(|(row, size)| (0..6).map(|run| value(row, *size, run)).collect());
        compare(&in_turn(&rows.collect::<Vec<_>>(), 3), &Options::default()).unwrap()
    }

    #[test]
    fn a_change_is_marked_and_listed_first() {
        let found = compared(1.5, 0.01, 1.0);
        assert_eq!(found.verdict, Verdict::Changed);
        assert_eq!((found.listed()[0].row, found.listed()[0].status), (0, Status::Changed));
        assert_eq!(found.rows.iter().filter(|row| row.marked).count(), 1);
        let small = found.rows.last().unwrap();
        assert_eq!((small.status, small.adjusted_p), (Status::Small, None));
        assert_eq!(found.family, 6);
    }

    #[test]
    fn sides_are_the_same_if_a_change_would_have_been_seen() {
        let found = compared(1.0, 0.01, 1.0);
        assert_eq!((found.verdict, found.needed), (Verdict::Same, None));
        assert_eq!(found.rows[1].status, Status::Same);
    }

    #[test]
    fn few_samples_ask_for_more_runs() {
        let found = compared(1.0, 0.01, 0.2);
        assert_eq!(found.verdict, Verdict::TooFewSamples);
        assert_eq!(found.rows[0].status, Status::Unclear);
        let needed = found.needed.unwrap();
        assert!(needed.runs.is_some_and(|runs| (4..20).contains(&runs)), "{needed:?}");
        assert_eq!((needed.seconds, needed.is_restless), (Some(2.0), false));
        assert!(!found.unresolved.contains(&1) && found.unresolved.contains(&0), "{found:?}");
        // Restless functions ask for more runs than anyone records.
        let restless = compared(1.0, 0.5, 1.0).needed.unwrap();
        assert!(restless.is_restless && restless.runs.is_none(), "{restless:?}");
    }

    #[test]
    fn a_few_long_waits_are_no_sample() {
        let rows = [vec![100.0, 100.0, 100.0, 200.0, 200.0, 200.0], vec![1000.0; 6]];
        let mut sides = in_turn(&rows, 3);
        let marked = |sides: &Sides| {
            compare(sides, &Options::default()).unwrap().rows.iter().any(|row| row.marked)
        };
        assert!(marked(&sides));
        sides.facts = vec![RowFacts { effective: 3.0, ..RowFacts::default() }];
        assert!(!marked(&sides));
    }

    #[test]
    fn renamed_rows_say_so_unless_marked() {
        let status = |new: f64| {
            let rows = [vec![100.0, 100.0, 100.0, new, new, new], vec![1000.0; 6]];
            let mut sides = in_turn(&rows, 3);
            sides.facts = vec![RowFacts { is_renamed: true, ..RowFacts::default() }];
            compare(&sides, &Options::default()).unwrap().rows[0].status
        };
        assert_eq!((status(100.0), status(200.0)), (Status::Renamed, Status::Changed));
    }

    #[test]
    fn impacts_are_of_bases_time() {
        // 1,000 a run in base; new has 2,500 of another row besides.
        let rows = [vec![0.0, 0.0, 0.0, 2500.0, 2500.0, 2500.0], vec![1000.0; 6]];
        let found = compare(&in_turn(&rows, 3), &Options::default()).unwrap();
        assert!((found.rows[0].impact - 2.5).abs() < 1e-9, "{found:?}");
        assert_eq!(found.rows[0].status, Status::New);
        let turned = rows.map(|row| [&row[3..], &row[..3]].concat());
        let found = compare(&in_turn(&turned, 3), &Options::default()).unwrap();
        assert!((found.rows[0].impact + 2.5 / 3.5).abs() < 1e-3, "{found:?}");
        assert_eq!(found.rows[0].status, Status::Gone);
    }

    #[test]
    fn one_run_a_side_marks_nothing() {
        let found = compare(&in_turn(&[vec![100.0, 900.0]], 1), &Options::default()).unwrap();
        assert_eq!((found.verdict, found.needed), (Verdict::TooFewSamples, None));
        assert!(!found.rows[0].marked && !found.total_marked);
        assert!(compare(&in_turn(&[vec![1.0]], 1), &Options::default()).is_err());
    }
}
