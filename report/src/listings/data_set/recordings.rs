//! Rows of recordings: one for each event of an input, with what was lost of it.

use super::cells::{DataCell, DataTexts, TextCode};
use super::columns::{ColumnType, DataColumn};
use crate::count::Count;
use crate::engine::facts::RecordingFacts;
use crate::pprof::{EventFacts, Facts};
use crate::profile::recording::quoted;

/// An event of a recording, as the table has it.
pub(super) struct RecordingCells {
    event: TextCode,
    samples: u64,
    period: u64,
    frequency: Option<u64>,
    lost_samples: u64,
    lost_events: u64,
    /// Time of the first sample in nanoseconds since 1970, or when the file was written.
    began: Option<u64>,
    times: Option<[u64; 2]>,
    is_incomplete: bool,
    cpus: Option<u32>,
    arch: Option<TextCode>,
    kernel: Option<TextCode>,
    cpu: Option<TextCode>,
    recorder: Option<TextCode>,
    command: TextCode,
}

fn text(text: Option<TextCode>) -> DataCell<'static> {
    DataCell::of(text, DataCell::Text)
}

fn count(count: Option<u64>) -> DataCell<'static> {
    DataCell::of(count, DataCell::count)
}

/// Columns of the table of recordings.
pub(super) static RECORDINGS: [DataColumn<RecordingCells>; 16] = [
    DataColumn { name: "event", kind: ColumnType::Text, cell: |one| DataCell::Text(one.event) },
    DataColumn {
        name: "samples",
        kind: ColumnType::Long,
        cell: |one| DataCell::count(one.samples),
    },
    DataColumn { name: "period", kind: ColumnType::Long, cell: |one| DataCell::count(one.period) },
    DataColumn { name: "frequency", kind: ColumnType::Long, cell: |one| count(one.frequency) },
    DataColumn {
        name: "lost_samples",
        kind: ColumnType::Long,
        cell: |one| DataCell::count(one.lost_samples),
    },
    DataColumn {
        name: "lost_events",
        kind: ColumnType::Long,
        cell: |one| DataCell::count(one.lost_events),
    },
    DataColumn {
        name: "began",
        kind: ColumnType::Timestamp,
        cell: |one| count(one.began.map(|nanoseconds| nanoseconds / 1000)),
    },
    DataColumn {
        name: "first_time",
        kind: ColumnType::Long,
        cell: |one| count(one.times.map(|[first, _]| first)),
    },
    DataColumn {
        name: "last_time",
        kind: ColumnType::Long,
        cell: |one| count(one.times.map(|[_, last]| last)),
    },
    DataColumn {
        name: "incomplete",
        kind: ColumnType::Bool,
        cell: |one| DataCell::Bool(one.is_incomplete),
    },
    DataColumn { name: "cpus", kind: ColumnType::Int, cell: |one| DataCell::int(one.cpus) },
    DataColumn { name: "arch", kind: ColumnType::Text, cell: |one| text(one.arch) },
    DataColumn { name: "kernel", kind: ColumnType::Text, cell: |one| text(one.kernel) },
    DataColumn { name: "cpu", kind: ColumnType::Text, cell: |one| text(one.cpu) },
    DataColumn { name: "recorder", kind: ColumnType::Text, cell: |one| text(one.recorder) },
    DataColumn { name: "command", kind: ColumnType::Text, cell: |one| DataCell::Text(one.command) },
];

/// Returns when a recording began, or else was written, in nanoseconds since 1970.
pub(super) fn began(facts: &RecordingFacts) -> Option<u64> {
    facts.began.or(facts.facts.written)
}

/// Returns the rows of an input; `totals` are those of its samples by event.
pub(super) fn rows(
    all: &RecordingFacts,
    totals: &[Count],
    texts: &mut DataTexts,
) -> Vec<RecordingCells> {
    let Facts { events, command, arch, kernel, cpu, recorder, .. } = &all.facts;
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let command = texts.code(&command.join(" "));
    let [arch, kernel, cpu, recorder] =
        [arch, kernel, cpu, recorder].map(|text| text.as_ref().map(|text| texts.code(text)));
    let mut row = |(event, total): (&EventFacts, &Count)| RecordingCells {
        event: texts.code(&event.name),
        samples: total.samples,
        period: total.period,
        frequency: event.frequency,
        lost_samples: event.lost_samples,
        lost_events: all.facts.lost_events,
        began: began(all),
        times: all.facts.sample_times,
        is_incomplete: all.facts.incomplete,
        cpus: all.facts.cpus.map(|[_, online]| online),
        arch,
        kernel,
        cpu,
        recorder,
        command,
    };
    events.iter().zip(totals).map(&mut row).collect()
}
