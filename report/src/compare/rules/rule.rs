//! A rule: what it asks for, and when it is violated.

use recrep_console::glob::Glob;

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GateRule {
    /// As the user wrote it.
    pub text: String,
    pub subject: RuleSubject,
    pub relation: Relation,
    /// A part of one if the subject is a share, else a number.
    pub limit: f64,
    pub certainty: Certainty,
    /// Printed with a violation.
    pub why: Option<String>,
    /// `true` if a violation is printed but fails nothing.
    pub warn: bool,
}

/// What a rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleSubject {
    /// Share of all samples; of new's side in a comparison.
    Share(RowKind, Glob),
    /// Relative change.
    Delta(RowKind, Glob),
    /// Change as a part of all time.
    Impact(RowKind, Glob),
    /// Relative change of all samples.
    DeltaTotal,
    /// Largest share of a marked row without samples in base.
    New,
    /// Largest share of a marked row without samples in new.
    Gone,
    /// Share of lost samples.
    Lost,
    /// Share of samples without a function.
    Unresolved,
    /// Share of callchains that were cut short.
    Broken,
    /// Number of samples, of the smaller side.
    Samples,
    /// Number of runs, of the smaller side.
    Runs,
    /// Number of marked rows that take longer; the total is one.
    Slower,
    /// Number of marked rows that take less time; the total is one.
    Faster,
}

impl RuleSubject {
    /// Returns whether its value is a share or a change, which users write in percent.
    pub(crate) fn is_share(&self) -> bool {
        !matches!(self, Self::Samples | Self::Runs | Self::Slower | Self::Faster)
    }

    /// Returns whether it compares two sides.
    pub(crate) fn needs_two_sides(&self) -> bool {
        matches!(
            self,
            Self::Delta(..)
                | Self::Impact(..)
                | Self::DeltaTotal
                | Self::New
                | Self::Gone
                | Self::Slower
                | Self::Faster
        )
    }
}

/// What rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowKind {
    /// Functions without callees.
    Own,
    /// Functions with callees.
    Children,
    /// Modules.
    Dso,
    /// Commands.
    Comm,
}

impl RowKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 4] = [Self::Own, Self::Children, Self::Dso, Self::Comm];

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Children => "children",
            Self::Dso => "dso",
            Self::Comm => "comm",
        }
    }
}

/// How the value and the limit compare if the rule is violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    More,
    AtLeast,
    Less,
    AtMost,
}

impl Relation {
    /// Returns whether the value violates the rule.
    pub(crate) fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::More => value > limit,
            Self::AtLeast => value >= limit,
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
        }
    }

    /// Returns whether larger values violate.
    pub(crate) fn is_upward(self) -> bool {
        matches!(self, Self::More | Self::AtLeast)
    }

    /// The sign for it.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Less => "<",
            Self::AtMost => "<=",
        }
    }
}

/// How certain a change must be to violate a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// Significant, and its estimate beyond the limit.
    #[default]
    Significant,
    /// Significant, and all of its interval beyond the limit.
    Surely,
    /// Its estimate beyond the limit, be it chance or not.
    Any,
}
