//! Builds trees: chains with equal beginnings share a path, and a path without a fork is one node.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::all::{CallTrees, RowIndex};
use crate::callchain::{BranchInfo, RowId, Sample};
use crate::count::Count;
use crate::symbols::labels::Labels;

/// Limits and options of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeOptions {
    /// Minimum period of a node.
    pub least: u64,
    /// Minimum share (0 to 1) of a node in the period of all its siblings, hidden ones included.
    pub share: f64,
    /// `true` to fill [`Node::passed`].
    pub passed: bool,
    /// `true` if a row's tree has the chains of all samples that contain the row, starting at the row's frame;
    /// otherwise only those of the row's own samples.
    pub children: bool,
    pub from_caller: bool,
}

/// Node of a tree: consecutive frames without a fork.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Labels of the frames.
    pub names: Vec<u32>,
    /// Branch information for each frame, if asked for.
    pub passed: Vec<BranchInfo>,
    /// Samples whose chains end here.
    pub own: Count,
    /// Samples whose chains continue below, in displayed or hidden nodes.
    pub below: Count,
    /// Displayed nodes below, largest period first.
    pub nodes: Vec<Self>,
}

impl Node {
    /// Returns the count of all samples through this node.
    pub fn all(&self) -> Count {
        [self.own, self.below].into_iter().sum()
    }
}

/// Returns the name of a frame as one text, by which equal parts of trees are sorted.
pub(crate) fn frame_name(module: &str, function: &str) -> String {
    [function, "\0", module].concat()
}

/// Returns the function in a [`frame_name`].
pub(crate) fn function(name: &str) -> &str {
    name.rsplit_once('\0').map_or(name, |(function, _)| function)
}

impl CallTrees {
    /// Returns the trees of these rows; `labels` has the names.
    pub fn trees(&self, rows: &[RowIndex], labels: &Labels, wanted: TreeOptions) -> Vec<Vec<Node>> {
        let places: FxHashMap<RowIndex, usize> = rows.iter().enumerate().map(|(place, row)| (*row, place)).collect();
        let place = |(id, row): &(RowId, RowIndex)| Some((*id, *places.get(row)?));
        let wanted_rows: FxHashMap<RowId, usize> = self.rows.iter().filter_map(place).collect();
        let parts: Vec<(u32, &[Sample])> = (0..).zip(self.samples.chunks(PART)).collect();
        let made = parts.into_par_iter().map(|part| self.part(part, &wanted_rows, wanted));
        let (parts, of_parts): (Vec<Part<'_>>, Vec<RowItems>) = made.unzip();
        let mut items: Vec<Vec<Item>> = vec![Vec::new(); rows.len()];
        for (row, item) in of_parts.into_iter().flatten() {
            items.get_mut(row).into_iter().for_each(|items| items.push(item));
        }
        let walk = Walk { trees: self, parts: &parts, labels, wanted };
        items.par_iter().map(|items| walk.nodes(items, 0)).collect()
    }

    /// Returns the part with these samples, which gets the number `number`, and its items.
    fn part<'f>(
        &'f self,
        (number, samples): (u32, &'f [Sample]),
        rows: &FxHashMap<RowId, usize>,
        wanted: TreeOptions,
    ) -> (Part<'f>, RowItems) {
        let mut part = Part { samples, frames: Vec::new() };
        // Of each class that wanted rows have, the last sample with it.
        let mut last = vec![None; rows.keys().map(|(_, class)| *class as usize + 1).max().unwrap_or(0)];
        for (_, class) in rows.keys() {
            last.get_mut(*class as usize).into_iter().for_each(|last| *last = Some(u32::MAX));
        }
        let (mut items, mut path) = (Vec::new(), Vec::new());
        for (sample_number, sample) in (0u32..).zip(samples) {
            path.clear();
            path.extend(sample.frames(&self.chains));
            if wanted.from_caller {
                path.reverse();
            }
            let (start, before) = (part.frames.len(), items.len());
            let mut add = |class: u32, place: usize| {
                let last = last.get_mut(class as usize).and_then(Option::as_mut);
                let is_new = last.is_some_and(|last| std::mem::replace(last, sample_number) != sample_number);
                if is_new && let Some(row) = rows.get(&(sample.base, class)) {
                    let at = u32::try_from(start + place).unwrap_or(u32::MAX);
                    items.push((*row, Item { part: number, sample: sample_number, at }));
                }
            };
            if !path.is_empty() {
                add(sample.class, 0);
            }
            if wanted.children {
                for (place, frame) in path.iter().enumerate() {
                    self.classes.get(*frame as usize).into_iter().for_each(|class| add(*class, place));
                }
            }
            if items.len() > before {
                part.frames.extend(&path);
                part.frames.push(END);
            }
        }
        (part, items)
    }
}

/// A sample in a row's tree, starting at the frame `at` of its part.
#[derive(Clone, Copy, Debug)]
struct Item {
    part: u32,
    sample: u32,
    at: u32,
}

/// Frames of some samples, in the direction in which trees are built.
#[derive(Debug)]
struct Part<'f> {
    samples: &'f [Sample],
    /// Each sample's frames are followed by [`END`].
    frames: Vec<u32>,
}

