//! `--group`: one table for all events, with a column per event. Rows are sorted by the event of `--group-sort-idx`,
//! then by all events in order; `--percent-limit` is a share of the first event, as in perf.

use std::borrow::Cow;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::count::Sum as _;
use crate::count::metrics::{Metrics, share};
use crate::query::Query;
use crate::query::fields::Number;
use crate::table::profile::EventTable;

use crate::terminal::escape::escape;

/// A row: the texts of its columns, and its metrics for each event.
pub(super) struct GroupRow<'p> {
    pub(super) columns: Vec<Cow<'p, str>>,
    pub(super) members: Vec<Metrics>,
}

/// Merges the rows of all tables.
pub(super) fn rows<'p>(tables: &'p [EventTable<'p>], query: &Query) -> Vec<GroupRow<'p>> {
    let mut places = FxHashMap::<Vec<Cow<'p, str>>, usize>::default();
    let mut rows: Vec<GroupRow<'p>> = Vec::new();
    for (event, table) in tables.iter().enumerate() {
        for row in table.rows() {
            let columns: Vec<Cow<'p, str>> = row.texts().collect();
            let place = *places.entry(columns).or_insert_with_key(|columns| {
                let members = vec![Metrics::default(); tables.len()];
                rows.push(GroupRow { columns: columns.clone(), members });
                rows.len() - 1
            });
            if let Some(member) = rows.get_mut(place).and_then(|row| row.members.get_mut(event)) {
                member.add(row.metrics);
            }
        }
    }
    let periods = |row: &GroupRow<'_>| row.members.iter().map(|member| member.all().period).collect::<Vec<_>>();
    let period = |row: &GroupRow<'_>, event: usize| row.members.get(event).map_or(0, |member| member.all().period);
    let total = tables.first().map_or(0, |table| table.total.period);
    rows.retain(|row| query.percent_limit.is_none_or(|least| share(period(row, 0), total) >= least));
    let first = |row: &GroupRow<'_>| period(row, query.style.group_sort);
    rows.sort_by(|a, b| {
        let by_period = (first(b), periods(b)).cmp(&(first(a), periods(a)));
        by_period.then_with(|| a.columns.cmp(&b.columns))
    });
    rows.truncate(query.limit.unwrap_or(usize::MAX));
    rows
}

pub(super) fn print(tables: &[EventTable<'_>], query: &Query, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<_> = tables.iter().map(|table| escape(table.name)).collect();
    let samples: u64 = tables.iter().map(|table| table.total.samples).sum();
    let period = tables.iter().fold(0u64, |sum, table| sum.wrapping_add(table.total.period));
    if !query.style.quiet {
        writeln!(out, "# Samples: {samples} of events '{}'", names.join(", "))?;
        writeln!(out, "# Event count (approx.): {period}\n#")?;
        let keys: Vec<&str> = query.columns.iter().map(|column| column.heading().trim()).collect();
        // One heading spans the numbers of all events.
        let wide = |width: usize| (width + 1) * tables.len() - 1;
        let head = |number: Number| format!("{:>1$}", query.heading(number), wide(number.width()));
        let heads: Vec<String> = query.numbers().map(head).collect();
        writeln!(out, "# {}  {}\n#", heads.join("  "), keys.join("  "))?;
    }
    for row in rows(tables, query) {
        let cell = |number: Number| {
            let each = row.members.iter().zip(tables);
            let texts = each.map(|(member, table)| {
                format!("{:>1$}", member.value(number, table.total.period).to_string(), number.width())
            });
            texts.collect::<Vec<_>>().join(" ")
        };
        let cells: Vec<String> = query.numbers().map(cell).collect();
        let texts: Vec<_> = row.columns.iter().map(|text| escape(text)).collect();
        writeln!(out, "  {}  {}", cells.join("  "), texts.join("  "))?;
    }
    writeln!(out, "\n")
}
