//! The tree of a picture in its order.

use super::PictureNode;
use crate::callchain::Chains;

/// Place of a node that is not in the tree.
pub(super) const NO_NODE: u32 = u32::MAX;

/// A tree in preorder, children sorted by frames.
pub(super) struct SortedTree {
    pub(super) nodes: Vec<PictureNode>,
    /// Place of each chain, from chain 0 on, which has none.
    pub(super) places: Vec<u32>,
}

impl SortedTree {
    /// Sorts the tree of these chains, whose frames have the places `of_frame`.
    pub(super) fn of(chains: &Chains, of_frame: impl Fn(u32) -> u32) -> Self {
        // By callers, then by frames in falling order: what is pushed last is visited first.
        let mut by_callers: Vec<(u32, u32, u32)> = (1u32..)
            .zip(chains.nodes())
            .map(|(chain, node)| (node.callers, u32::MAX - of_frame(node.frame), chain))
            .collect();
        by_callers.sort_unstable();
        let starts = chains.starts();
        let called = |chain: u32| {
            let start = starts.get(chain as usize).copied().unwrap_or(0);
            let end = starts.get(chain as usize + 1).copied().unwrap_or(start);
            by_callers.get(start as usize..end as usize).unwrap_or_default()
        };
        let mut nodes = Vec::with_capacity(chains.len());
        let mut places = vec![NO_NODE; chains.len() + 1];
        let mut waiting: Vec<(u32, u32, u32)> = Vec::new();
        waiting.extend(called(0).iter().map(|(_, rest, chain)| (*chain, u32::MAX - rest, 1)));
        while let Some((chain, frame, depth)) = waiting.pop() {
            if let Some(place) = places.get_mut(chain as usize) {
                *place = u32::try_from(nodes.len()).unwrap_or(NO_NODE);
            }
            nodes.push(PictureNode { frame, depth });
            waiting.extend(
                called(chain).iter().map(|(_, rest, chain)| (*chain, u32::MAX - rest, depth + 1)),
            );
        }
        Self { nodes, places }
    }
}
