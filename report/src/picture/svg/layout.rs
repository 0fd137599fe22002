//! Boxes of a flame graph: those that are wide enough to be seen.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::count::metrics::share;
use crate::picture::{FrameKind, Picture, PictureEvent, SIDES};

/// What a box shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoxKind {
    /// All samples, or those of a command.
    Group,
    User,
    Kernel,
    NoName,
    /// Frames that are not known.
    Cut,
}

/// BoxSubject of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum BoxSubject {
    All,
    /// Number in [`Picture::commands`].
    Command(u32),
    /// Number in [`Picture::frames`].
    Frame(u32),
}

/// Values and numbers of samples, by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BoxSums {
    pub(super) values: [u64; SIDES],
    pub(super) samples: [u64; SIDES],
}

impl BoxSums {
    fn add(&mut self, other: Self) {
        for (sums, others) in [(&mut self.values, other.values), (&mut self.samples, other.samples)]
        {
            for (sum, other) in sums.iter_mut().zip(others) {
                *sum = sum.saturating_add(other);
            }
        }
    }
}

/// A box: the samples of a subject above the boxes that it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlameBox {
    pub(super) subject: BoxSubject,
    /// 0 for all samples.
    pub(super) depth: u32,
    /// Place of its left end, in the unit of values.
    pub(super) start: u64,
    pub(super) sums: BoxSums,
}

/// What is drawn.
#[derive(Clone, Copy)]
pub(super) struct FlameLayout<'p> {
    pub(super) picture: &'p Picture,
    pub(super) event: &'p PictureEvent,
    /// The side whose values are widths.
    pub(super) side: usize,
    /// `true` if the sampled functions come first, and their callers above them.
    pub(super) inverted: bool,
    /// `true` for stacks only that the other side has not.
    pub(super) only_here: bool,
    /// Least part of the whole that is drawn.
    pub(super) least: f64,
}

/// Samples of one command that end in one node.
#[derive(Clone, Copy)]
struct FlameItem {
    node: u32,
    command: u32,
    sums: BoxSums,
}

/// A box, and what stands on it.
struct OpenBoxes<T> {
    at: FlameBox,
    above: T,
}

