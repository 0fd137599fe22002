//! Rows of both sides: the counted rows of each run, matched across builds.

use std::borrow::Cow;
use std::collections::BTreeSet;

use indexmap::IndexMap;
use recrep_console::demangle::demangled_fully;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::runs::RunFacts;
use crate::compare::matching::{CodeName, Matched, RowName, matched, module_key};
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

/// An event of both sides.
#[derive(Clone, Debug)]
pub(crate) struct DiffEvent {
    pub(crate) name: String,
    /// `true` if periods are times, in nanoseconds.
    pub(crate) counts_time: bool,
    /// Number of the event in each run of each side, if the run has it.
    pub(crate) places: [Vec<Option<usize>>; 2],
}

/// Returns the events that have samples, in the order in which they are found. Events of one name are
/// numbered in each file, and those of equal numbers are one.
pub(crate) fn events(apart: &Apart<RunFacts>) -> Vec<DiffEvent> {
    let mut found: IndexMap<(&str, usize), DiffEvent> = IndexMap::new();
    let mut sampled: BTreeSet<usize> = BTreeSet::new();
    let runs = [0, 1].map(|side| apart.groups.get(side).map_or(&[][..], Vec::as_slice));
    for (side, runs) in runs.iter().enumerate() {
        for (run, (profile, _)) in runs.iter().enumerate() {
            let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
            for (place, event) in profile.events().iter().enumerate() {
                let number = numbers.entry(&event.name).or_default();
                let entry = found.entry((&event.name, *number));
                *number += 1;
                let index = entry.index();
                let of_event = entry.or_insert_with(|| DiffEvent {
                    name: event.name.clone(),
                    counts_time: event.counts_time,
                    places: runs_without(&runs_len(&apart.groups)),
                });
                let of_side = of_event.places.get_mut(side);
                if let Some(of_run) = of_side.and_then(|places| places.get_mut(run)) {
                    *of_run = Some(place);
                }
                if event.total.samples > 0 {
                    sampled.insert(index);
                }
            }
        }
    }
    let all = found.into_values().enumerate();
    all.filter(|(index, _)| sampled.contains(index)).map(|(_, event)| event).collect()
}

fn runs_len<T>(groups: &[Vec<T>]) -> [usize; 2] {
    [0, 1].map(|side| groups.get(side).map_or(0, Vec::len))
}

fn runs_without(runs: &[usize; 2]) -> [Vec<Option<usize>>; 2] {
    runs.map(|runs| vec![None; runs])
}

/// A row of both sides, as it is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowLabels {
    /// Texts of the columns.
    pub(crate) cells: Vec<String>,
    /// The column of its function, else the first one: what rules name.
    pub(crate) subject: usize,
    /// Its names on both sides, whole.
    pub(crate) names: Vec<String>,
    /// All that rules may call what it stands for: its function, else its first column.
    pub(crate) aliases: Vec<String>,
}

impl RowLabels {
    /// Creates a row with one text.
    pub(crate) fn of_text(text: String) -> Self {
        Self { names: vec![text.clone()], cells: vec![text], ..Self::default() }
    }

    /// Returns its whole name, that of base if there are several.
    fn whole(&self) -> String {
        self.names.first().cloned().unwrap_or_default()
    }

    /// Returns the texts of so many columns: the function first, then its module and others.
    pub(crate) fn in_order(&self, columns: usize) -> impl Iterator<Item = &String> {
        let shown = || self.cells.iter().take(columns).enumerate();
        let first = shown().filter(|(place, _)| *place == self.subject);
        let rest = shown().filter(|(place, _)| *place != self.subject);
        first.chain(rest).map(|(_, cell)| cell)
    }

    /// Returns all that rules may call it, the name for messages first.
    pub(crate) fn names_for_rules(&self) -> Vec<String> {
        let mut names = vec![self.cells.get(self.subject).cloned().unwrap_or_default()];
        names.extend(self.aliases.iter().cloned());
        names
    }
}

