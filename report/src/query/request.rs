//! The compiled query: plain data, independent of files.

use regex_lite::Regex;

use super::{
    By, Column, Field, Filters, FrameKey, Graph, Inspection, Kind, Mode, Name, Needs, Number,
    Shape, Shown, SortKey, Source, SymbolOptions, TableColumn, TimeSteps, TraceColumn, WhatIf,
};
use crate::terminal::style::Style;

/// How callchains are counted and shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChainOptions {
    /// `true` if callchains are part of the counted keys.
    pub counted: bool,
    /// `true` if samples count in their callers too.
    pub children: bool,
    /// `true` if `children` was requested and is not just the default.
    pub children_requested: bool,
    /// Call trees below rows, if callchains were recorded.
    pub graph: Option<Graph>,
    /// Key by which frames are grouped.
    pub key: FrameKey,
    /// `true` if the branches before a sample become frames in front of its callers.
    pub branches: bool,
    /// `true` if trees also show predictions, cycles and loop iterations of these branches.
    pub branch_details: bool,
    /// Callers that the sort key `parent` shows.
    pub parent: Option<Regex>,
    /// `true` if only samples with such a caller make rows.
    pub only_parents: bool,
    /// Functions that whatever they call is counted as.
    pub ignored_callees: Option<Regex>,
    /// Whether inlined functions become frames; `None`: of unwound stacks only, as in perf.
    pub inlined: Option<bool>,
    /// Maximum number of frames per callchain.
    pub most: Option<usize>,
    /// `true` if callchains are shown as recorded, without a mark where callers are missing.
    pub as_recorded: bool,
    /// `true` if a thread's wait begins where the kernel switched it, not at the function that
    /// waits.
    pub kernel_waits: bool,
    /// `true` if an option that needs callchains was given; if none were recorded, that is an
    /// error.
    pub is_asked: bool,
}

impl ChainOptions {
    /// Returns the maximum number of frames per callchain.
    pub(crate) fn frames(&self) -> usize {
        self.most.unwrap_or(MOST_FRAMES)
    }

    /// Returns whether rows depend on callchains without showing them.
    pub(crate) fn used_unshown(&self) -> bool {
        self.parent.is_some() || self.ignored_callees.is_some()
    }

    /// Returns whether rows show their callchains or include callees.
    pub(crate) fn is_shown(&self) -> bool {
        self.counted || self.children || self.graph.is_some()
    }

    /// Returns whether trees show predictions, cycles and loop iterations of branches.
    pub(crate) fn shows_branches(&self) -> bool {
        let is_tree = |graph: Graph| matches!(graph.shape, Shape::Graph | Shape::Fractal);
        self.branch_details && self.graph.is_some_and(is_tree)
    }

    /// Returns whether trees begin at the outermost frame.
    pub(crate) fn begin_at_caller(&self) -> bool {
        self.graph.and_then(|graph| graph.from_caller).unwrap_or(self.children)
    }
}

/// Default maximum of frames that the kernel puts in a callchain (`PERF_MAX_STACK_DEPTH`).
pub(crate) const MAX_STACK: usize = 127;

/// Number of frames of a callchain that are used where no maximum is asked for: more than any stack
/// that can be copied has.
const MOST_FRAMES: usize = 1 << 16;

/// Everything that the user requested.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Inputs, merged into one profile.
    pub sources: Vec<Source>,
    /// `true` if no input was named.
    pub is_default_input: bool,
    /// Kind of items that are counted.
    pub mode: Mode,
    /// Sort keys, companions last.
    pub columns: Vec<Column>,
    /// `true` if the columns are the defaults, which change if the file has tracepoints only.
    pub has_default_columns: bool,
    /// What `--by` columns show, before all others.
    pub(crate) by: Vec<By>,
    /// Columns of a table, in order: numbers, and all of `columns` but companions.
    pub shown: Vec<TableColumn>,
    pub(crate) needs: Needs,
    /// Maximum number of rows per event.
    pub limit: Option<usize>,
    /// Minimum share of a row, in percent.
    pub percent_limit: Option<f64>,
    /// `true` if two adjacent cache lines count as one.
    pub double_lines: bool,
    /// Something to print instead of a histogram.
    pub inspection: Option<Inspection>,
    /// `true` for rows in a hierarchy, one level per sort key.
    pub hierarchy: bool,
    /// `true` for one table of all events.
    pub group: bool,
    /// `true` for a table of the counts of threads that exited.
    pub threads: bool,
    /// `true` if tracepoint fields are shown raw, ignoring the kernel's print format.
    pub raw_trace: bool,
    /// Resolution of the sort key `time`.
    pub(crate) steps: TimeSteps,
    /// `true` if times are shown to the nanosecond.
    pub nanosecs: bool,
    /// Text between fields, in place of padding.
    pub separator: Option<String>,
    /// Changes whose effect on the critical path is asked for.
    pub(crate) what_if: Vec<WhatIf>,
    pub(crate) chains: ChainOptions,
    pub(crate) filters: Filters,
    pub(crate) symbol_sources: SymbolOptions,
    pub(crate) style: Style,
}

