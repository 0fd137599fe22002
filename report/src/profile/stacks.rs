//! Call trees below the rows of a profile.
//!
//! ```text
//!   Stacks, samples of a file ─┐
//!   of the other files ────────┴─► for each sample its rows, and its first frame in each of them
//!                                             │ only for displayed rows
//!                                             ▼
//!             items (sample, first frame) ─► grouped by frame, depth by depth ─► nodes (paths compressed)
//! ```
//!
//! Trees are built when rows are printed, only for those rows, from data that the scan keeps
//! anyway. Nodes that are too small to be displayed are never built. Chains with equal beginnings
//! share a path, and a path without a fork is one node. Frames of different files are equal if
//! they have one function.

use indexmap::IndexSet;
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::callchain::{BranchInfo, Chains, RowId, Sample, small};
use crate::count::{Count, Partition, merge_equal};
use crate::profile::names::{FrameId, ProfileNames};

pub(crate) type RowIndex = usize;

/// Callchains of one file, or of several merged.
#[derive(Debug, Default)]
pub struct CallTrees {
    /// Distinct chains.
    pub chains: Chains,
    /// Samples that refer to the chains.
    pub samples: Vec<Sample>,
    /// Class of each frame.
    pub classes: Vec<u32>,
    /// Name of each frame.
    pub names: Vec<FrameId>,
    /// Branch information of each frame ([`Frame::branch`](crate::callchain::Frame::branch)); empty
    /// unless it is shown.
    pub branches: Vec<u64>,
    /// Index of each row in the profile.
    pub rows: Vec<(RowId, RowIndex)>,
    /// What each word of a row shows.
    pub shows: Vec<Shows>,
    /// Numbers shared by the merged files; `None` for the callchains of one file.
    pub merged: Option<Merged>,
}

/// What a word of a row depends on: the frame, the base (the rest of the sample), or both.
#[derive(Clone, Copy, Debug)]
pub struct Shows {
    pub frame: bool,
    pub base: bool,
}

/// Values that several files share, by their numbers in the merged callchains.
#[derive(Debug, Default)]
pub struct Merged {
    /// Classes: the words that show the frame, and the number of earlier classes of the same file
    /// with these words.
    classes: Partition<()>,
    /// Bases: the words that show the base.
    bases: Partition<()>,
    /// Frames: class, name and branch information.
    frames: IndexSet<(u32, FrameId, u64), FxBuildHasher>,
    rows: FxHashSet<RowId>,
    /// Number of samples when equal ones were merged last.
    samples: usize,
}

/// Number of samples from which on equal ones are merged before all files are read.
const MANY: usize = 1 << 18;

/// Number of a class that no row has.
const NO_CLASS: u32 = u32::MAX;

impl CallTrees {
    /// Adds the callchains of another profile, or the first ones. `row` gives the index that one of
    /// its rows has in this profile, and the words of the row.
    ///
    /// Bases and classes of several files are one if their words are equal. Two classes of one file
    /// stay two, because a chain with both counts for both.
    pub fn add<'r>(&mut self, other: Self, row: impl Fn(RowIndex) -> (RowIndex, &'r [u64])) {
        if other.samples.is_empty() {
            return;
        }
        let merged = self.merged.get_or_insert_default();
        let bases = merged.number_bases(&other, &row);
        let classes = merged.number_classes(&other, &row);
        let frames = self.number_frames(&other, &classes);
        let chains = other.chains.fold_callers(0, |node, callers| {
            self.chains.add(callers, numbered(&frames, node.frame).unwrap_or(0))
        });
        self.samples.extend(other.samples.iter().map(|sample| Sample {
            base: numbered(&bases, sample.base).unwrap_or(0),
            class: numbered(&classes, sample.class).unwrap_or(NO_CLASS),
            frame: numbered(&frames, sample.frame).unwrap_or(0),
            is_in_chain: sample.is_in_chain,
            callers: numbered(&chains, sample.callers).unwrap_or(0),
            count: sample.count,
        }));
        let merged = self.merged.get_or_insert_default();
        for ((base, class), index) in other.rows {
            let base = numbered(&bases, base).unwrap_or(0);
            let id = (base, numbered(&classes, class).unwrap_or(NO_CLASS));
            if merged.rows.insert(id) {
                self.rows.push((id, row(index).0));
            }
        }
        self.shows = other.shows;
        if self.samples.len() >= MANY.max(2 * merged.samples) {
            self.merge_equal();
        }
    }

    /// Returns the numbers of a file's frames, adding new ones, given those of its classes.
    fn number_frames(&mut self, file: &Self, classes: &[u32]) -> Vec<u32> {
        let merged = self.merged.get_or_insert_default();
        let mut numbers = Vec::with_capacity(file.names.len());
        for (frame, (class, name)) in file.classes.iter().zip(&file.names).enumerate() {
            let class = numbered(classes, *class).unwrap_or(NO_CLASS);
            let branch = file.branches.get(frame).copied();
            let (number, is_new) = merged.frames.insert_full((class, *name, branch.unwrap_or(0)));
            if is_new {
                self.classes.push(class);
                self.names.push(*name);
                self.branches.extend(branch);
            }
            numbers.push(small(number));
        }
        numbers
    }

    /// Sorts the samples and merges equal ones.
    fn merge_equal(&mut self) {
        merge_equal(
            &mut self.samples,
            |sample| {
                let frame = (sample.is_in_chain, sample.frame);
                (sample.base, sample.class, frame, sample.callers)
            },
            |sample, next| sample.count.add(next.count),
        );
        self.merged.iter_mut().for_each(|merged| merged.samples = self.samples.len());
    }
}

