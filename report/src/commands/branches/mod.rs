//! `rep branches`: paths through the code, from branch stacks.
//!
//! ```text
//!   stack, newest first:   e→f   c→d   a→b          edges: each branch, source → target
//!   code in between:          f … (sample)   d … e   b … c
//!                          fall-throughs: from the target of one branch to the next branch
//! ```
//!
//! An edge has its count, the numbers of predicted and mispredicted branches, and the mean cycles where known. A loop
//! is an edge to a lower or equal address of the same function: its count is the number of iterations. `--format bolt`
//! prints a pre-aggregated profile for BOLT (`bolt`).

mod bolt;
mod edges;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;
use serde::Serialize;

use crate::cli;
use crate::commands::derived;
use crate::commands::derived::ViewArgs;
use crate::count::metrics::{rounded, share};
use crate::query::mode::Mode;
use crate::query::warning::Warning;
use crate::query::{Format, Query};
use crate::terminal::escape::escape;
use edges::{Edge, Range};

#[derive(Clone, Debug)]
pub(crate) struct BranchesQuery {
    query: Query,
    /// `true` if the output is a profile for BOLT.
    bolt: bool,
}

/// Show code paths, from branch stacks: edges, loops, and code between branches
#[derive(Debug, Parser)]
#[command(name = "rep branches", version, long_about = None, args_override_self = true)]
struct BranchesArgs {
    #[command(flatten)]
    view: ViewArgs,

    /// Output format; `bolt` is a pre-aggregated profile for BOLT
    #[arg(long, value_parser = ["text", "json", "bolt"], default_value = "text")]
    format: String,
}

/// Parses a command line, whose first word is `rep branches`.
pub(crate) fn parse(words: Vec<OsString>) -> Result<BranchesQuery, clap::Error> {
    cli::parse(words, |args: BranchesArgs| {
        let (json, limit, bolt) = (args.view.json, args.view.limit, args.format == "bolt");
        let format = if args.format == "json" { Format::Json } else { Format::Text };
        let query = args.view.query(Mode::Branches, format)?;
        cli::refuse([
            (bolt && limit.is_some(), "--limit does not work with --format bolt"),
            (bolt && json, "--json does not work with --format bolt"),
            (bolt && query.filters.by_symbol(), "--symbol does not work with --format bolt"),
        ])?;
        Ok(BranchesQuery { query, bolt })
    })
}

#[derive(Serialize)]
struct Answer {
    branches: u64,
    edges: Vec<Edge>,
    loops: Vec<Edge>,
    ranges: Vec<Range>,
}

/// Answers the query, and returns warnings.
pub(crate) fn run(asked: &BranchesQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    if asked.bolt {
        return bolt::run(&asked.query, out);
    }
    let query = &asked.query;
    // Text needs the companion columns (CPU modes) of JSON too.
    let of_edges = Query { format: Format::Json, ..query.clone() };
    let (profile, by_edge) = derived::profile(&of_edges, &edges::columns())?;
    let mut edges = edges::edges(&profile.tables(&by_edge));
    let branches = edges.iter().map(|edge| edge.count).sum();
    let of_ranges = Query { mode: Mode::FallThroughs, ..of_edges };
    let (fall_throughs, by_range) = derived::profile(&of_ranges, &edges::columns())?;
    let mut ranges = edges::ranges(&fall_throughs.tables(&by_range));
    let most = query.limit.unwrap_or(usize::MAX);
    let loops = edges.iter().filter(|edge| edge.is_loop()).take(most).cloned().collect();
    edges.truncate(most);
    ranges.truncate(most);
    let answer = Answer { branches, edges, loops, ranges };
    derived::print(query.format, ("recrep-branches/1", &answer), &profile, |out| print(&answer, out), out)?;
    Ok(profile.warnings)
}

fn print(answer: &Answer, out: &mut impl Write) -> std::io::Result<()> {
    let Answer { branches, edges, loops, ranges } = answer;
    for (what, edges) in [("Edges", edges), ("Loops", loops)] {
        writeln!(out, "# {what}, of {branches} branches\n#")?;
        writeln!(out, "#    Count    Share  Mispredicted  Cycles  From → To")?;
        for edge in edges {
            let share = rounded(share(edge.count, *branches));
            let missed = edge.mispredict_percent.map_or("-".into(), |percent| format!("{percent:.2}%"));
            let cycles = edge.mean_cycles.map_or("-".into(), |cycles| format!("{cycles:.1}"));
            let ends = format!("{} → {}", edge.from, edge.to);
            writeln!(out, "{:>10}  {share:>6.2}%  {missed:>12}  {cycles:>6}  {}", edge.count, escape(&ends))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "# Fall-throughs: code from the target of a branch to the next branch\n#\n#    Count  From … To")?;
    for range in ranges {
        let ends = format!("{} … {}", range.start, range.end);
        writeln!(out, "{:>10}  {}", range.count, escape(&ends))?;
    }
    Ok(())
}