impl Query {
    /// Returns whether there is a column with this key.
    pub fn has(&self, key: SortKey) -> bool {
        self.columns.iter().any(|c| c.key == key)
    }

    /// Returns whether a column needs this field.
    pub fn needs(&self, field: Field) -> bool {
        self.columns.iter().any(|column| column.key.needs(field))
    }

    /// Returns whether waits of idle threads count: where the user chose threads, or asked what
    /// they do.
    pub(crate) fn shows_idle(&self) -> bool {
        self.has(SortKey::Switch) || self.filters.by_task()
    }

    /// Returns whether kinds of waits are needed: by a column, or as symbols of the waits on a
    /// critical path.
    pub(crate) fn needs_wait_kinds(&self) -> bool {
        self.needs(Field::Wait) || self.names_waits()
    }

    /// Returns whether waits have their kinds as symbols.
    pub(crate) fn names_waits(&self) -> bool {
        self.mode == Mode::CriticalPath && !self.chains.kernel_waits
    }

    /// Returns whether the number of threads that ran is needed.
    pub(crate) fn needs_parallelism(&self) -> bool {
        self.mode == Mode::Latency
            || self.needs(Field::Parallelism)
            || self.filters.parallelism.is_some()
    }

    /// Returns whether samples that differ in time alone may be counted as one with their number.
    pub(crate) fn takes_sums(&self) -> bool {
        let is_by_time = self.needs(Field::Time)
            || self.needs(Field::CgroupSpace)
            || self.needs_parallelism()
            || self.filters.samples.times.is_some();
        self.mode == Mode::Samples && !is_by_time
    }

    /// Returns the fields that the columns need.
    pub fn fields(&self) -> Vec<Field> {
        self.columns.iter().flat_map(|column| column.key.declared().fields).copied().collect()
    }

    /// Returns whether a column shows source lines.
    pub fn needs_lines(&self) -> bool {
        self.needs(Field::Line) || self.needs(Field::FromLine)
    }

    /// Returns whether a column shows offsets in modules.
    pub(crate) fn shows_file_offsets(&self) -> bool {
        let is_place = |column: &Column| {
            matches!(column.key.declared().shown, Shown::Name(Name::FileOffset(_)))
        };
        self.columns.iter().any(is_place)
    }

    /// Returns whether a column depends on functions.
    pub fn needs_symbols(&self) -> bool {
        self.columns.iter().any(|column| column.key.declared().is_of_symbol())
    }

    /// Returns the kinds of the columns.
    pub fn kinds(&self) -> Vec<Kind> {
        self.columns.iter().map(|column| column.key.kind(self.nanosecs)).collect()
    }

    /// Returns the number of words of a row: its event, then a cell for each column.
    pub fn width(&self) -> usize {
        1 + self.columns.len()
    }

    /// Returns the numeric columns, in order.
    pub fn numbers(&self) -> impl Iterator<Item = Number> {
        self.shown.iter().filter_map(|shown| match shown {
            TableColumn::Number(number) => Some(*number),
            TableColumn::Key(_) => None,
        })
    }

    /// Returns the heading of a numeric column. Beside `Children`, `overhead` has the heading
    /// `Self`; of latencies it is one.
    pub fn heading(&self, number: Number) -> &'static str {
        match number {
            Number::Overhead if self.numbers().any(|number| number == Number::Children) => "Self",
            Number::Overhead if self.mode == Mode::Latency => "Latency",
            number => number.heading(),
        }
    }

    /// Returns the names of the columns without companions, as typed.
    pub fn sort(&self) -> impl Iterator<Item = &str> {
        self.columns
            .iter()
            .filter(|column| !column.key.is_companion())
            .map(|column| column.typed.as_str())
    }

    /// Returns the first column that was typed as a bare word and is no known key: it may be a
    /// field of a tracepoint.
    pub(crate) fn bare_word(&self) -> Option<&str> {
        let is_bare = |column: &&Column| {
            matches!(column.key, SortKey::TraceField(_)) && !column.typed.contains('.')
        };
        self.columns.iter().find(is_bare).map(|column| column.typed.as_str())
    }

    /// Returns the tracepoint columns.
    pub fn trace_columns(&self) -> Vec<(SortKey, TraceColumn)> {
        self.columns.iter().filter_map(|column| column.trace_column(self.raw_trace)).collect()
    }

    /// Returns the same query by the key `trace`, perf's default for files with tracepoints only.
    pub fn by_trace(&self) -> Self {
        let trace = Column { typed: "trace".into(), key: SortKey::Trace };
        let columns: Vec<Column> = By::columns(&self.by).chain([trace]).collect();
        let is_number = |shown: &&TableColumn| matches!(shown, TableColumn::Number(_));
        let shown = self
            .shown
            .iter()
            .filter(is_number)
            .copied()
            .chain((0..columns.len()).map(TableColumn::Key))
            .collect();
        Self { columns, shown, ..self.clone() }
    }

    /// Returns whether rows need more metrics than samples and periods.
    pub fn has_parts(&self) -> bool {
        self.numbers().any(Number::is_part)
    }
}
