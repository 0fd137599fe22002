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
use std::io::{self, Write};

use clap::Parser;
use indexmap::IndexMap;
use serde::Serialize;

use crate::analyses::derived::{self, ViewArgs, ViewQuery};
use crate::cli;
use crate::count::metrics::{rounded, share};
use crate::exports::outputs;
use crate::exports::sheet::{Analysis, Sheet, SheetCell, SheetColumn};
use crate::query::word_text::is_mispredicted;
use crate::query::{Column, Mode, Query, Warning};
use crate::table::{self, EventTable, Row};

/// Show code paths, from branch stacks: edges, loops, and code between branches
#[derive(Debug, Parser)]
#[command(name = "rep branches", version, long_about = None, args_override_self = true)]
#[command(mut_arg("format", |arg| {
    arg.value_parser(cli::output_parser(|output| output.tables.is_some() || output.paths.is_some()))
        .help(FORMATS)
}))]
pub(crate) struct BranchesArgs {
    #[command(flatten)]
    view: ViewArgs,
}

const FORMATS: &str = "Output format; `bolt` is a pre-aggregated profile for BOLT";

pub(crate) fn query(args: BranchesArgs) -> Result<ViewQuery, String> {
    let (output, json, limit) = (args.view.output(), args.view.json, args.view.limit);
    let bolt = args.view.is_of_paths();
    let query = args.view.query(Mode::Branches)?;
    cli::refuse([
        (bolt && limit.is_some(), "--limit does not work with --format bolt"),
        (bolt && json, "--json does not work with --format bolt"),
        (bolt && query.filters.by_symbol(), "--symbol does not work with --format bolt"),
    ])?;
    Ok(ViewQuery { query, output })
}

#[derive(Serialize)]
struct BranchAnalysis {
    branches: u64,
    edges: Vec<Edge>,
    loops: Vec<Edge>,
    ranges: Vec<Range>,
}

pub(crate) fn run(asked: &ViewQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let ViewQuery { query, output } = asked;
    if output.paths.is_some() {
        return bolt::run(query, out);
    }
    // Text has the CPU modes too.
    let needs = outputs::COMPANIONS;
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
    let answer = BranchAnalysis { branches, edges, loops, ranges };
    derived::print(output, &profile.inputs, &answer, &profile.warnings, out)
}

/// A row of a table: an edge or a range.
#[derive(Clone, Copy)]
struct PathRow<'a> {
    table: &'static str,
    from: &'a BranchEnd,
    to: &'a BranchEnd,
    count: u64,
    /// The edge, and its share of all branches.
    edge: Option<(&'a Edge, f64)>,
}

type RowColumn<'a> = SheetColumn<'a, PathRow<'a>>;

/// Returns the columns of text and CSV; of ranges, text has only some.
fn columns<'a>(of_ranges: bool) -> Vec<RowColumn<'a>> {
    let (heading, arrow) = if of_ranges { ("From … To", "…") } else { ("From → To", "→") };
    vec![
        RowColumn::unshown("table", |row| row.table.into()),
        RowColumn::number("count", "Count", 10, |row| row.count.into()),
        RowColumn::number("percent", "Share", 7, |row| {
            SheetCell::percent(row.edge.map(|(_, share)| share))
        })
        .shown_if(!of_ranges),
        RowColumn::number("mispredict_percent", "Mispredicted", 12, |row| {
            SheetCell::percent(row.edge.and_then(|(edge, _)| edge.mispredict_percent))
        })
        .shown_if(!of_ranges),
        RowColumn::number("mean_cycles", "Cycles", 6, |row| {
            SheetCell::float(row.edge.and_then(|(edge, _)| edge.mean_cycles))
        })
        .shown_if(!of_ranges),
        RowColumn::shown(heading, 0, move |row| format!("{} {arrow} {}", row.from, row.to).into()),
        RowColumn::unshown("from_address", |row| (&row.from.address).into()),
        RowColumn::unshown("from_dso", |row| (&row.from.dso).into()),
        RowColumn::unshown("from_symbol", |row| (&row.from.symbol).into()),
        RowColumn::unshown("from_cpumode", |row| (&row.from.cpumode).into()),
        RowColumn::unshown("to_address", |row| (&row.to.address).into()),
        RowColumn::unshown("to_dso", |row| (&row.to.dso).into()),
        RowColumn::unshown("to_symbol", |row| (&row.to.symbol).into()),
        RowColumn::unshown("to_cpumode", |row| (&row.to.cpumode).into()),
    ]
}

