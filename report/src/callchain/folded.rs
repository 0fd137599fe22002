//! Folded stacks: distinct callchains as lines of labels, `comm;outermost;…;innermost count`.
//!
//! ```text
//!   labels [ "main", "sort;by_key_[i]", … ]     each text once
//!   words  [ 0 4 7 9 | 0 4 8 | … ]              the labels of a line, outermost first
//!   lines  [ end, event, count ]
//! ```
//!
//! Lines come in any order and a line may come several times; [`Folded::settle`] puts those of each event in the order of their
//! bytes and joins the equal ones, whatever threads and files they came from.

use std::cmp::Ordering;

use indexmap::IndexSet;
use rayon::prelude::*;

/// Lines of labels.
#[derive(Debug, Default)]
pub struct Folded {
    labels: IndexSet<String>,
    words: Vec<u32>,
    lines: Vec<Line>,
    /// The forms of labels by their ranks, once words are ranks: twice the label's number, plus one within a line.
    order: Vec<u32>,
}

/// A line: its event's place in the profile, where its labels are, and what it has metrics.
#[derive(Clone, Copy, Debug)]
struct Line {
    event: usize,
    start: usize,
    end: usize,
    count: u64,
}

impl Folded {
    /// The number of a label.
    pub fn label(&mut self, text: String) -> u32 {
        u32::try_from(self.labels.insert_full(text).0).unwrap_or(u32::MAX)
    }

    /// Adds a line of an event; one without labels is none.
    pub fn add(&mut self, event: usize, labels: impl IntoIterator<Item = u32>, count: u64) {
        let start = self.words.len();
        self.words.extend(labels);
        let end = self.words.len();
        if start < end {
            self.lines.push(Line { event, start, end, count });
        }
    }

    /// Puts the lines in order: by event, then as their texts are. Equal ones become one.
    pub fn settle(&mut self) {
        // Each label twice: as it reads within a line, with a separator behind it, and as it reads at the end. Then
        // their ranks compare as the texts of lines do.
        let mut order: Vec<u32> = (0..u32::try_from(self.labels.len() * 2).unwrap_or(u32::MAX)).collect();
        order.par_sort_unstable_by(|a, b| self.read(*a).cmp(self.read(*b)));
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

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn text(&self, label: u32) -> &str {
        self.labels.get_index(label as usize).map_or("", String::as_str)
    }

    /// The bytes of a form of a label.
    fn read(&self, form: u32) -> impl Iterator<Item = u8> {
        self.text(form / 2).bytes().chain((form % 2 == 1).then_some(b';'))
    }

    /// The event of the settled line at `index`, its labels and its count.
    #[must_use]
    pub fn line(&self, index: usize) -> Option<(usize, impl Iterator<Item = &str>, u64)> {
        let line = self.lines.get(index)?;
        let words = self.words.get(line.start..line.end).unwrap_or_default();
        let text = |word: &u32| self.order.get(*word as usize).map_or("", |form| self.text(form / 2));
        Some((line.event, words.iter().map(text), line.count))
    }
}

/// A name before the frames.
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
        fn lines_are_in_the_order_of_their_bytes(
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
