//! The options of callchains.

use clap::Args;

use crate::graph::{Graph, UnknownWord};
use crate::query::{Chains, Format};
use crate::sort_key::Mode;

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
    /// a part, in percent; how many parts at most; percent, period or count [default: graph,0.5,percent]
    #[arg(short = 'g', long, value_name = "WORD[,WORD…]", num_args = 0..=1, default_missing_value = "")]
    call_graph: Option<String>,

    /// Begin call trees at the outermost frame
    #[arg(short = 'G', long)]
    inverted: bool,

    /// At most N frames of each callchain [default: 127]
    #[arg(long, value_name = "N")]
    max_stack: Option<usize>,
}

impl CallArgs {
    /// What they mean: as in perf, a text has children and trees unless told otherwise; what programs read has them only
    /// where they are asked for, as a flag or as a column (`has_column`), and rows below rows have neither.
    ///
    /// # Errors
    /// A word of `-g` is not known.
    pub fn chains(
        &self,
        (mode, format): (Mode, Format),
        is_nested: bool,
        has_column: bool,
        percent_limit: Option<f64>,
    ) -> Result<Chains, UnknownWord> {
        let text = format == Format::Text && mode == Mode::Samples && !is_nested;
        let mut graph = match &self.call_graph {
            Some(words) => Graph::parse(words)?,
            None => Some(Graph::default()),
        };
        if let (Some(graph), true) = (&mut graph, self.inverted) {
            graph.from_caller = Some(true);
        }
        if let (Some(graph), Some(percent)) = (&mut graph, percent_limit) {
            graph.percent = percent;
        }
        Ok(Chains {
            counted: format == Format::Folded,
            most: self.max_stack.unwrap_or(Chains::default().most),
            children: !self.no_children && (self.children || has_column || text),
            graph: graph.filter(|_| text),
            is_asked: self.children || self.inverted || self.call_graph.as_ref().is_some_and(|_| graph.is_some()),
        })
    }
}
