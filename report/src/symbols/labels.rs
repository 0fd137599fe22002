//! Texts of tables, call trees and folded stacks, each with a number.
//!
//! The files of an answer share them, so that equal texts have equal numbers, and a symbol keeps
//! the number of the text that was made of its name: of a thousand files, nearly all show the same
//! functions. Texts of different functions have different numbers, even if they are equal
//! ([`Function`]).

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexSet;
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::function::Function;
use super::label_slots::LabelSlot;

#[derive(Debug, Default)]
pub struct Labels {
    all: IndexSet<Label, FxBuildHasher>,
}

/// A text, and the function that it names.
#[derive(Debug)]
struct Label {
    text: String,
    named: Option<Named>,
}

/// A function, and where its name is in a text.
#[derive(Debug)]
pub struct Named {
    pub function: Function,
    pub at: Range<usize>,
}

/// Texts of all files of an answer.
#[derive(Debug, Default)]
pub struct AnswerLabels {
    pub cells: SharedLabels,
    /// Texts of frames, in call trees or folded stacks.
    pub frames: SharedLabels,
}

/// Texts to which several cores add.
#[derive(Debug, Default)]
pub struct SharedLabels(Mutex<Labels>);

impl SharedLabels {
    /// Waits until no other core adds texts.
    pub fn lock(&self) -> MutexGuard<'_, Labels> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn into_inner(self) -> Labels {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text, or its number if that is known.
#[derive(Debug)]
pub enum Text<'s> {
    Known(u32),
    /// A text, the function that it names, and a slot that keeps its number for this kind of text.
    New(String, Option<Named>, Option<(&'s LabelSlot, u8)>),
}

impl<'s> Text<'s> {
    /// Returns the text of a kind whose number a slot keeps, if it does.
    pub fn known(slot: Option<(&'s LabelSlot, u8)>) -> Option<Self> {
        slot.and_then(|(slot, kind)| slot.get(kind)).map(Self::Known)
    }
}

impl Hash for Label {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        let are_same = || match (&self.named, &other.named) {
            (Some(a), Some(b)) => a.function == b.function,
            (a, b) => a.is_none() && b.is_none(),
        };
        self.text == other.text && are_same()
    }
}

impl Eq for Label {}

impl Named {
    /// Creates a function whose name is `length` bytes of a text, from `start` on.
    pub fn new(function: Function, start: usize, length: usize) -> Self {
        Self { function, at: start..start + length }
    }

    /// Returns the function's name, given the text.
    pub(super) fn in_text<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.at.clone()).unwrap_or_default()
    }
}

impl Labels {
    /// Greatest number of texts that a core makes at a time. Names of C++ take long, and many may
    /// be in a row.
    pub const BATCH: usize = 256;

    /// Returns the number of a text that names no function, adding the text if it is new.
    pub fn intern(&mut self, text: String) -> u32 {
        self.add(text, None)
    }

    fn add(&mut self, text: String, named: Option<Named>) -> u32 {
        u32::try_from(self.all.insert_full(Label { text, named }).0).unwrap_or(u32::MAX)
    }

    /// Returns the number of a text, and keeps it in the text's slot.
    pub fn number(&mut self, text: Text<'_>) -> u32 {
        match text {
            Text::Known(label) => label,
            Text::New(text, named, slot) => {
                let label = self.add(text, named);
                if let Some((slot, kind)) = slot {
                    slot.set(kind, label);
                }
                label
            }
        }
    }

