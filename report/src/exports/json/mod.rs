//! JSON output, schema `recrep-report/1`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde::ser::Serializer;

use super::export::{Answer, Export};
use crate::count::metrics::{MetricValue, Metrics, share};
use crate::profile::counts::{EventCount, ThreadCounts};
use crate::profile::critical_path::PathOfInput;
use crate::profile::user_stacks::BrokenStacks;
use crate::profile::{InputSummary, Profile};
use crate::query::{Column, Needs, Number, Query, Warning};
use crate::table::group::{self, GroupRow};
use crate::table::hierarchy::{self, Counts, Level};
use crate::table::{self, EventTable, Row};

pub(super) struct Json;

impl Export for Json {
    fn needs(&self) -> Needs {
        Needs { companions: true, unmapped: true, ..Needs::default() }
    }

    fn has_other_records(&self) -> bool {
        true
    }

    fn write(&self, answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
        print(answer.profile, answer.query, out)
    }
}

#[derive(Serialize)]
struct Report<'p> {
    schema: &'static str,
    inputs: &'p [InputSummary],
    events: Vec<JsonEvent<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<Vec<GroupOut<'p>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<Vec<ThreadOut<'p>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    critical_paths: Vec<PathOut<'p>>,
    broken_stacks: Vec<BrokenStacks<'p>>,
    warnings: &'p [Warning],
}

#[derive(Serialize)]
struct JsonEvent<'p> {
    index: usize,
    name: &'p str,
    samples: u64,
    period: u64,
    lost_samples: u64,
    filtered_samples: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<EventCount>,
    sort: Vec<&'p str>,
    rows: JsonRows<'p>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hierarchy: Option<Vec<Level<'p>>>,
}

/// What the counters of a thread counted until its exit.
#[derive(Serialize)]
struct ThreadOut<'p> {
    pid: u32,
    tid: u32,
    counts: Vec<ThreadCountOut<'p>>,
}

#[derive(Serialize)]
struct ThreadCountOut<'p> {
    event: &'p str,
    value: u64,
}

/// The critical path of an input, with the nanoseconds of each kind of piece.
#[derive(Serialize)]
struct PathOut<'p> {
    tid: i32,
    comm: &'p str,
    period: u64,
    kinds: BTreeMap<&'static str, u64>,
    threads: usize,
    changes: usize,
    what_if: Vec<WhatIfOut<'p>>,
}

#[derive(Serialize)]
struct WhatIfOut<'p> {
    name: &'p str,
    percent: f64,
    on_path: u64,
    saved: u64,
    first_order: u64,
}

impl<'p> PathOut<'p> {
    fn of(path: &'p PathOfInput) -> Self {
        let kinds = path.by_kind().into_iter().map(|(kind, time)| (kind.name(), time));
        let what_if = path.what_if.iter().map(|answer| WhatIfOut {
            name: &answer.name,
            percent: answer.part * 100.0,
            on_path: answer.on_path,
            saved: answer.saved,
            first_order: answer.first_order,
        });
        Self {
            tid: path.tid,
            comm: &path.comm,
            period: path.length(),
            kinds: kinds.collect(),
            threads: path.threads(),
            changes: path.changes(),
            what_if: what_if.collect(),
        }
    }
}

/// Row of the group table, with the counts of all events.
#[derive(Serialize)]
struct GroupOut<'p> {
    key: JsonKey<'p>,
    #[serde(flatten)]
    inferred: Inferred,
    events: Vec<Counts>,
}

/// Rows of a table; none if they are printed as a hierarchy or group, or not at all.
struct JsonRows<'p> {
    table: Option<&'p EventTable<'p>>,
    query: &'p Query,
}

#[derive(Serialize)]
struct RowOut<'p> {
    key: JsonKey<'p>,
    #[serde(flatten)]
    inferred: Inferred,
    #[serde(flatten)]
    own: Counts,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<&'static str, MetricValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Counts>,
}

/// What says of keys that their functions were inferred.
type Inferred = BTreeMap<&'static str, bool>;

/// Cells by column name, as typed by the user and in that order.
struct JsonKey<'p> {
    names: &'p [Column],
    texts: Vec<Cow<'p, str>>,
    mangled: Vec<(&'static str, String)>,
}

