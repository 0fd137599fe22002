//! Comparison of two sides of runs: what changed, by how much, and whether chance explains it.
//! Numbers in, numbers out: nothing here reads files or prints.
//!
//! ```text
//!   names of rows ─► matching ─► number of each function, the same on both sides
//!                                     │
//!   Sides: runs, values by row and run┤
//!                                     ▼
//!   common        factor of each run, and what all functions share between the sides
//!     │
//!   normalize     which of that is taken out: the mode, a factor for each run
//!     │
//!   estimate      of each row: change, error, p, interval (distribution: Student's and normal)
//!     │
//!   family        correction for the number of rows, resolution, runs needed
//!     ▼
//!   Comparison ─► causes: callers marked because of callees, time that moved between neighbours
//!              ─► rules: gates, which hold or are violated
//! ```
//!
//! A row's samples scatter from run to run more than chance explains. How much more is its
//! dispersion, and two sides of five runs tell little of it, so that each row borrows from the
//! typical one. Runs recorded in turn carry the machine's drift in their dispersion; for sides
//! recorded apart nothing tells drift from change, and an error is assumed.
//!
//! Sums are taken in the order of rows and runs, on one core: the same input gives the same bytes.

#![allow(dead_code, unused_imports, reason = "the command diff comes next")]

mod causes;
mod common;
mod distribution;
mod estimate;
mod family;
pub(crate) mod matching;
mod normalize;
pub(crate) mod rules;
mod sides;

#[cfg(test)]
mod golden;

pub(crate) use causes::Moved;
pub(crate) use estimate::Model;
pub(crate) use family::Needed;
pub(crate) use normalize::{Mode, Normalize};
pub(crate) use sides::{Counts, RowFacts, Run, Sides, Turns, Unit};

use common::Common;
use distribution::Student;
use estimate::{Estimate, Floor, drift};
use normalize::{Taken, Totals};
use sides::Shape;

/// Requests of the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Rate of false alarms among marked rows; intervals hold the truth in all but this part.
    pub level: f64,
    /// Least impact of a marked row: a part of all time.
    pub min_impact: f64,
    /// Change of a large row that must have been visible to call the sides the same.
    pub resolve: f64,
    /// What is taken out, if the user chooses.
    pub normalize: Option<Normalize>,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: 0.05, min_impact: 0.005, resolve: 0.25, normalize: None }
    }
}

/// Least number of runs a side that can show how much runs differ.
pub(crate) const LEAST_RUNS: usize = 3;

/// A change as a part of the base's value, with its interval; `None` where there is no number: new
/// rows have no relative change, and few samples may leave an end open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub relative: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Probability of such a difference by chance.
    pub p: f64,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Marked, with samples on both sides.
    Changed,
    /// Marked, without samples in base.
    New,
    /// Marked, without samples in new.
    Gone,
    /// Not marked, and named differently on the two sides.
    Renamed,
    /// Not marked, though a change worth telling would have been seen.
    Same,
    /// Not marked, and too restless or too few samples to have shown a change.
    Unclear,
    /// Too few samples, or too little time, to be asked at all.
    Small,
}

impl Status {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Renamed => "renamed",
            Self::Same => "same",
            Self::Unclear => "unclear",
            Self::Small => "small",
        }
    }
}

/// The comparison of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowChange {
    /// Number of the row in the input.
    pub row: usize,
    pub status: Status,
    /// `true` if significant among all rows, and of an impact worth telling.
    pub marked: bool,
    /// Number of samples in base; with periods that differ, their sum in mean periods.
    pub base: f64,
    pub new: f64,
    /// Share of all samples.
    pub base_share: f64,
    pub new_share: f64,
    pub change: Change,
    /// Logarithm of the ratio new : base.
    pub log: f64,
    /// Standard error of `log`.
    pub error: f64,
    /// Variance from run to run, in units of the sampling error's.
    pub dispersion: f64,
    /// `p` corrected for the number of rows; `None` outside the family.
    pub adjusted_p: Option<f64>,
    /// Change as a part of all time in base; of a new row its share in new.
    pub impact: f64,
    /// Least change that 80 of 100 such comparisons would find.
    pub resolution: f64,
    /// Change beyond the one that all functions share; with [`Mode::Absolute`] only.
    pub beyond: Option<f64>,
}

impl RowChange {
    pub(crate) fn mean_share(&self) -> f64 {
        f64::midpoint(self.base_share, self.new_share)
    }
}

/// The answer of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A row or the total is marked.
    Changed,
    /// Nothing is marked, and all large rows would have shown a change.
    Same,
    TooFewSamples,
}

impl Verdict {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Same => "same",
            Self::TooFewSamples => "too-few-samples",
        }
    }
}

/// The result for one event.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub verdict: Verdict,
    pub turns: Turns,
    pub mode: Mode,
    /// Change that all functions share.
    pub common: Change,
    pub total: Change,
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
    sample_value: f64,
    /// Samples of each side.
    all: (f64, f64),
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

/// Reasons why sides cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("a side has no run")]
    NoRuns,
    #[error("a run without a length cannot be normalized by time")]
    NoLength,
}

/// Compares two sides of runs.
///
/// # Errors
///
/// Returns an error if a side has no run, or a run lacks what the options need.
pub(crate) fn compare(sides: &Sides, options: &Options) -> Result<Comparison, Refusal> {
    let shape = Shape::of(sides).ok_or(Refusal::NoRuns)?;
    let sample = sides.sample_value();
    let own = sides.own.scaled(sample);
    let children = sides.children.as_ref().map(|children| children.scaled(sample));
    let counted = children.as_ref().unwrap_or(&own);

    let turns = sides.turns();
    let common = Common::of(&own, shape);
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
    let nothing = Change { relative: Some(0.0), low: None, high: None, p: 1.0 };
    Ok(Comparison {
        verdict,
        turns,
        mode,
        common: common.map_or(nothing, |common| common.change),
        total,
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
    fn of(row: usize, estimate: &Estimate, all: (f64, f64), kept: Option<f64>) -> Self {
        let Estimate { base, new, log, error, dispersion, change } = *estimate;
        let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        let (base_share, new_share) = (share(base, all.0), share(new, all.1));
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
            impact: if base > 0.0 { base_share * log.exp_m1() } else { new_share },
            resolution: f64::INFINITY,
            beyond,
        }
    }
}

/// The total is one more question, asked besides all rows: at a lower level.
const TOTAL_LEVEL: f64 = 0.01;

/// Compares the runs' numbers of samples.
fn total(own: &Counts, shape: Shape, drift: f64, level: f64) -> Change {
    let totals = Totals::of(own, shape);
    let (log, (variance, degrees)) = (totals.log(), totals.spread());
    let student = Student::new(degrees);
    let error = (variance + drift).sqrt();
    let reach = student.exceeded(level / 2.0) * error;
    Change {
        relative: Some(log.exp_m1()),
        low: Some((log - reach).exp_m1()),
        high: Some((log + reach).exp_m1()),
        p: student.two_sided(log / error),
    }
}
