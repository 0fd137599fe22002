//! JSON, schema `recrep-report/1`.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::profile::{EventTable, InputSummary, Profile, Row};
use crate::query::{Column, Query};
use crate::warning::Warning;

#[derive(Serialize)]
struct Report<'p> {
    schema: &'static str,
    inputs: &'p [InputSummary],
    events: Vec<Event<'p>>,
    warnings: &'p [Warning],
}

#[derive(Serialize)]
struct Event<'p> {
    index: usize,
    name: &'p str,
    samples: u64,
    period: u64,
    lost_samples: u64,
    sort: Vec<&'p str>,
    rows: Vec<RowOut<'p>>,
}

#[derive(Serialize)]
struct RowOut<'p> {
    key: Key<'p>,
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
pub(super) fn print(profile: &Profile, query: &Query, out: &mut impl Write) -> io::Result<()> {
    let events = profile.tables(query).into_iter().enumerate().map(|(index, table)| event(index, table, query));
    let report = Report {
        schema: "recrep-report/1",
        inputs: &profile.inputs,
        events: events.collect(),
        warnings: &profile.warnings,
    };
    serde_json::to_writer(&mut *out, &report)?;
    out.write_all(b"\n")
}

fn event<'p>(index: usize, table: EventTable<'p>, query: &'p Query) -> Event<'p> {
    let row = |row: Row<'p>| RowOut {
        key: Key { names: &query.columns, texts: row.columns },
        samples: row.count.samples,
        period: row.count.period,
        percent: (row.percent * 100.0).round() / 100.0,
    };
    Event {
        index,
        name: table.name,
        samples: table.total.samples,
        period: table.total.period,
        lost_samples: table.lost_samples,
        sort: query.columns.iter().map(|c| c.typed.as_str()).collect(),
        rows: if query.stats { Vec::new() } else { table.rows.into_iter().map(row).collect() },
    }
}
