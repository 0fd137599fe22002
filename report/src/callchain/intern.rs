//! Distinct chains, each stored once; the words of all chains follow each other.
//!
//! ```text
//!   hash ─► last entry with that hash ─► previous one ─► …     entry: epoch, a moment, location of its words
//!   chunks: [ words words words … | words … ]                  a chain is within one chunk, so nothing is ever moved
//! ```

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use crate::timeline::{Moment, SpaceEpoch};

/// A distinct chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Moment of one of its samples.
    pub(super) at: Moment,
    pub(super) epoch: SpaceEpoch,
    chunk: u32,
    start: u32,
    len: u32,
    /// Previous entry with the same hash.
    next: Option<std::num::NonZeroU32>,
}

/// Distinct chains.
#[derive(Debug, Default)]
pub struct Interner {
    last: FxHashMap<u64, std::num::NonZeroU32>,
    entries: Vec<Entry>,
    chunks: Vec<Vec<u64>>,
}

/// Capacity of a chunk in words.
const CHUNK: usize = 1 << 16;

impl Interner {
    /// Returns the number of distinct chains.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no chains.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of a chain, from 1 on, adding the chain if it is new.
    #[inline]
    pub fn intern(&mut self, epoch: SpaceEpoch, at: Moment, words: &[u64]) -> u32 {
        let hash = hash(epoch, words);
        let known = self.last.get(&hash).copied();
        let mut next = known;
        while let Some(number) = next {
            let Some(entry) = self.entries.get(number.get() as usize - 1) else { break };
            if entry.epoch == epoch && self.words(entry) == words {
                return number.get();
            }
            next = entry.next;
        }
        self.add(hash, known, epoch, at, words)
    }

    #[cold]
    fn add(
        &mut self,
        hash: u64,
        next: Option<std::num::NonZeroU32>,
        epoch: SpaceEpoch,
        at: Moment,
        words: &[u64],
    ) -> u32 {
        let full = self.chunks.last().is_none_or(|chunk| chunk.len() + words.len() > CHUNK);
        if full {
            self.chunks.push(Vec::with_capacity(CHUNK.max(words.len())));
        }
        let start = self.chunks.last().map_or(0, Vec::len);
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.extend_from_slice(words);
        }
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (chunk, start, len) = (small(self.chunks.len()) - 1, small(start), small(words.len()));
        self.entries.push(Entry { at, epoch, chunk, start, len, next });
        let number = small(self.entries.len());
        if let Some(number) = std::num::NonZeroU32::new(number) {
            self.last.insert(hash, number);
        }
        number
    }

    /// Returns the chains in the order of their numbers.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the words of a chain.
    #[inline]
    pub(super) fn words(&self, entry: &Entry) -> &[u64] {
        let start = entry.start as usize;
        let chunk = self.chunks.get(entry.chunk as usize).map_or(&[][..], Vec::as_slice);
        chunk.get(start..start + entry.len as usize).unwrap_or_default()
    }
}

#[inline]
fn hash(epoch: SpaceEpoch, words: &[u64]) -> u64 {
    let mut hasher = FxHasher::default();
    let space = epoch.space.map_or(u32::MAX, |space| space.0);
    hasher.write_u64(u64::from(space) << 32 | u64::from(epoch.mapped));
    hasher.write_u64(u64::from(epoch.kernel) << 32 | words.len() as u64);
    words.iter().for_each(|word| hasher.write_u64(*word));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::SpaceId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_chains_of_one_epoch_have_one_number(
            chains in prop::collection::vec((0u32..2, 0u32..2, prop::collection::vec(0u64..3, 0..5)), 1..100),
        ) {
            let mut interner = Interner::default();
            let mut known = std::collections::HashMap::new();
            for (space, mapped, words) in &chains {
                let epoch = SpaceEpoch { space: Some(SpaceId(*space)), mapped: *mapped, kernel: 0 };
                let number = interner.intern(epoch, Moment::START, words);
                prop_assert_eq!(*known.entry((space, mapped, words)).or_insert(number), number);
                let entry = interner.entries()[number as usize - 1];
                prop_assert_eq!(interner.words(&entry), &words[..]);
            }
            prop_assert_eq!(interner.len(), known.len());
        }
    }

    #[test]
    fn a_chain_longer_than_a_chunk_is_not_split() {
        let mut interner = Interner::default();
        let epoch = SpaceEpoch { space: None, mapped: 0, kernel: 0 };
        let long: Vec<u64> = (0..CHUNK as u64 + 9).collect();
        for words in [&long[..], &long[..3], &long[..]] {
            let number = interner.intern(epoch, Moment::START, words);
            assert_eq!(interner.words(&interner.entries()[number as usize - 1]), words);
        }
        assert_eq!(interner.len(), 2);
    }
}
