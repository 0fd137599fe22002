//! One tree: chains that begin alike share a path; paths without a fork are one node.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::file::{FileTrees, Item};
use super::names::Names;
use crate::callchain::BranchInfo;
use crate::count::Count;

/// Which parts of a tree are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// Those with at least this period.
    pub least: u64,
    /// Those with at least this share of the part that they are in.
    pub share: f64,
    /// What is known of branches too.
    pub passed: bool,
}

/// A part of a tree: frames that follow each other without a fork.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Their names.
    pub names: Vec<u32>,
    /// What is known of the branches that went through each of them, where that is wanted.
    pub passed: Vec<BranchInfo>,
    /// The samples whose chains end here.
    pub own: Count,
    /// Those that go on, in parts that are shown or not.
    pub below: Count,
    /// The parts below, the largest first.
    pub nodes: Vec<Self>,
}

impl Node {
    /// All samples that come through here.
    #[must_use]
    pub fn all(&self) -> Count {
        let mut all = self.own;
        all.add(self.below);
        all
    }
}

/// What is known of the items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk<'c> {
    pub(super) files: &'c [FileTrees],
    pub(super) names: &'c Names,
    pub(super) from_caller: bool,
}

impl Walk<'_> {
    /// The tree of a row's items.
    pub(super) fn tree(self, items: &[Item], wanted: Wanted) -> Vec<Node> {
        self.nodes(items, 0, wanted)
    }

    fn nodes(self, items: &[Item], depth: u32, wanted: Wanted) -> Vec<Node> {
        let mut groups = FxHashMap::<u32, Count>::default();
        let mut total = 0u64;
        for item in items {
            let count = self.count(item);
            total = total.wrapping_add(count.period);
            if let Some(name) = self.name(item, depth) {
                groups.entry(name).or_default().add(count);
            }
        }
        let least = wanted.least.max(part_of(total, wanted.share));
        groups.retain(|_, count| count.period >= least);
        // What is too small to be shown is not looked at again.
        let mut kept: FxHashMap<u32, Vec<Item>> = groups.keys().map(|name| (*name, Vec::new())).collect();
        for item in items {
            if let Some(group) = self.name(item, depth).and_then(|name| kept.get_mut(&name)) {
                group.push(*item);
            }
        }
        let mut nodes: Vec<Node> = kept.into_values().map(|group| self.node(&group, depth, wanted)).collect();
        nodes.sort_by(|a, b| {
            let names = || a.names.first().zip(b.names.first());
            let by_name = || names().map_or(Ordering::Equal, |(a, b)| self.names.compare(*a, *b));
            b.all().period.cmp(&a.all().period).then_with(by_name)
        });
        nodes
    }

    /// The node of items whose frames at `depth` are the same.
    fn node(self, items: &[Item], depth: u32, wanted: Wanted) -> Node {
        let mut node = Node::default();
        let Some(first) = items.first() else { return node };
        let mut depth = depth;
        loop {
            node.names.extend(self.name(first, depth));
            if wanted.passed {
                node.passed.push(self.passed(items, depth));
            }
            depth += 1;
            let next = self.name(first, depth);
            if next.is_none() || items.iter().any(|item| self.name(item, depth) != next) {
                break;
            }
        }
        let (own, below): (Vec<Item>, Vec<Item>) = items.iter().partition(|item| self.name(item, depth).is_none());
        (node.own, node.below) = (self.sum(&own), self.sum(&below));
        node.nodes = self.nodes(&below, depth, wanted);
        node
    }

    /// What is known of the branches that went through these items' frames at `depth`.
    fn passed(self, items: &[Item], depth: u32) -> BranchInfo {
        let mut passed = BranchInfo::default();
        for item in items {
            let frame = self.frame(item, depth).and_then(|(file, frame)| file.stacks.frames.get(frame as usize));
            passed.add(frame.map_or(0, |frame| frame.branch), self.count(item).samples);
        }
        passed
    }

    fn sum(self, items: &[Item]) -> Count {
        let mut sum = Count::default();
        items.iter().for_each(|item| sum.add(self.count(item)));
        sum
    }

    fn count(self, item: &Item) -> Count {
        let sample = self.files.get(item.file as usize).and_then(|file| file.samples.get(item.sample as usize));
        sample.map(|sample| sample.count).unwrap_or_default()
    }

    /// The name of an item's frame at `depth`; nothing where its chain has ended.
    #[inline]
    fn name(self, item: &Item, depth: u32) -> Option<u32> {
        let (file, frame) = self.frame(item, depth)?;
        file.names.get(frame as usize).copied()
    }

    /// An item's frame at `depth`, and its file.
    #[inline]
    fn frame(&self, item: &Item, depth: u32) -> Option<(&FileTrees, u32)> {
        let file = self.files.get(item.file as usize)?;
        let sample = file.samples.get(item.sample as usize)?;
        let place = if self.from_caller { item.first.checked_sub(depth)? } else { item.first.checked_add(depth)? };
        Some((file, sample.frame(&file.stacks, place as usize)?))
    }
}

/// This share of a period, rounded up.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares are not exact"
)]
fn part_of(period: u64, share: f64) -> u64 {
    (period as f64 * share).ceil() as u64
}
