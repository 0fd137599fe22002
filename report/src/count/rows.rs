//! Counted keys of a whole file.

use rayon::prelude::*;

use super::histogram::Count;
use super::key::Key;
use super::layout::Layout;
use super::partition::Partition;

/// Keys and their counts, unordered. Only the words in use are stored.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    layout: Layout,
    words: Vec<u64>,
    counts: Vec<Count>,
}

impl Rows {
    /// Creates rows from a settled table.
    #[must_use]
    pub fn new(layout: &Layout, table: Vec<Partition<Count>>) -> Self {
        let (words, counts): (Vec<_>, Vec<_>) = table.into_iter().map(Partition::into_parts).unzip();
        let (words, counts) = rayon::join(|| words.concat(), || counts.concat());
        Self { layout: layout.clone(), words, counts }
    }

    /// Returns the layout of the keys.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the key of a row.
    #[must_use]
    #[inline]
    pub fn key(&self, row: usize) -> Key {
        let width = self.layout.len();
        self.layout.unpack(self.words.get(row * width..(row + 1) * width).unwrap_or_default())
    }

    /// Returns the counts of all rows.
    #[must_use]
    pub fn counts(&self) -> &[Count] {
        &self.counts
    }

    /// Iterates over the keys and counts.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Count)> {
        self.counts.iter().enumerate().map(|(row, count)| (self.key(row), *count))
    }

    /// Changes all keys; drops the rows for which `change` returns `false`.
    #[must_use]
    pub fn changed(mut self, change: impl Fn(&mut Key) -> bool + Sync) -> Self {
        let (layout, width) = (&self.layout, self.layout.len().max(1));
        let one = |words: &mut [u64]| {
            let mut key = layout.unpack(words);
            let keeps = change(&mut key);
            layout.pack(&key, words);
            keeps
        };
        let keep: Vec<bool> = self.words.par_chunks_mut(width).map(one).collect();
        let mut flags = keep.iter();
        self.counts.retain(|_| *flags.next().unwrap_or(&false));
        if self.counts.len() < keep.len() {
            let kept = self.words.chunks(width).zip(&keep).filter(|(_, keep)| **keep);
            self.words = kept.flat_map(|(words, _)| words).copied().collect();
        }
        self
    }
}
