//! Parts of a comparison's result, and the requests that shape it.

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

/// Choice of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Normalize {
    /// Take nothing out.
    None,
    /// Take out what all functions share.
    Common,
    /// Compare parts of all samples.
    Share,
    /// Compare samples a second.
    Time,
}

impl Normalize {
    /// All choices.
    pub(crate) const ALL: [Self; 4] = [Self::None, Self::Common, Self::Share, Self::Time];

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Common => "common",
            Self::Share => "share",
            Self::Time => "time",
        }
    }
}

/// Least number of runs a side that can show how much runs differ.
pub(crate) const LEAST_RUNS: usize = 3;

/// A change as a part of the base's value, with its interval; `None` where there is no number: new
/// rows have no relative change, and few samples may leave an end open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Effect {
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
    pub change: Effect,
    /// Logarithm of the ratio new : base.
    pub log: f64,
    /// Standard error of `log`.
    pub error: f64,
    /// Variance from run to run, in units of the sampling error's.
    pub dispersion: f64,
    /// `p` corrected for the number of rows; `None` outside the family.
    pub adjusted_p: Option<f64>,
    /// Change as a part of all time in base.
    pub impact: f64,
    /// Least change that 80 of 100 such comparisons would find.
    pub resolution: f64,
    /// Change beyond the one that all functions share; with [`Normalization::Absolute`] only.
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

/// Reasons why sides cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotComparable {
    #[error("a side has no run")]
    NoRuns,
    #[error("a run without a length cannot be normalized by time")]
    NoLength,
}
