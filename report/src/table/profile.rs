//! The profile: rows with counts, of one file or of several merged. The views print it.
//!
//! A row's key is its event, then one cell per column ([`crate::table::cells`]); it becomes text only when it is
//! printed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::callchain::folded::Folded;
use crate::callchain::trees::{CallTrees, RowIndex};
use crate::callchain::unwind::UnwindStats;
use crate::count::metrics::Metrics;
use crate::count::{Count, Partition, distinct};
use crate::query::Query;
use crate::query::fields::{Number, TableColumn};
use crate::query::warning::Warning;
use crate::table::cells::{Cells, Kind, Labelled, Labels};
use crate::table::event_table::at;
pub use crate::table::event_table::{EventTable, Row};
use crate::table::module_use::ModuleUses;
use crate::table::recording::Recording;

/// Summary of one input.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InputSummary {
    /// Name of the input.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of records by type.
    pub records: BTreeMap<String, u64>,
    /// Number of records lost because they did not fit in a ring.
    pub lost_events: u64,
    /// Number of lost samples.
    pub lost_samples: u64,
    /// Number of samples dropped by BPF filters.
    pub filtered_samples: u64,
    /// `true` if the recording was ended properly and the file has all of it.
    pub complete: bool,
    /// Command, machine and duration of the recording.
    #[serde(skip)]
    pub recording: Recording,
}

#[derive(Debug, Default)]
struct Event {
    name: String,
    total: Count,
    lost_samples: u64,
    filtered_samples: u64,
}

/// Everything that the views print.
#[derive(Debug, Default)]
pub struct Profile {
    /// The inputs.
    pub inputs: Vec<InputSummary>,
    /// Problems with the inputs or the result.
    pub warnings: Vec<Warning>,
    /// Options that would show more of the inputs.
    pub hints: Vec<String>,
    /// Samples per module, counted if functions are shown.
    pub module_uses: ModuleUses,
    /// Texts of the rows' cells.
    pub labels: Labels,
    /// Folded stacks.
    pub folded: Folded,
    /// Callchains for the call trees.
    pub calls: CallTrees,
    /// Number of unwound user stacks, and of those cut short.
    pub chain_ends: UnwindStats,
    /// `true` if samples are also counted in their callers.
    pub children: bool,
    /// Whether any input has the tracepoint column, for each such column.
    pub traced: Vec<bool>,
    events: Vec<Event>,
    rows: Partition<Metrics>,
}

impl Profile {
    /// Creates the profile of a file with these events.
    #[must_use]
    pub fn of_events(names: &[String]) -> Self {
        let event = |name: &String| Event { name: name.clone(), ..Event::default() };
        Self { events: names.iter().map(event).collect(), ..Self::default() }
    }

    /// Iterates over the names of the events.
    pub fn event_names(&self) -> impl Iterator<Item = &str> {
        self.events.iter().map(|event| event.name.as_str())
    }

    /// Adds the profile of another file, with the answer to the same query, whose columns have these kinds.
    pub fn append(&mut self, other: Self, kinds: &[Kind]) {
        let places = self.places(&other.events);
        let labels: Vec<u64> = other.labels.texts().map(|text| self.labels.intern(text.to_owned())).collect();
        if self.rows.is_empty() {
            self.rows = Partition::new(1 + kinds.len());
        }
        let mut key = Vec::new();
        let add = |(words, metrics): (&[u64], &Metrics)| {
            key.clear();
            key.extend_from_slice(words);
            let (event, cells) = key.split_first_mut()?;
            *event = *places.get(usize::try_from(*event).ok()?)? as u64;
            for (cell, _) in cells.iter_mut().zip(kinds).filter(|(_, kind)| **kind == Kind::Label) {
                *cell = *labels.get(usize::try_from(*cell).ok()?)?;
            }
            Some(self.rows.add(&key, metrics.clone()))
        };
        let rows: Vec<Option<RowIndex>> = other.rows.iter().map(add).collect();
        self.calls.append(other.calls, |row| *rows.get(row)?);
        self.folded.append(&other.folded, &places);
        self.inputs.extend(other.inputs);
        self.warnings.extend(other.warnings);
        self.hints.extend(other.hints);
        self.module_uses.append(other.module_uses);
        self.chain_ends.add(other.chain_ends);
        self.children |= other.children;
        self.add_traced(&other.traced);
    }

