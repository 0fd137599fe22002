//! Options of the output's style.

use std::collections::HashSet;

use clap::Args;

use crate::query::lists;

/// Output style.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output style")]
pub(super) struct ScriptStyle {
    /// Print times to the nanosecond
    #[arg(long)]
    pub(super) ns: bool,

    /// Print times relative to the first line
    #[arg(long, conflicts_with = "deltatime")]
    pub(super) reltime: bool,

    /// Print times relative to the previous line
    #[arg(long)]
    pub(super) deltatime: bool,

    /// Print the sampled address, not the callchain
    #[arg(short = 'G', long)]
    pub(super) hide_call_graph: bool,

    /// Print at most N frames of each callchain
    #[arg(long, value_name = "N", default_value_t = 127)]
    pub(super) max_stack: usize,

    /// End callchains at these functions
    #[arg(long, value_name = "NAME[,NAME…]", value_parser = lists::names::<HashSet<String>>)]
    pub(super) stop_bt: Option<HashSet<String>>,

    /// Show inlined functions as frames (needs debug information) [default: only in callchains of
    /// recordings made with --call-graph dwarf]
    #[arg(long, overrides_with = "no_inline")]
    pub(super) inline: bool,

    /// Do not show inlined functions
    #[arg(long, overrides_with = "inline")]
    pub(super) no_inline: bool,

    /// Print paths of the kernel image and modules instead of names such as [kernel.kallsyms]
    #[arg(long)]
    pub(super) show_kernel_path: bool,

    /// Cut comms to 8 characters and print CPUs without brackets, as latency tracers do
    #[arg(short = 'L', long = "Latency")]
    pub(super) latency: bool,
}

impl ScriptStyle {
    /// Returns whether inlined functions are printed as frames; `None`: those of unwound frames
    /// only.
    pub(super) fn inlined(&self) -> Option<bool> {
        (self.inline || self.no_inline).then_some(self.inline)
    }

    /// Returns whether callchains end at this function.
    pub(super) fn ends_at(&self, function: &str) -> bool {
        self.stop_bt.as_ref().is_some_and(|names| names.contains(function))
    }
}
