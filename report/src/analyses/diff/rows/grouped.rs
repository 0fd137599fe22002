//! Rows of both sides: the counted rows of each run, matched across builds.
//!
//! ```text
//!   words of a counted row ─► number of its name ─┬─ names, the same for both sides ─► matched ─► row
//!                                                 └─ counts of each run ─────────────► values of rows
//! ```

use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::runs::RunFacts;
use super::events::DiffEvent;
use super::labels::{EventLabels, SideName, with_keys};
use crate::compare::matching::{Matched, matched};
use crate::compare::{RowFacts, RunValues, SideRun, Sides, Unit};
use crate::count::Count;
use crate::engine::gather::Apart;
use crate::profile::stacks::RowIndex;
use crate::query::{Column, Query, SortKey};
use crate::table::Cells;

/// Adds the columns that tell a function's module, if there is a column of functions.
pub(crate) fn add_module(columns: &mut Vec<Column>) {
    if columns.iter().any(|column| column.key == SortKey::Symbol) {
        for key in [SortKey::Dso, SortKey::Identity] {
            if columns.iter().all(|column| column.key != key) {
                columns.push(Column { typed: String::new(), key });
            }
        }
    }
}

/// Rows of an event, with their values in all runs.
pub(crate) struct Grouped {
    pub(crate) labels: EventLabels,
    pub(crate) sides: Sides,
    /// Numbers of samples of each row on both sides.
    pub(crate) samples: Vec<[u64; 2]>,
    /// Sums of the values of each row on both sides; only of whole callchains.
    pub(crate) sums: Vec<[u64; 2]>,
    /// Samples and periods of both sides.
    pub(crate) totals: [Count; 2],
    /// Share of the new side's samples that have no function.
    pub(crate) unresolved: f64,
    /// The row of each counted one.
    pub(crate) places: Vec<Placed>,
}

impl Grouped {
    /// Returns whether values are samples, not periods.
    pub(crate) fn by_samples(&self) -> bool {
        self.sides.unit == Unit::Samples
    }
}

/// Row of a counted one of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) side: usize,
    pub(crate) run: usize,
    /// Number of the counted row in the run's profile.
    pub(crate) place: RowIndex,
    pub(crate) row: usize,
}

/// What an event's rows are made of.
pub(crate) struct Grouping<'a> {
    pub(crate) apart: &'a Apart<RunFacts>,
    pub(crate) query: &'a Query,
    pub(crate) runs: [Vec<SideRun>; 2],
    pub(crate) machines_differ: bool,
}

/// The counted rows of both sides.
#[derive(Default)]
struct CountedRows {
    /// Words of distinct rows.
    words: IndexSet<Vec<u64>, FxBuildHasher>,
    sides: [Vec<RunCount>; 2],
}

/// Counts of a row in a run.
struct RunCount {
    /// Number of its words.
    name: usize,
    run: usize,
    /// Number of the row in the run's profile.
    place: RowIndex,
    own: Count,
    all: Count,
}

/// The rows of both sides, and the row of each name on each side.
struct MatchedRows {
    rows: Vec<Matched>,
    of_names: [FxHashMap<usize, usize>; 2],
}