    /// Returns the indexes of another file's events in the profile, after adding them. Events of several files with
    /// equal names are one; a file's second event of a name is the profile's second of that name.
    fn places(&mut self, events: &[Event]) -> Vec<usize> {
        let mut taken = Vec::new();
        for new in events {
            let free =
                |(place, event): (usize, &Event)| (event.name == new.name && !taken.contains(&place)).then_some(place);
            let place = self.events.iter().enumerate().find_map(free).unwrap_or_else(|| {
                self.events.push(Event { name: new.name.clone(), ..Event::default() });
                self.events.len() - 1
            });
            self.add_total(place, new.total, new.lost_samples, new.filtered_samples);
            taken.push(place);
        }
        taken
    }

    /// Records which tracepoint columns an input has.
    pub fn add_traced(&mut self, found: &[bool]) {
        self.traced.resize(self.traced.len().max(found.len()), false);
        self.traced.iter_mut().zip(found).for_each(|(all, one)| *all |= one);
    }

    /// Adds to the totals of an event.
    pub fn add_total(&mut self, place: usize, total: Count, lost_samples: u64, filtered_samples: u64) {
        if let Some(event) = self.events.get_mut(place) {
            event.total.add(total);
            event.lost_samples = event.lost_samples.saturating_add(lost_samples);
            event.filtered_samples = event.filtered_samples.saturating_add(filtered_samples);
        }
    }

    /// Sets the rows, and returns the number of each in the profile: equal rows become one. With `are_distinct` no rows
    /// are equal, and the numbers are not listed: they are those of the rows.
    pub fn set_rows(&mut self, labelled: Labelled, metrics: Vec<Metrics>, are_distinct: bool) -> Vec<RowIndex> {
        let Labelled { width, words } = labelled;
        let (rows, places) = match are_distinct {
            true => (Partition::of_distinct(width, words, metrics), Vec::new()),
            false => distinct(width, words, metrics),
        };
        self.rows = rows;
        places
    }

    /// Returns the columns of tables. If children were counted, inserts their column before a leading overhead column.
    #[must_use]
    pub fn shown(&self, query: &Query) -> Vec<TableColumn> {
        let mut shown = query.shown.clone();
        let own = TableColumn::Number(Number::Overhead);
        if self.children && shown.first() == Some(&own) && !shown.contains(&TableColumn::Number(Number::Children)) {
            shown.insert(0, TableColumn::Number(Number::Children));
        }
        shown
    }

