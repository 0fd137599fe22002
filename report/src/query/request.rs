//! What was asked, compiled: pure data, no command line and no file in it.

use std::collections::HashSet;

use super::column::Column;
use super::fields::{Number, TableColumn};
use super::graph::{FrameKey, Graph, Shape};
use super::pattern::Pattern;
use super::sort_key::{Mode, SortKey};
use super::source::Source;
use super::symbol_options::SymbolOptions;
use super::times::Times;
use super::trace_fields::TraceColumn;
use crate::terminal::style::Style;

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A table for people.
    #[default]
    Text,
    /// JSON, `recrep-report/1`.
    Json,
    /// A line for each distinct callchain.
    Folded,
    /// Comma-separated values, a line for each row of each event.
    Csv,
}

/// What can be asked for in the place of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// The counts of records.
    Stats,
    /// The tasks.
    Tasks,
    /// The tasks with what they mapped.
    Mmaps,
    /// All records.
    Records,
    /// What the header says.
    Header,
}

/// What is made of callchains.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainOptions {
    /// Whether they are looked at.
    pub counted: bool,
    /// At most so many frames of each.
    pub most: usize,
    /// Whether samples count in their callers too, where callchains were recorded.
    pub children: bool,
    /// Whether that was asked for, and not only wanted where it is usual.
    pub children_asked: bool,
    /// The trees below rows, where callchains were recorded.
    pub graph: Option<Graph>,
    /// What tells frames apart.
    pub key: FrameKey,
    /// Whether the branches before a sample are frames in front of its callers.
    pub branches: bool,
    /// Whether trees tell what is known of them.
    pub branches_told: bool,
    /// Whether functions are frames that are inlined.
    pub inlined: bool,
    /// The functions that rows are grouped by as `parent`.
    pub parent: Option<Pattern>,
    /// Whether what has no parent is left out.
    pub only_parents: bool,
    /// The functions that stand for all that they call.
    pub ignored_callees: Option<Pattern>,
    /// Whether trees were asked for, and not only wanted where there can be any.
    pub is_asked: bool,
}

impl Default for ChainOptions {
    fn default() -> Self {
        Self {
            counted: false,
            most: MAX_STACK,
            children: false,
            children_asked: false,
            graph: None,
            key: FrameKey::Function,
            branches: false,
            branches_told: false,
            inlined: false,
            parent: None,
            only_parents: false,
            ignored_callees: None,
            is_asked: false,
        }
    }
}

impl ChainOptions {
    /// Whether anything is made of chains that rows do not show.
    #[must_use]
    pub fn is_asked_of(&self) -> bool {
        self.parent.is_some() || self.ignored_callees.is_some()
    }

    /// Whether rows need their chains to be shown.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.counted || self.children || self.graph.is_some()
    }

    /// Whether any tree tells what is known of branches.
    #[must_use]
    pub fn shows_branches(&self) -> bool {
        let is_tree = |graph: Graph| matches!(graph.shape, Shape::Graph | Shape::Fractal);
        self.branches && self.branches_told && self.graph.is_some_and(is_tree)
    }

    /// Whether trees begin at the outermost frame.
    #[must_use]
    pub fn from_caller(&self) -> bool {
        self.graph.and_then(|graph| graph.from_caller).unwrap_or(self.children)
    }
}

/// How many frames a kernel puts in a callchain unless told otherwise (`PERF_MAX_STACK_DEPTH`).
const MAX_STACK: usize = 127;

/// Which samples make rows. What is left out still counts in the event's totals, as in perf, except by CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// Only threads of these names.
    pub comms: Option<HashSet<String>>,
    /// Only modules of these names or paths.
    pub dsos: Option<HashSet<String>>,
    /// Only functions of these names.
    pub symbols: Option<HashSet<String>>,
    /// Only these processes.
    pub pids: Option<HashSet<i32>>,
    /// Only these threads.
    pub tids: Option<HashSet<i32>>,
    /// Only these CPUs: what is sampled elsewhere does not count at all.
    pub cpus: Option<HashSet<u32>>,
    /// Only functions with this in their names.
    pub symbol_part: Option<String>,
    /// Only what has a function: the rest does not count at all.
    pub resolved: bool,
    /// Only the CPUs of this socket.
    pub socket: Option<u32>,
    /// Only these events, by name, with or without modifiers: others do not count at all.
    pub events: Option<Vec<String>>,
    /// Only these stretches of time: what is sampled at another time does not count at all.
    pub times: Option<Times>,
}