/// Rows of an event, with their values in all runs.
pub(crate) struct Grouped {
    pub(crate) rows: Vec<RowLabels>,
    pub(crate) sides: Sides,
    /// Numbers of samples of each row on both sides.
    pub(crate) samples: Vec<[u64; 2]>,
    /// Sums of the values of each row on both sides; only of whole callchains.
    pub(crate) sums: Vec<[u64; 2]>,
    /// Samples and periods of both sides.
    pub(crate) totals: [Count; 2],
    /// `true` if values are samples, else periods.
    pub(crate) by_samples: bool,
    /// Share of the new side's samples that have no function.
    pub(crate) unresolved: f64,
    /// The row of each counted one.
    pub(crate) places: Vec<Placed>,
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

/// A counted row as one side names it.
struct SideName {
    texts: Vec<String>,
    module: String,
    identity: Option<String>,
    /// `None` if functions are no part of the key.
    code: Option<SideCode>,
    rest: String,
}

#[derive(PartialEq)]
enum SideCode {
    /// As the file spells it.
    Function(String),
    Address(u64),
}

/// Rows of a side: their names, and what each run counted.
#[derive(Default)]
struct SideRows {
    keys: IndexMap<Vec<u64>, (), FxBuildHasher>,
    counts: Vec<RunCount>,
}

/// Counts of a row in a run.
struct RunCount {
    name: usize,
    run: usize,
    /// Number of the row in the run's profile.
    place: RowIndex,
    own: Count,
    all: Count,
}

impl Grouping<'_> {
    /// Groups an event's rows by some of the columns; with `children`, samples also count in callers.
    pub(crate) fn by(&self, event: &DiffEvent, columns: &[usize], children: bool) -> Grouped {
        let symbol = columns.iter().position(|column| self.key(*column) == Some(SortKey::Symbol));
        // What tells a function's module, whether it is shown or not.
        let of_module =
            [self.place(SortKey::Dso), self.place(SortKey::Identity)].into_iter().flatten();
        let of_module = of_module.filter(|column| symbol.is_some() && !columns.contains(column));
        let told: Vec<usize> = columns.iter().copied().chain(of_module).collect();
        let sides = [0, 1].map(|side| self.side(side, event, &told));
        let cells = Cells::new(self.query, &self.apart.names);
        let names = sides.each_ref().map(|side| -> Vec<SideName> {
            side.keys.keys().map(|key| self.name(key, columns, &told, &cells)).collect()
        });
        let borrowed =
            names.each_ref().map(|names| names.iter().map(SideName::name).collect::<Vec<_>>());
        let [base, new] = &borrowed;
        // A side alone is like itself: all of its modules are the same files.
        let has_base = self.runs.first().is_some_and(|runs| !runs.is_empty());
        let rows = if has_base { matched(base, new) } else { matched(new, new) };

        let runs = self.runs.each_ref().map(Vec::len);
        let mut own = RunValues::new(rows.len(), runs.iter().sum());
        let mut children = children.then(|| own.clone());
        let mut samples = vec![[0, 0]; rows.len()];
        let mut totals = [Count::default(); 2];
        let mut places = Vec::new();
        let mut of_runs = self.runs.clone();
        let is_even = is_even(&sides);
        let unit = if is_even { Unit::Samples } else { Unit::Periods };
        let value = |count: &Count| to_float(if is_even { count.samples } else { count.period });
        let (mut resolved, mut unresolved) = (0.0, 0.0);
        for (side, counted) in sides.iter().enumerate() {
            let mut of_name = vec![0; counted.keys.len()];
            for (row, matched) in rows.iter().enumerate() {
                for name in if side == 0 { &matched.base } else { &matched.new } {
                    of_name.get_mut(*name).into_iter().for_each(|of| *of = row);
                }
            }
            let first = if side == 0 { 0 } else { runs[0] };
            for RunCount { name, run, place, own: count, all } in &counted.counts {
                let Some(row) = of_name.get(*name).copied() else { continue };
                places.push(Placed { side, run: *run, place: *place, row });
                own.add(row, first + run, value(count));
                children.iter_mut().for_each(|counts| counts.add(row, first + run, value(all)));
                let taken = if children.is_some() { all } else { count };
                let of_row = samples.get_mut(row).and_then(|sides| sides.get_mut(side));
                of_row.into_iter().for_each(|samples| *samples += taken.samples);
                totals.get_mut(side).into_iter().for_each(|total| total.add(*count));
                let of_run = of_runs.get_mut(side).and_then(|runs| runs.get_mut(*run));
                of_run.into_iter().for_each(|run| run.samples += count.samples);
                if side == 1 {
                    let name = names.get(side).and_then(|names| names.get(*name));
                    let is_address =
                        name.is_some_and(|name| matches!(name.code, Some(SideCode::Address(_))));
                    *(if is_address { &mut unresolved } else { &mut resolved }) += value(count);
                }
            }
        }
        let facts =
            rows.iter().map(|row| RowFacts { is_renamed: row.is_renamed, ..RowFacts::default() });
        let [base, new] = of_runs;
        let sides = Sides {
            base,
            new,
            unit,
            own,
            children,
            facts: facts.collect(),
            machines_differ: self.machines_differ,
        };
        let of_row = |row: &Matched| {
            let [base, new] = &names;
            let of = |numbers: &[usize], names: &'_ [SideName]| -> Vec<usize> {
                numbers.iter().copied().filter(|number| *number < names.len()).collect()
            };
            let (in_base, in_new) = (of(&row.base, base), of(&row.new, new));
            let all: Vec<&SideName> = in_base
                .iter()
                .filter_map(|at| base.get(*at))
                .chain(in_new.iter().filter_map(|at| new.get(*at)))
                .collect();
            let chosen = in_new.first().and_then(|at| new.get(*at));
            let chosen = chosen.or_else(|| all.first().copied());
            self.texts(columns, chosen, &all, row.is_unknown)
        };
        let mut texts: Vec<RowLabels> = rows.iter().map(of_row).collect();
        if let Some(symbol) = symbol {
            disambiguate(&mut texts, symbol);
        }
        let all = resolved + unresolved;
        let unresolved = if all > 0.0 { unresolved / all } else { 0.0 };
        Grouped {
            rows: texts,
            sides,
            samples,
            sums: Vec::new(),
            totals,
            by_samples: is_even,
            unresolved,
            places,
        }
    }

    /// Returns whether all periods of an event are equal.
    pub(crate) fn is_even(&self, event: &DiffEvent) -> bool {
        let sides = [0, 1].map(|side| self.side(side, event, &[]));
        is_even(&sides)
    }

    fn place(&self, key: SortKey) -> Option<usize> {
        self.query.columns.iter().position(|column| column.key == key)
    }

    fn key(&self, column: usize) -> Option<SortKey> {
        self.query.columns.get(column).map(|column| column.key)
    }

    /// Returns the rows of a side, told apart by these columns.
    fn side(&self, side: usize, event: &DiffEvent, columns: &[usize]) -> SideRows {
        let mut rows = SideRows::default();
        let places = event.places.get(side).map_or(&[][..], Vec::as_slice);
        let profiles = self.apart.groups.get(side).map_or(&[][..], Vec::as_slice);
        let mut key: Vec<u64> = Vec::new();
        for (run, ((profile, _), place)) in profiles.iter().zip(places).enumerate() {
            let Some(number) = place.and_then(|place| u64::try_from(place).ok()) else { continue };
            for (place, (words, metrics)) in profile.rows.iter().enumerate() {
                let Some((event, cells)) = words.split_first() else { continue };
                if *event != number {
                    continue;
                }
                key.clear();
                key.extend(columns.iter().map(|column| cells.get(*column).copied().unwrap_or(0)));
                let name = match rows.keys.get_index_of(key.as_slice()) {
                    Some(name) => name,
                    None => rows.keys.insert_full(key.clone(), ()).0,
                };
                let (own, all) = (metrics.count, metrics.all);
                rows.counts.push(RunCount { name, run, place, own, all });
            }
        }
        rows
    }

    /// Returns how a side names the row with these words.
    fn name(
        &self,
        words: &[u64],
        columns: &[usize],
        told: &[usize],
        cells: &Cells<'_>,
    ) -> SideName {
        let one = Count { samples: 1, period: 0 };
        let text = |column: usize, word: u64| cells.text(column, word, &one);
        let mut name = SideName {
            texts: Vec::with_capacity(columns.len()),
            module: String::new(),
            identity: None,
            code: None,
            rest: String::new(),
        };
        for (place, (column, word)) in told.iter().zip(words).enumerate() {
            let shown = text(*column, *word);
            match self.key(*column) {
                Some(SortKey::Identity) => {
                    name.identity = Some(shown.into_owned()).filter(|text| !text.is_empty());
                    continue;
                }
                Some(SortKey::Dso | SortKey::DsoPath) => name.module = shown.clone().into_owned(),
                Some(SortKey::Symbol) => name.code = Some(code(cells, *column, *word, &shown)),
                _ => {
                    name.rest.push_str(&shown);
                    name.rest.push('\0');
                }
            }
            if place < columns.len() {
                name.texts.push(shown.into_owned());
            }
        }
        name
    }

    /// Returns the texts of a row, given the name that it is printed with, and all of its names.
    fn texts(
        &self,
        columns: &[usize],
        chosen: Option<&SideName>,
        all: &[&SideName],
        is_unknown: bool,
    ) -> RowLabels {
        let mut row = RowLabels::default();
        let Some(chosen) = chosen else { return row };
        let module = module_key(&chosen.module);
        let symbol = columns.iter().position(|column| self.key(*column) == Some(SortKey::Symbol));
        let subject = symbol.unwrap_or(0);
        row.subject = subject;
        for (column, text) in columns.iter().zip(&chosen.texts) {
            row.cells.push(match self.key(*column) {
                Some(SortKey::Symbol) if is_unknown => format!("{module}+?"),
                // Its number is that of a process.
                Some(SortKey::Dso) if module == "[JIT]" => module.to_string(),
                _ => text.clone(),
            });
        }
        let are_modules_one = all.iter().all(|name| module_key(&name.module) == module);
        let mut before = None;
        for name in all {
            // Most rows have one name on both sides.
            let this = (&name.code, &name.module, &name.texts);
            if before.replace(this) == Some(this) {
                continue;
            }
            let (whole, alias) = match &name.code {
                Some(SideCode::Function(function)) => {
                    (demangled_fully(function.as_bytes()).into_owned(), Some(function.as_str()))
                }
                Some(SideCode::Address(address)) => (format!("{}+{address:#x}", name.module), None),
                None => (name.texts.join(" "), None),
            };
            row.aliases.extend(alias.map(str::to_owned));
            row.aliases.extend(name.texts.get(subject).cloned());
            row.aliases.push(whole.clone());
            let whole = match are_modules_one {
                true => whole,
                false => format!("{whole} ({})", name.module),
            };
            if !row.names.contains(&whole) {
                row.names.push(whole);
            }
        }
        row.aliases.extend(row.cells.get(subject).cloned());
        if self.key(columns.get(subject).copied().unwrap_or(0)) == Some(SortKey::Dso) {
            row.aliases.push(module.to_string());
        }
        row.aliases.sort_unstable();
        row.aliases.dedup();
        row
    }
}

