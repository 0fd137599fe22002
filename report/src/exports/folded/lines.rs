//! Lines of texts, `comm;outermost;…;innermost count`.
//!
//! ```text
//!   texts   main · sort;by_key_[i] · …     distinct, by number
//!   chains  a tree of texts                of the columns before the frames, and of the frames
//!   lines   event, chain of the columns, chain of the frames, count
//! ```
//!
//! Lines can be added in any order and repeatedly. [`FoldedLines::settle`] sorts the lines of each
//! event by their bytes and merges equal ones, so that the result does not depend on the order of
//! threads and files. It sorts the tree: the lines then have the order of its nodes.

use indexmap::IndexSet;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;

use crate::callchain::Chains;
use crate::count::merge_equal;

/// Lines of texts.
#[derive(Debug, Default)]
pub(super) struct FoldedLines {
    pub(super) texts: FoldedTexts,
    chains: Chains,
    lines: Vec<FoldedLine>,
    /// Chains by rank, once lines have ranks.
    order: Vec<u32>,
}

/// Distinct texts, by number.
#[derive(Debug, Default)]
pub(super) struct FoldedTexts(IndexSet<String, FxBuildHasher>);

impl FoldedTexts {
    /// Returns the number of a text, adding the text if it is new.
    pub(super) fn number(&mut self, text: String) -> u32 {
        u32::try_from(self.0.insert_full(text).0).unwrap_or(u32::MAX)
    }

