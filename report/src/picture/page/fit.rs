//! Makes a picture small enough for a page: longer steps of time, then fewer stacks.

use std::io;

use super::columns::{PackedColumn, columns, packed};
use crate::callchain::Chains;
use crate::picture::tree::SortedTree;
use crate::picture::{Picture, PictureFrame};
use crate::query::LONG;

/// Greatest size of the columns in a page, in bytes. Mail servers take 10 MB, browsers open it in a
/// second.
const MOST: usize = 2_900_000;

/// The same of a long recording, whose moments are to be told apart.
const MOST_OF_LONG: usize = 7_600_000;

/// Number of steps below which stacks are left out instead of joining steps.
const STEPS: u64 = 512;

/// A picture that fits.
#[derive(Debug)]
pub(super) struct Fitted {
    pub(super) picture: Picture,
    pub(super) columns: Vec<PackedColumn>,
    pub(super) cut: Option<CutStacks>,
}

/// What was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct CutStacks {
    /// Stacks with fewer samples end in a frame of their own.
    pub(super) least: u64,
    /// Samples that end there.
    pub(super) samples: u64,
}

/// Returns the picture with steps and stacks so that its columns take at most [`MOST`] bytes, or
/// [`MOST_OF_LONG`], with others that take `taken` bytes.
pub(super) fn fitted(mut picture: Picture, taken: usize) -> io::Result<Fitted> {
    let is_long = picture.steps().saturating_mul(picture.step) >= LONG;
    let most = if is_long { MOST_OF_LONG } else { MOST };
    let most = most.saturating_sub(taken).max(MOST / 2);
    loop {
        let packed = packed(&columns(&picture))?;
        if size(&packed) <= most {
            return Ok(Fitted { picture, columns: packed, cut: None });
        }
        if picture.steps() / 2 < STEPS {
            break;
        }
        picture = picture.with_longer_steps();
    }
    let mut least = 2;
    loop {
        let (fewer, samples) = picture.without_rare_stacks(least);
        let packed = packed(&columns(&fewer))?;
        let can_be_less = fewer.nodes.len() > 1;
        if size(&packed) <= most || !can_be_less {
            let cut = CutStacks { least, samples };
            return Ok(Fitted { picture: fewer, columns: packed, cut: Some(cut) });
        }
        least = least.saturating_mul(2);
    }
}

fn size(columns: &[PackedColumn]) -> usize {
    columns.iter().map(|column| column.text.len()).sum()
}

impl Picture {
    /// Returns the same with stacks of fewer samples than `least` cut off at their last frame with
    /// more, below which a frame stands for them, and the number of their samples.
    fn without_rare_stacks(&self, least: u64) -> (Self, u64) {
        let mut samples = vec![0_u64; self.nodes.len()];
        for event in &self.events {
            for (sum, of_node) in samples.iter_mut().zip(self.node_sums(event)) {
                for count in of_node.all {
                    *sum = sum.saturating_add(count.samples);
                }
            }
        }
        let rare = self.frames.binary_search(&PictureFrame::rare_stacks()).unwrap_or_default();
        let rare = u32::try_from(rare).unwrap_or(u32::MAX);
        let mut tree = Chains::default();
        // Chain of each node, and of the nodes on the way to the current one; whether it is kept.
        let (mut chains, mut way) = (Vec::with_capacity(self.nodes.len()), Vec::new());
        for (node, samples) in self.nodes.iter().zip(&samples) {
            way.truncate(node.depth.saturating_sub(1) as usize);
            let (callers, is_kept) = way.last().copied().unwrap_or((0, true));
            let (chain, is_kept) = match (is_kept, *samples >= least) {
                (false, _) => (callers, false),
                (true, true) => (tree.add(callers, node.frame), true),
                (true, false) => (tree.add(callers, rare), false),
            };
            chains.push(chain);
            way.push((chain, is_kept));
        }
        let SortedTree { nodes, places } = SortedTree::of(&tree, |frame| frame);
        let mut fewer = Self { nodes, ..self.clone() };
        let mut cut = 0_u64;
        for event in &mut fewer.events {
            for entry in &mut event.entries {
                let chain = chains.get(entry.node as usize).copied().unwrap_or(0);
                entry.node = places.get(chain as usize).copied().unwrap_or(0);
                let node = fewer.nodes.get(entry.node as usize);
                if node.is_some_and(|node| node.frame == rare) {
                    cut = cut.saturating_add(entry.count.samples);
                }
            }
            event.settle();
        }
        (fewer, cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Count;
    use crate::picture::{Cell, PictureEntry, PictureEvent, PictureNode, PictureThread};

    #[test]
    fn rare_stacks_end_in_a_frame_of_their_own() {
        let frame = |name: &str| PictureFrame { name: name.into(), ..PictureFrame::default() };
        // Behind those of the kind of programs' code.
        let rare = PictureFrame::rare_stacks();
        let node = |frame, depth| PictureNode { frame, depth };
        let entry = |node, samples| {
            let count = Count { samples, period: samples };
            PictureEntry { node, cell: 0, count }
        };
        // a -> { a -> { b, c } , b -> c }
        let picture = Picture {
            frames: ["a", "b", "c"].map(frame).into_iter().chain([rare]).collect(),
            nodes: vec![node(0, 1), node(0, 2), node(1, 3), node(2, 3), node(1, 2), node(2, 3)],
            threads: vec![PictureThread::default()],
            events: vec![PictureEvent {
                cells: vec![Cell::default()],
                entries: vec![entry(0, 1), entry(2, 9), entry(3, 1), entry(4, 1), entry(5, 2)],
                ..PictureEvent::default()
            }],
            ..Picture::default()
        };
        let (fewer, cut) = picture.without_rare_stacks(4);
        let name = |frame: u32| fewer.frames[frame as usize].name.as_str();
        let nodes: Vec<(&str, u32)> =
            fewer.nodes.iter().map(|node| (name(node.frame), node.depth)).collect();
        let rare = "(rare stacks)";
        assert_eq!(nodes, [("a", 1), ("a", 2), ("b", 3), (rare, 3), (rare, 2)]);
        let samples: Vec<(u32, u64)> =
            fewer.events[0].entries.iter().map(|entry| (entry.node, entry.count.samples)).collect();
        assert_eq!((samples, cut), (vec![(0, 1), (2, 9), (3, 1), (4, 3)], 4));
    }
}