/// Returns whether all periods are equal.
fn is_even(sides: &[SideRows; 2]) -> bool {
    let all = || sides.iter().flat_map(|side| &side.counts).map(|counted| counted.own);
    let total: Count = all().sum();
    let (samples, period) = (u128::from(total.samples), u128::from(total.period));
    all().all(|count| u128::from(count.period) * samples == u128::from(count.samples) * period)
}

/// Returns the code that a cell of a column of functions names.
fn code(cells: &Cells<'_>, column: usize, word: u64, shown: &str) -> SideCode {
    match cells.address(column, word) {
        Some(address) => SideCode::Address(address),
        None => SideCode::Function(cells.mangled(column, word).unwrap_or_else(|| shown.to_owned())),
    }
}

impl SideName {
    fn name(&self) -> RowName<'_> {
        RowName {
            module: &self.module,
            identity: self.identity.as_deref(),
            code: match &self.code {
                None => CodeName::Any,
                Some(SideCode::Function(name)) => CodeName::Function(name),
                Some(SideCode::Address(address)) => CodeName::Address(*address),
            },
            rest: &self.rest,
        }
    }
}

/// Spells functions out that would read alike.
fn disambiguate(rows: &mut [RowLabels], symbol: usize) {
    for round in 0..2 {
        let mut alike: FxHashMap<&[String], usize> = FxHashMap::default();
        for row in rows.iter() {
            *alike.entry(&row.cells).or_default() += 1;
        }
        let alike: Vec<bool> =
            rows.iter().map(|row| alike.get(row.cells.as_slice()) > Some(&1)).collect();
        for (row, _) in rows.iter_mut().zip(alike).filter(|(_, is_alike)| *is_alike) {
            let name = match round {
                0 => row.whole(),
                _ => {
                    let spelt = row.aliases.iter().find(|alias| alias.starts_with('_'));
                    let spelt =
                        spelt.map_or(Cow::Borrowed(""), |spelt| format!(" ({spelt})").into());
                    format!("{}{spelt}", row.whole())
                }
            };
            row.cells.get_mut(symbol).into_iter().for_each(|cell| cell.clone_from(&name));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums are exact up to 2^53")]
fn to_float(number: u64) -> f64 {
    number as f64
}