impl Analysis for BranchAnalysis {
    const SCHEMA: &'static str = "recrep-branches/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        let columns_of_edges = columns(false);
        let mut sheets = Vec::new();
        for (table, what, edges) in
            [("edges", "Edges", &self.edges), ("loops", "Loops", &self.loops)]
        {
            let title = format!("# {what}, of {} branches", self.branches);
            let rows = edges.iter().map(|edge| PathRow {
                table,
                from: &edge.from,
                to: &edge.to,
                count: edge.count,
                edge: Some((edge, rounded(share(edge.count, self.branches)))),
            });
            sheets.push(Sheet::new(vec![title, "#".into()], &columns_of_edges, rows));
        }
        let title = "# Fall-throughs: code from the target of a branch to the next branch";
        let rows = self.ranges.iter().map(|range| PathRow {
            table: "fall_throughs",
            from: &range.start,
            to: &range.end,
            count: range.count,
            edge: None,
        });
        sheets.push(Sheet::new(vec![title.into(), "#".into()], &columns(true), rows));
        sheets
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, sheet) in self.sheets().iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            sheet.print(out)?;
        }
        Ok(())
    }
}

/// One end of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
struct BranchEnd {
    address: String,
    dso: String,
    symbol: String,
    cpumode: String,
    #[serde(skip)]
    number: u64,
    #[serde(skip)]
    is_function: bool,
}

impl fmt::Display for BranchEnd {
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
    from: BranchEnd,
    to: BranchEnd,
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
        let (from, to) = (&self.from, &self.to);
        let are_unknown = !from.is_function && !to.is_function;
        let is_same = from.dso == to.dso && (from.symbol == to.symbol || are_unknown);
        is_same && to.number <= from.number
    }
}

/// Code that ran without a taken branch.
#[derive(Debug, Serialize)]
struct Range {
    start: BranchEnd,
    /// Address of the branch at the end.
    end: BranchEnd,
    count: u64,
}

/// Columns of both histograms; the companions, which are the CPU modes of the two ends, follow
/// them.
const COLUMNS: &str = "addr_from,dso_from,symbol_from,addr_to,dso_to,symbol_to,mispredict,cycles";

fn ends(row: Row<'_>) -> (BranchEnd, BranchEnd) {
    let [from, to] = [[0, 1, 2, 8], [3, 4, 5, 9]].map(|columns| {
        let [address, dso, symbol, cpumode] = columns.map(|column| row.text(column).into_owned());
        let [number, _, function, _] = columns;
        BranchEnd {
            address,
            dso,
            symbol,
            cpumode,
            number: row.cell(number),
            is_function: row.function(function).is_some(),
        }
    });
    (from, to)
}

/// Index of the column `mispredict`.
const MISPREDICT: usize = 6;
/// Index of the column `cycles`.
const CYCLES: usize = 7;

/// Returns all edges, highest counts first.
fn edges(tables: &[EventTable<'_>]) -> Vec<Edge> {
    let mut edges = IndexMap::<(BranchEnd, BranchEnd), Edge>::new();
    for row in tables.iter().flat_map(EventTable::rows) {
        let edge = edges.entry(ends(row)).or_default();
        let count = row.count().samples;
        edge.count += count;
        let Some(flags) = row.word(MISPREDICT) else { continue };
        match is_mispredicted(flags) {
            Some(true) => edge.mispredicted += count,
            Some(false) => edge.predicted += count,
            None => {}
        }
        let cycles = row.cell(CYCLES);
        if cycles > 0 {
            edge.cycles =
                (edge.cycles.0.saturating_add(cycles.saturating_mul(count)), edge.cycles.1 + count);
        }
    }
    let edges = edges.into_iter().map(|((from, to), edge)| {
        let known = edge.mispredicted + edge.predicted;
        let mispredict_percent = (known > 0).then(|| rounded(share(edge.mispredicted, known)));
        let (cycles, of) = edge.cycles;
        // `share` returns 100 × cycles / of.
        let mean_cycles = (of > 0).then(|| share(cycles, of) / 100.0);
        Edge { from, to, mispredict_percent, mean_cycles, ..edge }
    });
    let mut edges: Vec<Edge> = edges.collect();
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
