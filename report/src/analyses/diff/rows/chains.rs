//! Callchains of all runs as rows: who calls whom, and what a group of rows has together.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::runs::{RunFacts, leave_out_empty};
use super::events::{DiffEvent, events};
use super::grouped::{Grouped, Grouping, Placed};
use crate::callchain::RowId;
use crate::compare::RowCallers;
use crate::count::Count;
use crate::engine::gather::{Apart, apart};
use crate::query::{ChainOptions, Graph, Query, Source};

/// All runs, counted with their callchains.
pub(crate) struct ChainCounts {
    query: Query,
    apart: Apart<RunFacts>,
}

impl ChainCounts {
    /// Counts the recordings of both sides once more, with callchains; `None` if none has any.
    pub(crate) fn of(query: &Query, sides: [&[Source]; 2]) -> anyhow::Result<Option<Self>> {
        if query.mode.is_of_branches() {
            return Ok(None);
        }
        let chains = ChainOptions {
            children: true,
            children_requested: true,
            graph: Some(Graph::default()),
            is_asked: false,
            ..query.chains.clone()
        };
        let query = Query { chains, ..query.clone() };
        let mut apart = apart(&query, &sides, &RunFacts::of)?;
        leave_out_empty(&mut apart);
        let has_chains = apart.groups.iter().flatten().any(|(profile, _)| profile.children);
        Ok(has_chains.then_some(Self { query, apart }))
    }

    /// Returns what groups the rows of the same runs.
    pub(crate) fn grouping<'c>(&'c self, of: &Grouping<'_>) -> Grouping<'c> {
        Grouping {
            apart: &self.apart,
            query: &self.query,
            runs: of.runs.clone(),
            machines_differ: of.machines_differ,
        }
    }

    /// Returns the event of this name.
    pub(crate) fn event(&self, name: &str) -> Option<DiffEvent> {
        events(&self.apart).into_iter().find(|event| event.name == name)
    }
}

/// Walk over all callchains.
pub(crate) struct ChainWalk<'c> {
    apart: &'c Apart<RunFacts>,
    /// Rows of each run, by their ids in its callchains.
    rows: BTreeMap<(usize, usize), FxHashMap<RowId, usize>>,
    /// Number of base's runs.
    base: usize,
}

/// A callchain of a run.
pub(crate) struct WalkedChain<'w> {
    pub(crate) side: usize,
    /// Number of the run among those of both sides.
    pub(crate) run: usize,
    /// Rows of its frames, innermost first.
    pub(crate) rows: &'w [Option<usize>],
    pub(crate) count: Count,
}

impl<'c> ChainWalk<'c> {
    pub(crate) fn new(grouping: &Grouping<'c>, grouped: &Grouped) -> Self {
        let mut of_places: BTreeMap<(usize, usize), FxHashMap<usize, usize>> = BTreeMap::new();
        for Placed { side, run, place, row } in &grouped.places {
            of_places.entry((*side, *run)).or_default().insert(*place, *row);
        }
        let mut rows = BTreeMap::new();
        for ((side, run), places) in of_places {
            let profile = grouping.apart.groups.get(side).and_then(|group| group.get(run));
            let Some((profile, _)) = profile else { continue };
            let ids = profile.calls.rows.iter();
            let ids = ids.filter_map(|(id, place)| Some((*id, *places.get(place)?)));
            rows.insert((side, run), ids.collect::<FxHashMap<RowId, usize>>());
        }
        Self { apart: grouping.apart, rows, base: grouped.sides.base.len() }
    }

    /// Calls `take` with each distinct callchain of each run.
    pub(crate) fn walk(&self, mut take: impl FnMut(WalkedChain<'_>)) {
        let mut rows: Vec<Option<usize>> = Vec::new();
        for ((side, run), of_ids) in &self.rows {
            let profile = self.apart.groups.get(*side).and_then(|group| group.get(*run));
            let Some((profile, _)) = profile else { continue };
            let calls = &profile.calls;
            for sample in &calls.samples {
                rows.clear();
                let row = |class: u32| of_ids.get(&(sample.base, class)).copied();
                rows.push(row(sample.class));
                let frames = sample.frames(&calls.chains).skip(usize::from(sample.is_in_chain));
                rows.extend(frames.map(|frame| row(*calls.classes.get(frame as usize)?)));
                take(WalkedChain {
                    side: *side,
                    run: if *side == 0 { *run } else { self.base + run },
                    rows: &rows,
                    count: sample.count,
                });
            }
        }
    }

    /// Returns the direct callers of all rows.
    pub(crate) fn callers(&self) -> RowCallers {
        let mut pairs: [FxHashSet<(usize, usize)>; 2] = Default::default();
        let mut seen: [BTreeSet<usize>; 2] = Default::default();
        self.walk(|chain| {
            let (Some(pairs), Some(seen)) = (pairs.get_mut(chain.side), seen.get_mut(chain.side))
            else {
                return;
            };
            seen.extend(chain.rows.iter().flatten());
            for pair in chain.rows.windows(2) {
                if let [Some(callee), Some(caller)] = pair
                    && callee != caller
                {
                    pairs.insert((*callee, *caller));
                }
            }
        });
        let of = pairs.map(|pairs| {
            let mut of: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for (callee, caller) in pairs {
                of.entry(callee).or_default().insert(caller);
            }
            of
        });
        RowCallers { of, seen }
    }

    /// Returns the samples that have any row of a group in their callchains, by run, for each group.
    pub(crate) fn together(&self, groups: &[Vec<usize>], runs: usize) -> Vec<Vec<Count>> {
        let numbered = (0..).zip(groups);
        let of_rows: FxHashMap<usize, usize> = numbered
            .flat_map(|(number, rows)| rows.iter().map(move |row| (*row, number)))
            .collect();
        let mut sums = vec![vec![Count::default(); runs]; groups.len()];
        self.walk(|chain| {
            let groups = chain.rows.iter().flatten().filter_map(|row| of_rows.get(row));
            for group in groups.collect::<BTreeSet<&usize>>() {
                let of_run = sums.get_mut(*group).and_then(|runs| runs.get_mut(chain.run));
                of_run.into_iter().for_each(|sum| sum.add(chain.count));
            }
        });
        sums
    }
}
