//! The profile: rows with counts, of one file or of several merged. The views print it.
//!
//! A row's key is its event, then one cell per column ([`crate::table::cells`]); it becomes text
//! only when it is printed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::callchain::UnwindStats;
use crate::callchain::trees::{CallTrees, RowIndex};
use crate::count::metrics::Metrics;
use crate::count::{Count, Partition, add_all, distinct, joined};
use crate::query::{FilterValues, Number, Query, TableColumn, Warning};
use crate::symbols::labels::{FrameNames, Labels, ModuleName};
use crate::table::cells::Cells;
use crate::table::event_table::at;
pub(crate) use crate::table::event_table::{EventTable, Row};
use crate::table::module_use::ModuleUses;
use crate::table::recording::Recording;

/// Summary of one input.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InputSummary {
    pub path: String,
    pub bytes: u64,
    /// Number of records by type.
    pub records: BTreeMap<String, u64>,
    /// Number of records lost because they did not fit in a ring.
    pub lost_events: u64,
    pub lost_samples: u64,
    /// Number of samples dropped by BPF filters.
    pub filtered_samples: u64,
    /// `true` if the recording was ended properly and the file has all of it.
    pub complete: bool,
    /// Command, machine and duration of the recording.
    #[serde(skip)]
    pub recording: Recording,
}

/// An event, and all of its samples.
#[derive(Debug, Default)]
pub struct Event {
    pub name: String,
    /// `true` if periods are times, in nanoseconds.
    pub counts_time: bool,
    pub is_tracepoint: bool,
    pub total: Count,
    pub lost_samples: u64,
    pub filtered_samples: u64,
}

impl Event {
    /// Creates an event without samples.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// Everything that the views print.
#[derive(Debug, Default)]
pub struct Profile {
    pub inputs: Vec<InputSummary>,
    /// Problems with the inputs or the result.
    pub warnings: Vec<Warning>,
    /// The filters with the values that no sample has.
    pub(crate) filter_values: Vec<FilterValues>,
    /// Options that would show more of the inputs.
    pub hints: Vec<String>,
    /// Samples per module, counted if functions are shown.
    pub module_uses: ModuleUses,
    /// Texts of the rows' cells.
    pub labels: Labels,
    /// Texts of the frames of callchains.
    pub frames: Labels,
    /// Modules of the texts.
    pub modules: Vec<ModuleName>,
    /// Callchains, if rows show them or the output needs them.
    pub calls: CallTrees,
    /// Number of unwound user stacks, and of those cut short.
    pub chain_ends: UnwindStats,
    /// `true` if samples are also counted in their callers.
    pub children: bool,
    /// Whether any input has the tracepoint column, for each such column.
    pub traced: Vec<bool>,
    events: Vec<Event>,
    /// Rows of one file, or of several once they are settled.
    rows: Partition<Metrics>,
    /// Rows and callchains of several files, each file's apart. Rows of different files may be
    /// equal.
    waiting: Vec<(Partition<Metrics>, CallTrees)>,
    /// Rows of several files, to whose places the callchains refer.
    table: Vec<Partition<Metrics>>,
}

/// Number of waiting rows and samples at which they are merged. The more wait, the more often a
/// part of the table in a core's cache is used.
const MAX_WAITING: usize = 1 << 19;

impl Profile {
    /// Creates the profile of a file with these events.
    pub fn of_events(events: Vec<Event>) -> Self {
        Self { events, ..Self::default() }
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the event of a row, and the texts of its cells.
    pub fn root(&self, row: RowIndex, query: &Query) -> Option<(usize, Vec<String>)> {
        let (event, cells) = self.rows.key(row).split_first()?;
        let (texts, one) = (Cells::new(query, &self.labels), Count { samples: 1, period: 0 });
        let text = |(column, cell): (usize, &u64)| texts.text(column, *cell, &one).into_owned();
        Some((usize::try_from(*event).ok()?, cells.iter().enumerate().map(text).collect()))
    }

    /// Adds the profile of another file, with the answer to the same query and the same labels.
    /// Equal rows and lines wait for [`Self::settle`].
    pub fn append(&mut self, mut other: Self) {
        let places = self.places(&other.events);
        let place = |event: u64| {
            let place = usize::try_from(event).ok().and_then(|event| places.get(event)).copied();
            place.unwrap_or(0) as u64
        };
        let are_same = places.iter().copied().eq(0..places.len());
        if !other.table.is_empty() {
            other.settle_rows();
        }
        for mut one in other.waiting.into_iter().chain([(other.rows, other.calls)]) {
            if !are_same {
                one.0.set_first(place);
            }
            self.wait(one);
        }
        self.inputs.append(&mut other.inputs);
        self.warnings.append(&mut other.warnings);
        self.hints.append(&mut other.hints);
        FilterValues::merge(&mut self.filter_values, other.filter_values);
        self.module_uses.append(other.module_uses);
        self.chain_ends.add(other.chain_ends);
        self.children |= other.children;
        self.add_traced(&other.traced);
    }

    /// Lets the rows and callchains of another file wait, after its own ones.
    fn wait(&mut self, other: (Partition<Metrics>, CallTrees)) {
        if !self.rows.is_empty() {
            self.waiting.push((std::mem::take(&mut self.rows), std::mem::take(&mut self.calls)));
        }
        self.waiting.extend(Some(other).filter(|(rows, _)| !rows.is_empty()));
        if self.waiting.iter().map(|(rows, calls)| rows.len() + calls.samples.len()).sum::<usize>()
            >= MAX_WAITING
        {
            self.settle_waiting();
        }
    }

    /// Adds the waiting rows to the table, and the callchains to those of the table's rows.
    fn settle_waiting(&mut self) {
        let (waiting, calls): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().unzip();
        let places = add_all(&mut self.table, &waiting);
        for ((rows, places), calls) in waiting.iter().zip(&places).zip(calls) {
            let place =
                |row: RowIndex| places.get(row).map_or(0, |place| place.load(Ordering::Relaxed));
            self.calls.add(calls, |row| (place(row), rows.key(row)));
        }
    }

    fn settle_rows(&mut self) {
        self.settle_waiting();
        if !self.table.is_empty() {
            let (rows, index) = joined(std::mem::take(&mut self.table));
            self.rows = rows;
            self.calls.rows.iter_mut().for_each(|(_, row)| *row = index(*row));
        }
    }

    /// Merges equal rows.
    pub fn settle(&mut self) {
        self.settle_rows();
    }

    /// Returns the indexes of another file's events in the profile, after adding them. Events of
    /// several files with equal names are one; a file's second event of a name is the profile's
    /// second of that name.
    fn places(&mut self, events: &[Event]) -> Vec<usize> {
        let mut taken = Vec::new();
        for new in events {
            let free = |(place, event): (usize, &Event)| {
                (event.name == new.name && !taken.contains(&place)).then_some(place)
            };
            let place = self.events.iter().enumerate().find_map(free).unwrap_or_else(|| {
                let Event { name, counts_time, is_tracepoint, .. } = new;
                let (name, counts_time) = (name.clone(), *counts_time);
                self.events.push(Event {
                    name,
                    counts_time,
                    is_tracepoint: *is_tracepoint,
                    ..Event::default()
                });
                self.events.len() - 1
            });
            self.add_total(place, new.total, new.lost_samples, new.filtered_samples);
            taken.push(place);
        }
        taken
    }

    pub fn frame_names(&self) -> FrameNames<'_> {
        FrameNames { labels: &self.frames, modules: &self.modules }
    }

