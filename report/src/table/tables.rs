//! The tables of a profile's events.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;

use super::cells::{Cells, LabelTexts};
use super::event_table::{EventTable, at};
use crate::count::Count;
use crate::profile::names::ProfileNames;
use crate::profile::stacks::RowIndex;
use crate::profile::{Event, Profile};
use crate::query::{Number, Query, TableColumn};

/// Returns the columns of tables. If children were counted, inserts their column before a
/// leading overhead column.
pub(crate) fn shown(profile: &Profile, query: &Query) -> Vec<TableColumn> {
    let mut shown = query.shown.clone();
    let own = TableColumn::Number(Number::Overhead);
    if profile.children
        && shown.first() == Some(&own)
        && !shown.contains(&TableColumn::Number(Number::Children))
    {
        shown.insert(0, TableColumn::Number(Number::Children));
        if shown.contains(&TableColumn::Number(Number::Seconds)) {
            shown.insert(1, TableColumn::Number(Number::ChildrenSeconds));
        }
    }
    shown
}

/// Returns one table per event, sorted, with the query's limits applied.
pub(crate) fn tables<'p>(profile: &'p Profile, query: &Query) -> Vec<EventTable<'p>> {
    let mut of_events = vec![Vec::new(); profile.events.len()];
    if let [places] = of_events.as_mut_slice() {
        *places = (0..profile.rows.len()).into_par_iter().collect();
    } else {
        for (place, (key, _)) in profile.rows.iter().enumerate() {
            let event = key.first().and_then(|event| usize::try_from(*event).ok());
            if let Some(places) = event.and_then(|event| of_events.get_mut(event)) {
                places.push(place);
            }
        }
    }
    let events = profile.events.iter().zip(&of_events);
    let mut tables: Vec<EventTable<'_>> =
        events.map(|(event, places)| table(profile, event, places, query)).collect();
    let (least, most) = match query.hierarchy || query.group {
        // They apply the limits themselves, to their merged rows.
        true => (None, usize::MAX),
        false => (query.percent_limit, query.limit.unwrap_or(usize::MAX)),
    };
    let mut used = None;
    if least.is_some() || most < usize::MAX {
        // Labels of rows that are not shown need no texts.
        let used = used.insert(vec![false; profile.names.labels()]);
        for (table, places) in tables.iter().zip(&mut of_events) {
            *places = table.candidates(places, least, most);
            let cells = places.iter().filter_map(|place| at(&profile.rows, *place));
            for label in cells.flat_map(|(cells, _)| table.cells.labels_of(cells)) {
                used.get_mut(label).into_iter().for_each(|used| *used = true);
            }
        }
    }
    let texts = Arc::new(LabelTexts::new(&profile.names, used.as_deref()));
    for (table, places) in tables.iter_mut().zip(&of_events) {
        table.cells.set_texts(&texts);
        table.sort(places, most);
    }
    tables
}

/// Returns the table of an event, without rows.
fn table<'p>(
    profile: &'p Profile,
    event: &'p Event,
    places: &[usize],
    query: &Query,
) -> EventTable<'p> {
    let in_rows =
        || places.iter().filter_map(|place| Some(profile.rows.value(*place)?.count)).sum();
    EventTable {
        name: &event.name,
        counts_time: event.counts_time,
        is_of_waits: event.is_of_waits,
        // `--percentage relative`: shares are of the samples that passed the filters.
        total: if query.style.is_relative { in_rows() } else { event.total },
        lost_samples: event.lost_samples,
        filtered_samples: event.filtered_samples,
        event_count: event.count,
        order: Vec::new(),
        rows: &profile.rows,
        cells: Cells::new(query, &profile.names),
        children: profile.children,
    }
}

/// The rows of a profile by their numbers, in no table.
pub(crate) struct RowTexts<'p> {
    profile: &'p Profile,
    cells: Cells<'p>,
}

impl<'p> RowTexts<'p> {
    pub(crate) fn new(profile: &'p Profile, query: &Query, names: &'p ProfileNames) -> Self {
        Self { profile, cells: Cells::new(query, names) }
    }

    /// Returns the event of a row, and its cells.
    pub(crate) fn row(&self, row: RowIndex) -> Option<(usize, &'p [u64])> {
        let (event, cells) = self.profile.rows.key(row).split_first()?;
        Some((usize::try_from(*event).ok()?, cells))
    }

    /// Returns the text of a cell, as that of one sample.
    pub(crate) fn text(&self, column: usize, cell: u64) -> Cow<'_, str> {
        self.cells.text(column, cell, &Count { samples: 1, period: 0 })
    }

    /// Returns the number of the thread or process in a cell.
    pub(crate) fn task(&self, column: usize, cell: u64) -> Option<i32> {
        self.cells.task(column, cell)
    }

    /// Returns the name of the thread or process in a cell: it follows the number and a colon.
    pub(crate) fn task_name(&self, column: usize, cell: u64) -> Option<String> {
        let number = self.task(column, cell)?.to_string();
        let text = self.text(column, cell);
        text.get(number.len() + 1..).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::metrics::Metrics;

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
            let tables = tables(&profile, &query);
            tables[0].rows().map(|row| row.count().samples).collect::<Vec<_>>()
        };
        assert_eq!(samples([(2, 3), (3, 2)]), samples([(3, 2), (2, 3)]));
    }

    #[test]
    fn rows_are_sorted_by_period_then_by_text_and_cut() {
        let mut profile = Profile::of_events(vec![Event::named("e")]);
        let rows = [("b", 5), ("a", 5), ("c", 90), ("b", 0)];
        let words = rows.iter().flat_map(|(text, _)| [0, profile.names.add_text(text)]).collect();
        let count = |period| Count { samples: 1, period };
        let metrics = rows.iter().map(|(_, period)| Metrics::of(count(*period), None)).collect();
        assert_eq!(profile.set_rows(words, metrics, false), [0, 1, 2, 0]);
        profile.add_total(0, Count { samples: 4, period: 100 }, 0, 0);
        let query = |line: &str| crate::cli::args::parse(line.split(' ').map(Into::into)).unwrap();
        let shown = |line: &str| {
            let tables = tables(&profile, &query(line));
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