impl Filters {
    /// Whether functions must be known to filter by them.
    #[must_use]
    pub fn by_symbol(&self) -> bool {
        self.symbols.is_some() || self.symbol_part.is_some() || self.resolved
    }
}

/// Everything that was asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The inputs; together one profile.
    pub sources: Vec<Source>,
    /// What is counted.
    pub mode: Mode,
    /// The columns, companions last.
    pub columns: Vec<Column>,
    /// Whether nobody named columns, so that they are others where the file has tracepoints only.
    pub is_usual: bool,
    /// Whether what tracepoints recorded is told as it lies in the raw bytes.
    pub raw_trace: bool,
    /// The filters.
    pub filters: Filters,
    /// The form of the answer.
    pub format: Format,
    /// At most so many rows for each event.
    pub limit: Option<usize>,
    /// Only rows with at least this share, in percent.
    pub percent_limit: Option<f64>,
    /// The columns of a table in their order: numbers, and all of `columns` but companions.
    pub shown: Vec<TableColumn>,
    /// The steps of the `time` key, in nanoseconds.
    pub quantum: u64,
    /// Whether times are shown to the nanosecond.
    pub nanosecs: bool,
    /// Whether two cache lines side by side are taken for one.
    pub double_lines: bool,
    /// Rows below rows, a level for each column.
    pub hierarchy: bool,
    /// One table for all events, with a column for each.
    pub group: bool,
    /// Text: fields apart by this, without padding.
    pub separator: Option<String>,
    /// Where symbols come from.
    pub symbol_sources: SymbolOptions,
    /// What is made of callchains.
    pub chains: ChainOptions,
    /// What is asked for in the place of a histogram.
    pub inspection: Option<Inspection>,
    /// How the answer style.
    pub style: Style,
}

impl Query {
    /// Whether this column is asked for.
    #[must_use]
    pub fn has(&self, key: SortKey) -> bool {
        self.columns.iter().any(|c| c.key == key)
    }

    /// The columns that are numbers, in their order.
    pub fn numbers(&self) -> impl Iterator<Item = Number> {
        self.shown.iter().filter_map(|shown| match shown {
            TableColumn::Number(number) => Some(*number),
            TableColumn::Key(_) => None,
        })
    }

    /// The heading of a number's column: the share of the period is what is a row's own where callees are told apart.
    #[must_use]
    pub fn heading(&self, number: Number) -> &'static str {
        match number {
            Number::Overhead if self.numbers().any(|number| number == Number::Children) => "Self",
            number => number.heading(),
        }
    }

    /// The names of the columns that were asked for.
    pub fn sort(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|column| !column.key.is_companion()).map(|column| column.typed.as_str())
    }

    /// What is asked of tracepoints.
    #[must_use]
    pub fn of_traces(&self) -> Vec<(SortKey, TraceColumn)> {
        self.columns.iter().filter_map(|column| column.of_trace(self.raw_trace)).collect()
    }

    /// The same by what tracepoints recorded, as perf does where a file has nothing else.
    #[must_use]
    pub fn by_trace(&self) -> Self {
        let columns = vec![Column { typed: "trace".into(), key: SortKey::Trace }];
        let is_number = |shown: &&TableColumn| matches!(shown, TableColumn::Number(_));
        let shown = self.shown.iter().filter(is_number).copied().chain([TableColumn::Key(0)]).collect();
        Self { columns, shown, ..self.clone() }
    }

    /// Whether rows must gather more than samples and periods.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        self.numbers().any(Number::is_part)
    }
}
