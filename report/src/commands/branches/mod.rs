//! `rep branches`: paths through the code, from branch stacks.
//!
//! ```text
//!   stack, newest first:   e→f   c→d   a→b          edges: each branch, source → target
//!   code in between:          f … (sample)   d … e   b … c
//!                          fall-throughs: from the target of one branch to the next branch
//! ```
//!
//! An edge has its count, the numbers of predicted and mispredicted branches, and the mean cycles
//! where known. A loop is an edge to a lower or equal address of the same function: its count is
//! the number of iterations. `--format bolt` prints a pre-aggregated profile for BOLT (`bolt`).

mod bolt;

use std::fmt;
use std::io::Write;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, ValueEnum as _};
use indexmap::IndexMap;
use serde::Serialize;

use crate::cli;
use crate::commands::derived::{self, Format, ViewArgs, ViewQuery};
use crate::count::metrics::{rounded, share};
use crate::query::{Column, Mode, Query, Warning};
use crate::table::{self, EventTable, Row};
use crate::terminal::escape::escape;

/// Show code paths, from branch stacks: edges, loops, and code between branches
#[derive(Debug, Parser)]
#[command(name = "rep branches", version, long_about = None, args_override_self = true)]
#[command(mut_arg("format", |arg| arg.value_parser(parser()).help(FORMATS)))]
pub(crate) struct BranchesArgs {
    #[command(flatten)]
    view: ViewArgs,
}

const FORMATS: &str = "Output format; `bolt` is a pre-aggregated profile for BOLT";

/// Returns the parser of `--format`: here there is one more.
fn parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["text", "json", "bolt"]).map(|name| match &*name {
        "bolt" => Format::Bolt,
        name => Format::from_str(name, false).unwrap_or_default(),
    })
}

pub(crate) fn query(args: BranchesArgs) -> Result<ViewQuery, String> {
    let (format, json, limit) = (args.view.format(), args.view.json, args.view.limit);
    let bolt = args.view.is_bolt();
    let query = args.view.query(Mode::Branches)?;
    cli::refuse([
        (bolt && limit.is_some(), "--limit does not work with --format bolt"),
        (bolt && json, "--json does not work with --format bolt"),
        (bolt && query.filters.by_symbol(), "--symbol does not work with --format bolt"),
    ])?;
    Ok(ViewQuery { query, format })
}

#[derive(Serialize)]
struct Answer {
    branches: u64,
    edges: Vec<Edge>,
    loops: Vec<Edge>,
    ranges: Vec<Range>,
}

pub(crate) fn run(asked: &ViewQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let ViewQuery { query, format } = asked;
    if *format == Format::Bolt {
        return bolt::run(query, out);
    }
    // Text has the CPU modes too.
    let needs = Format::Json.needs();
    let of_edges = Query { needs, ..query.clone() };
    let columns = Column::with_companions(Column::list(COLUMNS, Mode::Branches)?, needs);
    let (profile, by_edge, _) = derived::profile(&of_edges, columns.clone(), |_| ())?;
    let mut edges = edges(&table::tables(&profile, &by_edge));
    let branches = edges.iter().map(|edge| edge.count).sum();
    let of_ranges = Query { mode: Mode::FallThroughs, ..of_edges };
    let (fall_throughs, by_range, _) = derived::profile(&of_ranges, columns, |_| ())?;
    let mut ranges = ranges(&table::tables(&fall_throughs, &by_range));
    let most = query.limit.unwrap_or(usize::MAX);
    let loops = edges.iter().filter(|edge| edge.is_loop()).take(most).cloned().collect();
    edges.truncate(most);
    ranges.truncate(most);
    let answer = Answer { branches, edges, loops, ranges };
    let text = |out: &mut _| print(&answer, out);
    derived::print(
        *format,
        ("recrep-branches/1", &profile.inputs, &answer),
        &profile.warnings,
        text,
        out,
    )
}

