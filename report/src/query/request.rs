//! The compiled query: plain data, independent of files.

use clap::Args;
use regex_lite::Regex;

use super::lists::pattern;
use super::{
    Column, Field, Filters, FrameKey, Graph, Inspection, Kind, Mode, Needs, Number, Shape, SortKey,
    Source, SymbolOptions, TableColumn, TraceColumn, times,
};
use crate::terminal::style::Style;

/// Options of callchains, and what follows from them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Callchains")]
pub struct ChainOptions {
    // Afterwards the default too, if callchains were recorded.
    /// Count samples in their callers too
    ///
    /// This is the default for text if callchains were recorded, but not with -b, --mem-mode, -H or
    /// the sort key `ip`
    #[arg(long, overrides_with = "no_children", conflicts_with = "hierarchy")]
    pub children: bool,

    /// Count each sample only in the function where it was taken
    #[arg(long, overrides_with = "children")]
    pub no_children: bool,

    /// Show call trees: caller, callee, flat, none, a minimum percentage, …
    ///
    /// Call trees below rows are the default for text, but not with -b or the sort key `ip`. The
    /// words: a shape (graph, fractal, flat, folded or none); caller (outermost function first;
    /// default with --children) or callee (sampled function first; default otherwise); the frame
    /// key (function, address or srcline); the value (percent, period or count); branch (like
    /// --branch-history, without predictions); a minimum percentage, and after it a maximum number
    /// of entries per level [default: graph,0.5,percent,function]
    #[arg(
        short = 'g', long, value_name = "WORD[,WORD…]", num_args = 0..=1,
        default_missing_value = ""
    )]
    pub call_graph: Option<String>,

    /// Begin call trees at the outermost caller, as -g caller does; overrides -g callee
    #[arg(short = 'G', long)]
    pub inverted: bool,

    /// Add the branches of each sample's branch stack to its callchain
    ///
    /// The target and the source address of each branch become frames. Call trees also show
    /// predictions, cycles and loop iterations
    #[arg(long = "branch-history", conflicts_with = "hierarchy")]
    pub branch_details: bool,

    /// Regex of the callers that the sort key `parent` shows, by which rows are grouped too
    /// [default with -s parent: ^sys_|^do_page_fault]
    #[arg(short = 'p', long, value_name = "REGEX", value_parser = pattern)]
    pub parent: Option<Regex>,

    /// Only samples with a caller that matches --parent (needs -p or -s parent)
    #[arg(short = 'x', long = "exclude-other")]
    pub only_parents: bool,

    /// Count whatever the functions that match REGEX call as themselves
    #[arg(long = "ignore-callees", value_name = "REGEX", value_parser = pattern)]
    pub ignored_callees: Option<Regex>,

    /// Show inlined functions as frames (needs debug information) [default: only in callchains of
    /// recordings made with --call-graph dwarf]
    #[arg(long, overrides_with = "no_inline")]
    pub inline: bool,

    /// Do not show inlined functions
    #[arg(long, overrides_with = "inline")]
    pub no_inline: bool,

    /// Use at most N frames of each callchain [default: 127]
    #[arg(long = "max-stack", value_name = "N")]
    pub most: Option<usize>,

    /// `true` if callchains are part of the counted keys.
    #[arg(skip)]
    pub counted: bool,
    /// `true` if `children` was requested and is not just the default.
    #[arg(skip)]
    pub children_requested: bool,
    /// Call trees below rows, if callchains were recorded.
    #[arg(skip)]
    pub graph: Option<Graph>,
    /// Key by which frames are grouped.
    #[arg(skip)]
    pub key: FrameKey,
    /// `true` if the branches before a sample become frames in front of its callers.
    #[arg(skip)]
    pub branches: bool,
    /// Whether inlined functions become frames; `None`: of unwound stacks only, as in perf.
    #[arg(skip)]
    pub inlined: Option<bool>,
    /// `true` if an option that needs callchains was given; if none were recorded, that is an
    /// error.
    #[arg(skip)]
    pub is_asked: bool,
}

impl ChainOptions {
    /// Returns the maximum number of frames per callchain.
    pub fn frames(&self) -> usize {
        self.most.unwrap_or(MAX_STACK)
    }

    /// Returns whether rows depend on callchains without showing them.
    pub fn used_unshown(&self) -> bool {
        self.parent.is_some() || self.ignored_callees.is_some()
    }

    /// Returns whether rows show their callchains or include callees.
    pub fn is_shown(&self) -> bool {
        self.counted || self.children || self.graph.is_some()
    }

