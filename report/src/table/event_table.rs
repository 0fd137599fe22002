//! The table of one event: its rows in order, within the limits.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::ops::Range;

use rayon::prelude::*;
use recrep_format::bytes::read_early;

use crate::count::metrics::{Metrics, share};
use crate::count::{Count, Partition};
use crate::profile::counts::EventCount;
use crate::profile::names::{FileOffset, FunctionId};
use crate::profile::stacks::RowIndex;
use crate::symbols::FunctionPlace;
use crate::table::cells::Cells;

/// A row of an [`EventTable`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'l> {
    table: &'l EventTable<'l>,
    cells: &'l [u64],
    pub metrics: &'l Metrics,
    /// Number of the row in the profile, by which [`calls`](super::profile::Profile::calls) finds
    /// its call tree.
    pub place: RowIndex,
}

impl<'l> Row<'l> {
    /// Returns the row's own (self) count.
    pub(crate) fn count(self) -> Count {
        self.metrics.count
    }

    /// Returns the self share of the event's period, in percent.
    pub(crate) fn percent(self) -> f64 {
        self.table.percent(self.count())
    }

    /// Returns the children (inclusive) count and its share in percent; `None` if children were not
    /// counted.
    pub(crate) fn children(self) -> Option<(Count, f64)> {
        self.table.children.then(|| (self.metrics.all, self.table.percent(self.metrics.all)))
    }

    /// Returns the period by which rows are sorted: children's, which is the row's own if they are
    /// not counted.
    pub(crate) fn weight(self) -> u64 {
        self.metrics.all.period
    }

    /// Returns the cell in a column: its number, or the number of its label.
    pub(crate) fn cell(self, column: usize) -> u64 {
        self.cells.get(column).copied().unwrap_or(0)
    }

    pub(crate) fn text(self, column: usize) -> Cow<'l, str> {
        self.cells
            .get(column)
            .map_or("".into(), |cell| self.table.cells.text(column, *cell, &self.metrics.count))
    }

    /// Returns the number of the label in a column; `None` if it has no labels.
    pub(crate) fn label(self, column: usize) -> Option<usize> {
        self.table.cells.label(column, self.cell(column))
    }

    /// Returns the function in a column.
    pub(crate) fn function(self, column: usize) -> Option<FunctionId> {
        self.table.cells.function(column, self.cell(column))
    }

    /// Returns whether the function in a column has no name.
    pub(crate) fn is_inferred(self, column: usize) -> bool {
        self.table.cells.is_inferred(column, self.cell(column))
    }

    /// Returns the full name of the function in a column, if more than its short name is known.
    pub(crate) fn full_name(self, column: usize) -> Option<Cow<'l, str>> {
        self.table.cells.full_name(column, self.cell(column))
    }

    /// Returns the number of the thread or process in a column.
    pub(crate) fn task(self, column: usize) -> Option<i32> {
        self.table.cells.task(column, self.cell(column))
    }

    /// Returns the word of a key that the text in a column was made of.
    pub(crate) fn word(self, column: usize) -> Option<u64> {
        self.table.cells.word(column, self.cell(column))
    }

    /// Returns the offset in a file in a column.
    pub(crate) fn file_offset(self, column: usize) -> Option<FileOffset> {
        self.table.cells.file_offset(column, self.cell(column))
    }

    /// Returns the function by its place in a column.
    pub(crate) fn function_place(self, column: usize) -> Option<&'l FunctionPlace> {
        self.table.cells.function_place(column, self.cell(column))
    }

    /// Returns the name of the function in a column as its file spells it, if it is shown
    /// otherwise.
    pub(crate) fn mangled(self, column: usize) -> Option<String> {
        self.table.cells.mangled(column, self.cell(column))
    }

    pub(crate) fn texts(self) -> impl ExactSizeIterator<Item = Cow<'l, str>> {
        (0..self.cells.len()).map(move |column| self.text(column))
    }
}

/// An event and its rows.
#[derive(Clone, Debug)]
pub(crate) struct EventTable<'l> {
    pub name: &'l str,
    /// `true` if periods are times, in nanoseconds.
    pub counts_time: bool,
    /// `true` if reports on time show its samples better.
    pub is_of_waits: bool,
    /// Total of all samples of the event, in rows or not; only of those in rows if percentages are
    /// relative to them.
    pub total: Count,
    pub lost_samples: u64,
    /// Number of samples dropped by a BPF filter.
    pub filtered_samples: u64,
    pub event_count: Option<EventCount>,
    /// Numbers of the displayed rows, sorted.
    pub(super) order: Vec<usize>,
    pub(super) rows: &'l Partition<Metrics>,
    pub(super) cells: Cells<'l>,
    pub(super) children: bool,
}

