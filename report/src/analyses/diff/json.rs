//! The comparison as JSON, schema `recrep-diff/1`.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::answer::{ComparedEvent, DiffAnswer};
use super::gate_text::GatesOut;
use super::rows::{Causes, JoinedRows};
use crate::compare::{Comparison, Effect, RowChange, Verdict};
use crate::exports::write_json;
use crate::query::Warning;

#[derive(Serialize)]
struct DiffJson<'a> {
    schema: &'static str,
    base: Vec<RunOut<'a>>,
    new: Vec<RunOut<'a>>,
    normalized_by: Option<&'static str>,
    mode: Option<&'static str>,
    in_turn: Option<bool>,
    apart_seconds: Option<f64>,
    verdict: Option<&'static str>,
    needed: NeededOut,
    unresolved: Vec<KeyOut<'a>>,
    level: f64,
    min_impact: f64,
    resolve: f64,
    events: Vec<EventOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gates: Option<GatesOut<'a>>,
    warnings: &'a [Warning],
}

#[derive(Serialize)]
struct RunOut<'a> {
    path: &'a str,
    samples: u64,
    seconds: Option<f64>,
}

/// Runs that would resolve the large rows: 0 if that is not asked, 51 for more than 50.
#[derive(Clone, Copy, Default, Serialize)]
struct NeededOut {
    runs: usize,
    seconds: Option<f64>,
}

impl NeededOut {
    fn of(comparison: &Comparison) -> Self {
        comparison.needed.map_or_else(Self::default, |needed| Self {
            runs: needed.runs.unwrap_or(51),
            seconds: needed.seconds,
        })
    }
}

#[derive(Serialize)]
struct EventOut<'a> {
    name: &'a str,
    unit: &'static str,
    sort: &'a [String],
    verdict: &'static str,
    mode: &'static str,
    total: ChangeOut,
    /// The total without what was taken out of the rows as noise.
    normalized_total: ChangeOut,
    common: ChangeOut,
    /// Number of rows that share the correction.
    family: usize,
    /// Degrees of freedom of tests; `None` if infinite.
    degrees: Option<f64>,
    needed: NeededOut,
    unresolved: Vec<KeyOut<'a>>,
    rows: Vec<DiffRow<'a>>,
}

#[derive(Serialize)]
struct ChangeOut {
    relative: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    p: f64,
}

impl From<Effect> for ChangeOut {
    fn from(Effect { relative, low, high, p }: Effect) -> Self {
        Self { relative, low, high, p }
    }
}

/// Texts of a row by the names of their columns.
struct KeyOut<'a> {
    columns: &'a [String],
    cells: &'a [String],
}

impl Serialize for KeyOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.columns.len()))?;
        for (column, cell) in self.columns.iter().zip(self.cells) {
            map.serialize_entry(column, cell)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct DiffRow<'a> {
    key: KeyOut<'a>,
    status: &'static str,
    names: Vec<String>,
    base: SideOut,
    new: SideOut,
    change: RowChangeOut,
    /// Marked callees that explain it.
    because: Vec<KeyOut<'a>>,
    /// Neighbour that gained what it lost.
    moved_to: Option<KeyOut<'a>>,
    /// Neighbour that lost what it gained.
    moved_from: Option<KeyOut<'a>>,
    /// Rows that are one piece of code with it: base's, new's, and those that both sides have.
    joined: Vec<KeyOut<'a>>,
}

#[derive(Serialize)]
struct SideOut {
    samples: u64,
    share: f64,
}

#[derive(Serialize)]
struct RowChangeOut {
    #[serde(flatten)]
    change: ChangeOut,
    significant: bool,
    adjusted_p: Option<f64>,
    impact: f64,
    resolution: f64,
    beyond: Option<f64>,
}

fn key(event: &ComparedEvent, row: usize) -> KeyOut<'_> {
    let cells = event.labels.rows.get(row).map_or(&[][..], |row| row.cells.as_slice());
    KeyOut { columns: &event.columns, cells }
}

fn unresolved(event: &ComparedEvent) -> Vec<KeyOut<'_>> {
    event.comparison.unresolved.iter().map(|row| key(event, *row)).collect()
}

