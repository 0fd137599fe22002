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

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, ValueEnum as _};
use indexmap::IndexMap;
use serde::Serialize;

use crate::analyses::derived::{self, Format, ViewArgs, ViewQuery};
use crate::cli;
use crate::count::metrics::{rounded, share};
use crate::exports::sheet::{Analysis, Cell, Sheet, SheetColumn, SheetRow};
use crate::query::word_text::is_mispredicted;
use crate::query::{Column, Mode, Query, Warning};
use crate::table::{self, EventTable, Row};

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
    PossibleValuesParser::new(["text", "json", "csv", "bolt"]).map(|name| match &*name {
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
struct BranchAnalysis {
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
    let answer = BranchAnalysis { branches, edges, loops, ranges };
    derived::print(*format, &profile.inputs, &answer, &profile.warnings, out)
}

/// Columns of the tables; of ranges, text has only some.
fn columns(heading: &str, all: bool) -> Vec<SheetColumn<'_>> {
    let number = |name, heading, width| {
        if all { SheetColumn::number(name, heading, width) } else { SheetColumn::unshown(name) }
    };
    let ends = [
        "from_address",
        "from_dso",
        "from_symbol",
        "from_cpumode",
        "to_address",
        "to_dso",
        "to_symbol",
        "to_cpumode",
    ];
    let numbers = [
        SheetColumn::unshown("table"),
        SheetColumn::number("count", "Count", 10),
        number("percent", "Share", 7),
        number("mispredict_percent", "Mispredicted", 12),
        number("mean_cycles", "Cycles", 6),
    ];
    let ends = ends.map(SheetColumn::unshown);
    numbers.into_iter().chain([SheetColumn::shown(heading)]).chain(ends).collect()
}

impl Analysis for BranchAnalysis {
    const SCHEMA: &'static str = "recrep-branches/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        let mut sheets = Vec::new();
        for (table, what, edges) in
            [("edges", "Edges", &self.edges), ("loops", "Loops", &self.loops)]
        {
            sheets.push(Sheet {
                title: vec![format!("# {what}, of {} branches", self.branches), "#".into()],
                columns: columns("From → To", true),
                rows: edges.iter().map(|edge| edge.sheet_row(table, self.branches)).collect(),
            });
        }
        let title = "# Fall-throughs: code from the target of a branch to the next branch";
        sheets.push(Sheet {
            title: vec![title.into(), "#".into()],
            columns: columns("From … To", false),
            rows: self.ranges.iter().map(Range::sheet_row).collect(),
        });
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

/// Returns a row of numbers and two ends.
fn sheet_row<'a>(
    table: &'a str,
    numbers: [Cell<'a>; 4],
    arrow: &str,
    [from, to]: [&'a BranchEnd; 2],
) -> SheetRow<'a> {
    let ends = format!("{from} {arrow} {to}");
    let mut cells = vec![table.into()];
    cells.extend(numbers);
    cells.push(Cell::Text(ends.into()));
    for BranchEnd { address, dso, symbol, cpumode, .. } in [from, to] {
        cells.extend([address, dso, symbol, cpumode].map(|text| Cell::from(text.as_str())));
    }
    SheetRow { cells, below: Vec::new() }
}

impl Range {
    fn sheet_row(&self) -> SheetRow<'_> {
        let numbers = [self.count.into(), Cell::Unknown, Cell::Unknown, Cell::Unknown];
        sheet_row("fall_throughs", numbers, "…", [&self.start, &self.end])
    }
}

impl Edge {
    fn sheet_row<'a>(&'a self, table: &'a str, branches: u64) -> SheetRow<'a> {
        let numbers = [
            self.count.into(),
            Cell::Percent(rounded(share(self.count, branches))),
            self.mispredict_percent.map_or(Cell::Unknown, Cell::Percent),
            self.mean_cycles.map_or(Cell::Unknown, Cell::Mean),
        ];
        sheet_row(table, numbers, "→", [&self.from, &self.to])
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
