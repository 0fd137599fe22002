//! Sums of functions: each sample counts once for each function in its stack.

use super::{Picture, PictureEvent, SIDES};
use crate::count::Count;

/// Samples of a function itself, and of all stacks that it is in, by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameSums {
    pub(crate) own: [Count; SIDES],
    pub(crate) all: [Count; SIDES],
}

impl Picture {
    /// Returns the caller of each node.
    pub(crate) fn parents(&self) -> Vec<Option<u32>> {
        // In preorder a node's callers come before it: the last of less depth is the nearest.
        let (mut parents, mut way) = (Vec::with_capacity(self.nodes.len()), Vec::new());
        for (number, node) in (0..).zip(&self.nodes) {
            way.truncate(node.depth.saturating_sub(1) as usize);
            parents.push(way.last().copied());
            way.push(number);
        }
        parents
    }

    /// Returns the samples of each node of the tree with all below it, by side.
    pub(crate) fn node_sums(&self, event: &PictureEvent) -> Vec<FrameSums> {
        let mut sums = vec![FrameSums::default(); self.nodes.len()];
        for entry in &event.entries {
            let cell = event.cells.get(entry.cell as usize).copied().unwrap_or_default();
            let side = self.side(cell.thread);
            if let Some(sums) = sums.get_mut(entry.node as usize) {
                for of in [&mut sums.own, &mut sums.all] {
                    if let Some(sum) = of.get_mut(side) {
                        sum.add(entry.count);
                    }
                }
            }
        }
        for (number, parent) in self.parents().into_iter().enumerate().rev() {
            let all = sums.get(number).map(|sums| sums.all).unwrap_or_default();
            if let Some(parent) = parent.and_then(|parent| sums.get_mut(parent as usize)) {
                for (sum, all) in parent.all.iter_mut().zip(all) {
                    sum.add(all);
                }
            }
        }
        sums
    }

    /// Returns the samples of each frame, by its number.
    pub(crate) fn frame_sums(&self, event: &PictureEvent) -> Vec<FrameSums> {
        let of_nodes = self.node_sums(event);
        let mut sums = vec![FrameSums::default(); self.frames.len()];
        // Number of nodes of each frame on the way to the current node.
        let mut on_way = vec![0_u32; self.frames.len()];
        let mut way: Vec<u32> = Vec::new();
        for (node, of_node) in self.nodes.iter().zip(&of_nodes) {
            while way.len() >= node.depth as usize {
                if let Some(left) = way.pop().and_then(|frame| on_way.get_mut(frame as usize)) {
                    *left -= 1;
                }
            }
            let frame = node.frame as usize;
            if let Some((sums, on_way)) = sums.get_mut(frame).zip(on_way.get_mut(frame)) {
                for (sum, own) in sums.own.iter_mut().zip(of_node.own) {
                    sum.add(own);
                }
                if *on_way == 0 {
                    for (sum, all) in sums.all.iter_mut().zip(of_node.all) {
                        sum.add(all);
                    }
                }
                *on_way += 1;
            }
            way.push(node.frame);
        }
        sums
    }
}