/// Returns the rows that are printed, in order.
pub(super) fn listed<'e>(event: &'e ComparedEvent, answer: &DiffAnswer<'_>) -> Vec<&'e RowChange> {
    let mut rows = event.listed();
    rows.truncate(answer.asked.limit.unwrap_or(usize::MAX));
    rows
}

pub(super) fn samples(event: &ComparedEvent, row: usize) -> [u64; 2] {
    event.samples.get(row).copied().unwrap_or_default()
}

fn row<'e>(event: &'e ComparedEvent, row: &RowChange) -> DiffRow<'e> {
    let [base, new] = samples(event, row.row);
    let Causes { because, moved, joined } = &event.causes;
    let (because, joined) = (because.get(&row.row), joined.get(&row.row));
    DiffRow {
        key: key(event, row.row),
        status: row.status.word(),
        names: event.labels.names(row.row),
        base: SideOut { samples: base, share: row.base_share * 100.0 },
        new: SideOut { samples: new, share: row.new_share * 100.0 },
        change: RowChangeOut {
            change: row.change.into(),
            significant: row.marked,
            adjusted_p: row.adjusted_p,
            impact: row.impact,
            resolution: row.resolution,
            beyond: row.beyond,
        },
        because: because.into_iter().flatten().map(|callee| key(event, *callee)).collect(),
        moved_to: moved.iter().find(|moved| moved.from == row.row).map(|m| key(event, m.to)),
        moved_from: moved.iter().find(|moved| moved.to == row.row).map(|m| key(event, m.from)),
        joined: joined.into_iter().flat_map(JoinedRows::all).map(|row| key(event, row)).collect(),
    }
}

fn event<'e>(event: &'e ComparedEvent, answer: &DiffAnswer<'_>) -> EventOut<'e> {
    let comparison = &event.comparison;
    EventOut {
        name: &event.name,
        unit: if event.by_samples { "samples" } else { "periods" },
        sort: event.columns.get(..event.keys).unwrap_or(&event.columns),
        verdict: comparison.verdict.word(),
        mode: comparison.mode.word(),
        total: comparison.total.into(),
        normalized_total: comparison.shown_total.into(),
        common: comparison.common.into(),
        family: comparison.family,
        degrees: comparison.model.student.degrees(),
        needed: NeededOut::of(comparison),
        unresolved: unresolved(event),
        rows: listed(event, answer).into_iter().map(|found| row(event, found)).collect(),
    }
}

/// Returns the verdict over all events.
fn verdict(answer: &DiffAnswer<'_>) -> Option<Verdict> {
    let order = [Verdict::Changed, Verdict::TooFewSamples, Verdict::Same];
    order
        .into_iter()
        .find(|verdict| answer.events.iter().any(|event| event.comparison.verdict == *verdict))
}

pub(super) fn print(answer: &DiffAnswer<'_>, out: &mut dyn Write) -> io::Result<()> {
    let runs = answer.runs.each_ref().map(|side| {
        let runs = side.iter().map(|run| RunOut {
            path: &run.path,
            samples: run.samples,
            seconds: run.seconds,
        });
        runs.collect()
    });
    let [base, new] = runs;
    let first = answer.events.first();
    let comparison = first.map(|event| &event.comparison);
    let mode = comparison.map(|comparison| comparison.mode.word());
    let options = &answer.asked.options;
    let whole = DiffJson {
        schema: "recrep-diff/1",
        base,
        new,
        normalized_by: mode,
        mode,
        in_turn: comparison.map(|comparison| comparison.turns.in_turn),
        apart_seconds: comparison.and_then(|comparison| comparison.turns.apart_seconds),
        verdict: verdict(answer).map(Verdict::word),
        needed: comparison.map_or_else(NeededOut::default, NeededOut::of),
        unresolved: first.map(unresolved).unwrap_or_default(),
        level: options.level,
        min_impact: options.min_impact,
        resolve: options.resolve,
        events: answer.events.iter().map(|found| event(found, answer)).collect(),
        gates: answer
            .gates
            .as_ref()
            .map(|report| GatesOut::of(report, answer.asked.gates.is_strict)),
        warnings: &answer.warnings,
    };
    write_json(&whole, out)
}
