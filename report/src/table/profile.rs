//! The profile: rows with counts, of one file or of several merged. The views print it.
//!
//! A row's key is its event, then one cell per column ([`crate::table::cells`]); it becomes text only when it is printed.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::callchain::folded::Folded;
use crate::callchain::trees::{CallTrees, RowIndex};
use crate::callchain::unwind::UnwindStats;
use crate::count::metrics::{Metrics, share};
use crate::count::{Count, Partition, distinct};
use crate::query::Query;
use crate::query::fields::{Number, TableColumn};
use crate::query::warning::Warning;
use crate::table::cells::{Cells, Kind, Labelled, Labels};
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
    /// Whether the recording was ended properly and the file has all of it.
    pub complete: bool,
    /// Command, machine and duration of the recording.
    #[serde(skip)]
    pub recording: Recording,
}

/// A row of an [`EventTable`].
#[derive(Clone, Copy, Debug)]
pub struct Row<'l> {
    table: &'l EventTable<'l>,
    cells: &'l [u64],
    /// Counts and metrics of the row.
    pub metrics: &'l Metrics,
    /// Number of the row in the profile, by which [`Profile::calls`] finds its call tree.
    pub place: RowIndex,
}

impl<'l> Row<'l> {
    /// Returns the row's own (self) count.
    #[must_use]
    pub fn count(self) -> Count {
        self.metrics.count
    }

    /// Returns the self share of the event's period, in percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        self.table.percent(self.count())
    }

    /// Returns the children (inclusive) count and its share in percent; `None` if children were not counted.
    #[must_use]
    pub fn children(self) -> Option<(Count, f64)> {
        self.table.children.then(|| (self.metrics.all, self.table.percent(self.metrics.all)))
    }

    /// Returns the period by which rows are sorted: children's if counted, else the row's own.
    #[must_use]
    pub fn weight(self) -> u64 {
        self.table.weight(self.metrics)
    }

    /// Returns the cell in a column: its number, or the number of its text ([`Labels`]).
    #[must_use]
    pub fn cell(self, column: usize) -> u64 {
        self.cells.get(column).copied().unwrap_or(0)
    }

    /// Returns the text in a column.
    #[must_use]
    pub fn text(self, column: usize) -> Cow<'l, str> {
        self.cells.get(column).map_or("".into(), |cell| self.table.cells.text(column, *cell, &self.metrics.count))
    }

    /// Like [`Row::text`]; `buffer` holds texts that must be made.
    #[must_use]
    pub fn text_in<'b>(self, column: usize, buffer: &'b mut String) -> &'b str
    where
        'l: 'b,
    {
        let cell = self.cell(column);
        self.table.cells.text_in(column, cell, &self.metrics.count, buffer)
    }

    /// Returns the number of the label in a column ([`Labels`]); `None` if its cells are no labels.
    #[must_use]
    pub fn label(self, column: usize) -> Option<usize> {
        self.table.cells.label(column, self.cell(column))
    }

    /// Iterates over the texts of all columns.
    pub fn texts(self) -> impl ExactSizeIterator<Item = Cow<'l, str>> {
        (0..self.cells.len()).map(move |column| self.text(column))
    }
}

/// An event and its rows.
#[derive(Clone, Debug)]
pub struct EventTable<'l> {
    /// Name of the event.
    pub name: &'l str,
    /// Total of all samples of the event, in rows or not; only of those in rows if percentages are relative to them.
    pub total: Count,
    /// Number of lost samples.
    pub lost_samples: u64,
    /// Number of samples dropped by a BPF filter.
    pub filtered_samples: u64,
    /// Numbers of the displayed rows, sorted.
    order: Vec<usize>,
    rows: &'l Partition<Metrics>,
    cells: Cells<'l>,
    children: bool,
}