impl FlameLayout<'_> {
    /// Returns the boxes, each behind the one that it stands on.
    pub(super) fn boxes(self) -> Vec<FlameBox> {
        let items = self.items();
        let mut sums = BoxSums::default();
        items.iter().for_each(|item| sums.add(item.sums));
        if self.value(sums) == 0 {
            return Vec::new();
        }
        let root = FlameBox { subject: BoxSubject::All, depth: 0, start: 0, sums };
        let mut boxes = vec![root];
        match self.inverted {
            true => self.sampled_first(root, &items, &mut boxes),
            false => self.callers_first(root, &items, &mut boxes),
        }
        boxes
    }

    fn value(self, sums: BoxSums) -> u64 {
        sums.values.get(self.side).copied().unwrap_or(0)
    }

    /// Adds the boxes of commands, their outermost functions, and what these call.
    fn callers_first(self, root: FlameBox, items: &[FlameItem], boxes: &mut Vec<FlameBox>) {
        let nodes = &self.picture.nodes;
        let (parents, ends) = (self.picture.parents(), self.ends());
        let mut of_commands = FxHashMap::<u32, (BoxSums, Vec<FlameItem>)>::default();
        for item in items {
            let (sums, own) = of_commands.entry(item.command).or_default();
            sums.add(item.sums);
            own.push(*item);
        }
        let groups = of_commands
            .into_iter()
            .map(|(command, (sums, own))| (BoxSubject::Command(command), sums, own));
        for OpenBoxes { at, above } in self.placed(root, root, groups.collect()) {
            boxes.push(at);
            let mut sums = vec![BoxSums::default(); nodes.len()];
            for item in above {
                if let Some(sum) = sums.get_mut(item.node as usize) {
                    sum.add(item.sums);
                }
            }
            for (node, parent) in parents.iter().enumerate().rev() {
                let own = sums.get(node).copied().unwrap_or_default();
                if let Some(sum) = parent.and_then(|parent| sums.get_mut(parent as usize)) {
                    sum.add(own);
                }
            }
            let mut waiting = vec![OpenBoxes { at, above: 0..nodes.len() }];
            while let Some(OpenBoxes { at: below, above }) = waiting.pop() {
                if below.depth > at.depth {
                    boxes.push(below);
                }
                let (mut groups, mut node) = (Vec::new(), above.start);
                while node < above.end {
                    let end = ends.get(node).copied().unwrap_or(above.end);
                    let sum = sums.get(node).copied().unwrap_or_default();
                    if let Some(of_node) = nodes.get(node).filter(|_| self.value(sum) > 0) {
                        groups.push((BoxSubject::Frame(of_node.frame), sum, node + 1..end));
                    }
                    node = end.max(node + 1);
                }
                let mut open = self.placed(root, below, groups);
                open.reverse();
                waiting.extend(open);
            }
        }
    }

    /// Adds the boxes of sampled functions, then those of their callers, and at last the commands.
    fn sampled_first(self, root: FlameBox, items: &[FlameItem], boxes: &mut Vec<FlameBox>) {
        let parents = self.picture.parents();
        // The next node of each item; `None` behind the outermost one.
        let cursors = items.iter().map(|item| (*item, Some(item.node))).collect::<Vec<_>>();
        let mut waiting = vec![OpenBoxes { at: root, above: cursors }];
        while let Some(OpenBoxes { at: below, above }) = waiting.pop() {
            if below.depth > 0 {
                boxes.push(below);
            }
            if let BoxSubject::Command(_) = below.subject {
                continue;
            }
            let mut groups =
                FxHashMap::<BoxSubject, (BoxSums, Vec<(FlameItem, Option<u32>)>)>::default();
            for (item, cursor) in above {
                let node = cursor.and_then(|node| self.picture.nodes.get(node as usize));
                let subject = node.map_or(BoxSubject::Command(item.command), |node| {
                    BoxSubject::Frame(node.frame)
                });
                let next = cursor.and_then(|node| parents.get(node as usize).copied().flatten());
                let (sums, own) = groups.entry(subject).or_default();
                sums.add(item.sums);
                own.push((item, next));
            }
            let groups = groups.into_iter().map(|(subject, (sums, own))| (subject, sums, own));
            let mut open = self.placed(root, below, groups.collect());
            open.reverse();
            waiting.extend(open);
        }
    }

    /// Returns the boxes that stand on another one, heaviest first, without those too narrow to be
    /// seen.
    fn placed<T>(
        self,
        root: FlameBox,
        below: FlameBox,
        mut groups: Vec<(BoxSubject, BoxSums, T)>,
    ) -> Vec<OpenBoxes<T>> {
        groups.sort_by_key(|(subject, sums, _)| (Reverse(self.value(*sums)), *subject));
        let (mut start, mut open) = (below.start, Vec::new());
        let whole = self.value(root.sums);
        for (subject, sums, above) in groups {
            let value = self.value(sums);
            if share(value, whole) >= 100.0 * self.least {
                let at = FlameBox { subject, depth: below.depth + 1, start, sums };
                open.push(OpenBoxes { at, above });
            }
            start = start.saturating_add(value);
        }
        open
    }

    /// Returns the samples by command and node.
    fn items(self) -> Vec<FlameItem> {
        let mut known = FxHashMap::<(u32, u32), usize>::default();
        let mut items: Vec<FlameItem> = Vec::new();
        for entry in &self.event.entries {
            let cell = self.event.cells.get(entry.cell as usize).copied().unwrap_or_default();
            let thread = self.picture.threads.get(cell.thread as usize).copied();
            let thread = thread.unwrap_or_default();
            let number = *known.entry((thread.command, entry.node)).or_insert_with(|| {
                let sums = BoxSums::default();
                items.push(FlameItem { node: entry.node, command: thread.command, sums });
                items.len() - 1
            });
            let mut sums = BoxSums::default();
            let value =
                if self.event.is_tracepoint { entry.count.samples } else { entry.count.period };
            if let Some(sum) = sums.values.get_mut(thread.side as usize) {
                *sum = value;
            }
            if let Some(sum) = sums.samples.get_mut(thread.side as usize) {
                *sum = entry.count.samples;
            }
            if let Some(item) = items.get_mut(number) {
                item.sums.add(sums);
            }
        }
        if self.only_here {
            let other = 1 - self.side.min(1);
            items.retain(|item| item.sums.samples.get(other) == Some(&0));
        }
        items
    }

    /// Returns for each node where those end that it calls, directly or not.
    fn ends(self) -> Vec<usize> {
        let nodes = &self.picture.nodes;
        let mut ends = vec![nodes.len(); nodes.len()];
        let mut way: Vec<usize> = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            while way.len() >= node.depth as usize {
                if let Some(end) = way.pop().and_then(|ended| ends.get_mut(ended)) {
                    *end = number;
                }
            }
            way.push(number);
        }
        ends
    }
}

/// Returns what a box shows.
pub(super) fn kind(picture: &Picture, subject: BoxSubject) -> BoxKind {
    let BoxSubject::Frame(frame) = subject else { return BoxKind::Group };
    match picture.frames.get(frame as usize).map(|frame| frame.kind) {
        Some(FrameKind::Kernel | FrameKind::InlinedKernel) => BoxKind::Kernel,
        Some(FrameKind::NoName | FrameKind::Inferred) => BoxKind::NoName,
        Some(FrameKind::Cut) | None => BoxKind::Cut,
        Some(FrameKind::User | FrameKind::Jit | FrameKind::InlinedUser) => BoxKind::User,
    }
}
