//! Counted keys of a whole file.

use rayon::prelude::*;

use super::histogram::Count;
use super::key::Key;
use super::layout::Layout;
use super::partition::Partition;

/// Keys and what they metrics, in no order. Only the words in use are kept.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    layout: Layout,
    words: Vec<u64>,
    counts: Vec<Count>,
}

impl Rows {
    /// The rows of a table that is settled.
    #[must_use]
    pub fn new(layout: &Layout, table: Vec<Partition<Count>>) -> Self {
        let len: usize = table.iter().map(Partition::len).sum();
        let mut rows = Self {
            layout: layout.clone(),
            words: Vec::with_capacity(len * layout.len()),
            counts: Vec::with_capacity(len),
        };
        for partition in table {
            let (words, counts) = partition.into_parts();
            rows.words.extend(words);
            rows.counts.extend(counts);
        }
        rows
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The key of a row.
    #[must_use]
    #[inline]
    pub fn key(&self, row: usize) -> Key {
        let width = self.layout.len();
        self.layout.unpack(self.words.get(row * width..(row + 1) * width).unwrap_or_default())
    }

    /// What each has metrics.
    #[must_use]
    pub fn counts(&self) -> &[Count] {
        &self.counts
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Count)> {
        self.counts.iter().enumerate().map(|(row, count)| (self.key(row), *count))
    }

    /// Changes keys; leaves out those for which `change` says no.
    #[must_use]
    pub fn changed(mut self, change: impl Fn(&mut Key) -> bool + Sync) -> Self {
        let (layout, width) = (&self.layout, self.layout.len().max(1));
        let one = |words: &mut [u64]| {
            let mut key = layout.unpack(words);
            let stays = change(&mut key);
            layout.pack(&key, words);
            stays
        };
        let stays: Vec<bool> = self.words.par_chunks_mut(width).map(one).collect();
        let mut kept = stays.iter();
        self.counts.retain(|_| *kept.next().unwrap_or(&false));
        if self.counts.len() < stays.len() {
            let kept = self.words.chunks(width).zip(&stays).filter(|(_, stays)| **stays);
            self.words = kept.flat_map(|(words, _)| words).copied().collect();
        }
        self
    }
}
