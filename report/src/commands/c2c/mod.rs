//! `rep c2c`: contended cache lines.
//!
//! A HITM (hit modified) is a load whose cache line another core had modified in its cache. Lines with many HITMs are
//! contended, often by accident (false sharing). Each line has the offsets that were accessed, the functions that did
//! so, and the threads that read and wrote. All events are counted together, because many machines sample loads and
//! stores with different events. Where the hardware does not report HITM, use loads from the caches of peers
//! (`-d peer`).
//!
//! Accesses are classified as in perf c2c; `stats` has all numbers of perf.

mod lines;
mod stats;

use std::io::{self, Write};

use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::commands::derived::{self, ViewArgs};
use crate::query::{Mode, Query, SortKey, Warning};
use crate::terminal::escape::escape;
use lines::Line;
use stats::Stats;

/// Show contended cache lines, and which code and threads access them
#[derive(Debug, Parser)]
#[command(name = "rep c2c", version, long_about = None)]
#[command(args_override_self = true)]
#[command(mut_arg("comms", |arg| arg.short(None)), mut_arg("dsos", |arg| arg.short(None)))]
pub struct C2cQuery {
    #[command(flatten)]
    view: ViewArgs,

    /// List cache lines with these loads, most loads first
    #[arg(short, long, value_enum, default_value = "tot")]
    display: Display,

    /// Also show cache lines that have no loads of the kind chosen with -d
    #[arg(long)]
    show_all: bool,

    /// Group the accesses to each offset of a cache line by these fields, not by function
    #[arg(short, long, value_enum, value_delimiter = ',', value_name = "FIELD[,FIELD…]")]
    coalesce: Vec<Detail>,

    /// Show the nodes and CPUs that accessed each offset
    #[arg(short = 'N', long)]
    node_info: bool,

    /// Treat pairs of adjacent lines, which some processors prefetch together, as one line (128 bytes)
    #[arg(long)]
    double_cl: bool,

    /// Show only the number of accesses of each kind
    #[arg(long)]
    stats: bool,

    /// No effect; perf has it: names are always shown in full
    #[arg(long)]
    full_symbols: bool,

    /// No effect; perf has it: source lines are never shown
    #[arg(long)]
    no_source: bool,

    #[arg(skip)]
    query: Query,
}

/// Loads for which a cache line is listed, and by which lines are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Display {
    /// All HITM loads (another core had modified the line)
    Tot,
    /// HITM loads from other cores of the same node
    Lcl,
    /// HITM loads from cores of other nodes
    Rmt,
    /// Loads from other cores' caches
    Peer,
}

/// Field by which the accesses of one offset are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Detail {
    /// Process
    Pid,
    /// Thread
    Tid,
    /// Code address, with its function
    Iaddr,
    /// Module of the code
    Dso,
    /// Function
    #[value(skip)]
    Function,
}

impl Detail {
    /// Returns the JSON name and the sort key.
    fn key(self) -> (&'static str, SortKey) {
        match self {
            Self::Pid => ("process", SortKey::Process),
            Self::Tid => ("thread", SortKey::Tid),
            Self::Iaddr => ("code", SortKey::Ip),
            Self::Dso => ("module", SortKey::Dso),
            Self::Function => ("symbol", SortKey::Symbol),
        }
    }
}

/// Completes the query.
pub fn query(mut asked: C2cQuery) -> Result<C2cQuery, String> {
    asked.query = Query { double_lines: asked.double_cl, ..asked.view.clone().query(Mode::Memory)? };
    if asked.coalesce.is_empty() || asked.coalesce.contains(&Detail::Iaddr) {
        asked.coalesce.push(Detail::Function);
    }
    Ok(asked)
}

#[derive(Serialize)]
struct Answer<'p> {
    #[serde(rename = "total", serialize_with = "lines::counts")]
    counts: Stats,
    stats: Stats,
    /// Number of lines with HITMs or peer loads; their accesses are in `shared`.
    shared_lines: usize,
    shared: Stats,
    lines: &'p [Line],
}

pub(crate) fn run(asked: &C2cQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let (profile, query, nodes) = derived::profile_with(&asked.query, &lines::columns(asked), lines::nodes)?;
    let nodes = nodes.into_iter().flatten().collect();
    let tables = profile.tables(&query);
    let mut lines = lines::lines(&tables, asked, &nodes);
    let stats = lines::total(&lines);
    let is_shared = |line: &&Line| line.stats.hitm() > 0 || line.stats.peer() > 0;
    let shared_lines = lines.iter().filter(is_shared).count();
    let shared = lines::total(lines.iter().filter(is_shared));
    lines.retain(|line| asked.show_all || line.stats.shown(asked.display) > 0);
    lines.truncate(asked.query.limit.unwrap_or(usize::MAX));
    let listed = if asked.stats { &[] } else { &lines[..] };
    let answer = Answer { counts: stats, stats, shared_lines, shared, lines: listed };
    let text = |out: &mut _| match asked.stats {
        true => stats.print(out).and_then(|()| shared.print_shared(shared_lines, out)),
        false => print(&lines, &stats, asked, out),
    };
    derived::print(query.format, ("recrep-c2c/1", &profile.inputs, &answer), &profile.warnings, text, out)?;
    Ok(profile.warnings)
}

fn print(lines: &[Line], stats: &Stats, asked: &C2cQuery, out: &mut impl Write) -> io::Result<()> {
    let by_peer = asked.display == Display::Peer;
    let number = |stats: &Stats| {
        let Stats { records, load, store, .. } = stats;
        let (local, remote) = match by_peer {
            true => (stats.lcl_peer, stats.rmt_peer),
            false => (stats.lcl_hitm, stats.rmt_hitm),
        };
        format!("{:>8} {local:>8} {remote:>8} {load:>8} {store:>8} {records:>8}", local + remote)
    };
    let (what, count) = if by_peer { ("from peers", stats.peer()) } else { ("HITM", stats.hitm()) };
    writeln!(out, "# {} accesses, {count} of them {what}\n#", stats.records)?;
    let heading = if by_peer { "peer" } else { "HITM" };
    writeln!(out, "#{heading:>7}    local   remote    loads   stores  samples  cache line")?;
    for line in lines {
        writeln!(out, "{}  {} ({})", number(&line.stats), escape(&line.line), escape(&line.dso))?;
        for (what, threads) in [("read by", &line.readers), ("written by", &line.writers)] {
            if !threads.is_empty() {
                let threads: Vec<_> = threads.iter().map(|thread| escape(thread)).collect();
                writeln!(out, "{:>55}{what} {}", "", threads.join(", "))?;
            }
        }
        for at in &line.offsets {
            let detail: Vec<_> = at.detail.0.iter().map(|(_, text)| escape(text)).collect();
            writeln!(out, "{}    {:>5} {}", number(&at.stats), at.offset, detail.join("  "))?;
            for (node, cpus) in &at.nodes {
                let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
                writeln!(out, "{:>65}node {node}: CPUs {}", "", cpus.join(", "))?;
            }
        }
    }
    Ok(())
}
