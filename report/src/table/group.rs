//! `--group`: one table for all events, with a column per event. Rows are sorted by the event of
//! `--group-sort-idx`, then by all events in order; `--percent-limit` is a share of the first
//! event, as in perf.

use std::borrow::Cow;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::count::Sum as _;
use crate::count::metrics::{Metrics, share};
use crate::query::Query;
use crate::table::{EventTable, Row};

/// Equal rows of several events.
#[derive(Debug)]
pub(crate) struct GroupRow<'p> {
    pub(crate) texts: Vec<Cow<'p, str>>,
    pub(crate) first: Row<'p>,
    /// The metrics of each event.
    pub(crate) members: Vec<Metrics>,
}

/// Merges the rows of all tables.
impl GroupRow<'_> {
    fn periods(&self) -> impl Iterator<Item = u64> {
        self.members.iter().map(|member| member.all.period)
    }

    /// Returns the period of the event with this index.
    fn period(&self, event: usize) -> u64 {
        self.periods().nth(event).unwrap_or(0)
    }
}

pub(crate) fn rows<'p>(tables: &'p [EventTable<'p>], query: &Query) -> Vec<GroupRow<'p>> {
    // By texts; labels distinguish functions that read alike.
    let mut rows =
        IndexMap::<(Vec<Cow<'p, str>>, Vec<Option<usize>>), GroupRow<'p>, FxBuildHasher>::default();
    for (event, table) in tables.iter().enumerate() {
        for row in table.rows() {
            let (texts, labels) = (0..query.columns.len())
                .map(|column| (row.text(column), row.label(column)))
                .unzip();
            let all = rows.entry((texts, labels)).or_insert_with(|| GroupRow {
                texts: row.texts().collect(),
                first: row,
                members: vec![Metrics::default(); tables.len()],
            });
            if let Some(member) = all.members.get_mut(event) {
                member.add(row.metrics);
            }
        }
    }
    let total = tables.first().map_or(0, |table| table.total.period);
    let mut rows: Vec<GroupRow<'p>> = rows.into_values().collect();
    rows.retain(|row| query.percent_limit.is_none_or(|least| share(row.period(0), total) >= least));
    let sorted_by = query.style.group_sort;
    rows.sort_by(|a, b| {
        let by_event = b.period(sorted_by).cmp(&a.period(sorted_by));
        by_event.then_with(|| b.periods().cmp(a.periods())).then_with(|| a.texts.cmp(&b.texts))
    });
    rows.truncate(query.limit.unwrap_or(usize::MAX));
    rows
}
