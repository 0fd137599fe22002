//! The options of callchains.

use clap::Args;

use crate::query::graph::{FrameKey, Graph};
use crate::query::pattern::Pattern;
use crate::query::sort_key::Mode;
use crate::query::{ChainOptions, Format};

/// What is made of callchains.
#[derive(Clone, Debug, Default, Args)]
pub struct CallArgs {
    /// Count samples in their callers too (what a text does where callchains were recorded)
    #[arg(long, overrides_with = "no_children", conflicts_with = "hierarchy")]
    children: bool,

    /// Count each sample where it was taken only
    #[arg(long, overrides_with = "children")]
    no_children: bool,

    /// Call trees below rows: graph, fractal, flat, folded or none; from the caller or the callee on; the least share of
    /// a part, in percent; how many parts at most; percent, period or count; frames by function, address or srcline;
    /// branch: branches are frames too [default: graph,0.5,percent,function]
    #[arg(short = 'g', long, value_name = "WORD[,WORD…]", num_args = 0..=1, default_missing_value = "")]
    call_graph: Option<String>,

    /// Begin call trees at the outermost frame
    #[arg(short = 'G', long)]
    inverted: bool,

    /// Put the branches before a sample in front of its callers, each a frame for its target and one for its source, by
    /// address; trees tell how they were predicted, their cycles, and turns of loops
    #[arg(long, conflicts_with = "hierarchy")]
    branch_history: bool,

    /// The functions that the key `parent` tells apart among callers [default: ^sys_|^do_page_fault]
    #[arg(short = 'p', long, value_name = "REGEX")]
    parent: Option<Pattern>,

    /// Only samples with a `parent`
    #[arg(short = 'x', long)]
    exclude_other: bool,

    /// Put these functions in the place of all that they call
    #[arg(long, value_name = "REGEX")]
    ignore_callees: Option<Pattern>,

    /// Show functions as frames that are inlined, where debug information tells of them
    #[arg(long, overrides_with = "no_inline")]
    inline: bool,

    /// Show only functions that have code of their own (what rep does anyway)
    #[arg(long, overrides_with = "inline")]
    no_inline: bool,

    /// At most N frames of each callchain [default: 127]
    #[arg(long, value_name = "N")]
    max_stack: Option<usize>,
}

/// What perf takes for parents.
const USUAL_PARENTS: &str = "^sys_|^do_page_fault";

impl CallArgs {
    /// Whether branches are part of callchains, and not what is counted.
    #[must_use]
    pub fn asks_for_history(&self) -> bool {
        self.branch_history
    }

    /// Whether rows are to be grouped by a parent, whatever the sort keys are.
    #[must_use]
    pub fn asks_for_parent(&self) -> bool {
        self.parent.is_some()
    }

    /// What they mean: as in perf, a text has children and trees unless told otherwise; what programs read has them only
    /// where they are asked for, as a flag or as a column (`has_column`), and rows below rows have no children. `has_parent`
    /// says that rows are grouped by parents.
    ///
    /// # Errors
    /// A word of `-g` is not known, or what is asked for has no meaning here.
    pub fn chains(
        &self,
        (mode, format): (Mode, Format),
        is_nested: bool,
        (has_column, has_parent): (bool, bool),
        percent_limit: Option<f64>,
    ) -> Result<ChainOptions, String> {
        let text = format == Format::Text && !mode.is_of_branches();
        let usual_children = text && mode == Mode::Samples && !is_nested;
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
        let children_asked = !self.no_children && (self.children || has_column);
        let is_asked =
            self.children || self.inverted || branches || self.call_graph.as_ref().is_some_and(|_| graph.is_some());
        if mode.is_of_branches() && (is_asked || has_column || has_parent || self.ignore_callees.is_some()) {
            return Err("-b counts branches, callchains are of samples: leave one of them out".into());
        }
        if self.exclude_other && !has_parent {
            return Err("--exclude-other is for the key `parent`: add -p REGEX or -s parent".into());
        }
        let parent =
            if has_parent { Some(self.parent.clone().map_or_else(|| USUAL_PARENTS.parse(), Ok)?) } else { None };
        Ok(ChainOptions {
            counted: format == Format::Folded,
            most: self.max_stack.unwrap_or(ChainOptions::default().most),
            children: children_asked || (usual_children && !self.no_children),
            children_asked,
            graph: graph.filter(|_| text),
            key,
            branches,
            branches_told: self.branch_history,
            inlined: self.inline,
            parent,
            only_parents: self.exclude_other,
            ignored_callees: self.ignore_callees.clone(),
            is_asked,
        })
    }
}