    /// Returns whether no sample is in it: of several files, once they are settled.
    pub fn is_without_rows(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the number of samples in the inputs, whether they were counted or not.
    pub fn samples(&self) -> u64 {
        self.inputs.iter().filter_map(|input| input.records.get("SAMPLE")).sum()
    }

    /// Records which tracepoint columns an input has.
    pub fn add_traced(&mut self, found: &[bool]) {
        self.traced.resize(self.traced.len().max(found.len()), false);
        self.traced.iter_mut().zip(found).for_each(|(all, one)| *all |= one);
    }

    pub fn add_total(
        &mut self,
        place: usize,
        total: Count,
        lost_samples: u64,
        filtered_samples: u64,
    ) {
        if let Some(event) = self.events.get_mut(place) {
            event.total.add(total);
            event.lost_samples = event.lost_samples.saturating_add(lost_samples);
            event.filtered_samples = event.filtered_samples.saturating_add(filtered_samples);
        }
    }

    /// Sets the rows, given their words, and returns the number of each in the profile: equal rows
    /// become one. With `are_distinct` no rows are equal, and the numbers are not listed: they are
    /// those of the rows.
    pub fn set_rows(
        &mut self,
        words: Vec<u64>,
        metrics: Vec<Metrics>,
        are_distinct: bool,
    ) -> Vec<RowIndex> {
        let width = words.len() / metrics.len().max(1);
        let (rows, places) = match are_distinct {
            true => (Partition::of_distinct(width, words, metrics), Vec::new()),
            false => distinct(width, words, metrics),
        };
        self.rows = rows;
        places
    }

    /// Returns the columns of tables. If children were counted, inserts their column before a
    /// leading overhead column.
    pub fn shown(&self, query: &Query) -> Vec<TableColumn> {
        let mut shown = query.shown.clone();
        let own = TableColumn::Number(Number::Overhead);
        if self.children
            && shown.first() == Some(&own)
            && !shown.contains(&TableColumn::Number(Number::Children))
        {
            shown.insert(0, TableColumn::Number(Number::Children));
        }
        shown
    }

    /// Returns one table per event, sorted, with the query's limits applied.
    pub fn tables(&self, query: &Query) -> Vec<EventTable<'_>> {
        let mut of_events = vec![Vec::new(); self.events.len()];
        if let [places] = of_events.as_mut_slice() {
            *places = (0..self.rows.len()).into_par_iter().collect();
        } else {
            for (place, (key, _)) in self.rows.iter().enumerate() {
                let event = key.first().and_then(|event| usize::try_from(*event).ok());
                event
                    .and_then(|event| of_events.get_mut(event))
                    .into_iter()
                    .for_each(|places| places.push(place));
            }
        }
        let table = |(event, places): (_, &Vec<usize>)| self.table(event, places, query);
        let mut tables: Vec<EventTable<'_>> =
            self.events.iter().zip(&of_events).map(table).collect();
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
            table.cells.ranks = Arc::clone(&ranks);
            table.sort(places, most);
        }
        tables
    }

