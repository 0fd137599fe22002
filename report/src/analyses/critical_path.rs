//! `rep critical-path`: the critical path of each input by thread, or piece by piece (`--steps`).
//!
//! ```text
//!   pieces of the path ─┐
//!                       ├─ by thread and moment ─► steps with the functions in which they are
//!   rows of its event ──┘
//! ```

use std::collections::BTreeMap;
use std::io::Write;

use clap::Parser;
use recrep_console::units;
use serde::Serialize;

use crate::analyses::derived::{self, ViewArgs};
use crate::count::metrics::share;
use crate::exports::outputs::Output;
use crate::exports::sheet::{Analysis, Sheet, SheetCell, SheetColumn};
use crate::profile::critical_path::{PathOfInput, PathPiece, WokenBy};
use crate::query::{Column, Mode, Query, Warning};
use crate::table::{self, EventTable};

/// Show the critical path by thread, or piece by piece
#[derive(Debug, Parser)]
#[command(name = "rep critical-path", version, long_about = None, args_override_self = true)]
#[command(after_help = "Record with rec --waits. By function: rep --critical-path")]
pub(crate) struct CriticalPathArgs {
    /// List the pieces in order of time: thread, length, what it does, where, and who woke it
    #[arg(long)]
    steps: bool,

    #[command(flatten)]
    view: ViewArgs,
}

/// The path that is asked for, and how it is shown.
#[derive(Clone, Debug)]
pub(crate) struct PathQuery {
    query: Query,
    has_steps: bool,
    output: &'static Output,
}

pub(crate) fn query(args: CriticalPathArgs) -> Result<PathQuery, String> {
    let (output, has_steps) = (args.view.output(), args.steps);
    Ok(PathQuery { query: args.view.query(Mode::CriticalPath)?, has_steps, output })
}

#[derive(Serialize)]
struct PathAnalysis {
    paths: Vec<ShownPath>,
    #[serde(skip)]
    has_steps: bool,
}

/// The path of an input.
#[derive(Serialize)]
struct ShownPath {
    tid: i32,
    comm: String,
    /// Nanoseconds.
    period: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    threads: Vec<ThreadOnPath>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<PathStep>,
    #[serde(skip)]
    title: String,
}

/// What one thread does on a path, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct ThreadOnPath {
    thread: String,
    period: u64,
    running: u64,
    runnable: u64,
    preempted: u64,
    waiting: u64,
    unknown: u64,
}

/// A piece of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct PathStep {
    /// Nanoseconds since the start of the path.
    time: u64,
    period: u64,
    thread: String,
    what: &'static str,
    /// Function in which most of it is.
    #[serde(rename = "where")]
    place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    woken_by: Option<String>,
}

pub(crate) fn run(asked: &PathQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let precise = Query { nanosecs: true, ..asked.query.clone() };
    let columns = Column::list("tid,time,switch,symbol", asked.query.mode)?;
    let (profile, query, _) = derived::profile(&precise, columns, |_| ())?;
    let tables = table::tables(&profile, &query);
    let places = Places::of(&tables);
    let shown = profile.paths.iter().map(|path| ShownPath::of(path, &places, asked));
    let answer = PathAnalysis { paths: shown.collect(), has_steps: asked.has_steps };
    derived::print(asked.output, &profile.inputs, &answer, &profile.warnings, out)
}

/// Functions of the rows of a path by thread and moment, and the threads' names.
#[derive(Default)]
struct Places<'t> {
    rows: BTreeMap<(i32, u64), Vec<PlaceRow<'t>>>,
    threads: BTreeMap<i32, String>,
}

struct PlaceRow<'t> {
    what: std::borrow::Cow<'t, str>,
    function: std::borrow::Cow<'t, str>,
    period: u64,
}

impl<'t> Places<'t> {
    fn of(tables: &'t [EventTable<'_>]) -> Self {
        let mut places = Self::default();
        for row in tables.iter().flat_map(EventTable::rows) {
            let Some(tid) = row.task(0) else { continue };
            places.threads.entry(tid).or_insert_with(|| row.text(0).trim().to_owned());
            let place =
                PlaceRow { what: row.text(2), function: row.text(3), period: row.count().period };
            places.rows.entry((tid, row.cell(1))).or_default().push(place);
        }
        places
    }

    fn thread(&self, tid: i32) -> String {
        self.threads.get(&tid).cloned().unwrap_or_else(|| tid.to_string())
    }

    /// Returns the function in which most of a piece is.
    fn place(&self, piece: &PathPiece) -> String {
        let moments = match piece.at == piece.from {
            true => (piece.tid, piece.from)..=(piece.tid, piece.to),
            false => (piece.tid, piece.at)..=(piece.tid, piece.at),
        };
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        let rows = self.rows.range(moments).flat_map(|(_, rows)| rows);
        for row in rows.filter(|row| row.what == piece.kind.name()) {
            *sums.entry(row.function.trim()).or_default() += row.period;
        }
        let most = sums.into_iter().rev().max_by_key(|(_, period)| *period);
        most.map(|(function, _)| function.to_owned()).unwrap_or_default()
    }
}

