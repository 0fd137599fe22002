//! Rows of an event compared, those that are one piece of code as one.
//!
//! ```text
//!   rows ─► compared ─┬─ nothing to explain ───────────────────────────────────────► answer
//!                     └─ new, gone, marked ─► callchains, if recorded ─► moves ─► joined rows
//!                                                      │                             │
//!                                                      └────► causes ◄── compared again
//! ```

use std::cell::OnceCell;

use super::causes::{Causes, JoinedRows};
use super::chains::{ChainCounts, ChainWalk};
use super::events::DiffEvent;
use super::grouped::{Grouped, Grouping};
use crate::compare::{Comparison, NotComparable, Options, RowCallers, Sides, compare};
use crate::query::{SortKey, Source};

/// Rows of an event and their comparison.
pub(crate) struct Compared {
    pub(crate) grouped: Grouped,
    /// `None` without a second side.
    pub(crate) comparison: Option<Comparison>,
    pub(crate) causes: Causes,
}

/// What rows are compared with.
pub(crate) struct Comparing<'a> {
    pub(crate) grouping: Grouping<'a>,
    options: &'a Options,
    sources: [&'a [Source]; 2],
    /// The same runs with callchains, counted when they are needed.
    chains: OnceCell<Option<ChainCounts>>,
}

impl<'a> Comparing<'a> {
    pub(crate) fn new(
        grouping: Grouping<'a>,
        options: &'a Options,
        sources: [&'a [Source]; 2],
    ) -> Self {
        Self { grouping, options, sources, chains: OnceCell::new() }
    }

    /// Compares the rows of an event by some of the columns; with `children`, samples also count in
    /// callers.
    pub(crate) fn rows(
        &self,
        event: &DiffEvent,
        columns: &[usize],
        children: bool,
    ) -> anyhow::Result<Compared> {
        let grouped = self.grouping.by(event, columns, children);
        if self.sources.iter().any(|sources| sources.is_empty()) {
            return Ok(Compared { grouped, comparison: None, causes: Causes::default() });
        }
        let comparison = self.compare(&grouped.sides)?;
        let mut keys = columns.iter().filter_map(|column| self.grouping.query.columns.get(*column));
        let has_functions = keys.any(|column| column.key == SortKey::Symbol);
        if !has_functions || !comparison.has_questions(&grouped.sides) {
            let (comparison, causes) = (Some(comparison), Causes::default());
            return Ok(Compared { grouped, comparison, causes });
        }
        if self.chains.get().is_none() {
            let counts = ChainCounts::of(self.grouping.query, self.sources)?;
            _ = self.chains.set(counts);
        }
        let chains = self.chains.get().and_then(Option::as_ref);
        match chains.and_then(|chains| Some((chains, chains.event(&event.name)?))) {
            Some((chains, event)) => self.with_chains(chains, &event, columns, children),
            None => self.joined(grouped, comparison),
        }
    }

    fn compare(&self, sides: &Sides) -> anyhow::Result<Comparison> {
        compare(sides, self.options).map_err(described)
    }

    /// Joins rows by their times alone.
    fn joined(&self, mut grouped: Grouped, comparison: Comparison) -> anyhow::Result<Compared> {
        let mut causes = Causes::default();
        let moves = comparison.moves(&grouped.sides, None);
        let comparison = match moves.is_empty() {
            true => comparison,
            false => {
                grouped.join(&moves, None, &mut causes);
                self.compare(&grouped.sides)?
            }
        };
        Ok(Compared { grouped, comparison: Some(comparison), causes })
    }

    /// Joins rows by times and callers, and finds causes of what is left.
    fn with_chains(
        &self,
        chains: &ChainCounts,
        event: &DiffEvent,
        columns: &[usize],
        children: bool,
    ) -> anyhow::Result<Compared> {
        let grouping = chains.grouping(&self.grouping);
        let mut grouped = grouping.by(event, columns, children);
        let walk = ChainWalk::new(&grouping, &grouped);
        let callers = walk.callers();
        let mut causes = Causes::default();
        // Time moves between rows that do not overlap.
        let own = Sides { children: None, ..grouped.sides.clone() };
        let moves = self.compare(&own)?.moves(&own, Some(&callers));
        grouped.join(&moves, Some(&callers), &mut causes);
        grouped.unite(&moves, &causes, &walk);
        let mut comparison = self.compare(&grouped.sides)?;
        let min_impact = self.options.min_impact;
        let moves = comparison.moved_frames(&grouped.sides, &callers, min_impact);
        if !moves.is_empty() {
            grouped.join(&moves, Some(&callers), &mut causes);
            grouped.unite(&moves, &causes, &walk);
            comparison = self.compare(&grouped.sides)?;
        }
        causes.find(&walk, &grouped, &comparison, min_impact);
        Ok(Compared { grouped, comparison: Some(comparison), causes })
    }
}

/// Describes what a comparison refuses to the user of the command.
pub(crate) fn described(refusal: NotComparable) -> anyhow::Error {
    match refusal {
        NotComparable::NoLength => anyhow::anyhow!(
            "--normalize time: a run has no two samples at different times, so its length is not \
             known"
        ),
        NotComparable::NoRuns => anyhow::anyhow!("{refusal}"),
    }
}

impl Grouped {
    /// Makes one row of each group: the first one has the values of all.
    fn join(&mut self, groups: &[Vec<usize>], callers: Option<&RowCallers>, causes: &mut Causes) {
        for group in groups {
            let Some((row, others)) = group.split_first() else { continue };
            let has = |row: usize, side: usize| self.has_samples(row, side, callers);
            let mut joined = causes.joined.remove(row).unwrap_or_else(|| JoinedRows {
                is_in_base: has(*row, 0),
                ..JoinedRows::default()
            });
            for other in others {
                let earlier = causes.joined.remove(other);
                joined
                    .both
                    .extend(earlier.into_iter().flat_map(|rows| rows.all().collect::<Vec<_>>()));
                match (has(*other, 0), has(*other, 1)) {
                    (true, false) => joined.gone.push(*other),
                    (false, _) => joined.new.push(*other),
                    (true, true) => joined.both.push(*other),
                }
            }
            self.labels.join(*row, others, |other| joined.gone.contains(&other));
            for other in others {
                self.sides.own.join(*other, *row);
                self.sides.children.iter_mut().for_each(|values| values.join(*other, *row));
                let samples = self.samples.get_mut(*other).map(std::mem::take).unwrap_or_default();
                let into = self.samples.get_mut(*row).into_iter().flatten();
                into.zip(samples).for_each(|(into, samples)| *into += samples);
            }
            if let Some(facts) = self.sides.facts.get_mut(*row) {
                facts.is_renamed = true;
            }
            causes.joined.insert(*row, joined);
        }
    }

