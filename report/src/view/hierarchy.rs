//! `--hierarchy`: rows below rows, a level for each sort key.

use std::borrow::Cow;
use std::io::{self, Write};

use indexmap::IndexMap;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::gathered::{Gathered, share};
use crate::profile::{EventTable, Profile, Row};
use crate::query::Query;

use super::trees::Trees;
use crate::escape::escape;

/// A row and those below it.
#[derive(Debug, Serialize)]
pub(super) struct Level<'p> {
    key: &'p str,
    value: Cow<'p, str>,
    samples: u64,
    period: u64,
    percent: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<Level<'p>>,
    #[serde(skip)]
    gathered: Gathered,
    /// Its row's place in the profile, at the last level.
    #[serde(skip)]
    place: Option<usize>,
}

/// The rows of a table as a tree.
pub(super) fn levels<'p>(table: &EventTable<'p>, query: &'p Query) -> Vec<Level<'p>> {
    let rows: Vec<&Row<'p>> = table.rows.iter().collect();
    let mut levels = below(&rows, 0, table.total.period, query);
    levels.truncate(query.limit.unwrap_or(usize::MAX));
    levels
}

/// The rows below those that have these rows together; one level for each key, so it is never deep.
fn below<'p>(rows: &[&Row<'p>], depth: usize, total: u64, query: &'p Query) -> Vec<Level<'p>> {
    let Some(column) = query.columns.get(depth) else { return Vec::new() };
    let mut parts = IndexMap::<&str, (Gathered, Vec<&Row<'p>>)>::new();
    for row in rows {
        let (gathered, part) = parts.entry(row.columns.get(depth).map_or("", |text| text)).or_default();
        gathered.add(&row.gathered);
        part.push(row);
    }
    let level = |(_, (gathered, part)): (&str, (Gathered, Vec<&Row<'p>>))| Level {
        key: &column.typed,
        value: part.first().and_then(|row| row.columns.get(depth).cloned()).unwrap_or_default(),
        samples: gathered.count.samples,
        period: gathered.count.period,
        percent: (share(gathered.count.period, total) * 100.0).round() / 100.0,
        rows: below(&part, depth + 1, total, query),
        gathered,
        place: part.first().filter(|_| depth + 1 == query.columns.len()).map(|row| row.place),
    };
    let mut levels: Vec<Level<'p>> = parts.into_iter().map(level).collect();
    levels.retain(|level| query.percent_limit.is_none_or(|limit| share(level.period, total) >= limit));
    levels.sort_by(|a, b| b.period.cmp(&a.period).then_with(|| a.value.cmp(&b.value)));
    levels
}

/// Prints a table's tree.
pub(super) fn print(profile: &Profile, table: &EventTable<'_>, query: &Query, out: &mut impl Write) -> io::Result<()> {
    if !query.looks.quiet {
        let numbers: Vec<_> = query.numbers().collect();
        let keys: Vec<&str> = query.columns.iter().map(|column| column.heading().trim()).collect();
        let heads: Vec<String> =
            numbers.iter().map(|number| format!("{:>1$}", query.heading(*number), number.width())).collect();
        writeln!(out, "# {}  {}", heads.join("  "), keys.join(" / "))?;
        let dots: Vec<String> = numbers.iter().map(|number| ".".repeat(number.width())).collect();
        writeln!(out, "# {}  {}\n#", dots.join("  "), ".".repeat(keys.join(" / ").width()))?;
    }
    let trees = Trees::of(profile, table, query);
    lines(&levels(table, query), 0, (table.total.period, &trees), query, out)
}

fn lines(
    levels: &[Level<'_>],
    depth: usize,
    (total, trees): (u64, &Trees),
    query: &Query,
    out: &mut impl Write,
) -> io::Result<()> {
    for level in levels {
        write!(out, "  ")?;
        for number in query.numbers() {
            write!(out, "{:>1$}  ", level.gathered.value(number, total).to_string(), number.width())?;
        }
        writeln!(out, "{:1$}{2}", "", depth * 2, escape(&level.value))?;
        write!(out, "{}", level.place.map_or("", |place| trees.below(place)))?;
        lines(&level.rows, depth + 1, (total, trees), query, out)?;
    }
    Ok(())
}
