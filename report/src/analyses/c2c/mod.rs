//! `rep c2c`: contended cache lines.
//!
//! A HITM (hit modified) is a load whose cache line another core had modified in its cache. Lines
//! with many HITMs are contended, often by accident (false sharing). Each line has the offsets that
//! were accessed, the functions that did so, and the threads that read and wrote. All events are
//! counted together, because many machines sample loads and stores with different events. Where the
//! hardware does not report HITM, use loads from the caches of peers (`-d peer`).
//!
//! Accesses are classified as in perf c2c; `stats` has all numbers of perf.

mod args;
mod lines;
mod stats;

use std::io::{self, Write};

use serde::Serialize;

pub use args::{C2cQuery, query};

use crate::analyses::derived;
use crate::exports::sheet::{Analysis, Sheet, SheetCell, SheetColumn};
use crate::query::Warning;
use crate::table;
use crate::terminal::escape::escape;
use args::Display;
use lines::{COUNTED, Details, Offset, SharedLine};
use stats::Stats;

#[derive(Serialize)]
struct C2cAnalysis<'p> {
    #[serde(rename = "total", serialize_with = "lines::counts")]
    counts: Stats,
    stats: Stats,
    /// Number of lines with HITMs or peer loads; their accesses are in `shared`.
    shared_lines: usize,
    shared: Stats,
    lines: &'p [SharedLine],
    #[serde(skip)]
    asked: &'p C2cQuery,
}

pub(crate) fn run(asked: &C2cQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let (profile, query, nodes) =
        derived::profile(&asked.query, lines::columns(asked)?, lines::nodes)?;
    let nodes = nodes.into_iter().flatten().collect();
    let tables = table::tables(&profile, &query);
    let mut lines = lines::lines(&tables, asked, &nodes);
    let stats = lines::total(&lines);
    let shared = lines.iter().filter(|line| line.stats.hitm() > 0 || line.stats.peer() > 0);
    let (shared_lines, shared) = (shared.clone().count(), lines::total(shared));
    lines.retain(|line| asked.show_all || line.stats.shown(asked.display) > 0);
    lines.truncate(asked.query.limit.unwrap_or(usize::MAX));
    let listed = if asked.stats { &[] } else { &lines[..] };
    let answer = C2cAnalysis { counts: stats, stats, shared_lines, shared, lines: listed, asked };
    derived::print(asked.view.output(), &profile.inputs, &answer, &profile.warnings, out)
}

impl Analysis for C2cAnalysis<'_> {
    const SCHEMA: &'static str = "recrep-c2c/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        if self.asked.stats {
            return vec![self.statistics()];
        }
        let mut columns = vec![
            OffsetColumn::unshown("line", |of| (&of.line.line).into()),
            OffsetColumn::unshown("dso", |of| (&of.line.dso).into()),
            OffsetColumn::unshown("cpumode", |of| detail_cell(&of.line.companions, "cpumode")),
            OffsetColumn::unshown("mapping", |of| detail_cell(&of.line.companions, "mapping")),
            OffsetColumn::unshown("offset", |of| (&of.at.offset).into()),
            OffsetColumn::unshown("code_cpumode", |of| detail_cell(&of.at.detail, "cpumode")),
        ];
        for detail in &self.asked.coalesce {
            let name = detail.names().0;
            columns.push(OffsetColumn::unshown(name, move |of| detail_cell(&of.at.detail, name)));
        }
        for (name, number) in COUNTED {
            columns.push(OffsetColumn::unshown(name, move |of| number(&of.at.stats).into()));
        }
        let mut rows = Vec::new();
        for line in self.lines {
            rows.extend(line.offsets.iter().map(|at| OffsetOfLine { line, at }));
        }
        vec![Sheet::new(Vec::new(), &columns, rows)]
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.asked.stats {
            self.stats.print(out)?;
            return self.shared.print_shared(self.shared_lines, out);
        }
        print(self.lines, &self.stats, self.asked, out)
    }
}

impl C2cAnalysis<'_> {
    /// Returns the numbers of `--stats`: of all accesses, and of those to shared lines.
    fn statistics(&self) -> Sheet<'_> {
        let columns = [
            StatisticColumn::unshown("accesses", |of| of.accesses.into()),
            StatisticColumn::unshown("statistic", |of| of.name.into()),
            StatisticColumn::unshown("count", |of| of.count.into()),
        ];
        let mut rows = Vec::new();
        for (accesses, stats) in [("all", &self.stats), ("shared", &self.shared)] {
            rows.extend(stats.labelled().map(|(name, count)| Statistic { accesses, name, count }));
        }
        Sheet::new(Vec::new(), &columns, rows)
    }
}

/// A row of CSV: the accesses to an offset of a line.
#[derive(Clone, Copy)]
struct OffsetOfLine<'a> {
    line: &'a SharedLine,
    at: &'a Offset,
}

type OffsetColumn<'a> = SheetColumn<'a, OffsetOfLine<'a>>;

/// A row of CSV with `--stats`.
#[derive(Clone, Copy)]
struct Statistic {
    accesses: &'static str,
    name: &'static str,
    count: u64,
}

type StatisticColumn<'a> = SheetColumn<'a, Statistic>;

fn detail_cell<'d>(details: &'d Details, name: &str) -> SheetCell<'d> {
    let found = details.0.iter().find(|(known, _)| *known == name);
    found.map_or(SheetCell::Unknown, |(_, text)| text.as_str().into())
}

fn print(
    lines: &[SharedLine],
    stats: &Stats,
    asked: &C2cQuery,
    out: &mut dyn Write,
) -> io::Result<()> {
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
