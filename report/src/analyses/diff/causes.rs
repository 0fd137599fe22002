//! Why rows are marked, as far as callchains show it: callees that changed, and time that moved
//! between callers and callees.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::args::DiffQuery;
use super::rows::{DiffEvent, Grouped, Grouping, Placed, RowLabels, events};
use super::runs::{RunFacts, leave_out_empty};
use crate::callchain::RowId;
use crate::compare::{Comparison, Moved};
use crate::engine::gather::apart;
use crate::profile::Profile;
use crate::query::{ChainOptions, Graph, Query, SortKey};

/// What callchains say of marked rows, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// Marked callees without whose samples a row would not be marked.
    pub(super) because: BTreeMap<usize, Vec<usize>>,
    /// Pairs between which time moved.
    pub(super) moved: Vec<Moved>,
}

/// Finds causes of the marked rows of an event; none without callchains. With callees counted, a row
/// may be marked because of them, else time may have moved between it and a neighbour.
pub(super) fn of(
    asked: &DiffQuery,
    grouping: &Grouping<'_>,
    event: &DiffEvent,
    grouped: &Grouped,
    comparison: &Comparison,
) -> anyhow::Result<Causes> {
    let marked: BTreeSet<usize> =
        comparison.rows.iter().filter(|row| row.marked).map(|row| row.row).collect();
    let has_functions =
        asked.query.columns.iter().take(asked.shown).any(|column| column.key == SortKey::Symbol);
    if marked.len() < 2 || asked.by_stack || !has_functions {
        return Ok(Causes::default());
    }
    let chains = ChainOptions {
        children: true,
        children_requested: true,
        graph: Some(Graph::default()),
        is_asked: false,
        ..asked.query.chains.clone()
    };
    let query = Query { chains, ..asked.query.clone() };
    let mut apart = apart(&query, &[&asked.base, &asked.new], &RunFacts::of)?;
    leave_out_empty(&mut apart);
    let has_chains = apart.groups.iter().flatten().any(|(profile, _)| profile.children);
    let all = events(&apart);
    let Some(event) = all.iter().find(|found| found.name == event.name).filter(|_| has_chains)
    else {
        return Ok(Causes::default());
    };
    let runs = grouping.runs.clone();
    let grouping =
        Grouping { apart: &apart, query: &query, runs, machines_differ: grouping.machines_differ };
    let shown: Vec<usize> = (0..asked.shown).collect();
    let with_callers = grouping.by(event, &shown, true);

    // Rows of the second count by their names, as those of the first.
    let mut known: FxHashMap<NamedBy<'_>, usize> = FxHashMap::default();
    for row in &marked {
        known.extend(grouped.rows.get(*row).map(|texts| (named(texts), *row)));
    }
    let number = |row: usize| known.get(&named(with_callers.rows.get(row)?)).copied();
    let mut walk = ChainWalk::new(&grouping, grouped.by_samples);
    let mut of_runs: BTreeMap<(usize, usize), FxHashMap<usize, usize>> = BTreeMap::new();
    for Placed { side, run, place, row } in &with_callers.places {
        if let Some(row) = number(*row) {
            of_runs.entry((*side, *run)).or_default().insert(*place, row);
        }
    }
    for ((side, run), rows) in &of_runs {
        let profile = apart.groups.get(*side).and_then(|group| group.get(*run));
        if let Some((profile, _)) = profile {
            walk.add(profile, *side, *run, rows);
        }
    }
    Ok(walk.causes(asked, grouped, comparison))
}

/// What names a row in any count: its names, and what else its cells have.
type NamedBy<'r> = (&'r [String], Vec<&'r str>);

fn named(texts: &RowLabels) -> NamedBy<'_> {
    let others = texts.cells.iter().enumerate().filter(|(place, _)| *place != texts.subject);
    (&texts.names, others.map(|(_, cell)| cell.as_str()).collect())
}

impl Causes {
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

/// Walk over all callchains.
struct ChainWalk {
    /// Number of base's runs.
    base: usize,
    runs: usize,
    by_samples: bool,
    /// Values of rows by run, without the samples of marked callees.
    rest: BTreeMap<usize, Vec<f64>>,
    /// Marked callees of rows.
    callees: BTreeMap<usize, BTreeSet<usize>>,
    /// Callers and what they call.
    neighbours: BTreeSet<(usize, usize)>,
}

impl ChainWalk {
    fn new(grouping: &Grouping<'_>, by_samples: bool) -> Self {
        let [base, new] = grouping.runs.each_ref().map(Vec::len);
        Self {
            base,
            runs: base + new,
            by_samples,
            rest: BTreeMap::new(),
            callees: BTreeMap::new(),
            neighbours: BTreeSet::new(),
        }
    }

    /// Adds the callchains of a run, given the numbers of the marked rows by their places.
    fn add(&mut self, profile: &Profile, side: usize, run: usize, rows: &FxHashMap<usize, usize>) {
        let calls = &profile.calls;
        let of_ids = calls.rows.iter().filter_map(|(id, place)| Some((*id, *rows.get(place)?)));
        let of_ids: FxHashMap<RowId, usize> = of_ids.collect();
        let run = if side == 0 { run } else { self.base + run };
        let mut path: Vec<Option<usize>> = Vec::new();
        for sample in &calls.samples {
            path.clear();
            let row = |class: u32| of_ids.get(&(sample.base, class)).copied();
            path.push(row(sample.class));
            let frames = sample.frames(&calls.chains).skip(usize::from(sample.is_in_chain));
            path.extend(frames.map(|frame| row(*calls.classes.get(frame as usize)?)));
            let count = if self.by_samples { sample.count.samples } else { sample.count.period };
            self.take(&path, run, count);
        }
    }

    /// Takes one callchain: the marked rows of its frames, innermost first.
    #[expect(clippy::cast_precision_loss, reason = "sums are exact up to 2^53")]
    fn take(&mut self, path: &[Option<usize>], run: usize, count: u64) {
        for pair in path.windows(2) {
            if let [Some(callee), Some(caller)] = pair
                && callee != caller
            {
                self.neighbours.insert((*caller, *callee));
            }
        }
        let rows: BTreeSet<usize> = path.iter().flatten().copied().collect();
        for row in rows {
            let outermost = path.iter().rposition(|found| *found == Some(row)).unwrap_or(0);
            let inner = path.iter().take(outermost).flatten().filter(|inner| **inner != row);
            let inner: BTreeSet<usize> = inner.copied().collect();
            if inner.is_empty() {
                let rest = self.rest.entry(row).or_insert_with(|| vec![0.0; self.runs]);
                rest.get_mut(run).into_iter().for_each(|rest| *rest += count as f64);
            } else {
                self.callees.entry(row).or_default().extend(inner);
            }
        }
    }

    fn causes(self, asked: &DiffQuery, grouped: &Grouped, comparison: &Comparison) -> Causes {
        let mut causes = Causes::default();
        if asked.query.chains.children {
            let nothing = vec![0.0; self.runs];
            for (row, callees) in self.callees {
                let rest = self.rest.get(&row).unwrap_or(&nothing);
                if comparison.is_explained(rest, asked.options.min_impact) {
                    causes.because.insert(row, callees.into_iter().collect());
                }
            }
            causes.keep_roots();
        } else {
            let values: Vec<&[f64]> = grouped.sides.own.rows().collect();
            let neighbours: Vec<(usize, usize)> = self.neighbours.into_iter().collect();
            causes.moved =
                comparison.moved(&neighbours, |row| values.get(row).copied().unwrap_or_default());
        }
        causes
    }
}
