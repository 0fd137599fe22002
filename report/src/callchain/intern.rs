//! Distinct chains, each once: the words of all lie one after the other.
//!
//! ```text
//!   hash ─► last entry of that hash ─► next ─► …     entry: epoch, first moment, where its words are
//!   chunks: [ words words words … | words … ]        a chain is in one chunk, so that nothing is ever copied again
//! ```

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use crate::timeline::{Moment, SpaceId};

/// What decides the meaning of addresses: the space, and how many changes to it and to the kernel's mappings came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpaceEpoch {
    /// The address space; `None` where nothing is known of it.
    pub space: Option<SpaceId>,
    /// How many mappings it had seen.
    pub mapped: u32,
    /// How many mappings the kernel had seen.
    pub kernel: u32,
}

/// A distinct chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// A moment at which it was sampled.
    pub(super) at: Moment,
    pub(super) epoch: SpaceEpoch,
    chunk: u32,
    start: u32,
    len: u32,
    /// The entry before it that has the same hash.
    next: Option<std::num::NonZeroU32>,
}

/// Distinct chains.
#[derive(Debug, Default)]
pub struct Interner {
    last: FxHashMap<u64, std::num::NonZeroU32>,
    entries: Vec<Entry>,
    chunks: Vec<Vec<u64>>,
}

/// How many words a chunk has room for.
const CHUNK: usize = 1 << 16;

impl Interner {
    /// How many distinct chains there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of a chain, from 1 on.
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

    /// The chains in the order of their numbers.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The words of a chain.
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_chains_of_one_place_have_one_number(
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
    fn a_chain_longer_than_a_chunk_is_kept_whole() {
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
