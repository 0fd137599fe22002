//! JSON, schema `recrep-report/1`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::group::{self, GroupRow, Member};
use super::hierarchy::{self, Level};
use crate::aggregate::Count;
use crate::fields::Number;
use crate::gathered::Value;
use crate::profile::{EventTable, InputSummary, Profile, Row};
use crate::query::{Column, Query};
use crate::warning::Warning;

#[derive(Serialize)]
struct Report<'p> {
    schema: &'static str,
    inputs: &'p [InputSummary],
    events: Vec<Event<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<Vec<GroupOut<'p>>>,
    warnings: &'p [Warning],
}

#[derive(Serialize)]
struct Event<'p> {
    index: usize,
    name: &'p str,
    samples: u64,
    period: u64,
    lost_samples: u64,
    filtered_samples: u64,
    sort: Vec<&'p str>,
    rows: Vec<RowOut<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hierarchy: Option<Vec<Level<'p>>>,
}

/// A row of all events together.
#[derive(Serialize)]
struct GroupOut<'p> {
    key: Key<'p>,
    events: Vec<Member>,
}

#[derive(Serialize)]
struct RowOut<'p> {
    key: Key<'p>,
    samples: u64,
    period: u64,
    percent: f64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<&'static str, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Children>,
}

#[derive(Serialize)]
struct Children {
    samples: u64,
    period: u64,
    percent: f64,
}

/// The columns under the names that the user typed, in that order.
struct Key<'p> {
    names: &'p [Column],
    texts: Vec<Cow<'p, str>>,
}

impl Serialize for Key<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.texts.len()))?;
        for (column, text) in self.names.iter().zip(&self.texts) {
            map.serialize_entry(&column.typed, text)?;
        }
        map.end()
    }
}

/// Prints the whole profile on one line.
pub(super) fn print<'p>(profile: &'p Profile, query: &'p Query, out: &mut impl Write) -> io::Result<()> {
    let tables = profile.tables(query);
    let grouped = |row: GroupRow<'p>| {
        let events = row.told(&tables);
        GroupOut { key: Key { names: &query.columns, texts: row.columns }, events }
    };
    let group = query.group.then(|| group::rows(&tables, query).into_iter().map(grouped).collect());
    let is_shown = |table: &EventTable<'_>| !query.looks.skip_empty || table.total.samples > 0;
    let shown = tables.into_iter().enumerate().filter(|(_, table)| is_shown(table));
    let events = shown.map(|(index, table)| event(index, table, query));
    let report = Report {
        schema: "recrep-report/1",
        inputs: &profile.inputs,
        events: events.collect(),
        group,
        warnings: &profile.warnings,
    };
    serde_json::to_writer(&mut *out, &report)?;
    out.write_all(b"\n")
}

fn event<'p>(index: usize, table: EventTable<'p>, query: &'p Query) -> Event<'p> {
    let total = table.total.period;
    let parts: Vec<Number> = query.numbers().filter(|number| number.is_part()).collect();
    let hierarchy = query.hierarchy.then(|| hierarchy::levels(&table, query));
    let row = |row: Row<'p>| RowOut {
        fields: parts.iter().map(|number| (number.name(), row.gathered.value(*number, total))).collect(),
        key: Key { names: &query.columns, texts: row.columns },
        samples: row.count.samples,
        period: row.count.period,
        percent: rounded(row.percent),
        children: row.children.map(|(Count { samples, period }, percent)| Children {
            samples,
            period,
            percent: rounded(percent),
        }),
    };
    Event {
        index,
        name: table.name,
        samples: table.total.samples,
        period: table.total.period,
        lost_samples: table.lost_samples,
        filtered_samples: table.filtered_samples,
        sort: query.sort().collect(),
        hierarchy,
        rows: if query.only.is_some() || query.hierarchy || query.group {
            Vec::new()
        } else {
            table.rows.into_iter().map(row).collect()
        },
    }
}

fn rounded(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}
