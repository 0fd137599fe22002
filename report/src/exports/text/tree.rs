//! Call trees below rows, drawn in parallel, like `perf report --stdio`.
//!
//! ```text
//!             |
//!             ---main                      single path
//!                work
//!                |
//!                |--60.00%--parse          branches, largest first
//!                |          read
//!                |
//!                 --40.00%--print
//! ```

use std::fmt::Write;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::count::Count;
use crate::count::metrics::share;
use crate::profile::Profile;
use crate::profile::names::FrameId;
use crate::profile::stacks::{TreeNode, TreeOptions};
use crate::query::{Graph, Query, Shape, graph::Value};
use crate::table::{EventTable, Row};
use crate::terminal::escape::{cut, escape};
use crate::terminal::style::Screen;

/// Drawn trees, by the numbers of their rows.
pub(super) type Trees = FxHashMap<usize, String>;

/// Draws the trees of a table, cut to the width of the screen; none if the query has no call graph.
pub(super) fn trees(
    profile: &Profile,
    table: &EventTable<'_>,
    query: &Query,
    screen: Screen,
) -> Trees {
    let Some(graph) = query.chains.graph.filter(|_| !profile.calls.samples.is_empty()) else {
        return Trees::default();
    };
    let total = table.total.period;
    let fractal = graph.shape == Shape::Fractal;
    let least = if fractal { 0 } else { graph.least(total) };
    // Rows are sorted by weight, and no part of a tree exceeds its row.
    let rows: Vec<Row<'_>> = table.rows().take_while(|row| row.weight() >= least).collect();
    let places: Vec<_> = rows.iter().map(|row| row.place).collect();
    let share = if fractal { graph.percent / 100.0 } else { 0.0 };
    let (passed, from_caller) = (query.chains.shows_branches(), query.chains.begin_at_caller());
    let wanted = TreeOptions { least, share, passed, children: profile.children, from_caller };
    let trees = profile.calls.trees(&places, &profile.names, wanted);
    let skip_first = query.columns.first().is_some_and(|column| column.typed.starts_with("sym"));
    let drawing = Drawing { profile, graph: &graph, total, skip_first };
    let drawn = trees.par_iter().zip(&rows).map(|(nodes, row)| {
        let mut text = String::new();
        drawing.draw(nodes, row.weight(), &mut text);
        if let Some(width) = screen.width {
            text = cut_lines(&text, width);
        }
        (row.place, text)
    });
    drawn.collect()
}

#[derive(Clone, Copy, Debug)]
struct Drawing<'p> {
    profile: &'p Profile,
    graph: &'p Graph,
    /// Period of the event.
    total: u64,
    /// `true` if the first frame of a single path repeats the row's first column and is omitted.
    skip_first: bool,
}

/// Left margin of all lines.
const MARGIN: usize = 12;
/// Width of a level.
const LEVEL: usize = 11;

impl Drawing<'_> {
    /// Draws the tree of a row with period `row`.
    fn draw(&self, nodes: &[TreeNode], row: u64, text: &mut String) {
        let before = text.len();
        match self.graph.shape {
            Shape::Flat | Shape::Folded => return self.chains(nodes, text),
            Shape::Graph | Shape::Fractal => self.tree(nodes, row, text),
        }
        if text.len() > before {
            text.push('\n');
        }
    }

    fn tree(&self, nodes: &[TreeNode], row: u64, text: &mut String) {
        let mut margin = MARGIN;
        let mut nodes = nodes;
        if let [only] = nodes
            && only.all().period == row
        {
            let names = (0..only.names.len()).skip(usize::from(self.skip_first)).take(self.most());
            for (place, name) in names.enumerate() {
                if place == 0 {
                    line(text, margin, "|");
                    line(text, margin, &format!("---{}", self.frame(only, name)));
                    margin += 3;
                } else {
                    line(text, margin, &self.frame(only, name));
                }
            }
            nodes = &only.nodes;
        }
        let total = if self.graph.shape == Shape::Fractal { row } else { self.total };
        self.level(nodes, None, total, &mut vec![true], margin, text);
    }

    /// Draws the children of a node. `bars` has, for each level, whether its vertical bar
    /// continues.
    fn level(
        &self,
        nodes: &[TreeNode],
        parent: Option<&TreeNode>,
        total: u64,
        bars: &mut Vec<bool>,
        margin: usize,
        text: &mut String,
    ) {
        let fractal = self.graph.shape == Shape::Fractal;
        let shown: u64 = nodes.iter().map(|node| node.all().period).fold(0, u64::wrapping_add);
        let left = total.wrapping_sub(shown);
        for (place, node) in nodes.iter().enumerate().take(self.most()) {
            line(text, margin, &columns(bars, None));
            if place + 1 == nodes.len() && !(fractal && left > 0) {
                bars.last_mut().into_iter().for_each(|bar| *bar = false);
            }
            for place in 0..node.names.len() {
                let value = (place == 0).then(|| self.value(node.all(), total));
                line(
                    text,
                    margin,
                    &format!("{}{}", columns(bars, value.as_deref()), self.frame(node, place)),
                );
            }
            let below = if fractal { node.below.period } else { total };
            bars.push(true);
            self.level(&node.nodes, Some(node), below, bars, margin, text);
            bars.pop();
        }
        if fractal && left > 0 && left != total {
            let shown: u64 = nodes.iter().map(|node| node.all().samples).sum();
            let samples = parent.map_or(0, |parent| parent.below.samples.saturating_sub(shown));
            if self.graph.value == Value::Count && parent.is_some() && samples == 0 {
                return;
            }
            bars.last_mut().into_iter().for_each(|bar| *bar = false);
            let value = self.value(Count { samples, period: left }, total);
            line(text, margin, &format!("{}[...]", columns(bars, Some(&value))));
        }
    }

    /// Writes complete callchains, sorted by period, largest first.
    fn chains(&self, nodes: &[TreeNode], text: &mut String) {
        let mut chains = Vec::new();
        ends(nodes, &mut Vec::new(), &mut chains);
        let least = self.graph.least(self.total);
        chains.retain(|(_, node)| node.own.period >= least);
        chains.sort_by_key(|(_, node)| std::cmp::Reverse(node.own.period));
        for (names, node) in chains.iter().take(self.most()) {
            let functions = names.iter().map(|name| self.function(*name));
            if self.graph.shape == Shape::Folded {
                let functions: Vec<String> = functions.collect();
                let value = self.value(node.own, self.total);
                text.push_str(&format!("{value} {}\n", functions.join(";")));
            } else {
                line(text, 11, &self.value(node.all(), self.total));
                functions.for_each(|function| line(text, 16, &function));
                text.push('\n');
            }
        }
    }

    fn most(&self) -> usize {
        self.graph.most.unwrap_or(usize::MAX)
    }

    /// Formats a frame of a node, with the branch information of the frame if there is any.
    fn frame(&self, node: &TreeNode, place: usize) -> String {
        let name = node.names.get(place).map_or_else(String::new, |name| self.function(*name));
        node.passed.get(place).map_or_else(|| name.clone(), |passed| format!("{name}{passed}"))
    }

    fn function(&self, name: FrameId) -> String {
        escape(&self.profile.names.frame_text(name)).into_owned()
    }

    fn value(&self, count: Count, total: u64) -> String {
        match self.graph.value {
            Value::Percent => format!("{:.2}%", share(count.period, total)),
            Value::Period => count.period.to_string(),
            Value::Count => count.samples.to_string(),
        }
    }
}

