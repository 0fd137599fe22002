//! The critical path of an input, piece by piece.

use std::collections::{BTreeMap, BTreeSet};

use crate::timeline::Activity;

/// A piece of the critical path: what one thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathPiece {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// Nanoseconds of the recording's clock.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) kind: Activity,
}

impl PathPiece {
    pub(crate) const fn length(&self) -> u64 {
        self.to - self.from
    }
}

/// The critical path of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathOfInput {
    /// Thread at its end, and its name.
    pub(crate) tid: i32,
    pub(crate) comm: String,
    /// In order of time.
    pub(crate) pieces: Vec<PathPiece>,
}

impl PathOfInput {
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