    /// Returns whether trees show predictions, cycles and loop iterations of branches.
    pub fn shows_branches(&self) -> bool {
        let is_tree = |graph: Graph| matches!(graph.shape, Shape::Graph | Shape::Fractal);
        self.branches && self.branch_details && self.graph.is_some_and(is_tree)
    }

    /// Returns whether trees begin at the outermost frame.
    pub fn from_caller(&self) -> bool {
        self.graph.and_then(|graph| graph.from_caller).unwrap_or(self.children)
    }
}

/// Heading of the options of tables in the help.
const TABLE: &str = "Rows and columns";

/// Default maximum of frames that the kernel puts in a callchain (`PERF_MAX_STACK_DEPTH`).
pub(crate) const MAX_STACK: usize = 127;

/// Everything that the user requested. The fields that are arguments stand together, in the order
/// of the help.
#[derive(Clone, Debug, Default, Args)]
pub struct Query {
    /// Inputs, merged into one profile.
    #[arg(skip)]
    pub sources: Vec<Source>,
    /// `true` if no input was named.
    #[arg(skip)]
    pub is_default_input: bool,
    /// Kind of items that are counted.
    #[arg(skip)]
    pub mode: Mode,
    /// Sort keys, companions last.
    #[arg(skip)]
    pub columns: Vec<Column>,
    /// `true` if the columns are the defaults, which change if the file has tracepoints only.
    #[arg(skip)]
    pub has_default_columns: bool,
    /// Columns of a table, in order: numbers, and all of `columns` but companions.
    #[arg(skip)]
    pub shown: Vec<TableColumn>,
    #[arg(skip)]
    pub(crate) needs: Needs,
    /// Maximum number of rows per event.
    #[arg(skip)]
    pub limit: Option<usize>,
    /// Minimum share of a row, in percent.
    #[arg(skip)]
    pub percent_limit: Option<f64>,
    /// `true` if two adjacent cache lines count as one.
    #[arg(skip)]
    pub double_lines: bool,
    /// Something to print instead of a histogram.
    #[arg(skip)]
    pub inspection: Option<Inspection>,

    /// Show a hierarchy of rows, one level per sort key
    #[arg(short = 'H', long, conflicts_with = "group", help_heading = TABLE)]
    pub hierarchy: bool,

    /// Show all events in one table, with one column per event
    #[arg(long, help_heading = TABLE)]
    pub group: bool,

    /// Show tracepoint fields raw, ignoring the kernel's print format
    #[arg(long, help_heading = TABLE)]
    pub raw_trace: bool,

    /// Resolution of the sort key `time`: a whole number with s, ms, us or ns
    #[arg(
        long = "time-quantum", value_name = "LENGTH", default_value = "100ms",
        value_parser = times::quantum
    )]
    #[arg(help_heading = TABLE)]
    pub quantum: u64,

    /// Show times to the nanosecond
    #[arg(long = "ns", help_heading = TABLE)]
    pub nanosecs: bool,

    /// Separate fields with SEP, without padding; SEP inside a field becomes a dot
    #[arg(short = 't', long = "field-separator", value_name = "SEP", help_heading = "Output")]
    pub separator: Option<String>,

    #[command(flatten)]
    pub(crate) chains: ChainOptions,

    #[command(flatten)]
    pub(crate) filters: Filters,

    #[command(flatten)]
    pub(crate) symbol_sources: SymbolOptions,

    #[command(flatten)]
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

    /// Returns the fields that the columns need.
    pub fn fields(&self) -> Vec<Field> {
        self.columns.iter().flat_map(|column| column.key.declared().fields).copied().collect()
    }

    /// Returns whether a column shows source lines.
    pub fn needs_lines(&self) -> bool {
        self.needs(Field::Line) || self.needs(Field::FromLine)
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
    /// `Self`.
    pub fn heading(&self, number: Number) -> &'static str {
        match number {
            Number::Overhead if self.numbers().any(|number| number == Number::Children) => "Self",
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

    /// Returns the tracepoint columns.
    pub fn trace_columns(&self) -> Vec<(SortKey, TraceColumn)> {
        self.columns.iter().filter_map(|column| column.trace_column(self.raw_trace)).collect()
    }

    /// Returns the same query by the key `trace`, perf's default for files with tracepoints only.
    pub fn by_trace(&self) -> Self {
        let columns = vec![Column { typed: "trace".into(), key: SortKey::Trace }];
        let is_number = |shown: &&TableColumn| matches!(shown, TableColumn::Number(_));
        let shown =
            self.shown.iter().filter(is_number).copied().chain([TableColumn::Key(0)]).collect();
        Self { columns, shown, ..self.clone() }
    }

    /// Returns whether rows need more metrics than samples and periods.
    pub fn has_parts(&self) -> bool {
        self.numbers().any(Number::is_part)
    }
}