impl Merged {
    /// Returns the numbers of a file's bases, adding new ones.
    fn number_bases<'r>(
        &mut self,
        file: &CallTrees,
        row: impl Fn(RowIndex) -> (RowIndex, &'r [u64]),
    ) -> Vec<u32> {
        let rows = file.rows.iter().map(|((base, _), row)| (*base, *row));
        let (mut words, mut numbers) = (Vec::new(), Vec::new());
        for index in rows_by_number(rows) {
            numbers.push(index.map_or(0, |index| {
                put_words(&mut words, row(index).1, &file.shows, |shows| shows.base);
                small(self.bases.add(&words, &()))
            }));
        }
        numbers
    }

    /// Returns the numbers of a file's classes, adding new ones.
    fn number_classes<'r>(
        &mut self,
        file: &CallTrees,
        row: impl Fn(RowIndex) -> (RowIndex, &'r [u64]),
    ) -> Vec<u32> {
        let rows = file.rows.iter().map(|((_, class), row)| (*class, *row));
        let (mut words, mut numbers) = (Vec::new(), Vec::new());
        // Number of this file's classes with equal words, by the first such class.
        let mut equal = FxHashMap::<u32, u64>::default();
        for index in rows_by_number(rows) {
            let Some(index) = index else {
                numbers.push(NO_CLASS);
                continue;
            };
            put_words(&mut words, row(index).1, &file.shows, |shows| shows.frame);
            words.push(0);
            let first = small(self.classes.add(&words, &()));
            let count = equal.entry(first).or_default();
            if let Some(before) = words.last_mut() {
                *before = *count;
            }
            *count += 1;
            let is_first = *count == 1;
            numbers.push(if is_first { first } else { small(self.classes.add(&words, &())) });
        }
        numbers
    }
}

/// Returns the row of each number, the last one if it has several.
fn rows_by_number(rows: impl Iterator<Item = (u32, RowIndex)>) -> Vec<Option<RowIndex>> {
    let mut found = Vec::new();
    for (number, row) in rows {
        let number = number as usize;
        found.resize(found.len().max(number + 1), None);
        if let Some(slot) = found.get_mut(number) {
            *slot = Some(row);
        }
    }
    found
}

/// Returns the new number of an old one.
fn numbered(numbers: &[u32], number: u32) -> Option<u32> {
    numbers.get(number as usize).copied()
}

/// Replaces `words` by a row's words, those that do not show the frame (or the base) by 0.
fn put_words(words: &mut Vec<u64>, row: &[u64], shows: &[Shows], is_shown: fn(&Shows) -> bool) {
    words.clear();
    words
        .extend(row.iter().zip(shows).map(|(word, shows)| if is_shown(shows) { *word } else { 0 }));
}

/// Limits and options of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeOptions {
    /// Minimum period of a node.
    pub least: u64,
    /// Minimum share (0 to 1) of a node in the period of all its siblings, hidden ones included.
    pub share: f64,
    /// `true` to fill [`TreeNode::passed`].
    pub passed: bool,
    /// `true` if a row's tree has the chains of all samples that contain the row, starting at the
    /// row's frame; otherwise only those of the row's own samples.
    pub children: bool,
    pub from_caller: bool,
}

/// Node of a tree: consecutive frames without a fork.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeNode {
    /// Names of the frames.
    pub names: Vec<FrameId>,
    /// Branch information for each frame, if asked for.
    pub passed: Vec<BranchInfo>,
    /// Samples whose chains end here.
    pub own: Count,
    /// Samples whose chains continue below, in displayed or hidden nodes.
    pub below: Count,
    /// Displayed nodes below, largest period first.
    pub nodes: Vec<Self>,
}

impl TreeNode {
    /// Returns the count of all samples through this node.
    pub fn all(&self) -> Count {
        [self.own, self.below].into_iter().sum()
    }
}

