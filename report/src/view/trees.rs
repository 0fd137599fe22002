//! The call trees of a table, drawn in parallel.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::callchain::trees::TreeOptions;
use crate::query::Query;
use crate::query::graph::Shape;
use crate::table::profile::{EventTable, Profile, Row};

use super::tree::Drawing;

/// Drawn trees, by the numbers of their rows.
#[derive(Debug, Default)]
pub(super) struct Trees {
    drawn: FxHashMap<usize, String>,
}

impl Trees {
    /// Draws the trees of a table; none if the query has no call graph.
    pub(super) fn of(profile: &Profile, table: &EventTable<'_>, query: &Query) -> Self {
        let Some(graph) = query.chains.graph.filter(|_| !profile.calls.is_empty()) else { return Self::default() };
        let total = table.total.period;
        let fractal = graph.shape == Shape::Fractal;
        let least = if fractal { 0 } else { graph.least(total) };
        // Rows are sorted by weight, and no part of a tree exceeds its row.
        let rows: Vec<Row<'_>> = table.rows().take_while(|row| row.weight() >= least).collect();
        let places: Vec<_> = rows.iter().map(|row| row.place).collect();
        let share = if fractal { graph.percent / 100.0 } else { 0.0 };
        let wanted = TreeOptions { least, share, passed: query.chains.shows_branches() };
        let trees = profile.calls.trees(&places, profile.children, wanted, query.chains.from_caller());
        let skip_first = query.columns.first().is_some_and(|column| column.typed.starts_with("sym"));
        let drawing = Drawing { calls: &profile.calls, graph: &graph, total, skip_first };
        let draw = |(nodes, row): (&Vec<_>, &Row<'_>)| {
            let mut text = String::new();
            drawing.draw(nodes, row.weight(), &mut text);
            (row.place, text)
        };
        Self { drawn: trees.par_iter().zip(&rows).map(draw).collect() }
    }

    /// Returns the tree to print below a row; empty if it has none.
    pub(super) fn below(&self, place: usize) -> &str {
        self.drawn.get(&place).map_or("", String::as_str)
    }
}
