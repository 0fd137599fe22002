//! `rep timeline`: number of samples per thread and time slice.
//!
//! A slice is `--time-quantum` long; `time` in the output is its start, in seconds of the perf
//! clock. Text has a line per thread and a character per slice: `.` for no samples, else `1` to
//! `9`, where `9` is the event's maximum.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Parser;
use indexmap::IndexMap;
use recrep_console::units;
use serde::Serialize;

use crate::analyses::derived::{self, ViewArgs};
use crate::count::Count;
use crate::exports::outputs::Output;
use crate::exports::sheet::{Analysis, Sheet, SheetColumn};
use crate::query::{Column, Mode, Query, TimeSteps, Warning, times};
use crate::table::{self, EventTable};
use crate::terminal::escape::escape;

/// Maximum number of characters per thread in text; with more slices, a character covers several of
/// them.
const MAX_COLUMNS: usize = 100;

/// Show when threads ran: samples per thread and time slice
#[derive(Debug, Parser)]
#[command(name = "rep timeline", version, long_about = None, args_override_self = true)]
pub(crate) struct TimelineArgs {
    /// Length of a slice: a whole number with s, ms, us or ns. Text joins slices to show at most
    /// 100
    #[arg(long, value_name = "LENGTH", default_value = "100ms", value_parser = times::quantum)]
    time_quantum: u64,

    #[command(flatten)]
    view: ViewArgs,
}

/// What is counted, in slices of this many nanoseconds, and how it is shown.
#[derive(Clone, Debug)]
pub(crate) struct TimelineQuery {
    query: Query,
    quantum: u64,
    output: &'static Output,
}

pub(crate) fn query(args: TimelineArgs) -> Result<TimelineQuery, String> {
    let (output, quantum) = (args.view.output(), args.time_quantum);
    let steps = TimeSteps::Length(quantum);
    let query = Query { steps, ..args.view.query(Mode::Samples)? };
    Ok(TimelineQuery { query, quantum, output })
}

#[derive(Serialize)]
struct TimelineAnalysis<'p> {
    quantum_ns: u64,
    events: Vec<TimelineEvent<'p>>,
}

#[derive(Serialize)]
struct TimelineEvent<'p> {
    name: &'p str,
    samples: u64,
    threads: Vec<Thread>,
}

#[derive(Serialize)]
struct Thread {
    /// `tid:name`.
    thread: String,
    samples: u64,
    slices: Vec<Slice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Slice {
    /// Start, in seconds with nine decimals.
    time: String,
    samples: u64,
    period: u64,
    #[serde(skip)]
    nanoseconds: u64,
}

/// A row of CSV.
#[derive(Clone, Copy)]
struct SliceOfThread<'a> {
    event: &'a str,
    thread: &'a str,
    slice: &'a Slice,
}

type RowColumn<'a> = SheetColumn<'a, SliceOfThread<'a>>;

pub(crate) fn run(asked: &TimelineQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let TimelineQuery { query: asked, quantum, output } = asked;
    let precise = Query { nanosecs: true, ..asked.clone() };
    let (profile, query, _) =
        derived::profile(&precise, Column::list("tid,time", asked.mode)?, |_| ())?;
    let tables = table::tables(&profile, &query);
    let events = tables.iter().map(|table| event(table, asked)).collect();
    let answer = TimelineAnalysis { quantum_ns: *quantum, events };
    derived::print(output, &profile.inputs, &answer, &profile.warnings, out)
}

impl Analysis for TimelineAnalysis<'_> {
    const SCHEMA: &'static str = "recrep-timeline/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        let columns = [
            RowColumn::unshown("event", |of| of.event.into()),
            RowColumn::unshown("thread", |of| of.thread.into()),
            RowColumn::unshown("time", |of| (&of.slice.time).into()),
            RowColumn::unshown("samples", |of| of.slice.samples.into()),
            RowColumn::unshown("period", |of| of.slice.period.into()),
        ];
        let mut rows = Vec::new();
        for event in &self.events {
            for Thread { thread, slices, .. } in &event.threads {
                let of_thread =
                    slices.iter().map(|slice| SliceOfThread { event: event.name, thread, slice });
                rows.extend(of_thread);
            }
        }
        vec![Sheet::new(Vec::new(), &columns, rows)]
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        print(&self.events, self.quantum_ns, out)
    }
}

fn event<'p>(table: &EventTable<'p>, asked: &Query) -> TimelineEvent<'p> {
    let mut threads = IndexMap::<String, Vec<Slice>>::new();
    for row in table.rows() {
        let Count { samples, period } = row.count();
        let slice =
            Slice { time: row.text(1).into_owned(), samples, period, nanoseconds: row.cell(1) };
        threads.entry(row.text(0).into_owned()).or_default().push(slice);
    }
    let threads = threads.into_iter().map(|(thread, mut slices)| {
        slices.sort_by_key(|slice| slice.nanoseconds);
        Thread { thread, samples: slices.iter().map(|slice| slice.samples).sum(), slices }
    });
    let mut threads: Vec<Thread> = threads.collect();
    threads.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.thread.cmp(&b.thread)));
    threads.truncate(asked.limit.unwrap_or(usize::MAX));
    TimelineEvent { name: table.name, samples: table.total.samples, threads }
}

fn print(events: &[TimelineEvent<'_>], quantum: u64, out: &mut dyn Write) -> io::Result<()> {
    for event in events.iter().filter(|event| event.samples > 0) {
        let all = event.threads.iter().flat_map(|thread| &thread.slices);
        let times = all.map(|slice| slice.nanoseconds);
        let (first, last) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
        let count = (last - first) / quantum + 1;
        let per_column = count.div_ceil(MAX_COLUMNS as u64);
        let step = quantum.saturating_mul(per_column);
        let mut lines = Vec::with_capacity(event.threads.len());
        for thread in &event.threads {
            let mut sums = BTreeMap::<u64, u64>::new();
            for slice in &thread.slices {
                *sums.entry((slice.nanoseconds - first) / step).or_default() += slice.samples;
            }
            lines.push((thread, sums));
        }
        let most = lines.iter().flat_map(|(_, sums)| sums.values()).max().copied().unwrap_or(1);
        writeln!(out, "# Samples: {} of event '{}'", event.samples, escape(event.name))?;
        let (seconds, nanos) = (first / 1_000_000_000, first % 1_000_000_000);
        let step = units::time(step);
        writeln!(
            out,
            "# One column is {step}, the first from {seconds}.{nanos:09} s; 1 to 9 scale to \
             {most} samples\n#"
        )?;
        for (thread, sums) in lines {
            let mut marks = String::new();
            for column in 0..count.div_ceil(per_column) {
                let ninths =
                    sums.get(&column).map_or(0, |samples| samples.saturating_mul(9).div_ceil(most));
                let mark = usize::try_from(ninths).ok().and_then(|n| ".123456789".chars().nth(n));
                marks.push(mark.unwrap_or('9'));
            }
            writeln!(out, "{:>9}  {marks}  {}", thread.samples, escape(&thread.thread))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
