//! Why rows are marked, as far as callchains show it: callees that changed, and time that moved
//! between callers and callees; and which rows are compared as one, being one piece of code.

use std::collections::{BTreeMap, BTreeSet};

use super::chains::{ChainWalk, WalkedChain};
use super::grouped::Grouped;
use crate::compare::{Comparison, Moved};

/// What is known of rows, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    /// Marked callees without whose samples a row would not be marked.
    pub(crate) because: BTreeMap<usize, Vec<usize>>,
    /// Pairs between which time moved.
    pub(crate) moved: Vec<Moved>,
    /// Rows that stand for others, too.
    pub(crate) joined: BTreeMap<usize, JoinedRows>,
}

/// Rows that are one piece of code with another.
#[derive(Debug, Default)]
pub(crate) struct JoinedRows {
    /// `true` if the row itself is in base, too.
    pub(crate) is_in_base: bool,
    /// The others: those that only base has, that only new has, and that both have.
    pub(crate) gone: Vec<usize>,
    pub(crate) new: Vec<usize>,
    pub(crate) both: Vec<usize>,
}

impl Causes {
    /// Finds causes of the marked rows. With callees counted, a row may be marked because of them,
    /// else time may have moved between it and a neighbour.
    pub(crate) fn find(
        &mut self,
        walk: &ChainWalk<'_>,
        grouped: &Grouped,
        comparison: &Comparison,
        min_impact: f64,
    ) {
        let marked = comparison.rows.iter().filter(|row| row.marked).map(|row| row.row);
        let mut rows: BTreeMap<usize, usize> = marked.map(|row| (row, row)).collect();
        if rows.len() < 2 {
            return;
        }
        for (row, joined) in
            self.joined.iter().filter(|(row, _)| rows.contains_key(row)).collect::<Vec<_>>()
        {
            rows.extend(joined.all().map(|other| (other, *row)));
        }
        let runs = grouped.sides.base.len() + grouped.sides.new.len();
        let mut marked =
            MarkedChains { runs, by_samples: grouped.by_samples(), ..MarkedChains::default() };
        let mut path: Vec<Option<usize>> = Vec::new();
        walk.walk(|chain| {
            path.clear();
            path.extend(chain.rows.iter().map(|row| rows.get(&(*row)?).copied()));
            marked.take(&path, &chain);
        });
        if grouped.sides.children.is_some() {
            self.because = marked.because(comparison, min_impact);
            self.keep_roots();
        } else {
            let values: Vec<&[f64]> = grouped.sides.own.rows().collect();
            let neighbours: Vec<(usize, usize)> = marked.neighbours.into_iter().collect();
            self.moved =
                comparison.moved(&neighbours, |row| values.get(row).copied().unwrap_or_default());
        }
    }

    /// Leaves out callees that others explain, unless all of a row's are.
    fn keep_roots(&mut self) {
        let explained: BTreeSet<usize> = self.because.keys().copied().collect();
        for callees in self.because.values_mut() {
            if callees.iter().any(|callee| !explained.contains(callee)) {
                callees.retain(|callee| !explained.contains(callee));
            }
        }
    }
}

impl JoinedRows {
    /// Returns all others.
    pub(crate) fn all(&self) -> impl Iterator<Item = usize> {
        self.gone.iter().chain(&self.new).chain(&self.both).copied()
    }
}

/// What callchains have of marked rows.
#[derive(Default)]
struct MarkedChains {
    runs: usize,
    by_samples: bool,
    /// Values of rows by run, without the samples of marked callees.
    rest: BTreeMap<usize, Vec<f64>>,
    /// Marked callees of rows.
    callees: BTreeMap<usize, BTreeSet<usize>>,
    /// Callers and what they call.
    neighbours: BTreeSet<(usize, usize)>,
}

impl MarkedChains {
    /// Takes one callchain: the marked rows of its frames, innermost first.
    #[expect(clippy::cast_precision_loss, reason = "sums are exact up to 2^53")]
    fn take(&mut self, path: &[Option<usize>], chain: &WalkedChain<'_>) {
        for pair in path.windows(2) {
            if let [Some(callee), Some(caller)] = pair
                && callee != caller
            {
                self.neighbours.insert((*caller, *callee));
            }
        }
        let count = if self.by_samples { chain.count.samples } else { chain.count.period };
        let rows: BTreeSet<usize> = path.iter().flatten().copied().collect();
        for row in rows {
            let outermost = path.iter().rposition(|found| *found == Some(row)).unwrap_or(0);
            let inner = path.iter().take(outermost).flatten().filter(|inner| **inner != row);
            let inner: BTreeSet<usize> = inner.copied().collect();
            if inner.is_empty() {
                let rest = self.rest.entry(row).or_insert_with(|| vec![0.0; self.runs]);
                rest.get_mut(chain.run).into_iter().for_each(|rest| *rest += count as f64);
            } else {
                self.callees.entry(row).or_default().extend(inner);
            }
        }
    }

    /// Returns the rows that are marked because of callees.
    fn because(&self, comparison: &Comparison, min_impact: f64) -> BTreeMap<usize, Vec<usize>> {
        let nothing = vec![0.0; self.runs];
        let explained = self.callees.iter().filter(|(row, _)| {
            comparison.is_explained(self.rest.get(row).unwrap_or(&nothing), min_impact)
        });
        explained.map(|(row, callees)| (*row, callees.iter().copied().collect())).collect()
    }
}
