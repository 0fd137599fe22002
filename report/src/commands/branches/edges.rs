//! Edges and fall-through ranges, computed from the rows of two histograms.

use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;

use crate::commands::derived;
use crate::count::metrics::{rounded, share};
use crate::query::sort_key::SortKey;
use crate::query::{Column, Format};
use crate::table::profile::{EventTable, Row};

/// One end of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(super) struct End {
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
pub(super) struct Edge {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) count: u64,
    mispredicted: u64,
    predicted: u64,
    /// Percentage of mispredicted branches among those whose prediction is known.
    pub(super) mispredict_percent: Option<f64>,
    /// Mean of the cycles since the previous branch, where known.
    pub(super) mean_cycles: Option<f64>,
    #[serde(skip)]
    cycles: (u64, u64),
}

impl Edge {
    /// Returns whether the branch goes back to a lower or equal address in the same function (or, if the functions are
    /// unknown, in the same module).
    pub(super) fn is_loop(&self) -> bool {
        let is_offset = |end: &End| end.symbol.strip_prefix(&end.dso).is_some_and(|rest| rest.starts_with("+0x"));
        let is_known = |end: &End| !end.symbol.starts_with("0x") && !is_offset(end);
        let (from, to) = (&self.from, &self.to);
        let is_same = from.dso == to.dso && (from.symbol == to.symbol || !is_known(from) && !is_known(to));
        is_same && to.number <= from.number
    }
}

/// Code that ran without a taken branch.
#[derive(Debug, Serialize)]
pub(super) struct Range {
    pub(super) start: End,
    /// Address of the branch at the end.
    pub(super) end: End,
    pub(super) count: u64,
}

/// Returns the columns of both histograms.
pub(super) fn columns() -> Vec<Column> {
    let columns = derived::columns(&[
        ("addr_from", SortKey::FromAddr),
        ("dso_from", SortKey::FromDso),
        ("symbol_from", SortKey::FromSymbol),
        ("addr_to", SortKey::ToAddr),
        ("dso_to", SortKey::ToDso),
        ("symbol_to", SortKey::ToSymbol),
        ("mispredict", SortKey::Mispredict),
        ("cycles", SortKey::Cycles),
    ]);
    Column::with_companions(columns, Format::Json)
}

/// Returns source and target of a row.
fn ends(row: Row<'_>) -> (End, End) {
    let end = |[address, dso, symbol, cpumode]: [usize; 4]| {
        let text = |column: usize| row.text(column).into_owned();
        let number = row.cell(address);
        End { address: text(address), dso: text(dso), symbol: text(symbol), cpumode: text(cpumode), number }
    };
    (end([0, 1, 2, 8]), end([3, 4, 5, 9]))
}

/// Index of the column `mispredict`.
const MISPREDICT: usize = 6;
/// Index of the column `cycles`.
const CYCLES: usize = 7;

/// Returns all edges, highest counts first.
pub(super) fn edges(tables: &[EventTable<'_>]) -> Vec<Edge> {
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
            edge.cycles = (edge.cycles.0.saturating_add(cycles.saturating_mul(count)), edge.cycles.1 + count);
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
    edges.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    edges
}

/// Returns all fall-through ranges, highest counts first.
pub(super) fn ranges(tables: &[EventTable<'_>]) -> Vec<Range> {
    edges(tables).into_iter().map(|Edge { from, to, count, .. }| Range { start: from, end: to, count }).collect()
}