impl Serialize for JsonKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cells = self.names.iter().map(|column| column.typed.as_str()).zip(&self.texts);
        let mangled = self.mangled.iter().map(|(name, text)| (*name, Cow::Borrowed(text.as_str())));
        serializer.collect_map(cells.map(|(name, text)| (name, text.clone())).chain(mangled))
    }
}

/// Returns the names of a row's functions as their files spell them, where these are others than
/// the shown ones.
fn mangled(row: Row<'_>, query: &Query) -> Vec<(&'static str, String)> {
    let of_column =
        |(place, column): (usize, &Column)| Some((column.key.mangled()?, row.mangled(place)?));
    query.columns.iter().enumerate().filter_map(of_column).collect()
}

fn inferred(row: Row<'_>, query: &Query) -> Inferred {
    let of_column = |(place, column): (usize, &Column)| {
        let name = column.key.inferred()?;
        row.is_inferred(place).then_some((name, true))
    };
    query.columns.iter().enumerate().filter_map(of_column).collect()
}

impl<'p> Serialize for JsonRows<'p> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts: Vec<Number> = self.query.numbers().filter(|number| number.is_part()).collect();
        let total = self.table.map_or(0, |table| table.total.period);
        let rows = self.table.iter().flat_map(|table| table.rows());
        serializer.collect_seq(rows.map(|row| {
            RowOut {
                key: JsonKey {
                    names: &self.query.columns,
                    texts: row.texts().collect(),
                    mangled: mangled(row, self.query),
                },
                inferred: inferred(row, self.query),
                own: Counts::of(row.count(), row.percent()),
                fields: parts
                    .iter()
                    .map(|number| (number.name(), row.metrics.value(*number, total)))
                    .collect(),
                children: row.children().map(|(count, percent)| Counts::of(count, percent)),
            }
        }))
    }
}

fn threads(profile: &Profile) -> Vec<ThreadOut<'_>> {
    let events = profile.events();
    let thread = |ThreadCounts { pid, tid, values }: &ThreadCounts| ThreadOut {
        pid: *pid,
        tid: *tid,
        counts: values
            .iter()
            .map(|(event, value)| ThreadCountOut {
                event: events.get(*event).map_or("", |event| &event.name),
                value: *value,
            })
            .collect(),
    };
    profile.thread_counts.iter().map(thread).collect()
}

/// Writes a value as JSON on one line.
pub(crate) fn write(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

fn print(profile: &Profile, query: &Query, out: &mut dyn Write) -> io::Result<()> {
    let tables = table::tables(profile, query);
    let group = query.group.then(|| {
        let rows = group::rows(&tables, query).into_iter();
        let rows = rows.map(|GroupRow { texts, first, members }| {
            let events = members.iter().zip(&tables).map(|(Metrics { count, .. }, table)| {
                Counts::of(*count, share(count.period, table.total.period))
            });
            let key = JsonKey { names: &query.columns, mangled: mangled(first, query), texts };
            GroupOut { key, inferred: inferred(first, query), events: events.collect() }
        });
        rows.collect()
    });
    let shown = tables
        .iter()
        .enumerate()
        .filter(|(_, table)| !query.style.skip_empty || table.total.samples > 0);
    let has_rows = query.inspection.is_none() && !query.hierarchy && !query.group;
    let events = shown.map(|(index, table)| JsonEvent {
        index,
        name: table.name,
        samples: table.total.samples,
        period: table.total.period,
        lost_samples: table.lost_samples,
        filtered_samples: table.filtered_samples,
        count: table.event_count,
        sort: query.sort().collect(),
        hierarchy: query.hierarchy.then(|| hierarchy::levels(table, query)),
        rows: JsonRows { table: has_rows.then_some(table), query },
    });
    let (events, warnings) = (events.collect(), &profile.warnings);
    let broken_stacks = profile.program_stacks.broken();
    let inputs = &profile.inputs;
    let threads = query.threads.then(|| threads(profile));
    let critical_paths = profile.paths.iter().map(PathOut::of).collect();
    let schema = "recrep-report/1";
    let report =
        Report { schema, inputs, events, group, threads, critical_paths, broken_stacks, warnings };
    write(&report, out)
}