    pub(super) fn text(&self, number: u32) -> &str {
        self.0.get_index(number as usize).map_or("", String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// A line: index of its event in the profile, the chains of its columns and of its frames, and its
/// count.
#[derive(Clone, Copy, Debug)]
struct FoldedLine {
    event: usize,
    columns: u32,
    frames: u32,
    count: u64,
}

impl FoldedLines {
    /// Appends a label to a chain of labels, outermost first; 0 is the empty chain.
    #[inline]
    pub(super) fn chain(&mut self, before: u32, label: u32) -> u32 {
        self.chains.add(before, label)
    }

    /// Adds a line of an event: chains of the labels of its columns and of its frames, which may
    /// not be empty.
    #[inline]
    pub(super) fn add(&mut self, event: usize, columns: u32, frames: u32, count: u64) {
        self.lines.push(FoldedLine { event, columns, frames, count });
    }

    /// Sorts the lines by event, then by text, and merges equal ones.
    pub(super) fn settle(&mut self) {
        let (ends, inner) = self.ranks();
        for line in &mut self.lines {
            // The columns are followed by frames.
            for (chain, ranks) in [(&mut line.columns, &inner), (&mut line.frames, &ends)] {
                *chain = ranks.get(*chain as usize).copied().unwrap_or(0);
            }
        }
        self.merge_equal();
    }

    /// Sorts the lines and merges equal ones.
    fn merge_equal(&mut self) {
        merge_equal(
            &mut self.lines,
            |line| (line.event, line.columns, line.frames),
            |line, next| line.count = line.count.wrapping_add(next.count),
        );
    }

    /// Fills [`Self::order`]. Returns the ranks of all chains, first as whole lines, then as
    /// beginnings of longer ones; the empty chain has rank 0.
    fn ranks(&mut self) -> (Vec<u32>, Vec<u32>) {
        // A label has two forms: at the end of a line, and followed by a separator.
        let bytes =
            |form: u32| self.texts.text(form / 2).bytes().chain((form % 2 == 1).then_some(b';'));
        let mut forms: Vec<u32> =
            (0..u32::try_from(self.texts.0.len() * 2).unwrap_or(u32::MAX)).collect();
        forms.par_sort_unstable_by(|a, b| bytes(*a).cmp(bytes(*b)));
        let mut ranks = vec![0; forms.len()];
        for (rank, form) in (0u32..).zip(&forms) {
            if let Some(slot) = ranks.get_mut(*form as usize) {
                *slot = rank;
            }
        }
        // Both forms of all chains: those that extend the same chain follow each other, sorted.
        let longer = (1u32..).zip(self.chains.nodes()).flat_map(|(chain, node)| {
            [0, 1].map(|form| {
                let rank = ranks.get((node.frame * 2 + form) as usize).copied().unwrap_or(0);
                (u64::from(node.callers) << 32 | u64::from(rank), chain * 2 + form)
            })
        });
        let mut longer: Vec<(u64, u32)> = longer.collect();
        longer.par_sort_unstable();
        let starts = self.chains.starts();
        let range = |chain: u32| match starts.get(chain as usize..chain as usize + 2) {
            Some([start, end]) => 2 * *start as usize..2 * *end as usize,
            _ => 0..0,
        };
        let mut found = [vec![0; self.chains.len() + 1], vec![0; self.chains.len() + 1]];
        let mut order = vec![0];
        let mut open = vec![range(0)];
        while let Some(next) = open.last_mut().map(Iterator::next) {
            let Some((_, chain)) = next.and_then(|next| longer.get(next)) else {
                open.pop();
                continue;
            };
            let (chain, form) = (chain / 2, chain % 2);
            let slot = found.get_mut(form as usize).and_then(|ranks| ranks.get_mut(chain as usize));
            if let Some(slot) = slot {
                *slot = u32::try_from(order.len()).unwrap_or(u32::MAX);
            }
            order.push(chain);
            if form == 1 {
                open.push(range(chain));
            }
        }
        self.order = order;
        let [ends, inner] = found;
        (ends, inner)
    }

    /// Iterates over the event and the count of each line.
    pub(super) fn counts(&self) -> impl ExactSizeIterator<Item = (usize, u64)> {
        self.lines.iter().map(|line| (line.event, line.count))
    }

    /// Writes the labels of the line at `index` into the empty `labels`, after
    /// [`FoldedLines::settle`], and returns the line's event and count.
    pub(super) fn line(&self, index: usize, labels: &mut Vec<u32>) -> Option<(usize, u64)> {
        let line = self.lines.get(index)?;
        for rank in [line.frames, line.columns] {
            labels.extend(self.chains.frames(self.order.get(rank as usize).copied().unwrap_or(0)));
        }
        labels.reverse();
        Some((line.event, line.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(folded: &FoldedLines) -> Vec<(usize, String, u64)> {
        let line = |index| {
            let mut labels = Vec::new();
            let (event, count) = folded.line(index, &mut labels)?;
            Some((
                event,
                labels
                    .into_iter()
                    .map(|label| folded.texts.text(label))
                    .collect::<Vec<_>>()
                    .join(";"),
                count,
            ))
        };
        (0..folded.counts().len()).filter_map(line).collect()
    }

    proptest! {
        #[test]
        fn lines_are_sorted_by_their_bytes(
            lines in prop::collection::vec((0usize..2, prop::collection::vec("[a: <b]{1,2}", 2..5), 1u64..9), 0..40),
        ) {
            let mut folded = FoldedLines::default();
            let mut want = std::collections::BTreeMap::<(usize, String), u64>::new();
            for (event, labels, count) in &lines {
                let numbers: Vec<u32> = labels.iter().map(|label| folded.texts.number(label.clone())).collect();
                let chain = |folded: &mut FoldedLines, labels: &[u32]| {
                    labels.iter().fold(0, |before, label| folded.chain(before, *label))
                };
                let (columns, frames) = (chain(&mut folded, &numbers[..1]), chain(&mut folded, &numbers[1..]));
                folded.add(*event, columns, frames, *count);
            }
            folded.settle();
            for (event, labels, count) in &lines {
                *want.entry((*event, labels.join(";"))).or_default() += count;
            }
            let want: Vec<_> = want.into_iter().map(|((event, text), count)| (event, text, count)).collect();
            prop_assert_eq!(texts(&folded), want);
        }
    }
}
