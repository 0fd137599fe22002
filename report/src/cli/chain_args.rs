//! Arguments of callchains, and what follows from them.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use regex_lite::Regex;

use crate::query::lists::pattern;
use crate::query::{ChainOptions, FrameKey, Graph, Mode, Number, Query, SortKey, TableColumn};

/// Options of callchains.
#[derive(Debug, Args)]
#[command(next_help_heading = "Callchains")]
pub(super) struct ChainArgs {
    /// Count samples in their callers too
    ///
    /// This is the default for text if callchains were recorded, but not with -b, --mem-mode, -H or
    /// the sort key `ip`
    #[arg(long, overrides_with = "no_children", conflicts_with = "hierarchy")]
    children: bool,

    /// Count each sample only in the function where it was taken
    #[arg(long, overrides_with = "children")]
    no_children: bool,

    /// Show call trees: caller, callee, flat, a minimum percentage, …
    ///
    /// They stand below rows. The words: a shape (graph, fractal, flat, folded or none); caller (outermost function first;
    /// default with --children) or callee (sampled function first; default otherwise); the frame
    /// key (function, address or srcline); the value (percent, period or count); branch (like
    /// --branch-history, without predictions); a minimum percentage, and after it a maximum number
    /// of entries per level [default: graph,0.5,percent,function]
    #[arg(
        short = 'g', long, value_name = "WORD[,WORD…]", num_args = 0..=1,
        default_missing_value = ""
    )]
    call_graph: Option<String>,

    /// With --off-cpu, --wall or --critical-path, show waits in the kernel's function that switches
    ///
    /// By default they are shown in the user's function that waits, and what it calls in the kernel
    /// is left out; folded lines have both
    #[arg(long)]
    kernel_waits: bool,

    /// Show call trees that begin at the outermost caller, as -g caller does; overrides -g callee
    #[arg(short = 'G', long)]
    inverted: bool,

    /// Add the branches of each sample's branch stack to its callchain
    ///
    /// The target and the source address of each branch become frames. Call trees also show
    /// predictions, cycles and loop iterations
    #[arg(
        long = "branch-history",
        conflicts_with_all = ["hierarchy", "off_cpu", "wall", "critical_path", "latency"]
    )]
    pub(super) branch_details: bool,

    /// Regex of the callers that the sort key `parent` shows, by which rows are grouped too
    /// [default with -s parent: ^sys_|^do_page_fault]
    #[arg(short = 'p', long, value_name = "REGEX", value_parser = pattern)]
    pub(super) parent: Option<Regex>,

    /// Only samples with a caller that matches --parent (needs -p or -s parent)
    #[arg(short = 'x', long = "exclude-other")]
    only_parents: bool,

    /// Count whatever the functions that match REGEX call as themselves
    #[arg(long = "ignore-callees", value_name = "REGEX", value_parser = pattern)]
    ignored_callees: Option<Regex>,

    /// Show inlined functions as frames (needs debug information) [default: only in callchains of
    /// recordings made with --call-graph dwarf]
    #[arg(long, overrides_with = "no_inline")]
    inline: bool,

    /// Do not show inlined functions
    #[arg(long, overrides_with = "inline")]
    no_inline: bool,

    /// Show callchains as recorded
    ///
    /// Otherwise, callchains that the kernel recorded by following frame pointers are checked
    /// against the call frame information of the modules: where a function leaves the frame pointer
    /// to its callers, `[callers unknown]` stands for the callers that are missing, and callchains
    /// that were cut short end with it
    #[arg(long)]
    no_check_callchains: bool,

    /// Use at most N frames of each callchain [default: all]
    #[arg(long = "max-stack", value_name = "N")]
    most: Option<usize>,
}

/// perf's default for `--parent`.
const DEFAULT_PARENT: &str = "^sys_|^do_page_fault";