impl Grouping<'_> {
    /// Groups an event's rows by some of the columns; with `children`, samples also count in callers.
    pub(crate) fn by(&self, event: &DiffEvent, columns: &[usize], children: bool) -> Grouped {
        let shown = with_keys(self.query, columns);
        let keys: Vec<SortKey> = shown.iter().map(|(_, key)| *key).collect();
        let mut told = shown;
        if keys.contains(&SortKey::Symbol) {
            // What tells a function's module, whether it is shown or not.
            let of_module = [SortKey::Dso, SortKey::Identity].into_iter();
            let of_module = of_module.filter(|key| !keys.contains(key));
            told.extend(of_module.filter_map(|key| Some((self.place(key)?, key))));
        }
        let columns: Vec<usize> = told.iter().map(|(column, _)| *column).collect();
        let counted = self.counted(event, &columns);
        let cells = Cells::new(self.query, &self.apart.names);
        let names = counted.words.iter();
        let names: Vec<SideName> =
            names.map(|words| SideName::of_words(words, &told, keys.len(), &cells)).collect();
        let matched = self.matched(&counted, &names);
        let mut grouped = self.values(&counted, &matched, &names, children);
        let rows = matched.rows.iter().map(|row| {
            let mut all: IndexSet<usize> = row.base.iter().chain(&row.new).copied().collect();
            let chosen = row.new.first().or(row.base.first()).copied();
            (all.drain(..).collect(), chosen, row.is_unknown)
        });
        grouped.labels = EventLabels::of_names(names, rows, &keys);
        grouped
    }

    /// Returns whether all periods of an event are equal.
    pub(crate) fn is_even(&self, event: &DiffEvent) -> bool {
        self.counted(event, &[]).is_even()
    }

    fn place(&self, key: SortKey) -> Option<usize> {
        self.query.columns.iter().position(|column| column.key == key)
    }

    /// Returns the counted rows of both sides, told apart by these columns.
    fn counted(&self, event: &DiffEvent, columns: &[usize]) -> CountedRows {
        let CountedRows { mut words, mut sides } = CountedRows::default();
        let mut key: Vec<u64> = Vec::new();
        let groups = event.places.iter().zip(&self.apart.groups);
        for (of_side, (places, profiles)) in sides.iter_mut().zip(groups) {
            for (run, ((profile, _), place)) in profiles.iter().zip(places).enumerate() {
                let number = place.and_then(|place| u64::try_from(place).ok());
                for (place, (row, metrics)) in profile.rows.iter().enumerate() {
                    let Some((of_event, cells)) = row.split_first() else { continue };
                    if Some(*of_event) != number {
                        continue;
                    }
                    key.clear();
                    let of_columns = columns.iter().map(|column| cells.get(*column));
                    key.extend(of_columns.map(|cell| cell.copied().unwrap_or(0)));
                    let name = match words.get_index_of(key.as_slice()) {
                        Some(name) => name,
                        None => words.insert_full(key.clone()).0,
                    };
                    let (own, all) = (metrics.count, metrics.all);
                    of_side.push(RunCount { name, run, place, own, all });
                }
            }
        }
        CountedRows { words, sides }
    }

    /// Matches the names of both sides; the numbers in rows are those of all names.
    fn matched(&self, counted: &CountedRows, names: &[SideName]) -> MatchedRows {
        let used = counted.sides.each_ref().map(|side| {
            let numbers = side.iter().map(|count| count.name);
            numbers.collect::<IndexSet<usize, FxBuildHasher>>()
        });
        let of_sides = used.each_ref().map(|used| {
            let names = used.iter().filter_map(|number| names.get(*number));
            names.map(SideName::as_row).collect::<Vec<_>>()
        });
        let [base, new] = &of_sides;
        // A side alone is like itself: all of its modules are the same files.
        let has_base = self.runs.first().is_some_and(|runs| !runs.is_empty());
        let mut rows = matched(if has_base { base } else { new }, new);
        let mut of_names = [FxHashMap::default(), FxHashMap::default()];
        let [used_base, used_new] = &used;
        for (number, row) in rows.iter_mut().enumerate() {
            let numbers = |places: &[usize], used: &IndexSet<usize, FxBuildHasher>| {
                let numbers = places.iter().filter_map(|place| used.get_index(*place));
                numbers.copied().collect::<Vec<usize>>()
            };
            row.base = numbers(&row.base, if has_base { used_base } else { used_new });
            row.new = numbers(&row.new, used_new);
            for (of_names, names) in of_names.iter_mut().zip([&row.base, &row.new]) {
                of_names.extend(names.iter().map(|name| (*name, number)));
            }
        }
        MatchedRows { rows, of_names }
    }

    /// Returns the values of rows in all runs, without names.
    fn values(
        &self,
        counted: &CountedRows,
        matched: &MatchedRows,
        names: &[SideName],
        children: bool,
    ) -> Grouped {
        let rows = &matched.rows;
        let mut own = RunValues::new(rows.len(), self.runs.iter().map(Vec::len).sum());
        let mut children = children.then(|| own.clone());
        let mut samples = vec![[0, 0]; rows.len()];
        let mut totals = [Count::default(); 2];
        let (mut places, mut of_runs) = (Vec::new(), self.runs.clone());
        let unit = if counted.is_even() { Unit::Samples } else { Unit::Periods };
        let mut resolved = Resolved::default();
        let mut first = 0;
        for (side, (counts, of_names)) in counted.sides.iter().zip(&matched.of_names).enumerate() {
            for RunCount { name, run, place, own: count, all } in counts {
                let Some(row) = of_names.get(name).copied() else { continue };
                places.push(Placed { side, run: *run, place: *place, row });
                own.add(row, first + run, unit.value(count));
                let taken = match &mut children {
                    Some(children) => {
                        children.add(row, first + run, unit.value(all));
                        all
                    }
                    None => count,
                };
                let of_row = samples.get_mut(row).and_then(|sides| sides.get_mut(side));
                of_row.into_iter().for_each(|samples| *samples += taken.samples);
                totals.get_mut(side).into_iter().for_each(|total| total.add(*count));
                let of_run = of_runs.get_mut(side).and_then(|runs| runs.get_mut(*run));
                of_run.into_iter().for_each(|run| run.samples += count.samples);
                if side == 1 {
                    let is_address = names.get(*name).is_some_and(SideName::is_address);
                    resolved.add(is_address, unit.value(count));
                }
            }
            first += self.runs.get(side).map_or(0, Vec::len);
        }
        let ([base, new], machines_differ) = (of_runs, self.machines_differ);
        let waits = Some(samples.as_slice()).filter(|_| self.query.mode.is_of_time());
        let facts = facts(rows, names, waits);
        Grouped {
            labels: EventLabels::default(),
            sides: Sides { base, new, unit, own, children, facts, machines_differ },
            samples,
            sums: Vec::new(),
            totals,
            unresolved: resolved.unresolved(),
            places,
        }
    }
}

