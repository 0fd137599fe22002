//! `--hierarchy`: nested rows, one level per sort key.

use std::borrow::Cow;
use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;

use crate::count::metrics::{Metrics, rounded, share};
use crate::count::{Count, Sum as _};
use crate::query::{Column, Query};
use crate::table::{EventTable, Row};

/// Row of the hierarchy, and the rows below it.
#[derive(Debug, Serialize)]
pub(crate) struct Level<'p> {
    key: &'p str,
    pub(crate) value: Cow<'p, str>,
    #[serde(flatten)]
    companions: BTreeMap<&'p str, Cow<'p, str>>,
    #[serde(flatten)]
    inferred: BTreeMap<&'static str, bool>,
    #[serde(flatten)]
    own: Counts,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rows: Vec<Level<'p>>,
    #[serde(skip)]
    pub(crate) metrics: Metrics,
    /// Number of its row in the profile, at the last level.
    #[serde(skip)]
    pub(crate) place: Option<usize>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Counts {
    samples: u64,
    period: u64,
    percent: f64,
}

impl Counts {
    pub(crate) fn of(Count { samples, period }: Count, percent: f64) -> Self {
        Self { samples, period, percent: rounded(percent) }
    }
}

/// Returns the rows of a table as a tree.
pub(crate) fn levels<'p>(table: &'p EventTable<'p>, query: &'p Query) -> Vec<Level<'p>> {
    let rows: Vec<Row<'p>> = table.rows().collect();
    let mut levels = below(&rows, 0, table.total.period, query);
    levels.truncate(query.limit.unwrap_or(usize::MAX));
    levels
}

/// Returns the column at `depth`, unless there is none or it only accompanies another.
fn level_column(query: &Query, depth: usize) -> Option<&Column> {
    query.columns.get(depth).filter(|column| !column.key.is_companion())
}

/// Groups rows by the key at `depth`. The recursion is as deep as there are keys.
fn below<'p>(rows: &[Row<'p>], depth: usize, total: u64, query: &'p Query) -> Vec<Level<'p>> {
    let Some(column) = level_column(query, depth) else { return Vec::new() };
    let keys = column.key.declared().companions;
    let all = query.columns.iter().enumerate();
    let companions: Vec<(usize, &Column)> =
        all.filter(|(_, column)| keys.iter().any(|(_, key)| *key == column.key)).collect();
    // Labels distinguish functions that read alike.
    type Shown<'p> = (Vec<Cow<'p, str>>, Option<usize>);
    let mut parts = IndexMap::<Shown<'p>, (Metrics, Vec<Row<'p>>)>::new();
    for row in rows {
        let places = [depth].into_iter().chain(companions.iter().map(|(place, _)| *place));
        let texts = places.map(|place| row.text(place)).collect();
        let (metrics, part) = parts.entry((texts, row.label(depth))).or_default();
        metrics.add(row.metrics);
        part.push(*row);
    }
    let levels = parts.into_iter().map(|((texts, _), (metrics, part))| Level {
        key: &column.typed,
        companions: companions
            .iter()
            .map(|(_, column)| column.typed.as_str())
            .zip(texts.iter().skip(1).cloned())
            .chain(
                part.first()
                    .and_then(|row| Some((column.key.mangled()?, row.mangled(depth)?.into()))),
            )
            .collect(),
        inferred: part
            .first()
            .filter(|row| row.is_inferred(depth))
            .and_then(|_| Some((column.key.inferred()?, true)))
            .into_iter()
            .collect(),
        value: texts.into_iter().next().unwrap_or_default(),
        own: Counts::of(metrics.count, share(metrics.count.period, total)),
        rows: below(&part, depth + 1, total, query),
        metrics,
        place: part
            .first()
            .filter(|_| level_column(query, depth + 1).is_none())
            .map(|row| row.place),
    });
    let mut levels: Vec<Level<'p>> = levels.collect();
    levels.retain(|level| {
        query.percent_limit.is_none_or(|limit| share(level.metrics.count.period, total) >= limit)
    });
    levels.sort_by(|a, b| {
        let by_period = b.metrics.count.period.cmp(&a.metrics.count.period);
        by_period.then_with(|| (&a.value, &a.companions).cmp(&(&b.value, &b.companions)))
    });
    levels
}