impl<'l> EventTable<'l> {
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns one of the rows for each index, in whichever order is in memory.
    pub(crate) fn any_row(&'l self, index: usize) -> Option<Row<'l>> {
        if self.order.len() == self.rows.len() { self.row_at(index) } else { self.row(index) }
    }

    /// Returns the row at `index`. Rows are sorted by period, largest first, then by text; if
    /// children are counted, by children's period, then callers before callees.
    pub(crate) fn row(&'l self, index: usize) -> Option<Row<'l>> {
        self.row_at(*self.order.get(index)?)
    }

    fn row_at(&'l self, place: usize) -> Option<Row<'l>> {
        let (cells, metrics) = at(self.rows, place)?;
        Some(Row { table: self, cells, metrics, place })
    }

    /// Iterates over the displayed rows at these indexes; reads some ahead ([`read_early`]), as
    /// they are anywhere in memory.
    pub(crate) fn rows_in(&'l self, indexes: Range<usize>) -> impl Iterator<Item = Row<'l>> {
        /// Number of rows that fit in a core's cache.
        const BLOCK: usize = 256;
        let starts = indexes.clone().step_by(BLOCK);
        starts.flat_map(move |start| {
            let block = start..(start + BLOCK).min(indexes.end);
            let rows: Vec<Row<'l>> = block.filter_map(|index| self.row(index)).collect();
            let ends = rows.iter().flat_map(|row| {
                [row.cells.first(), row.cells.last(), Some(&row.metrics.count.samples)]
            });
            read_early(ends.flatten().copied());
            rows
        })
    }

    /// Returns the text of a label, if a row has it.
    pub(crate) fn label_text(&self, label: usize) -> Option<&str> {
        self.cells.label_text(label)
    }

    pub(crate) fn rows(&'l self) -> impl Iterator<Item = Row<'l>> {
        self.rows_in(0..self.len())
    }

    fn percent(&self, count: Count) -> f64 {
        share(count.period, self.total.period)
    }

    /// Returns the rows, of those with these numbers, that have at least `least` percent and can be
    /// among the first `most`.
    pub(super) fn candidates(
        &self,
        places: &[usize],
        least: Option<f64>,
        most: usize,
    ) -> Vec<usize> {
        let weighed = |place: &usize| {
            let weight = self.rows.value(*place)?.all.period;
            let share = self.percent(Count { samples: 0, period: weight });
            least.is_none_or(|least| share >= least).then_some((Reverse(weight), *place))
        };
        let first = |mut found: Vec<(Reverse<u64>, usize)>| {
            if let Some(last) = most.checked_sub(1).filter(|last| *last < found.len()) {
                let (_, (last, _), _) =
                    found.select_nth_unstable_by_key(last, |(weight, _)| *weight);
                let last = *last;
                found.retain(|(weight, _)| *weight <= last);
            }
            found
        };
        // The first of all are among the first of each part.
        let of_part = |places: &[usize]| first(places.iter().filter_map(weighed).collect());
        let found = first(places.par_chunks(PART).flat_map_iter(of_part).collect());
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// Sorts the rows with these numbers and drops those beyond the first `most`.
    pub(super) fn sort(&mut self, places: &[usize], most: usize) {
        // The first of all are among the first of each part.
        let part = if most < places.len() { PART.max(most.saturating_mul(4)) } else { PART };
        let of_parts = places.par_chunks(part).flat_map_iter(|places| {
            self.first(places.iter().filter_map(|place| self.sort_item(*place)).collect(), most)
        });
        let mut items = self.first(of_parts.collect(), most);
        items.par_sort_unstable_by(|a, b| self.compare(a, b));
        self.order = items.into_iter().map(|item| item.place).collect();
    }

    fn sort_item(&self, place: usize) -> Option<SortItem> {
        let (cells, metrics) = at(self.rows, place)?;
        let prefix = match self.children {
            true => [!(metrics.depth as u64), !metrics.count.period],
            false => self.cells.prefix(cells, &metrics.count),
        };
        Some(SortItem { weight: Reverse(metrics.all.period), prefix, place })
    }

    /// Returns the first `most` of these, in no particular order.
    fn first(&self, mut items: Vec<SortItem>, most: usize) -> Vec<SortItem> {
        if most < items.len() {
            if most > 0 {
                items.select_nth_unstable_by(most - 1, |a, b| self.compare(a, b));
            }
            items.truncate(most);
        }
        items
    }

    /// Compares two rows: by their cells if their prefixes are equal.
    fn compare(&self, a: &SortItem, b: &SortItem) -> Ordering {
        let by_prefix = (a.weight, a.prefix).cmp(&(b.weight, b.prefix));
        if by_prefix.is_ne() {
            return by_prefix;
        }
        let (Some((a_cells, a)), Some((b_cells, b))) =
            (at(self.rows, a.place), at(self.rows, b.place))
        else {
            return Ordering::Equal;
        };
        // Weights that are multiplied by different numbers of samples may have the same text.
        let by_text = self.cells.compare(a_cells, &a.count, b_cells, &b.count);
        let by_count = by_text.then_with(|| a.count.samples.cmp(&b.count.samples));
        by_count.then_with(|| self.cells.compare_functions(a_cells, b_cells))
    }
}

/// A row to be sorted.
#[derive(Clone, Copy, Debug)]
struct SortItem {
    weight: Reverse<u64>,
    /// Next criterion: of children, the longest chain and the largest self period; else the first
    /// cells.
    prefix: [u64; 2],
    place: usize,
}

/// Number of rows of which a core takes the first ones at a time.
const PART: usize = 1 << 14;

/// Returns the cells and metrics of the row with this number.
pub(super) fn at(rows: &Partition<Metrics>, place: usize) -> Option<(&[u64], &Metrics)> {
    Some((rows.key(place).get(1..)?, rows.value(place)?))
}
