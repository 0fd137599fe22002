//! The critical path of an input, piece by piece.

use std::collections::{BTreeMap, BTreeSet};

use recrep_console::units;

use crate::count::metrics::share;
use crate::timeline::Activity;

/// Who made a thread able to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WokenBy {
    /// Nobody, or it is not known.
    Nobody,
    Interrupt,
    Itself,
    Thread(i32),
    /// A thread that left the CPU on which it ran then.
    Cpu(i32),
    /// A thread that is not recorded.
    Stranger(i32),
}

/// A piece of the critical path: what one thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathPiece {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// Nanoseconds of the recording's clock.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Moment of its sample, if it has one; else its start.
    pub(crate) at: u64,
    pub(crate) kind: Activity,
    pub(crate) woken_by: WokenBy,
}

impl PathPiece {
    pub(crate) const fn length(&self) -> u64 {
        self.to - self.from
    }
}

/// What a run would take if some code were faster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WhatIfAnswer {
    pub(crate) name: String,
    /// Part of its running time that is saved.
    pub(crate) part: f64,
    /// Its nanoseconds on the critical path.
    pub(crate) on_path: u64,
    /// How much shorter the run is, by replay.
    pub(crate) saved: u64,
    /// The same if no other path became longer.
    pub(crate) first_order: u64,
    /// Length of the run.
    pub(crate) length: u64,
}

impl WhatIfAnswer {
    /// Returns whether another path becomes longer: the two answers differ by more than a hundredth
    /// of the run.
    pub(crate) const fn is_limited(&self) -> bool {
        self.saved.abs_diff(self.first_order) > self.length / 100
    }
}

/// The critical path of an input.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PathOfInput {
    /// Thread at its end, and its name.
    pub(crate) tid: i32,
    pub(crate) comm: String,
    /// In order of time.
    pub(crate) pieces: Vec<PathPiece>,
    pub(crate) what_if: Vec<WhatIfAnswer>,
    /// Names of wakers that are not recorded.
    pub(crate) strangers: BTreeMap<i32, String>,
}

impl PathOfInput {
    /// Says how long it is, what its threads did, and how often it changes them.
    pub(crate) fn described(&self) -> String {
        let length = self.length();
        let kinds = self.by_kind().into_iter();
        let kinds = kinds
            .map(|(kind, time)| format!("{:.1} % {}", share(time, length), kind.name()))
            .collect::<Vec<_>>()
            .join(", ");
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (threads, changes) = (self.threads(), self.changes());
        format!(
            "Critical path of {} (tid {}), {}: {kinds}; {threads} thread{}, {changes} change{} of \
             thread",
            self.comm,
            self.tid,
            units::time(length),
            plural(threads),
            plural(changes),
        )
    }

    pub(crate) fn length(&self) -> u64 {
        self.pieces.iter().map(PathPiece::length).sum()
    }

    /// Returns the time of each kind, the longest first.
    pub(crate) fn by_kind(&self) -> Vec<(Activity, u64)> {
        let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
        for piece in &self.pieces {
            *sums.entry(piece.kind.pack()).or_default() += piece.length();
        }
        let mut sums: Vec<(Activity, u64)> =
            sums.into_iter().map(|(kind, sum)| (Activity::unpack(kind), sum)).collect();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        sums
    }

    /// Returns the number of threads that are on it.
    pub(crate) fn threads(&self) -> usize {
        self.pieces.iter().map(|piece| piece.tid).collect::<BTreeSet<i32>>().len()
    }

    /// Returns the number of times at which it goes on with another thread.
    pub(crate) fn changes(&self) -> usize {
        self.pieces.windows(2).filter(|pair| matches!(pair, [a, b] if a.tid != b.tid)).count()
    }
}