    /// Makes room for this many new texts.
    pub fn reserve(&mut self, texts: usize) {
        self.all.reserve(texts);
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Iterates over all texts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|label| label.text.as_str())
    }

    /// Iterates over the texts that name functions, with their numbers.
    pub(super) fn functions(&self) -> impl Iterator<Item = (usize, &str, &Named)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(number, label)| Some((number, label.text.as_str(), label.named.as_ref()?)))
    }

    /// Replaces the names of functions in some texts.
    pub(super) fn rename(&mut self, names: Vec<(usize, String)>) {
        if names.is_empty() {
            return;
        }
        let mut all: Vec<Label> = std::mem::take(&mut self.all).into_iter().collect();
        for (number, name) in names {
            if let Some(Label { text, named: Some(named) }) = all.get_mut(number) {
                text.replace_range(named.at.clone(), &name);
                named.at.end = named.at.start + name.len();
            }
        }
        self.all = all.into_iter().collect();
    }

    /// Returns, for each text, the number of the first that is equal; `None` if all are different.
    pub fn first_equal(&self) -> Option<Vec<u32>> {
        let mut first =
            FxHashMap::<&str, u32>::with_capacity_and_hasher(self.all.len(), FxBuildHasher);
        let numbers = self
            .iter()
            .zip(0..)
            .map(|(text, number)| *first.entry(text).or_insert(number))
            .collect();
        (first.len() < self.all.len()).then_some(numbers)
    }

    /// Returns the place of each text in sorted order, among all texts or only those that are
    /// `used`, by number; 0 for the others. Equal texts have the same place.
    pub fn ranks(&self, used: Option<&[bool]>) -> Vec<u32> {
        let is_used = |(_, number): &(&str, u32)| {
            used.is_none_or(|used| used.get(*number as usize) == Some(&true))
        };
        let numbered = self.iter().zip(0..).filter(is_used);
        let mut order: Vec<(u128, u32)> =
            numbered.map(|(text, number)| (first_bytes(text), number)).collect();
        let text = |number: u32| self.text(number.into());
        order.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| text(a.1).cmp(text(b.1))));
        let mut ranks = vec![0; self.all.len()];
        let (mut rank, mut before) = (0, None);
        for (first, number) in order {
            let is_equal =
                before.is_some_and(|(other, of)| other == first && text(of) == text(number));
            rank += u32::from(before.is_some() && !is_equal);
            before = Some((first, number));
            if let Some(slot) = ranks.get_mut(number as usize) {
                *slot = rank;
            }
        }
        ranks
    }

    /// Compares two texts, equal ones by the functions that they name: their numbers depend on the
    /// order in which they were found.
    pub fn compare(&self, a: u64, b: u64) -> Ordering {
        let function = |number: u64| Some(&self.label(number)?.named.as_ref()?.function);
        self.text(a).cmp(self.text(b)).then_with(|| function(a).cmp(&function(b)))
    }

    /// Returns the text with this number.
    pub fn text(&self, number: u64) -> &str {
        self.label(number).map_or("", |label| label.text.as_str())
    }

    /// Returns the name of the function in a text as its file spells it, if it is shown otherwise.
    pub fn mangled(&self, number: u64) -> Option<String> {
        let Label { text, named } = self.label(number)?;
        let named = named.as_ref()?;
        let name = String::from_utf8_lossy(named.function.name());
        (name != named.in_text(text)).then(|| name.into_owned())
    }

    fn label(&self, number: u64) -> Option<&Label> {
        usize::try_from(number).ok().and_then(|number| self.all.get_index(number))
    }
}

/// Returns the first 16 bytes of a text, and zeros after its end, as a number by which texts are
/// sorted.
pub(crate) fn first_bytes(text: &str) -> u128 {
    let mut first = [0; 16];
    first.iter_mut().zip(text.bytes()).for_each(|(into, byte)| *into = byte);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::label_slots::LabelSlots;

    #[test]
    fn a_known_text_is_not_made_again() {
        let (slots, mut labels) = (LabelSlots::default(), Labels::default());
        let place = Some((&slots.cell, 1));
        assert!(Text::known(place).is_none());
        let label = labels.number(Text::New("f".into(), None, place));
        assert_eq!(Text::known(place).map(|text| labels.number(text)), Some(label));
        assert!(Text::known(Some((&slots.frame, 1))).is_none() && Text::known(None).is_none());
    }
}