    /// Returns one table per event, sorted, with the query's limits applied.
    #[must_use]
    pub fn tables(&self, query: &Query) -> Vec<EventTable<'_>> {
        let mut of_events = vec![Vec::new(); self.events.len()];
        if let [places] = of_events.as_mut_slice() {
            places.extend(0..self.rows.len());
        } else {
            for (place, (key, _)) in self.rows.iter().enumerate() {
                let event = key.first().and_then(|event| usize::try_from(*event).ok());
                event.and_then(|event| of_events.get_mut(event)).into_iter().for_each(|places| places.push(place));
            }
        }
        let table = |(event, places): (_, &Vec<usize>)| self.table(event, places, query);
        let mut tables: Vec<EventTable<'_>> = self.events.iter().zip(&of_events).map(table).collect();
        let (least, most) = match query.hierarchy || query.group {
            // They apply the limits themselves, to their merged rows.
            true => (None, usize::MAX),
            false => (query.percent_limit, query.limit.unwrap_or(usize::MAX)),
        };
        let mut used = None;
        if least.is_some() || most < usize::MAX {
            // Texts of rows that are not shown need no ranks.
            let used = used.insert(vec![false; self.labels.len()]);
            for (table, places) in tables.iter().zip(&mut of_events) {
                *places = table.candidates(places, least, most);
                let cells = places.iter().filter_map(|place| at(&self.rows, *place));
                for label in cells.flat_map(|(cells, _)| table.cells.labels_of(cells)) {
                    used.get_mut(label).into_iter().for_each(|used| *used = true);
                }
            }
        }
        let ranks: Arc<[u32]> = self.labels.ranks(used.as_deref()).into();
        for (table, places) in tables.iter_mut().zip(&of_events) {
            table.cells = table.cells.clone().ranked(Arc::clone(&ranks));
            table.sort(places, most);
        }
        tables
    }

    /// Returns the table of an event, without rows.
    fn table<'l>(&'l self, event: &'l Event, places: &[usize], query: &Query) -> EventTable<'l> {
        let in_rows = || {
            let counts = places.iter().filter_map(|place| Some(self.rows.value(*place)?.count));
            counts.fold(Count::default(), |mut all, count| {
                all.add(count);
                all
            })
        };
        EventTable {
            name: &event.name,
            // `--percentage relative`: shares are of the samples that passed the filters.
            total: if query.style.relative { in_rows() } else { event.total },
            lost_samples: event.lost_samples,
            filtered_samples: event.filtered_samples,
            order: Vec::new(),
            rows: &self.rows,
            cells: Cells::new(query, &self.labels),
            children: self.children,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_several_files_are_merged_by_name() {
        let events = |list: &[&str]| Profile::of_events(&list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        let mut profile = events(&["a", "b", "a"]);
        assert_eq!(profile.places(&events(&["b", "a", "c", "a"]).events), [1, 0, 3, 2]);
    }

    #[test]
    fn rows_of_several_files_are_merged_by_text() {
        let of_file = |rows: &[(&str, u64)]| {
            let mut profile = Profile::of_events(&["e".into()]);
            let words = rows.iter().flat_map(|(text, number)| [0, profile.labels.intern((*text).into()), *number]);
            let words = words.collect();
            let count = Count { samples: 1, period: 1 };
            let metrics = vec![Metrics::of(count, None); rows.len()];
            profile.set_rows(Labelled { width: 3, words }, metrics, false);
            profile
        };
        let mut all = of_file(&[("a", 7), ("b", 8)]);
        all.append(of_file(&[("b", 8), ("a", 9)]), &[Kind::Label, Kind::Number]);
        let mut rows: Vec<_> =
            all.rows.iter().map(|(key, metrics)| (all.labels.text(key[1]), key[2], metrics.count.samples)).collect();
        rows.sort_unstable();
        assert_eq!(rows, [("a", 7, 1), ("a", 9, 1), ("b", 8, 2)]);
    }

    #[test]
    fn rows_with_equal_texts_have_one_order() {
        let query = crate::cli::args::parse("rep --mem-mode -s weight x".split(' ').map(Into::into)).unwrap();
        let samples = |rows: [(u64, u64); 2]| {
            let mut profile = Profile::of_events(&["e".into()]);
            let words = rows.iter().flat_map(|(weight, _)| [0, *weight]).collect();
            let count = |samples| Count { samples, period: 6 };
            let metrics = rows.map(|(_, samples)| Metrics::of(count(samples), None)).to_vec();
            profile.set_rows(Labelled { width: 2, words }, metrics, false);
            let tables = profile.tables(&query);
            tables[0].rows().map(|row| row.count().samples).collect::<Vec<_>>()
        };
        assert_eq!(samples([(2, 3), (3, 2)]), samples([(3, 2), (2, 3)]));
    }

    #[test]
    fn rows_are_sorted_by_period_then_by_text_and_cut() {
        let mut profile = Profile::of_events(&["e".into()]);
        let rows = [("b", 5), ("a", 5), ("c", 90), ("b", 0)];
        let words = rows.iter().flat_map(|(text, _)| [0, profile.labels.intern((*text).into())]).collect();
        let count = |period| Count { samples: 1, period };
        let metrics = rows.iter().map(|(_, period)| Metrics::of(count(*period), None)).collect();
        assert_eq!(profile.set_rows(Labelled { width: 2, words }, metrics, false), [0, 1, 2, 0]);
        profile.add_total(0, Count { samples: 4, period: 100 }, 0, 0);
        let query = |line: &str| crate::cli::args::parse(line.split(' ').map(Into::into)).unwrap();
        let shown = |line: &str| {
            let tables = profile.tables(&query(line));
            tables[0].rows().map(|r| (r.text(0).to_string(), r.percent())).collect::<Vec<_>>()
        };
        let rows = |list: &[(&str, f64)]| list.iter().map(|(t, p)| ((*t).to_owned(), *p)).collect::<Vec<_>>();
        assert_eq!(shown("rep -s comm x"), rows(&[("c", 90.0), ("a", 5.0), ("b", 5.0)]));
        assert_eq!(shown("rep -s comm --limit 2 x"), rows(&[("c", 90.0), ("a", 5.0)]));
        assert_eq!(shown("rep -s comm --limit 1 x"), rows(&[("c", 90.0)]));
        assert_eq!(shown("rep -s comm --limit 0 x"), []);
        assert_eq!(shown("rep -s comm --percent-limit 5.1 x"), rows(&[("c", 90.0)]));
    }
}