fn print(answer: &Answer, out: &mut impl Write) -> std::io::Result<()> {
    let Answer { branches, edges, loops, ranges } = answer;
    for (what, edges) in [("Edges", edges), ("Loops", loops)] {
        writeln!(out, "# {what}, of {branches} branches\n#")?;
        writeln!(out, "#    Count    Share  Mispredicted  Cycles  From → To")?;
        for edge in edges {
            let share = rounded(share(edge.count, *branches));
            let missed =
                edge.mispredict_percent.map_or("-".into(), |percent| format!("{percent:.2}%"));
            let cycles = edge.mean_cycles.map_or("-".into(), |cycles| format!("{cycles:.1}"));
            let ends = format!("{} → {}", edge.from, edge.to);
            writeln!(
                out,
                "{:>10}  {share:>6.2}%  {missed:>12}  {cycles:>6}  {}",
                edge.count,
                escape(&ends)
            )?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "# Fall-throughs: code from the target of a branch to the next branch\n#\n#    Count  \
         From … To"
    )?;
    for range in ranges {
        let ends = format!("{} … {}", range.start, range.end);
        writeln!(out, "{:>10}  {}", range.count, escape(&ends))?;
    }
    Ok(())
}

/// One end of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
struct End {
    address: String,
    dso: String,
    symbol: String,
    cpumode: String,
    #[serde(skip)]
    number: u64,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, dso, symbol, cpumode, .. } = self;
        let mode = match cpumode.as_str() {
            "user" => '.',
            "kernel" => 'k',
            _ => 'H',
        };
        write!(f, "{address} [{mode}] {symbol} ({dso})")
    }
}

/// A branch from one address to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Edge {
    from: End,
    to: End,
    count: u64,
    mispredicted: u64,
    predicted: u64,
    /// Percentage of mispredicted branches among those whose prediction is known.
    mispredict_percent: Option<f64>,
    /// Mean of the cycles since the previous branch, where known.
    mean_cycles: Option<f64>,
    #[serde(skip)]
    cycles: (u64, u64),
}

impl Edge {
    /// Returns whether the branch goes back to a lower or equal address in the same function (or,
    /// if the functions are unknown, in the same module).
    fn is_loop(&self) -> bool {
        let is_offset = |end: &End| {
            end.symbol.strip_prefix(&end.dso).is_some_and(|rest| rest.starts_with("+0x"))
        };
        let is_known = |end: &End| !end.symbol.starts_with("0x") && !is_offset(end);
        let (from, to) = (&self.from, &self.to);
        let is_same =
            from.dso == to.dso && (from.symbol == to.symbol || !is_known(from) && !is_known(to));
        is_same && to.number <= from.number
    }
}

/// Code that ran without a taken branch.
#[derive(Debug, Serialize)]
struct Range {
    start: End,
    /// Address of the branch at the end.
    end: End,
    count: u64,
}

/// Columns of both histograms; the companions, which are the CPU modes of the two ends, follow
/// them.
const COLUMNS: &str = "addr_from,dso_from,symbol_from,addr_to,dso_to,symbol_to,mispredict,cycles";

fn ends(row: Row<'_>) -> (End, End) {
    let end = |[address, dso, symbol, cpumode]: [usize; 4]| {
        let text = |column: usize| row.text(column).into_owned();
        let number = row.cell(address);
        End {
            address: text(address),
            dso: text(dso),
            symbol: text(symbol),
            cpumode: text(cpumode),
            number,
        }
    };
    (end([0, 1, 2, 8]), end([3, 4, 5, 9]))
}

/// Index of the column `mispredict`.
const MISPREDICT: usize = 6;
/// Index of the column `cycles`.
const CYCLES: usize = 7;

/// Returns all edges, highest counts first.
fn edges(tables: &[EventTable<'_>]) -> Vec<Edge> {
    let mut edges = IndexMap::<(End, End), Edge>::new();
    for row in tables.iter().flat_map(EventTable::rows) {
        let edge = edges.entry(ends(row)).or_default();
        let count = row.count().samples;
        edge.count += count;
        match &*row.text(MISPREDICT) {
            "Y" => edge.mispredicted += count,
            "N" => edge.predicted += count,
            _ => {}
        }
        let cycles = row.cell(CYCLES);
        if cycles > 0 {
            edge.cycles =
                (edge.cycles.0.saturating_add(cycles.saturating_mul(count)), edge.cycles.1 + count);
        }
    }
    let whole = |((from, to), edge): ((End, End), Edge)| {
        let known = edge.mispredicted + edge.predicted;
        let mispredict_percent = (known > 0).then(|| rounded(share(edge.mispredicted, known)));
        let (cycles, of) = edge.cycles;
        // `share` returns 100 × cycles / of.
        let mean_cycles = (of > 0).then(|| share(cycles, of) / 100.0);
        Edge { from, to, mispredict_percent, mean_cycles, ..edge }
    };
    let mut edges: Vec<Edge> = edges.into_iter().map(whole).collect();
    edges.sort_by(|a, b| {
        b.count.cmp(&a.count).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to)))
    });
    edges
}

/// Returns all fall-through ranges, highest counts first.
fn ranges(tables: &[EventTable<'_>]) -> Vec<Range> {
    edges(tables)
        .into_iter()
        .map(|Edge { from, to, count, .. }| Range { start: from, end: to, count })
        .collect()
}
