//! Chains of numbers as a tree: chains with equal outer frames share its nodes.
//!
//! ```text
//!   (0) ── main (1) ─┬─ parse (2) ── read (3)        chain 3: read, called by parse, called by main
//!                    └─ print (4)                    chain 0: no frames
//! ```
//!
//! A chain is the number of its innermost frame's node. Callers have smaller numbers than what they
//! call, so sums over subtrees and properties of paths take one pass over the nodes, in one
//! direction or the other.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::timeline::starts;

/// Innermost frame of a chain, and the chain of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Chain of the callers: the parent in the tree.
    pub callers: u32,
    pub frame: u32,
}

/// Distinct chains of frames, which are numbers with a meaning elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    nodes: Vec<Node>,
    /// Hashes of the chains: of all their frames.
    hashes: Vec<u64>,
    /// Indexes of nodes, by the hashes of their chains.
    indexes: HashTable<u32>,
}

impl Chains {
    /// Returns the number of chains, without the empty one.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the nodes of all chains, from chain 1 on.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the innermost frame of a chain and its callers; `None` for the empty chain.
    #[inline]
    pub fn node(&self, chain: u32) -> Option<Node> {
        self.nodes.get((chain as usize).checked_sub(1)?).copied()
    }

    /// Iterates over the frames of a chain, innermost first.
    #[inline]
    pub fn frames(&self, chain: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(self.node(chain), |node| self.node(node.callers))
            .map(|node| node.frame)
    }

    /// Returns a value for each chain, from chain 0 on, computed from that of its callers.
    pub fn fold_callers<T: Copy>(&self, empty: T, mut value: impl FnMut(Node, T) -> T) -> Vec<T> {
        let mut values = Vec::with_capacity(self.nodes.len() + 1);
        values.push(empty);
        for node in &self.nodes {
            let of_callers = values.get(node.callers as usize).copied().unwrap_or(empty);
            values.push(value(*node, of_callers));
        }
        values
    }

    /// Returns for each chain, from chain 0 on, where those begin that it calls among all of them
    /// sorted by their callers, and at last where these end.
    pub(crate) fn starts(&self) -> Vec<u32> {
        starts(self.len() + 1, self.nodes.iter().map(|node| node.callers as usize))
    }

    /// Drops what only finds chains to which nothing is added any more: half of the memory.
    #[must_use]
    pub fn closed(self) -> Self {
        Self { nodes: self.nodes, ..Self::default() }
    }

    /// Makes room for this many more chains.
    pub fn reserve(&mut self, more: usize) {
        let hashes = &self.hashes;
        self.indexes.reserve(more, |index| hashes.get(*index as usize).copied().unwrap_or(0));
        self.nodes.reserve(more);
        self.hashes.reserve(more);
    }

    /// Adds a frame that `callers` call, and returns the number of the longer chain.
    #[inline]
    pub fn add(&mut self, callers: u32, frame: u32) -> u32 {
        let (hash, node) = (longer(self.hash(callers), frame), Node { callers, frame });
        let Self { nodes, hashes, indexes } = self;
        let entry = indexes.entry(
            hash,
            |index| nodes.get(*index as usize) == Some(&node),
            |index| hashes.get(*index as usize).copied().unwrap_or(0),
        );
        match entry {
            Entry::Occupied(index) => index.get().saturating_add(1),
            Entry::Vacant(slot) => {
                slot.insert(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
                nodes.push(node);
                hashes.push(hash);
                u32::try_from(nodes.len()).unwrap_or(u32::MAX)
            }
        }
    }

    /// Adds frames of which each calls the next, the first being called by `callers`, and returns
    /// the number of the longest chain.
    #[inline]
    pub(crate) fn add_each(&mut self, callers: u32, frames: &[u32]) -> u32 {
        frames.iter().fold(callers, |callers, frame| self.add(callers, *frame))
    }

    /// Adds frames of which each calls the next, the first being called by `callers`, and writes
    /// the numbers of the longer chains into `chains`.
    #[inline]
    pub fn add_all(&mut self, callers: u32, frames: &[u32], chains: &mut Vec<u32>) {
        chains.clear();
        // Chains are looked up by hashes that do not depend on the numbers of their callers, so the
        // processor waits for several at once. Nearly all are found so.
        let mut hash = self.hash(callers);
        chains.extend(frames.iter().map(|frame| {
            hash = longer(hash, *frame);
            let found = self.indexes.find(hash, |index| {
                self.nodes.get(*index as usize).is_some_and(|node| node.frame == *frame)
            });
            found.map_or(0, |index| index.saturating_add(1))
        }));
        let mut callers = callers;
        for (frame, chain) in frames.iter().zip(chains) {
            if self.node(*chain) != Some(Node { callers, frame: *frame }) {
                *chain = self.add(callers, *frame);
            }
            callers = *chain;
        }
    }

    /// Returns the hash of a chain.
    #[inline]
    fn hash(&self, chain: u32) -> u64 {
        (chain as usize)
            .checked_sub(1)
            .and_then(|index| self.hashes.get(index))
            .copied()
            .unwrap_or(0)
    }
}

/// Returns the hash of a chain with one more frame.
#[inline]
fn longer(hash: u64, frame: u32) -> u64 {
    (hash ^ u64::from(frame)).wrapping_mul(0xf135_7aea_2e62_a9c5).rotate_left(26)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_follow_from_those_of_callers() {
        let mut chains = Chains::default();
        let numbers = [&[1, 2, 3][..], &[1, 4], &[1, 2, 3], &[]].map(|outermost_first| {
            outermost_first.iter().fold(0, |callers, frame| chains.add(callers, *frame))
        });
        assert_eq!((numbers[0], numbers[3], chains.len()), (numbers[2], 0, 4));
        let depths = chains.fold_callers(0, |_, depth| depth + 1);
        assert_eq!((depths[0], numbers.map(|chain| depths[chain as usize])), (0, [3, 2, 3, 0]));
        assert_eq!(chains.frames(numbers[0]).collect::<Vec<_>>(), [3, 2, 1]);
    }

    proptest! {
        #[test]
        fn frames_added_at_once_are_those_added_one_by_one(
            all in prop::collection::vec((prop::collection::vec(0u32..4, 0..6), 0usize..6), 0..40),
        ) {
            let (mut chains, mut one_by_one, mut found) = (Chains::default(), Chains::default(), Vec::new());
            for (frames, known) in all {
                let (known, new) = frames.split_at(known.min(frames.len()));
                let callers = known.iter().fold(0, |callers, frame| chains.add(callers, *frame));
                chains.add_all(callers, new, &mut found);
                let mut before = known.iter().fold(0, |callers, frame| one_by_one.add(callers, *frame));
                let expected = new.iter().map(|frame| {
                    before = one_by_one.add(before, *frame);
                    before
                });
                prop_assert_eq!(&found, &expected.collect::<Vec<_>>());
            }
            prop_assert_eq!(chains.nodes(), one_by_one.nodes());
        }
    }
}