    /// Returns whether a side has samples of a row, or of what it calls.
    fn has_samples(&self, row: usize, side: usize, callers: Option<&RowCallers>) -> bool {
        let samples = self.samples.get(row).and_then(|sides| sides.get(side));
        let seen = callers.and_then(|callers| callers.seen.get(side));
        samples.is_some_and(|samples| *samples > 0) || seen.is_some_and(|seen| seen.contains(&row))
    }

    /// Counts callees of joined rows once for each sample.
    fn unite(&mut self, groups: &[Vec<usize>], causes: &Causes, walk: &ChainWalk<'_>) {
        let (base, unit) = (self.sides.base.len(), self.sides.unit);
        let runs = base + self.sides.new.len();
        let Some(children) = &mut self.sides.children else { return };
        let rows: Vec<usize> = groups.iter().filter_map(|group| group.first().copied()).collect();
        let all = rows.iter().map(|row| {
            let others = causes.joined.get(row).into_iter().flat_map(JoinedRows::all);
            std::iter::once(*row).chain(others).collect()
        });
        let sums = walk.together(&all.collect::<Vec<Vec<usize>>>(), runs);
        for (row, counts) in rows.iter().zip(sums) {
            let values: Vec<f64> = counts.iter().map(|count| unit.value(count)).collect();
            children.set(*row, &values);
            let (of_base, of_new) = counts.split_at_checked(base).unwrap_or((&counts, &[]));
            if let Some(samples) = self.samples.get_mut(*row) {
                *samples = [of_base, of_new].map(|runs| runs.iter().map(|run| run.samples).sum());
            }
        }
    }
}
