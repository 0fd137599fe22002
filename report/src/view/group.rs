//! `--group`: one table for all events, with a column per event. Rows are sorted by the event of
//! `--group-sort-idx`, then by all events in order; `--percent-limit` is a share of the first
//! event, as in perf.

use std::borrow::Cow;
use std::io::{self, Write};

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::heading::{count, numbers};
use crate::count::Sum as _;
use crate::count::metrics::{Metrics, share};
use crate::query::{Number, Query};
use crate::table::profile::{EventTable, Row};
use crate::terminal::escape::escape;

/// Equal rows of several events.
#[derive(Debug)]
pub(super) struct GroupRow<'p> {
    pub(super) texts: Vec<Cow<'p, str>>,
    pub(super) first: Row<'p>,
    /// The metrics of each event.
    pub(super) members: Vec<Metrics>,
}

/// Merges the rows of all tables.
pub(super) fn rows<'p>(tables: &'p [EventTable<'p>], query: &Query) -> Vec<GroupRow<'p>> {
    // By texts; functions that read alike are told apart by their labels.
    let mut rows =
        IndexMap::<(Vec<Cow<'p, str>>, Vec<Option<usize>>), GroupRow<'p>, FxBuildHasher>::default();
    for (event, table) in tables.iter().enumerate() {
        for row in table.rows() {
            let (texts, labels) = (0..query.columns.len())
                .map(|column| (row.text(column), row.label(column)))
                .unzip();
            let new = || GroupRow {
                texts: row.texts().collect(),
                first: row,
                members: vec![Metrics::default(); tables.len()],
            };
            let all = rows.entry((texts, labels)).or_insert_with(new);
            if let Some(member) = all.members.get_mut(event) {
                member.add(row.metrics);
            }
        }
    }
    let period = |row: &GroupRow<'_>, event: usize| {
        row.members.get(event).map_or(0, |member| member.all.period)
    };
    let total = tables.first().map_or(0, |table| table.total.period);
    let mut rows: Vec<GroupRow<'p>> = rows.into_values().collect();
    rows.retain(|row| {
        query.percent_limit.is_none_or(|least| share(period(row, 0), total) >= least)
    });
    let periods = |row: &GroupRow<'_>| {
        let all = row.members.iter().map(|member| member.all.period);
        (period(row, query.style.group_sort), all.collect::<Vec<_>>())
    };
    rows.sort_by(|a, b| periods(b).cmp(&periods(a)).then_with(|| a.texts.cmp(&b.texts)));
    rows.truncate(query.limit.unwrap_or(usize::MAX));
    rows
}

pub(super) fn print(
    tables: &[EventTable<'_>],
    query: &Query,
    out: &mut impl Write,
) -> io::Result<()> {
    let names: Vec<_> = tables.iter().map(|table| escape(table.name)).collect();
    let samples: u64 = tables.iter().map(|table| table.total.samples).sum();
    let period = tables.iter().fold(0u64, |sum, table| sum.wrapping_add(table.total.period));
    if !query.style.quiet {
        writeln!(out, "# Samples: {samples} of events '{}'", names.join(", "))?;
        let are_times = tables.iter().all(|table| table.counts_time);
        writeln!(out, "# Event count (approx.): {}\n#", count(period, are_times))?;
        let keys: Vec<&str> = query.columns.iter().map(|column| column.heading().trim()).collect();
        // One heading spans the numbers of all events.
        let wide = |width: usize| (width + 1) * tables.len() - 1;
        let heads =
            numbers(query, |number| format!("{:>1$}", query.heading(number), wide(number.width())));
        writeln!(out, "# {heads}  {}\n#", keys.join("  "))?;
    }
    for GroupRow { texts, members, .. } in rows(tables, query) {
        let cell = |number: Number| {
            let each = members.iter().zip(tables);
            let texts = each.map(|(member, table)| {
                format!(
                    "{:>1$}",
                    member.value(number, table.total.period).to_string(),
                    number.width()
                )
            });
            texts.collect::<Vec<_>>().join(" ")
        };
        let texts: Vec<_> = texts.iter().map(|text| escape(text)).collect();
        writeln!(out, "  {}  {}", numbers(query, cell), texts.join("  "))?;
    }
    writeln!(out, "\n")
}