    /// Returns the table of an event, without rows.
    fn table<'l>(&'l self, event: &'l Event, places: &[usize], query: &Query) -> EventTable<'l> {
        let in_rows =
            || places.iter().filter_map(|place| Some(self.rows.value(*place)?.count)).sum();
        EventTable {
            name: &event.name,
            counts_time: event.counts_time,
            // `--percentage relative`: shares are of the samples that passed the filters.
            total: if query.style.is_relative { in_rows() } else { event.total },
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
    use crate::callchain::Sample;
    use crate::callchain::trees::{Node, Shows, TreeOptions};
    use crate::symbols::labels::SharedLabels;

    #[test]
    fn events_of_several_files_are_merged_by_name() {
        let events = |list: &[&str]| {
            Profile::of_events(list.iter().map(|name| Event::named(name)).collect())
        };
        let mut profile = events(&["a", "b", "a"]);
        assert_eq!(profile.places(&events(&["b", "a", "c", "a"]).events), [1, 0, 3, 2]);
    }

    /// Returns the profile of a file with rows of one sample each.
    fn of_file(rows: &[(&str, u64)], labels: &SharedLabels) -> Profile {
        let mut profile = Profile::of_events(vec![Event::named("e")]);
        let mut labels = labels.lock();
        let words = rows
            .iter()
            .flat_map(|(text, number)| [0, labels.intern((*text).into()).into(), *number]);
        let words = words.collect();
        let metrics = vec![Metrics::of(Count { samples: 1, period: 1 }, None); rows.len()];
        profile.set_rows(words, metrics, false);
        profile
    }

    fn sorted(profile: &Profile) -> Vec<(&str, u64, u64)> {
        let row = |(key, metrics): (&'_ [u64], &Metrics)| {
            (profile.labels.text(key[1]), key[2], metrics.count.samples)
        };
        let mut rows: Vec<_> = profile.rows.iter().map(row).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn rows_of_several_files_are_merged_by_text() {
        let labels = SharedLabels::default();
        let mut all = of_file(&[("a", 7), ("b", 8)], &labels);
        all.append(of_file(&[("b", 8), ("a", 9)], &labels));
        all.labels = labels.into_inner();
        all.settle();
        assert_eq!(sorted(&all), [("a", 7, 1), ("a", 9, 1), ("b", 8, 2)]);
    }

    #[test]
    fn many_rows_are_merged_before_all_files_are_read() {
        let labels = SharedLabels::default();
        let of_file = |rows: &[(&str, u64)]| of_file(rows, &labels);
        let many: Vec<(&str, u64)> =
            (0..MAX_WAITING as u64 / 2).map(|number| ("a", number)).collect();
        let mut group = of_file(&many);
        let mut all = of_file(&[("b", 3), ("a", 3)]);
        group.append(of_file(&many));
        assert!(group.waiting.is_empty() && !group.table.is_empty());
        all.append(group);
        all.append(of_file(&many));
        assert!(all.waiting.is_empty());
        all.append(of_file(&[("b", 3), ("c", 4)]));
        all.labels = labels.into_inner();
        all.settle();
        let mut expected: Vec<_> =
            (0..MAX_WAITING as u64 / 2).map(|n| ("a", n, if n == 3 { 4 } else { 3 })).collect();
        expected.extend([("b", 3, 2), ("c", 4, 1)]);
        assert_eq!(sorted(&all), expected);
    }

    #[test]
    fn call_trees_keep_their_rows() {
        let labels = SharedLabels::default();
        let of_file = |rows: &[(&str, u64)]| of_file(rows, &labels);
        // Each row has a sample in a frame of its own.
        let with_calls = |rows: &[(&str, u64)]| {
            let mut profile = of_file(rows);
            let numbers = 0..u32::try_from(rows.len()).unwrap();
            let count = Count { samples: 1, period: 1 };
            let sample = |class| Sample {
                base: 0,
                class,
                frame: class,
                is_in_chain: true,
                callers: 0,
                count,
            };
            let shows = [(false, true), (true, false), (false, false)]
                .map(|(frame, base)| Shows { frame, base });
            profile.calls = CallTrees {
                samples: numbers.clone().map(sample).collect(),
                classes: numbers.clone().collect(),
                names: rows.iter().map(|(_, number)| u32::try_from(*number).unwrap()).collect(),
                rows: numbers.map(|class| ((0, class), class as usize)).collect(),
                shows: shows.into(),
                ..CallTrees::default()
            };
            profile
        };
        let many: Vec<(&str, u64)> = (0..MAX_WAITING as u64).map(|number| ("a", number)).collect();
        let mut all = of_file(&[("x", 1)]);
        for file in [
            of_file(&many),
            with_calls(&[("b", 3), ("a", 5)]),
            of_file(&many),
            with_calls(&[("a", 5)]),
        ] {
            all.append(file);
        }
        all.settle();
        all.labels = labels.into_inner();
        assert_eq!(all.rows.len(), many.len() + 2);
        let text = |(_, row): &(_, RowIndex)| {
            (all.labels.text(all.rows.key(*row)[1]), all.rows.key(*row)[2])
        };
        assert_eq!(all.calls.rows.iter().map(text).collect::<Vec<_>>(), [("b", 3), ("a", 5)]);
        let row = all.calls.rows[1].1;
        let wanted = TreeOptions {
            least: 1,
            share: 0.0,
            passed: false,
            children: false,
            from_caller: false,
        };
        let trees = all.calls.trees(&[row], all.frame_names(), wanted);
        assert_eq!(
            trees,
            [vec![Node {
                names: vec![5],
                own: Count { samples: 2, period: 2 },
                ..Node::default()
            }]]
        );
    }

    #[test]
    fn rows_with_equal_texts_have_one_order() {
        let query =
            crate::cli::args::parse("rep --mem-mode -s weight x".split(' ').map(Into::into))
                .unwrap();
        let samples = |rows: [(u64, u64); 2]| {
            let mut profile = Profile::of_events(vec![Event::named("e")]);
            let words = rows.iter().flat_map(|(weight, _)| [0, *weight]).collect();
            let count = |samples| Count { samples, period: 6 };
            let metrics = rows.map(|(_, samples)| Metrics::of(count(samples), None)).to_vec();
            profile.set_rows(words, metrics, false);
            let tables = profile.tables(&query);
            tables[0].rows().map(|row| row.count().samples).collect::<Vec<_>>()
        };
        assert_eq!(samples([(2, 3), (3, 2)]), samples([(3, 2), (2, 3)]));
    }

    #[test]
    fn rows_are_sorted_by_period_then_by_text_and_cut() {
        let mut profile = Profile::of_events(vec![Event::named("e")]);
        let rows = [("b", 5), ("a", 5), ("c", 90), ("b", 0)];
        let words = rows
            .iter()
            .flat_map(|(text, _)| [0, profile.labels.intern((*text).into()).into()])
            .collect();
        let count = |period| Count { samples: 1, period };
        let metrics = rows.iter().map(|(_, period)| Metrics::of(count(*period), None)).collect();
        assert_eq!(profile.set_rows(words, metrics, false), [0, 1, 2, 0]);
        profile.add_total(0, Count { samples: 4, period: 100 }, 0, 0);
        let query = |line: &str| crate::cli::args::parse(line.split(' ').map(Into::into)).unwrap();
        let shown = |line: &str| {
            let tables = profile.tables(&query(line));
            tables[0].rows().map(|r| (r.text(0).to_string(), r.percent())).collect::<Vec<_>>()
        };
        let rows = |list: &[(&str, f64)]| {
            list.iter().map(|(t, p)| ((*t).to_owned(), *p)).collect::<Vec<_>>()
        };
        assert_eq!(shown("rep -s comm x"), rows(&[("c", 90.0), ("a", 5.0), ("b", 5.0)]));
        assert_eq!(shown("rep -s comm --limit 2 x"), rows(&[("c", 90.0), ("a", 5.0)]));
        assert_eq!(shown("rep -s comm --limit 1 x"), rows(&[("c", 90.0)]));
        assert_eq!(shown("rep -s comm --limit 0 x"), []);
        assert_eq!(shown("rep -s comm --percent-limit 5.1 x"), rows(&[("c", 90.0)]));
    }
}
