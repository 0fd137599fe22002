//! Options for callchains.

use clap::Args;
use regex_lite::Regex;

use crate::query::graph::{FrameKey, Graph};
use crate::query::lists::pattern;
use crate::query::{ChainOptions, Format, Mode};

/// Options for callchains.
#[derive(Clone, Debug, Default, Args)]
pub struct CallArgs {
    /// Count samples in their callers too (default for text if callchains were recorded, but not with -b, --mem-mode, -H
    /// or the sort key `ip`)
    #[arg(long, overrides_with = "no_children", conflicts_with = "hierarchy")]
    children: bool,

    /// Count each sample only in the function where it was taken
    #[arg(long, overrides_with = "children")]
    no_children: bool,

    /// Show call trees below rows (default for text, but not with the sort key `ip`). WORDs: graph, fractal, flat, folded
    /// or none (shape); caller (outermost function first; default with --children) or callee (sampled function first;
    /// default otherwise); function, address or srcline (frames); percent, period or count (values); branch (like
    /// --branch-history, without predictions); or numbers: minimum percent, then maximum entries per level
    /// [default: graph,0.5,percent,function]
    #[arg(short = 'g', long, value_name = "WORD[,WORD…]", num_args = 0..=1, default_missing_value = "")]
    call_graph: Option<String>,

    /// Begin call trees at the outermost caller, as -g caller does; overrides -g callee
    #[arg(short = 'G', long)]
    inverted: bool,

    /// Add the branches of each sample's branch stack to its callchain: the target and the source address of each
    /// branch become frames. Call trees also show predictions, cycles and loop iterations
    #[arg(long, conflicts_with = "hierarchy")]
    pub(super) branch_history: bool,

    /// Group also by the caller that matches REGEX (sort key `parent`) [default with -s parent: ^sys_|^do_page_fault]
    #[arg(short = 'p', long, value_name = "REGEX", value_parser = pattern)]
    pub(super) parent: Option<Regex>,

    /// Only samples with a caller that matches --parent (needs -p or -s parent)
    #[arg(short = 'x', long)]
    exclude_other: bool,

    /// Count the samples of callees of functions matching REGEX in these functions themselves
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    ignore_callees: Option<Regex>,

    /// Show inlined functions as frames in all callchains (needs debug information) [default: only in callchains
    /// of recordings made with --call-graph dwarf]
    #[arg(long, overrides_with = "no_inline")]
    inline: bool,

    /// Do not show inlined functions
    #[arg(long, overrides_with = "inline")]
    no_inline: bool,

    /// Use at most N frames of each callchain [default: 127]
    #[arg(long, value_name = "N")]
    max_stack: Option<usize>,
}

/// perf's default for `--parent`.
const DEFAULT_PARENT: &str = "^sys_|^do_page_fault";

impl CallArgs {
    /// Returns the meaning of these options. As in perf, text has children and trees by default; not if rows are sampled
    /// addresses (`by_ip`): no sample has the address of its callers' calls. JSON and CSV have children only on request,
    /// by option or as a column (`has_column`). A hierarchy (`is_nested`) has no children. `has_parent`: rows are grouped
    /// by `parent`.
    ///
    /// # Errors
    /// Returns an error for an unknown word of `-g`, and for options that contradict each other.
    pub fn chains(
        &self,
        (mode, format): (Mode, Format),
        (is_nested, by_ip): (bool, bool),
        (has_column, has_parent): (bool, bool),
        percent_limit: Option<f64>,
    ) -> Result<ChainOptions, String> {
        let text = format == Format::Text && !mode.is_of_branches();
        let default_children = text && mode != Mode::Memory && !is_nested && !by_ip;
        let mut graph = match &self.call_graph {
            Some(words) => Graph::parse(words).map_err(|error| format!("--call-graph: {error}"))?,
            None => Some(Graph::default()),
        };
        if let (Some(graph), true) = (&mut graph, self.inverted) {
            graph.from_caller = Some(true);
        }
        if let (Some(graph), Some(percent)) = (&mut graph, percent_limit) {
            graph.percent = percent;
        }
        let key = match graph {
            _ if self.branch_history => FrameKey::Address,
            graph => graph.map(|graph| graph.key).unwrap_or_default(),
        };
        let branches = self.branch_history || graph.is_some_and(|graph| graph.branches);
        let children_requested = !self.no_children && (self.children || has_column);
        let is_asked =
            self.children || self.inverted || branches || self.call_graph.as_ref().is_some_and(|_| graph.is_some());
        if mode.is_of_branches() && (is_asked || has_column || has_parent || self.ignore_callees.is_some()) {
            return Err("-b counts branches, which have no callchains: leave out -b or the callchain options".into());
        }
        if self.exclude_other && !has_parent {
            return Err("--exclude-other needs the sort key `parent`: add -p REGEX or -s parent".into());
        }
        let parent =
            if has_parent { Some(self.parent.clone().map_or_else(|| pattern(DEFAULT_PARENT), Ok)?) } else { None };
        Ok(ChainOptions {
            counted: format == Format::Folded,
            most: self.max_stack,
            children: children_requested || (default_children && !self.no_children),
            children_requested,
            graph: graph.filter(|_| text && (is_asked || !by_ip)),
            key,
            branches,
            branch_details: self.branch_history,
            inlined: (self.inline || self.no_inline).then_some(self.inline),
            parent,
            only_parents: self.exclude_other,
            ignored_callees: self.ignore_callees.clone(),
            is_asked,
        })
    }
}