/// Values of samples with and without a function.
#[derive(Default)]
struct Resolved {
    without: f64,
    all: f64,
}

impl Resolved {
    fn add(&mut self, is_address: bool, value: f64) {
        self.all += value;
        self.without += if is_address { value } else { 0.0 };
    }

    fn unresolved(&self) -> f64 {
        if self.all > 0.0 { self.without / self.all } else { 0.0 }
    }
}

impl CountedRows {
    /// Returns whether all periods are equal.
    fn is_even(&self) -> bool {
        let all = || self.sides.iter().flatten().map(|counted| counted.own);
        let total: Count = all().sum();
        let (samples, period) = (u128::from(total.samples), u128::from(total.period));
        all().all(|count| u128::from(count.period) * samples == u128::from(count.samples) * period)
    }
}

/// Returns what is known of rows by their names, and of times by the numbers of `waits` on both sides.
fn facts(rows: &[Matched], names: &[SideName], waits: Option<&[[u64; 2]]>) -> Vec<RowFacts> {
    let mut classes: IndexMap<&str, ()> = IndexMap::new();
    let of_row = |(number, row): (usize, &Matched)| {
        let name = row.base.first().or(row.new.first()).and_then(|number| names.get(*number));
        let rest = name.map_or("", |name| &name.rest);
        // A few long waits are no sample, however long they are.
        let waits = waits.and_then(|waits| waits.get(number));
        RowFacts {
            effective: waits.map_or(f64::INFINITY, |[base, new]| to_float(base + new)),
            is_renamed: row.is_renamed,
            is_rebuilt: row.is_rebuilt,
            class: classes.insert_full(rest, ()).0,
        }
    };
    rows.iter().enumerate().map(of_row).collect()
}

impl Unit {
    pub(crate) fn value(self, count: &Count) -> f64 {
        match self {
            Self::Samples => to_float(count.samples),
            Self::Periods => to_float(count.period),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums are exact up to 2^53")]
fn to_float(number: u64) -> f64 {
    number as f64
}