/// Collects the nodes at which chains end, each with the names on its path (`way`).
fn ends<'n>(
    nodes: &'n [TreeNode],
    way: &mut Vec<FrameId>,
    found: &mut Vec<(Vec<FrameId>, &'n TreeNode)>,
) {
    for node in nodes {
        way.extend(&node.names);
        if node.own.samples > 0 {
            found.push((way.clone(), node));
        }
        ends(&node.nodes, way, found);
        way.truncate(way.len() - node.names.len());
    }
}

/// Draws the bars of all levels; a value is put at the last one.
fn columns(bars: &[bool], value: Option<&str>) -> String {
    let mut text = String::new();
    for (place, bar) in bars.iter().enumerate() {
        text.push(if *bar { '|' } else { ' ' });
        match value.filter(|_| place + 1 == bars.len()) {
            Some(value) => text.push_str(&format!("--{value}--")),
            None => text.extend(std::iter::repeat_n(' ', LEVEL - 1)),
        }
    }
    text
}

/// Returns the text with each line cut to `width` columns.
fn cut_lines(text: &str, width: usize) -> String {
    let mut narrow = String::with_capacity(text.len());
    for line in text.lines() {
        narrow.push_str(cut(line, width));
        narrow.push('\n');
    }
    narrow
}

fn line(text: &mut String, margin: usize, rest: &str) {
    let written = writeln!(text, "{:margin$}{rest}", "");
    debug_assert!(written.is_ok(), "a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_drawn_as_in_perf() {
        let mut profile = Profile::default();
        let [main, work, parse, read, print] =
            ["main", "work", "parse", "read", "print"].map(|name| profile.names.add_frame(name));
        let count = |period| Count { samples: period, period };
        let leaf = |names: &[FrameId], period| TreeNode {
            names: names.to_vec(),
            own: count(period),
            ..TreeNode::default()
        };
        let nodes = vec![leaf(&[parse, read], 60), leaf(&[print], 40)];
        let tree = [TreeNode {
            names: vec![main, work],
            own: count(0),
            below: count(100),
            nodes,
            ..TreeNode::default()
        }];
        let drawn = |shape, row, total| {
            let graph = Graph { shape, ..Graph::default() };
            let mut text = String::new();
            Drawing { profile: &profile, graph: &graph, total, skip_first: false }
                .draw(&tree, row, &mut text);
            text
        };
        let want = [
            "            |",
            "            ---main",
            "               work",
            "               |          ",
            "               |--30.00%--parse",
            "               |          read",
            "               |          ",
            "                --20.00%--print",
            "",
            "",
        ];
        assert_eq!(drawn(Shape::Graph, 100, 200).split('\n').collect::<Vec<_>>(), want);
        assert!(drawn(Shape::Fractal, 100, 200).contains("|--60.00%--parse"));
        assert_eq!(
            drawn(Shape::Folded, 100, 200),
            "30.00% main;work;parse;read\n20.00% main;work;print\n"
        );
    }
}