impl<'l> EventTable<'l> {
    /// Returns the number of displayed rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns whether no rows are displayed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns one of the rows for each index, in whichever order is in memory.
    #[must_use]
    pub fn any_row(&'l self, index: usize) -> Option<Row<'l>> {
        if self.order.len() == self.rows.len() { self.row_at(index) } else { self.row(index) }
    }

    /// Returns the row at `index`. Rows are sorted by period, largest first, then by text; if children are counted, by
    /// children's period, then callers before callees.
    #[must_use]
    pub fn row(&'l self, index: usize) -> Option<Row<'l>> {
        self.row_at(*self.order.get(index)?)
    }

    fn row_at(&'l self, place: usize) -> Option<Row<'l>> {
        let (cells, metrics) = at(self.rows, place)?;
        Some(Row { table: self, cells, metrics, place })
    }

    /// Iterates over the displayed rows.
    pub fn rows(&'l self) -> impl Iterator<Item = Row<'l>> {
        (0..self.len()).filter_map(|index| self.row(index))
    }

    fn percent(&self, count: Count) -> f64 {
        share(count.period, self.total.period)
    }

    fn weight(&self, metrics: &Metrics) -> u64 {
        if self.children { metrics.all.period } else { metrics.count.period }
    }

    /// Sorts the rows with these numbers and drops those below `least` percent or beyond the first `most`.
    fn sort(&mut self, places: &[usize], least: Option<f64>, most: usize) {
        let key = |place: usize| {
            let (cells, metrics) = at(self.rows, place)?;
            let weight = self.weight(metrics);
            let share = self.percent(Count { samples: 0, period: weight });
            let is_shown = least.is_none_or(|least| share >= least);
            is_shown.then(|| {
                let by_depth = || [!(metrics.depth as u64), !metrics.count.period];
                let prefix = if self.children { by_depth() } else { self.cells.prefix(cells, &metrics.count) };
                SortItem { weight: Reverse(weight), prefix, place }
            })
        };
        let compare = |a: &SortItem, b: &SortItem| {
            let by_prefix = (a.weight, a.prefix).cmp(&(b.weight, b.prefix));
            by_prefix.then_with(|| self.compare(a.place, b.place))
        };
        let first = |mut items: Vec<SortItem>| {
            if most < items.len() {
                if most > 0 {
                    items.select_nth_unstable_by(most - 1, compare);
                }
                items.truncate(most);
            }
            items
        };
        // The first of all are among the first of each part.
        let part = PART.max(most.saturating_mul(4)).min(places.len().max(1));
        let of_part = |places: &[usize]| first(places.iter().filter_map(|place| key(*place)).collect());
        let mut items = first(places.par_chunks(part).flat_map_iter(of_part).collect());
        items.par_sort_unstable_by(compare);
        self.order = items.into_iter().map(|item| item.place).collect();
    }

    /// Compares the cells of two rows with equal [`SortItem::prefix`].
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (Some((a_cells, a)), Some((b_cells, b))) = (at(self.rows, a), at(self.rows, b)) else {
            return Ordering::Equal;
        };
        // Weights that are multiplied by different numbers of samples may have the same text.
        let by_text = self.cells.compare((a_cells, &a.count), (b_cells, &b.count));
        by_text.then_with(|| a.count.samples.cmp(&b.count.samples))
    }
}

/// A row to be sorted.
#[derive(Clone, Copy, Debug)]
struct SortItem {
    weight: Reverse<u64>,
    /// What decides next: of children, the longest chain and the largest self period; else the first cells.
    prefix: [u64; 2],
    place: usize,
}

/// Number of rows of which a core takes the first ones at a time.
const PART: usize = 1 << 14;

/// Returns the cells and metrics of the row with this number.
fn at(rows: &Partition<Metrics>, place: usize) -> Option<(&[u64], &Metrics)> {
    Some((rows.key(place).get(1..)?, rows.value(place)?))
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
    /// Whether samples are also counted in their callers.
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

    /// Returns the indexes of another file's events in the profile, after adding them. Events of several files with equal
    /// names are one; a file's second event of a name is the profile's second of that name.
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

    /// Sets the rows, and returns the number of each in the profile: equal rows become one.
    pub fn set_rows(&mut self, labelled: Labelled, metrics: Vec<Metrics>) -> Vec<RowIndex> {
        let Labelled { width, words } = labelled;
        let (rows, places) = distinct(width, words, metrics);
        self.rows = rows;
        places
    }

    /// Sets the rows, which are all different.
    pub fn set_distinct_rows(&mut self, labelled: Labelled, metrics: Vec<Metrics>) {
        let Labelled { width, words } = labelled;
        self.rows = Partition::of_distinct(width, words, metrics);
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
        let cells = Cells::ranked(query, &self.labels, self.labels.ranks().into());
        let mut of_events = vec![Vec::new(); self.events.len()];
        if let [places] = of_events.as_mut_slice() {
            places.extend(0..self.rows.len());
        } else {
            for (place, (key, _)) in self.rows.iter().enumerate() {
                let event = key.first().and_then(|event| usize::try_from(*event).ok());
                event.and_then(|event| of_events.get_mut(event)).into_iter().for_each(|places| places.push(place));
            }
        }
        let table = |(event, places): (_, &Vec<usize>)| self.table(event, places, query, cells.clone());
        self.events.iter().zip(&of_events).map(table).collect()
    }

    fn table<'l>(&'l self, event: &'l Event, places: &[usize], query: &Query, cells: Cells<'l>) -> EventTable<'l> {
        // `--hierarchy` and `--group` apply the limits themselves, to their merged rows.
        let is_nested = query.hierarchy || query.group;
        let in_rows = || {
            let counts = places.iter().filter_map(|place| Some(self.rows.value(*place)?.count));
            counts.fold(Count::default(), |mut all, count| {
                all.add(count);
                all
            })
        };
        let mut table = EventTable {
            name: &event.name,
            // `--percentage relative`: shares are of the samples that passed the filters.
            total: if query.style.relative { in_rows() } else { event.total },
            lost_samples: event.lost_samples,
            filtered_samples: event.filtered_samples,
            order: Vec::new(),
            rows: &self.rows,
            cells,
            children: self.children,
        };
        let least = query.percent_limit.filter(|_| !is_nested);
        table.sort(places, least, query.limit.filter(|_| !is_nested).unwrap_or(usize::MAX));
        table
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
            let metrics = vec![Metrics { count, ..Metrics::default() }; rows.len()];
            profile.set_rows(Labelled { width: 3, words }, metrics);
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
            let metrics = rows.map(|(_, samples)| Metrics { count: count(samples), ..Metrics::default() }).to_vec();
            profile.set_rows(Labelled { width: 2, words }, metrics);
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
        let metrics = rows.iter().map(|(_, period)| Metrics { count: count(*period), ..Metrics::default() }).collect();
        assert_eq!(profile.set_rows(Labelled { width: 2, words }, metrics), [0, 1, 2, 0]);
        profile.add_total(0, Count { samples: 4, period: 100 }, 0, 0);
        let query = |line: &str| crate::cli::args::parse(line.split(' ').map(Into::into)).unwrap();
        let shown = |line: &str| {
            let tables = profile.tables(&query(line));
            tables[0].rows().map(|r| (r.text(0).to_string(), r.percent())).collect::<Vec<_>>()
        };
        let rows = |list: &[(&str, f64)]| list.iter().map(|(t, p)| ((*t).to_owned(), *p)).collect::<Vec<_>>();
        assert_eq!(shown("rep -s comm x"), rows(&[("c", 90.0), ("a", 5.0), ("b", 5.0)]));
        assert_eq!(shown("rep -s comm --limit 2 x"), rows(&[("c", 90.0), ("a", 5.0)]));
        assert_eq!(shown("rep -s comm --percent-limit 5.1 x"), rows(&[("c", 90.0)]));
    }
}
