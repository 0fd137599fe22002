//! `rep branches`: what branch stacks tell of the paths through code.
//!
//! ```text
//!   stack, newest first:   d→a   c→d   b→c          edges: each branch, from → to
//!   run between them:         a … (sample)   d … d   c … c
//!                          fall-throughs: from the target of one branch to the next branch
//! ```
//!
//! An edge has its count, how often it was predicted and mispredicted, and the mean of its cycles where they are known. A
//! loop is an edge back to a lower address of the same function: its count is that of turns. `--format bolt` is the pre-aggregated
//! profile that BOLT reads (`bolt`).

mod bolt;
mod edges;

use std::ffi::OsString;
use std::io::Write;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::commands::derived;
use crate::commands::derived::ViewArgs;
use crate::query::sort_key::Mode;
use crate::query::warning::Warning;
use crate::query::{Format, Query};
use crate::table::profile::InputSummary;
use crate::terminal::escape::escape;
use crate::view::CANNOT_WRITE;
use edges::{Edge, Range};

/// What was asked.
#[derive(Clone, Debug)]
pub struct BranchesQuery {
    query: Query,
    /// Whether the answer is for BOLT.
    bolt: bool,
}

/// Tells of the paths through code that branch stacks saw: edges, loops, and what was run between branches
#[derive(Debug, Parser)]
#[command(name = "rep branches", version, about, long_about = None, args_override_self = true)]
struct BranchesArgs {
    #[command(flatten)]
    view: ViewArgs,

    /// The form of the answer; `bolt` is the pre-aggregated profile that BOLT reads
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
    Bolt,
}

/// Reads a command line (with `rep branches` first, as one word).
///
/// # Errors
/// What the user must be told.
pub fn parse(words: Vec<OsString>) -> Result<BranchesQuery, clap::Error> {
    derived::parse(words, |args: BranchesArgs| {
        let (json, limit, bolt) = (args.view.json, args.view.limit, args.format == Form::Bolt);
        let format = if json || args.format == Form::Json { Format::Json } else { Format::Text };
        let query = args.view.query(Mode::Branches, format)?;
        let refused = [
            (bolt && limit.is_some(), "--limit: a profile for BOLT is whole"),
            (bolt && json, "--json: a profile for BOLT has a form of its own"),
            (bolt && query.filters.by_symbol(), "--symbol: a profile for BOLT is of a whole binary"),
        ];
        match refused.into_iter().find(|(is_asked, _)| *is_asked) {
            Some((_, message)) => Err(message.into()),
            None => Ok(BranchesQuery { query, bolt }),
        }
    })
}

#[derive(Serialize)]
struct Answer<'p> {
    schema: &'static str,
    inputs: &'p [InputSummary],
    branches: u64,
    edges: &'p [Edge],
    loops: Vec<&'p Edge>,
    ranges: &'p [Range],
    warnings: &'p [Warning],
}

/// Answers.
///
/// # Errors
/// An input cannot be read, or the output cannot be written.
pub fn run(asked: &BranchesQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    if asked.bolt {
        return bolt::run(&asked.query, out);
    }
    let query = &asked.query;
    // Text, too, is made of what data has.
    let of_edges = Query { format: Format::Json, ..query.clone() };
    let (profile, by_edge) = derived::profile(&of_edges, &edges::columns())?;
    let mut edges = edges::edges(&profile.tables(&by_edge));
    let branches = edges.iter().map(|edge| edge.count).sum();
    let of_ranges = Query { mode: Mode::FallThroughs, ..of_edges };
    let (run_between, by_range) = derived::profile(&of_ranges, &edges::columns())?;
    let mut ranges = edges::ranges(&run_between.tables(&by_range));
    let most = query.limit.unwrap_or(usize::MAX);
    let loops: Vec<Edge> = edges.iter().filter(|edge| edge.is_loop()).take(most).cloned().collect();
    edges.truncate(most);
    ranges.truncate(most);
    if query.format == Format::Json {
        let (inputs, warnings) = (&profile.inputs[..], &profile.warnings[..]);
        let (edges, ranges, loops) = (&edges[..], &ranges[..], loops.iter().collect());
        let answer = Answer { schema: "recrep-branches/1", inputs, branches, edges, loops, ranges, warnings };
        derived::json(&answer, out).context(CANNOT_WRITE)?;
    } else {
        print(branches, &edges, &loops, &ranges, out).context(CANNOT_WRITE)?;
    }
    Ok(profile.warnings)
}

fn print(branches: u64, edges: &[Edge], loops: &[Edge], ranges: &[Range], out: &mut impl Write) -> std::io::Result<()> {
    for (what, edges) in [("Edges", edges), ("Loops", loops)] {
        writeln!(out, "# {what}, of {branches} branches\n#")?;
        writeln!(out, "#    Count    Share  Mispredicted  Cycles  From → To")?;
        for edge in edges {
            let share = derived::percent(edge.count, branches);
            let missed = edge.mispredict_percent.map_or("-".into(), |percent| format!("{percent:.2}%"));
            let cycles = edge.mean_cycles.map_or("-".into(), |cycles| format!("{cycles:.1}"));
            let (from, to) = (edge.from.to_string(), edge.to.to_string());
            writeln!(
                out,
                "{:>10}  {share:>6.2}%  {missed:>12}  {cycles:>6}  {} → {}",
                edge.count,
                escape(&from),
                escape(&to)
            )?;
        }
        writeln!(out)?;
    }
    writeln!(out, "# Fall-throughs: what was run from a branch to the next one\n#\n#    Count  From … To")?;
    for range in ranges {
        let (start, end) = (range.start.to_string(), range.end.to_string());
        writeln!(out, "{:>10}  {} … {}", range.count, escape(&start), escape(&end))?;
    }
    Ok(())
}
