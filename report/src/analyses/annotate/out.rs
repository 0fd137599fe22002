//! Annotated functions as JSON, schema `recrep-annotate/1`, and as CSV.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeSeq as _, SerializeStruct as _, Serializer};

use super::branches::BranchTotals;
use super::functions::{AnnotatedEvent, AnnotatedFunction, AnnotatedRow};
use super::text::{self, TextOptions};
use crate::count::metrics::{rounded, share};
use crate::exports::sheet::{Analysis, Sheet, SheetCell, SheetColumn};

/// The answer of `rep annotate`.
pub(super) struct AnnotateAnalysis {
    pub(super) events: Vec<AnnotatedEvent>,
    pub(super) text: TextOptions,
}

#[derive(Serialize)]
struct AnnotatedEventOut<'a> {
    index: usize,
    name: &'a str,
    samples: u64,
    period: u64,
    functions: Vec<FunctionOut<'a>>,
}

#[derive(Serialize)]
struct FunctionOut<'a> {
    dso: &'a str,
    symbol: &'a str,
    cpumode: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mangled: Option<&'a str>,
    path: &'a str,
    samples: u64,
    period: u64,
    /// Share of the event's period.
    percent: f64,
    /// File that the code was read from.
    code: Option<&'a str>,
    /// Reason why there is no code.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    rows: Vec<InstructionOut<'a>>,
}

#[derive(Serialize)]
struct InstructionOut<'a> {
    address: String,
    text: &'a str,
    samples: u64,
    period: u64,
    /// Share of the function's period.
    percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<SourceOut<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    inlined: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    jump: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branches: Option<BranchesOut>,
}

#[derive(Serialize)]
struct SourceOut<'a> {
    file: &'a str,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

#[derive(Serialize)]
struct BranchesOut {
    count: u64,
    mispredicted: u64,
    mispredict_percent: Option<f64>,
    mean_cycles: Option<f64>,
}

impl<'a> FunctionOut<'a> {
    fn of(function: &'a AnnotatedFunction, event: &AnnotatedEvent) -> Self {
        let rows = function.with_sources().map(|(annotated, source)| InstructionOut {
            address: format!("{:#x}", annotated.row.address),
            text: &annotated.row.text,
            samples: annotated.row.count.samples,
            period: annotated.row.count.period,
            percent: rounded(function.percent(annotated)),
            source: source.map(|(file, line)| SourceOut {
                file,
                line,
                text: annotated.source_text.as_deref(),
            }),
            inlined: &annotated.row.inlined,
            jump: annotated.row.jump,
            branches: annotated.branches.map(|totals| BranchesOut {
                count: totals.count,
                mispredicted: totals.mispredicted,
                mispredict_percent: totals.mispredict_percent(),
                mean_cycles: totals.mean_cycles(),
            }),
        });
        Self {
            rows: rows.collect(),
            dso: &function.dso,
            symbol: &function.symbol,
            cpumode: &function.cpu_mode,
            mangled: function.mangled.as_deref(),
            path: &function.path,
            samples: function.count.samples,
            period: function.count.period,
            percent: rounded(share(function.count.period, event.total.period)),
            code: function.code.as_deref().ok(),
            reason: function.code.as_ref().err().map(String::as_str),
        }
    }
}

impl AnnotateAnalysis {
    pub(super) fn is_empty(&self) -> bool {
        self.events.iter().all(|event| event.functions.is_empty())
    }
}

impl Serialize for AnnotateAnalysis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut whole = serializer.serialize_struct("annotate", 1)?;
        whole.serialize_field("events", &EventsOut(&self.events))?;
        whole.end()
    }
}

/// Events, whose instructions are not all in memory twice.
struct EventsOut<'a>(&'a [AnnotatedEvent]);

impl Serialize for EventsOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_seq(Some(self.0.len()))?;
        for event in self.0 {
            all.serialize_element(&AnnotatedEventOut {
                index: event.index,
                name: &event.name,
                samples: event.total.samples,
                period: event.total.period,
                functions: event.functions.iter().map(|one| FunctionOut::of(one, event)).collect(),
            })?;
        }
        all.end()
    }
}

impl Analysis for AnnotateAnalysis {
    const SCHEMA: &'static str = "recrep-annotate/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        let columns = columns();
        let mut rows = Vec::new();
        for event in &self.events {
            for function in &event.functions {
                let of_function = |row| RowOfFunction { event, function, row };
                rows.extend(function.rows.iter().map(of_function));
            }
        }
        vec![Sheet::new(Vec::new(), &columns, rows)]
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        text::print(&self.events, self.text, out)
    }
}

/// A row of CSV.
#[derive(Clone, Copy)]
struct RowOfFunction<'a> {
    event: &'a AnnotatedEvent,
    function: &'a AnnotatedFunction,
    row: &'a AnnotatedRow,
}

type RowColumn<'a> = SheetColumn<'a, RowOfFunction<'a>>;

impl RowOfFunction<'_> {
    /// Returns the address that it jumps to.
    fn target(self) -> Option<String> {
        let to = self.function.rows.get(self.row.row.jump?)?;
        Some(format!("{:#x}", to.row.address))
    }

    fn source(self) -> Option<String> {
        self.row.row.source.as_ref().map(|(file, line)| format!("{file}:{line}"))
    }
}

fn columns<'a>() -> [RowColumn<'a>; 15] {
    [
        RowColumn::unshown("event", |of| (&of.event.name).into()),
        RowColumn::unshown("dso", |of| (&of.function.dso).into()),
        RowColumn::unshown("symbol", |of| (&of.function.symbol).into()),
        RowColumn::unshown("cpumode", |of| (&of.function.cpu_mode).into()),
        RowColumn::unshown("address", |of| format!("{:#x}", of.row.row.address).into()),
        RowColumn::unshown("samples", |of| of.row.row.count.samples.into()),
        RowColumn::unshown("period", |of| of.row.row.count.period.into()),
        RowColumn::unshown("percent", |of| SheetCell::Percent(of.function.percent(of.row))),
        RowColumn::unshown("text", |of| (&of.row.row.text).into()),
        RowColumn::unshown("source", |of| of.source().into()),
        RowColumn::unshown("inlined", |of| of.row.row.inlined.join(";").into()),
        RowColumn::unshown("jump", |of| of.target().into()),
        RowColumn::unshown("branches", |of| of.row.branches.map(|totals| totals.count).into()),
        RowColumn::unshown("mispredict_percent", |of| {
            SheetCell::percent(of.row.branches.and_then(BranchTotals::mispredict_percent))
        }),
        RowColumn::unshown("mean_cycles", |of| {
            SheetCell::float(of.row.branches.and_then(BranchTotals::mean_cycles))
        }),
    ]
}