/// Number that no frame has.
const END: u32 = u32::MAX;

/// Items of each row, by the row's place in the list of wanted rows.
type RowItems = Vec<(usize, Item)>;

/// Samples of a part: few enough that its frames can be counted by 32 bits.
const PART: usize = 1 << 16;

/// Data that the items refer to.
#[derive(Clone, Copy, Debug)]
struct Walk<'c> {
    trees: &'c CallTrees,
    parts: &'c [Part<'c>],
    labels: &'c Labels,
    wanted: TreeOptions,
}

impl<'c> Walk<'c> {
    /// Returns the nodes of items that have the same frames before `depth`.
    fn nodes(self, items: &[Item], depth: u32) -> Vec<Node> {
        let mut groups = FxHashMap::<u32, Count>::default();
        let mut total = 0u64;
        for item in items {
            let count = self.count(item);
            total = total.wrapping_add(count.period);
            if let Some(name) = self.name(item, depth) {
                groups.entry(name).or_default().add(count);
            }
        }
        let least = self.wanted.least.max(part_of(total, self.wanted.share));
        groups.retain(|_, count| count.period >= least);
        // Groups below the minimum are not visited again.
        let mut kept: FxHashMap<u32, Vec<Item>> = groups.keys().map(|name| (*name, Vec::new())).collect();
        for item in items {
            if let Some(group) = self.name(item, depth).and_then(|name| kept.get_mut(&name)) {
                group.push(*item);
            }
        }
        let mut nodes: Vec<Node> = kept.into_values().map(|group| self.node(&group, depth)).collect();
        nodes.sort_by(|a, b| {
            let name = |node: &Node| node.names.first().map(|name| self.labels.text((*name).into()));
            b.all().period.cmp(&a.all().period).then_with(|| name(a).cmp(&name(b)))
        });
        nodes
    }

    /// Returns the node of items that have the same frame at `depth`.
    fn node(self, items: &[Item], depth: u32) -> Node {
        let mut node = Node::default();
        let Some(first) = items.first() else { return node };
        let mut depth = depth;
        loop {
            node.names.extend(self.name(first, depth));
            if self.wanted.passed {
                node.passed.push(self.branches(items, depth));
            }
            depth += 1;
            let next = self.name(first, depth);
            if next.is_none() || items.iter().any(|item| self.name(item, depth) != next) {
                break;
            }
        }
        let (own, below): (Vec<Item>, Vec<Item>) = items.iter().partition(|item| self.name(item, depth).is_none());
        (node.own, node.below) = (self.sum(&own), self.sum(&below));
        node.nodes = self.nodes(&below, depth);
        node
    }

    /// Sums up the branch information of these items' frames at `depth`.
    fn branches(self, items: &[Item], depth: u32) -> BranchInfo {
        let mut branches = BranchInfo::default();
        for item in items {
            let branch = self.frame(item, depth).and_then(|frame| self.trees.branches.get(frame as usize));
            branches.add(branch.copied().unwrap_or(0), self.count(item).samples);
        }
        branches
    }

    fn sum(self, items: &[Item]) -> Count {
        items.iter().map(|item| self.count(item)).sum()
    }

    fn count(self, item: &Item) -> Count {
        let sample = self.parts.get(item.part as usize).and_then(|part| part.samples.get(item.sample as usize));
        sample.map(|sample| sample.count).unwrap_or_default()
    }

    /// Returns the name of an item's frame at `depth`; `None` if its chain ends before.
    #[inline]
    fn name(self, item: &Item, depth: u32) -> Option<u32> {
        self.trees.names.get(self.frame(item, depth)? as usize).copied()
    }

    /// Returns an item's frame at `depth`: a number that no frame has behind the last one.
    #[inline]
    fn frame(self, item: &Item, depth: u32) -> Option<u32> {
        let part = self.parts.get(item.part as usize)?;
        part.frames.get(item.at.checked_add(depth)? as usize).copied()
    }
}

/// Returns this share of a period, rounded up.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share need not be exact"
)]
fn part_of(period: u64, share: f64) -> u64 {
    (period as f64 * share).ceil() as u64
}
