//! The comparison of two sides, step by step.

use super::common::CommonFactor;
use super::distribution::Student;
use super::estimate::{Estimate, Floor, Model, drift};
use super::family::{self, Needed};
use super::normalize::{self, Normalization, RunTotals, Taken};
use super::result::{Effect, LEAST_RUNS, NotComparable, Options, RowChange, Status, Verdict};
use super::sides::{RunShape, RunValues, Sides, Turns, part_of};

/// The result for one event.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub verdict: Verdict,
    pub turns: Turns,
    pub mode: Normalization,
    /// Change that all functions share.
    pub common: Effect,
    /// Change of the number of samples.
    pub total: Effect,
    /// The same without what was taken out of the rows as noise, so that it agrees with them.
    pub shown_total: Effect,
    pub total_marked: bool,
    /// `true` if a run was ended from outside: the total says how long runs were let run.
    pub is_cut: bool,
    /// Rows with samples, by number.
    pub rows: Vec<RowChange>,
    /// Number of rows that share the correction.
    pub family: usize,
    /// Numbers of the large rows that would not have shown a change.
    pub unresolved: Vec<usize>,
    pub needed: Option<Needed>,
    /// Number of runs of each side.
    pub runs: (usize, usize),
    /// How values become estimates.
    pub model: Model,
    /// Value of one sample, in the unit of the input.
    pub(super) sample_value: f64,
    /// Samples of each side.
    pub(super) all: (f64, f64),
}

impl Comparison {
    /// Returns the rows as they are listed: those marked by impact, largest first, then the others.
    pub(crate) fn listed(&self) -> Vec<&RowChange> {
        let mut rows: Vec<&RowChange> = self.rows.iter().collect();
        rows.sort_by(|a, b| {
            let by_impact = b.impact.abs().total_cmp(&a.impact.abs());
            b.marked.cmp(&a.marked).then(by_impact).then(a.row.cmp(&b.row))
        });
        rows
    }

    /// Returns whether each side has enough runs to mark rows.
    pub(crate) fn has_enough_runs(&self) -> bool {
        self.runs.0.min(self.runs.1) >= LEAST_RUNS
    }
}

/// Compares two sides of runs.
///
/// # Errors
///
/// Returns an error if a side has no run, or a run lacks what the options need.
pub(crate) fn compare(sides: &Sides, options: &Options) -> Result<Comparison, NotComparable> {
    let shape = RunShape::of(sides).ok_or(NotComparable::NoRuns)?;
    let sample = sides.sample_value();
    let own = sides.own.scaled(sample);
    let children = sides.children.as_ref().map(|children| children.scaled(sample));
    let counted = children.as_ref().unwrap_or(&own);

    let turns = sides.turns();
    let common = CommonFactor::of(&own, shape);
    let Taken { mode, factors, variance, kept } =
        normalize::decide(sides, shape, &own, common.as_ref(), turns, options.normalize)?;
    let floor = Floor { drift: drift(shape, turns.in_turn), common: variance };
    let model = Model::new(counted, shape, factors, floor, options.level);

    let all = shape.sums(&own.totals());
    let estimates = counted.rows().enumerate();
    let estimates = estimates.filter_map(|(row, values)| Some((row, model.estimate(values)?)));
    let mut rows: Vec<RowChange> =
        estimates.map(|(row, estimate)| RowChange::of(row, &estimate, all, kept)).collect();
    let judged = family::judge(&mut rows, sides, shape, &model, options);

    let total = total(&own, shape, floor.drift, options.level);
    let of_rows = match mode {
        Normalization::Noise | Normalization::Absolute => model.estimate(&own.totals()),
        _ => None,
    };
    let shown_total = of_rows.map_or(total, |estimate| estimate.change);
    // The total of cut runs is their length.
    let is_cut = sides.base.iter().chain(&sides.new).any(|run| run.is_cut);
    let total_marked = total.p < TOTAL_LEVEL && shape.least() >= LEAST_RUNS && !is_cut;
    let verdict = if total_marked || rows.iter().any(|row| row.marked) {
        Verdict::Changed
    } else if shape.least() >= LEAST_RUNS && judged.unresolved.is_empty() {
        Verdict::Same
    } else {
        Verdict::TooFewSamples
    };
    let nothing = Effect { relative: Some(0.0), low: None, high: None, p: 1.0 };
    Ok(Comparison {
        verdict,
        turns,
        mode,
        common: common.map_or(nothing, |common| common.change),
        total,
        shown_total,
        total_marked,
        is_cut,
        rows,
        family: judged.family,
        unresolved: judged.unresolved,
        needed: judged.needed,
        runs: (shape.base, shape.new),
        model,
        sample_value: sample,
        all,
    })
}

impl RowChange {
    /// Creates the change of a row that is not judged yet. `all` are the samples of the sides;
    /// `kept` is the logarithm of what all functions share, if the row has it.
    pub(super) fn of(row: usize, estimate: &Estimate, all: (f64, f64), kept: Option<f64>) -> Self {
        let Estimate { base, new, gained, log, error, dispersion, change } = *estimate;
        let (base_share, new_share) = (part_of(base, all.0), part_of(new, all.1));
        let impact = match base > 0.0 {
            true => base_share * log.exp_m1(),
            false if all.0 > 0.0 => gained / all.0,
            false => new_share,
        };
        // A new row has no change, a row that is gone has lost all.
        let beyond = kept.filter(|_| base > 0.0).map(|common| match new > 0.0 {
            true => (log - common).exp_m1(),
            false => -1.0,
        });
        Self {
            row,
            status: Status::Small,
            marked: false,
            base,
            new,
            base_share,
            new_share,
            change,
            log,
            error,
            dispersion,
            adjusted_p: None,
            impact,
            resolution: f64::INFINITY,
            beyond,
        }
    }
}

/// The total is one more question, asked besides all rows: at a lower level.
const TOTAL_LEVEL: f64 = 0.01;

/// Compares the runs' numbers of samples.
fn total(own: &RunValues, shape: RunShape, drift: f64, level: f64) -> Effect {
    let totals = RunTotals::of(own, shape);
    let (log, (variance, degrees)) = (totals.log(), totals.spread());
    let student = Student::new(degrees);
    let error = (variance + drift).sqrt();
    let reach = student.exceeded(level / 2.0) * error;
    Effect {
        relative: Some(log.exp_m1()),
        low: Some((log - reach).exp_m1()),
        high: Some((log + reach).exp_m1()),
        p: student.two_sided(log / error),
    }
}