impl CallTrees {
    /// Returns the trees of these rows; `names` sorts equal parts.
    pub fn trees(
        &self,
        rows: &[RowIndex],
        names: &ProfileNames,
        wanted: TreeOptions,
    ) -> Vec<Vec<TreeNode>> {
        let places: FxHashMap<RowIndex, usize> =
            rows.iter().enumerate().map(|(place, row)| (*row, place)).collect();
        let wanted_rows: FxHashMap<RowId, usize> =
            self.rows.iter().filter_map(|(id, row)| Some((*id, *places.get(row)?))).collect();
        let parts: Vec<(u32, &[Sample])> = (0..).zip(self.samples.chunks(PART)).collect();
        let made = parts
            .into_par_iter()
            .map(|(number, samples)| self.part(number, samples, &wanted_rows, wanted));
        let (parts, of_parts): (Vec<SamplePart<'_>>, Vec<RowItems>) = made.unzip();
        let mut items: Vec<Vec<Item>> = vec![Vec::new(); rows.len()];
        for (row, item) in of_parts.into_iter().flatten() {
            if let Some(items) = items.get_mut(row) {
                items.push(item);
            }
        }
        let walk = TreeBuilder { trees: self, parts: &parts, names, wanted };
        items.par_iter().with_max_len(1).map(|items| walk.nodes(items, 0)).collect()
    }

    /// Returns the part with these samples, which gets the number `number`, and its items.
    fn part<'f>(
        &'f self,
        number: u32,
        samples: &'f [Sample],
        rows: &FxHashMap<RowId, usize>,
        wanted: TreeOptions,
    ) -> (SamplePart<'f>, RowItems) {
        let mut part = SamplePart { samples, frames: Vec::new() };
        // Of each class that wanted rows have, the last sample with it.
        let mut last =
            vec![None; rows.keys().map(|(_, class)| *class as usize + 1).max().unwrap_or(0)];
        for (_, class) in rows.keys() {
            if let Some(last) = last.get_mut(*class as usize) {
                *last = Some(u32::MAX);
            }
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
                let is_new = last
                    .is_some_and(|last| std::mem::replace(last, sample_number) != sample_number);
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
                    if let Some(class) = self.classes.get(*frame as usize) {
                        add(*class, place);
                    }
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
struct SamplePart<'f> {
    samples: &'f [Sample],
    /// Each sample's frames are followed by [`END`].
    frames: Vec<u32>,
}

/// Number that no frame has.
const END: u32 = u32::MAX;

/// Items of each row, by its index in the list of requested rows.
type RowItems = Vec<(usize, Item)>;

/// Samples of a part: few enough that its frames can be counted by 32 bits.
const PART: usize = 1 << 16;

/// Data that the items refer to.
#[derive(Clone, Copy, Debug)]
struct TreeBuilder<'c> {
    trees: &'c CallTrees,
    parts: &'c [SamplePart<'c>],
    names: &'c ProfileNames,
    wanted: TreeOptions,
}

impl<'c> TreeBuilder<'c> {
    /// Returns the nodes of items that have the same frames before `depth`.
    fn nodes(self, items: &[Item], depth: u32) -> Vec<TreeNode> {
        let mut groups = FxHashMap::<FrameId, Vec<Item>>::default();
        for item in items {
            if let Some(name) = self.name(item, depth) {
                groups.entry(name).or_default().push(*item);
            }
        }
        let least = self.wanted.least.max(part_of(self.sum(items).period, self.wanted.share));
        groups.retain(|_, group| self.sum(group).period >= least);
        let mut nodes: Vec<TreeNode> =
            groups.into_values().map(|group| self.node(&group, depth)).collect();
        nodes.sort_by(|a, b| {
            let [a_name, b_name] =
                [a, b].map(|node| node.names.first().copied().unwrap_or_default());
            let by_period = b.all().period.cmp(&a.all().period);
            by_period.then_with(|| self.names.compare_frames(a_name, b_name))
        });
        nodes
    }

    /// Returns the node of items that have the same frame at `depth`.
    fn node(self, items: &[Item], depth: u32) -> TreeNode {
        let mut node = TreeNode::default();
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
        let (own, below): (Vec<Item>, Vec<Item>) =
            items.iter().partition(|item| self.name(item, depth).is_none());
        (node.own, node.below) = (self.sum(&own), self.sum(&below));
        node.nodes = self.nodes(&below, depth);
        node
    }

    /// Sums up the branch information of these items' frames at `depth`.
    fn branches(self, items: &[Item], depth: u32) -> BranchInfo {
        let mut branches = BranchInfo::default();
        for item in items {
            let branch =
                self.frame(item, depth).and_then(|frame| self.trees.branches.get(frame as usize));
            branches.add(branch.copied().unwrap_or(0), self.count(item).samples);
        }
        branches
    }

    fn sum(self, items: &[Item]) -> Count {
        items.iter().map(|item| self.count(item)).sum()
    }

    fn count(self, item: &Item) -> Count {
        let sample = self
            .parts
            .get(item.part as usize)
            .and_then(|part| part.samples.get(item.sample as usize));
        sample.map(|sample| sample.count).unwrap_or_default()
    }

    /// Returns the name of an item's frame at `depth`; `None` if its chain ends before.
    #[inline]
    fn name(self, item: &Item, depth: u32) -> Option<FrameId> {
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
