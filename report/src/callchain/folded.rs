//! Folded stacks: distinct callchains as lines of labels, `comm;outermost;…;innermost count`.
//!
//! ```text
//!   labels [ "main", "sort;by_key_[i]", … ]     each text once
//!   words  [ 0 4 7 9 | 0 4 8 | … ]              the labels of a line, outermost first
//!   lines  [ event, start, end, count ]
//! ```
//!
//! Lines can be added in any order and repeatedly. [`Folded::settle`] sorts the lines of each event by their bytes and
//! merges equal ones, so that the result does not depend on the order of threads and files.

use std::cmp::Ordering;

use indexmap::IndexSet;
use rayon::prelude::*;

/// Lines of labels.
#[derive(Debug, Default)]
pub struct Folded {
    labels: IndexSet<String>,
    words: Vec<u32>,
    lines: Vec<Line>,
    /// Forms of labels by rank, once words are ranks: twice the label's number, plus one for the form within a line.
    order: Vec<u32>,
}

/// A line: index of its event in the profile, range of its labels in `words`, and count.
#[derive(Clone, Copy, Debug)]
struct Line {
    event: usize,
    start: usize,
    end: usize,
    count: u64,
}

impl Folded {
    /// Returns the number of a label, adding the label if it is new.
    pub fn label(&mut self, text: String) -> u32 {
        u32::try_from(self.labels.insert_full(text).0).unwrap_or(u32::MAX)
    }

    /// Adds a line of an event; a line without labels is ignored.
    pub fn add(&mut self, event: usize, labels: impl IntoIterator<Item = u32>, count: u64) {
        let start = self.words.len();
        self.words.extend(labels);
        let end = self.words.len();
        if start < end {
            self.lines.push(Line { event, start, end, count });
        }
    }

    /// Sorts the lines by event, then by text, and merges equal ones.
    pub fn settle(&mut self) {
        // Each label has two forms: within a line, followed by a separator, and at the end of a line. With ranks of
        // forms as words, lines compare like their texts.
        let mut order: Vec<u32> = (0..u32::try_from(self.labels.len() * 2).unwrap_or(u32::MAX)).collect();
        order.par_sort_unstable_by(|a, b| self.form_bytes(*a).cmp(self.form_bytes(*b)));
        let mut ranks = vec![0; order.len()];
        for (rank, form) in (0u32..).zip(&order) {
            if let Some(slot) = ranks.get_mut(*form as usize) {
                *slot = rank;
            }
        }
        let rank = |form: u32| ranks.get(form as usize).copied().unwrap_or(0);
        for line in &self.lines {
            let Some((last, inner)) = self.words.get_mut(line.start..line.end).and_then(<[u32]>::split_last_mut) else {
                continue;
            };
            inner.iter_mut().for_each(|word| *word = rank(*word * 2 + 1));
            *last = rank(*last * 2);
        }
        self.order = order;
        let words = &self.words;
        let labels_of = |line: &Line| words.get(line.start..line.end).unwrap_or_default();
        let compare =
            |a: &Line, b: &Line| -> Ordering { a.event.cmp(&b.event).then_with(|| labels_of(a).cmp(labels_of(b))) };
        self.lines.par_sort_unstable_by(compare);
        self.lines.dedup_by(|next, line| {
            let same = compare(next, line) == Ordering::Equal;
            if same {
                line.count = line.count.wrapping_add(next.count);
            }
            same
        });
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn text(&self, label: u32) -> &str {
        self.labels.get_index(label as usize).map_or("", String::as_str)
    }

    /// Returns the bytes of a form of a label.
    fn form_bytes(&self, form: u32) -> impl Iterator<Item = u8> {
        self.text(form / 2).bytes().chain((form % 2 == 1).then_some(b';'))
    }

    /// Returns the event, the labels and the count of the line at `index`, after [`Folded::settle`].
    #[must_use]
    pub fn line(&self, index: usize) -> Option<(usize, impl Iterator<Item = &str>, u64)> {
        let line = self.lines.get(index)?;
        let words = self.words.get(line.start..line.end).unwrap_or_default();
        let text = |word: &u32| self.order.get(*word as usize).map_or("", |form| self.text(form / 2));
        Some((line.event, words.iter().map(text), line.count))
    }
}

/// Returns a name as a label before the frames: spaces become `_`, semicolons `:`.
#[must_use]
pub fn folded_root(text: &str) -> String {
    text.trim().replace(' ', "_").replace(';', ":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(folded: &Folded) -> Vec<(usize, String, u64)> {
        let text = |(event, labels, count): (usize, Vec<&str>, u64)| (event, labels.join(";"), count);
        let line = |index| folded.line(index).map(|(event, labels, count)| (event, labels.collect(), count));
        (0..folded.len()).filter_map(line).map(text).collect()
    }

    proptest! {
        #[test]
        fn lines_are_sorted_by_their_bytes(
            lines in prop::collection::vec((0usize..2, prop::collection::vec("[a: <b]{1,2}", 1..4), 1u64..9), 0..40),
        ) {
            let mut folded = Folded::default();
            let mut want = std::collections::BTreeMap::<(usize, String), u64>::new();
            for (event, labels, count) in &lines {
                let numbers: Vec<u32> = labels.iter().map(|label| folded.label(label.clone())).collect();
                folded.add(*event, numbers, *count);
            }
            folded.settle();
            for (event, labels, count) in &lines {
                *want.entry((*event, labels.join(";"))).or_default() += count;
            }
            let mut got = std::collections::BTreeMap::new();
            let texts = texts(&folded);
            for (event, text, count) in &texts {
                *got.entry((*event, text.clone())).or_default() += count;
            }
            prop_assert_eq!(got, want);
            prop_assert!(texts.iter().map(|(e, t, _)| (e, t)).is_sorted());
        }
    }
}
