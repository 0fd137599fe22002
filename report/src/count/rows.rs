//! Counted keys of a whole file.

use rayon::prelude::*;

use super::histogram::Count;
use super::layout::Layout;
use super::partition::Partition;
use crate::query::{Key, NO_KEY};

/// Keys and their counts, unordered. Only the words in use are stored, as they were in the
/// partitions of the table: to copy them together takes a tenth of the time of a histogram with a
/// million rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    layout: Layout,
    parts: Vec<RowPart>,
    len: usize,
}

/// Rows of a partition.
#[derive(Clone, Debug)]
struct RowPart {
    /// Number of rows before them.
    start: usize,
    words: Vec<u64>,
    counts: Vec<Count>,
}

impl Rows {
    /// Creates rows from a settled table.
    pub(crate) fn new(layout: &Layout, table: Vec<Partition<Count>>) -> Self {
        let parts = table.into_iter().map(|partition| {
            let (words, counts) = partition.into_parts();
            RowPart { start: 0, words, counts }
        });
        Self { layout: layout.clone(), ..Self::default() }.with(parts.collect())
    }

    /// Returns rows of these parts, which get their starts.
    fn with(self, mut parts: Vec<RowPart>) -> Self {
        parts.retain(|part| !part.counts.is_empty());
        let mut len = 0;
        for part in &mut parts {
            part.start = len;
            len += part.counts.len();
        }
        Self { parts, len, ..self }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the part of a row, and the row's index in it.
    #[inline]
    fn find(&self, row: usize) -> Option<(&RowPart, usize)> {
        let after = self.parts.partition_point(|part| part.start <= row);
        let part = self.parts.get(after.checked_sub(1)?)?;
        Some((part, row - part.start))
    }

    #[inline]
    pub(crate) fn key(&self, row: usize) -> Key {
        let mut key = NO_KEY;
        self.read_key(row, &mut key);
        key
    }

    /// Reads the key of a row into `key`: the words in use.
    #[inline]
    pub(crate) fn read_key(&self, row: usize, key: &mut Key) {
        let width = self.layout.len();
        let words =
            self.find(row).and_then(|(part, at)| part.words.get(at * width..(at + 1) * width));
        self.layout.unpack_into(words.unwrap_or_default(), key);
    }

    #[inline]
    pub(crate) fn count(&self, row: usize) -> Count {
        self.find(row).and_then(|(part, at)| part.counts.get(at)).copied().unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, Count)> {
        let width = self.layout.len().max(1);
        let rows = self
            .parts
            .iter()
            .flat_map(move |part| part.words.chunks_exact(width).zip(&part.counts));
        rows.map(|(words, count)| (self.layout.unpack(words), *count))
    }

    /// Changes all keys; drops the rows for which `change` returns `false`.
    #[must_use]
    pub(crate) fn changed(mut self, change: impl Fn(&mut Key) -> bool + Sync) -> Self {
        let (layout, width) = (&self.layout, self.layout.len().max(1));
        let parts = std::mem::take(&mut self.parts).into_par_iter().map(|mut part| {
            let mut kept = 0;
            for row in 0..part.counts.len() {
                let from = row * width..(row + 1) * width;
                let Some(words) = part.words.get_mut(from.clone()) else { break };
                let mut key = layout.unpack(words);
                if change(&mut key) {
                    layout.pack(&key, words);
                    part.words.copy_within(from, kept * width);
                    part.counts.swap(kept, row);
                    kept += 1;
                }
            }
            part.words.truncate(kept * width);
            part.counts.truncate(kept);
            part
        });
        let parts = parts.collect();
        self.with(parts)
    }
}