impl ShownPath {
    fn of(path: &PathOfInput, places: &Places<'_>, asked: &PathQuery) -> Self {
        let most = asked.query.limit.unwrap_or(usize::MAX);
        let (mut threads, mut steps) = (Vec::new(), Vec::new());
        match asked.has_steps {
            true => steps = self::steps(path, places),
            false => threads = self::threads(path, places),
        }
        steps.truncate(most);
        threads.truncate(most);
        let (tid, comm, period) = (path.tid, path.comm.clone(), path.length());
        Self { tid, comm, period, threads, steps, title: path.described() }
    }
}

/// Returns what each thread does on a path, the one with the most time first.
fn threads(path: &PathOfInput, places: &Places<'_>) -> Vec<ThreadOnPath> {
    let mut all: BTreeMap<i32, ThreadOnPath> = BTreeMap::new();
    for piece in &path.pieces {
        let thread = all.entry(piece.tid).or_default();
        thread.period += piece.length();
        let sum = match piece.kind.name() {
            "running" => &mut thread.running,
            "runnable" => &mut thread.runnable,
            "preempted" => &mut thread.preempted,
            "unknown" => &mut thread.unknown,
            _ => &mut thread.waiting,
        };
        *sum += piece.length();
    }
    let named =
        all.into_iter().map(|(tid, thread)| ThreadOnPath { thread: places.thread(tid), ..thread });
    let mut all: Vec<ThreadOnPath> = named.collect();
    all.sort_by_key(|thread| std::cmp::Reverse(thread.period));
    all
}

/// Returns the pieces of a path; equal neighbours are one.
fn steps(path: &PathOfInput, places: &Places<'_>) -> Vec<PathStep> {
    let start = path.pieces.first().map_or(0, |piece| piece.from);
    let mut steps: Vec<PathStep> = Vec::new();
    for piece in &path.pieces {
        let woken_by = match piece.woken_by {
            WokenBy::Nobody => None,
            WokenBy::Interrupt => Some("interrupt".to_owned()),
            WokenBy::Itself => Some("itself".to_owned()),
            WokenBy::Thread(tid) => Some(places.thread(tid)),
            WokenBy::Cpu(tid) => Some(format!("{} left the CPU", places.thread(tid))),
            WokenBy::Stranger(tid) => {
                let name = path.strangers.get(&tid).map_or("", String::as_str);
                Some(format!("{tid}:{name} (not recorded)"))
            }
        };
        let step = PathStep {
            time: piece.from - start,
            period: piece.length(),
            thread: places.thread(piece.tid),
            what: piece.kind.name(),
            place: places.place(piece),
            woken_by,
        };
        match steps.last_mut() {
            Some(last)
                if last.time + last.period == step.time
                    && last.thread == step.thread
                    && last.what == step.what
                    && last.place == step.place
                    && last.woken_by == step.woken_by =>
            {
                last.period += step.period;
            }
            _ => steps.push(step),
        }
    }
    steps
}

impl Analysis for PathAnalysis {
    const SCHEMA: &'static str = "recrep-critical-path/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        let sheets = self.paths.iter().map(|path| {
            let title = vec![format!("# {}", path.title)];
            match self.has_steps {
                true => Sheet::new(title, &step_columns(), &path.steps),
                false => Sheet::new(title, &thread_columns(path.period), &path.threads),
            }
        });
        sheets.collect()
    }
}

fn thread_columns<'a>(length: u64) -> [SheetColumn<'a, &'a ThreadOnPath>; 8] {
    type Of<'a> = SheetColumn<'a, &'a ThreadOnPath>;
    [
        Of::shown("Share", 8, move |of| SheetCell::Percent(share(of.period, length))),
        Of::shown("Time", 9, |of| units::time(of.period).into()),
        Of::text("thread", "Thread", |of| (&of.thread).into()),
        Of::number("running_ns", "Running ns", 12, |of| of.running.into()),
        Of::number("runnable_ns", "Runnable ns", 12, |of| of.runnable.into()),
        Of::number("preempted_ns", "Preempted ns", 12, |of| of.preempted.into()),
        Of::number("waiting_ns", "Waiting ns", 12, |of| of.waiting.into()),
        Of::number("unknown_ns", "Unknown ns", 12, |of| of.unknown.into()),
    ]
}

fn step_columns<'a>() -> [SheetColumn<'a, &'a PathStep>; 8] {
    type Of<'a> = SheetColumn<'a, &'a PathStep>;
    [
        Of::shown("At", 9, |of| units::time(of.time).into()),
        Of::shown("Length", 9, |of| units::time(of.period).into()),
        Of::unshown("time_ns", |of| of.time.into()),
        Of::unshown("period_ns", |of| of.period.into()),
        Of::number("thread", "Thread", 20, |of| (&of.thread).into()),
        Of::number("what", "What", 9, |of| of.what.into()),
        Of::text("where", "Where", |of| (&of.place).into()),
        Of::text("woken_by", "Woken by", |of| of.woken_by.as_deref().unwrap_or_default().into()),
    ]
}