impl ChainArgs {
    /// Returns the options of callchains in a query that has all else. Text has children by
    /// default, as in perf; not if rows are sampled addresses: no sample has the address of its
    /// callers' calls. JSON and CSV have children only on request, by option or as a column. A
    /// hierarchy has no children. Trees are shown on request: with them, the first rows, which are
    /// the outermost functions, would fill the screen.
    ///
    /// # Errors
    /// Returns an error if the words of `-g` are wrong, or the query has no use for an argument.
    pub(super) fn options(self, query: &Query) -> Result<ChainOptions, String> {
        if self.kernel_waits && !query.mode.is_of_time() {
            return Err("--kernel-waits needs --off-cpu, --wall or --critical-path".into());
        }
        let has_column = query.shown.contains(&TableColumn::Number(Number::Children));
        let (has_parent, by_ip) = (query.has(SortKey::Parent), query.has(SortKey::Ip));
        let has_callers = query.needs.callers && !query.mode.is_of_branches();
        let default_children =
            has_callers && query.mode != Mode::Memory && !query.hierarchy && !by_ip;
        let mut graph = match &self.call_graph {
            Some(words) => Graph::parse(words).map_err(|error| format!("--call-graph: {error}"))?,
            None => (self.inverted || self.branch_details).then(Graph::default),
        };
        if let (Some(graph), true) = (&mut graph, self.inverted) {
            graph.from_caller = Some(true);
        }
        if let (Some(graph), Some(percent)) = (&mut graph, query.percent_limit) {
            graph.percent = percent;
        }
        let key = match graph {
            _ if self.branch_details => FrameKey::Address,
            graph => graph.map(|graph| graph.key).unwrap_or_default(),
        };
        let branches = self.branch_details || graph.is_some_and(|graph| graph.branches);
        let children_requested = !self.no_children && (self.children || has_column);
        let is_asked = self.children || self.inverted || branches || graph.is_some();
        if query.mode.is_of_branches()
            && (is_asked || has_column || has_parent || self.ignored_callees.is_some())
        {
            return Err("-b counts branches, which have no callchains: leave out -b or the \
                        callchain options"
                .into());
        }
        if self.only_parents && !has_parent {
            return Err(
                "--exclude-other needs the sort key `parent`: add -p REGEX or -s parent".into()
            );
        }
        let parent = match self.parent {
            None if has_parent => Some(pattern(DEFAULT_PARENT)?),
            parent => parent,
        };
        Ok(ChainOptions {
            counted: query.needs.stacks,
            children: children_requested || (default_children && !self.no_children),
            children_requested,
            graph: graph.filter(|_| has_callers),
            key,
            branches,
            branch_details: self.branch_details,
            parent,
            only_parents: self.only_parents,
            ignored_callees: self.ignored_callees,
            inlined: (self.inline || self.no_inline).then_some(self.inline),
            most: self.most,
            as_recorded: self.no_check_callchains,
            kernel_waits: self.kernel_waits || query.needs.stacks,
            is_asked,
        })
    }
}

/// Puts the missing value of `-g` before a word behind it that is a file and no value: `-g out.data`.
pub(super) fn with_files_apart(words: Vec<OsString>) -> Vec<OsString> {
    let mut apart: Vec<OsString> = Vec::with_capacity(words.len());
    for word in words {
        let is_behind = apart.last().is_some_and(|last| last == "-g" || last == "--call-graph");
        let is_value = word.to_str().is_some_and(|word| Graph::parse(word).is_ok());
        if is_behind && !is_value && (word == "-" || Path::new(&word).exists()) {
            apart.pop();
            apart.push("--call-graph=".into());
        }
        apart.push(word);
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Refusal;
    use crate::cli::args::parse;
    use crate::query::Source;

    fn read(line: &str) -> Result<Query, Refusal> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn sampled_addresses_have_callers_on_request_only() {
        let shown = |line: &str| {
            let chains = read(line).unwrap().chains;
            (chains.children, chains.graph.is_some())
        };
        assert_eq!(shown("rep -s ip x"), (false, false));
        assert_eq!(shown("rep -s ip -g caller x"), (false, true));
        assert_eq!(shown("rep -s ip --children x"), (true, false));
    }

    #[test]
    fn trees_are_shown_on_request_only() {
        let shown = |line: &str| {
            let chains = read(line).unwrap().chains;
            (chains.children, chains.graph.is_some())
        };
        for line in ["rep x", "rep -s sym x", "rep --children x", "rep -g none x"] {
            assert_eq!(shown(line), (true, false), "{line}");
        }
        for line in ["rep -g x", "rep -G x", "rep -g callee x", "rep --branch-history x"] {
            let line = line.replace("-g x", "-g -- x");
            assert_eq!(shown(&line), (true, true), "{line}");
        }
        assert_eq!(shown("rep --no-children x"), (false, false));
        assert_eq!(shown("rep --json -g caller x"), (false, false));
        assert_eq!(shown("rep -H x"), (false, false));
    }

    #[test]
    fn a_file_behind_g_is_no_word() {
        let query = read("rep -g /dev/null").unwrap();
        assert_eq!(query.sources, [Source::Path("/dev/null".into())]);
        assert!(query.chains.graph.is_some());
        assert!(read("rep -g /no/such/file").unwrap_err().to_string().contains("unknown word"));
        assert_eq!(read("rep -g caller /dev/null").unwrap().sources.len(), 1);
    }
}
