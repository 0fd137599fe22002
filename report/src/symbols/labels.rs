//! Texts of tables, call trees and folded stacks, each with a number.
//!
//! The files of an answer share them, so that equal texts have equal numbers, and a symbol keeps the number of the text
//! that was made of its name: of a thousand files, nearly all show the same functions.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use indexmap::IndexSet;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use zerocopy::FromZeros;

use super::table::SymbolId;

#[derive(Debug, Default)]
pub struct Labels {
    texts: IndexSet<String, FxBuildHasher>,
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
    /// A text, and a slot that keeps its number for this kind of text.
    New(String, Option<(&'s LabelSlot, u8)>),
}

impl<'s> Text<'s> {
    /// Returns the text of a kind whose number a slot keeps, if it does.
    pub fn known(slot: Option<(&'s LabelSlot, u8)>) -> Option<Self> {
        slot.and_then(|(slot, kind)| slot.get(kind)).map(Self::Known)
    }
}

impl Labels {
    /// Greatest number of texts that a core makes at a time. Names of C++ take long, and many may be in a row.
    pub const BATCH: usize = 256;

    /// Returns the number of a text, adding the text if it is new.
    pub fn intern(&mut self, text: String) -> u32 {
        u32::try_from(self.texts.insert_full(text).0).unwrap_or(u32::MAX)
    }

    /// Returns the number of a text, and keeps it in the text's slot.
    pub fn number(&mut self, text: Text<'_>) -> u32 {
        match text {
            Text::Known(label) => label,
            Text::New(text, slot) => {
                let label = self.intern(text);
                slot.into_iter().for_each(|(slot, kind)| slot.set(kind, label));
                label
            }
        }
    }

    /// Makes room for this many new texts.
    pub fn reserve(&mut self, texts: usize) {
        self.texts.reserve(texts);
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Iterates over all texts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// Returns the place of each text in sorted order, among all texts or only those that are `used`, by number; 0 for
    /// the others.
    pub fn ranks(&self, used: Option<&[bool]>) -> Vec<u32> {
        let is_used = |(_, number): &(&String, u32)| used.is_none_or(|used| used.get(*number as usize) == Some(&true));
        let numbered = self.texts.iter().zip(0..).filter(is_used);
        let mut order: Vec<(u128, u32)> = numbered.map(|(text, number)| (first_bytes(text), number)).collect();
        order.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.text(a.1.into()).cmp(self.text(b.1.into()))));
        let mut ranks = vec![0; self.texts.len()];
        for (rank, (_, number)) in (0..).zip(order) {
            ranks.get_mut(number as usize).into_iter().for_each(|slot| *slot = rank);
        }
        ranks
    }

    /// Returns the text with this number.
    pub fn text(&self, number: u64) -> &str {
        usize::try_from(number).ok().and_then(|number| self.texts.get_index(number)).map_or("", String::as_str)
    }
}

/// Numbers of what is made of a symbol's name, kept since several files show the same.
#[derive(Debug, Default, FromZeros)]
pub struct LabelSlots {
    /// For the number of the text of a cell; its kind is the CPU mode.
    pub cell: LabelSlot,
    /// For the number of the text of a frame, in call trees or folded stacks, all of one kind.
    pub frame: LabelSlot,
}

/// Demangled names of a table's symbols. Most symbols are never shown, so there is only memory for those that are, and
/// those next to them.
#[derive(Debug)]
pub(super) struct ShownNames(Vec<OnceLock<Box<NearNames>>>);

/// Names of symbols with adjacent numbers.
type NearNames = [OnceLock<Box<str>>; ShownNames::NEAR];

impl ShownNames {
    const NEAR: usize = 8;

    /// Creates the names of `symbols` symbols; none is known yet.
    pub(super) fn new(symbols: usize) -> Self {
        Self((0..symbols.div_ceil(Self::NEAR)).map(|_| OnceLock::new()).collect())
    }

    /// Returns the place for the name of a symbol.
    pub(super) fn of(&self, id: SymbolId) -> Option<&OnceLock<Box<str>>> {
        let id = id.0 as usize;
        self.0.get(id / Self::NEAR)?.get_or_init(Box::default).get(id % Self::NEAR)
    }
}

/// Slot for the number of a text: the number plus one in the lower 29 bits, the kind of the text in the others.
#[derive(Debug, Default, FromZeros)]
pub struct LabelSlot(AtomicU32);

impl LabelSlot {
    const BITS: u32 = 29;

    /// Returns the number of the text if the one that was set last is of this kind.
    fn get(&self, kind: u8) -> Option<u32> {
        let word = self.0.load(Ordering::Relaxed);
        let label = (word & ((1 << Self::BITS) - 1)).checked_sub(1);
        label.filter(|_| word >> Self::BITS == u32::from(kind))
    }

    /// Sets the number of the text of a kind, unless it is too large. Texts of one kind and symbol are equal.
    fn set(&self, kind: u8, label: u32) {
        if label.saturating_add(1) < 1 << Self::BITS && kind < 1 << (u32::BITS - Self::BITS) {
            self.0.store(u32::from(kind) << Self::BITS | (label + 1), Ordering::Relaxed);
        }
    }
}

/// Returns the first 16 bytes of a text, and zeros after its end, as a number by which texts are sorted.
pub(crate) fn first_bytes(text: &str) -> u128 {
    let mut first = [0; 16];
    first.iter_mut().zip(text.bytes()).for_each(|(into, byte)| *into = byte);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_the_number_of_one_kind() {
        let slot = LabelSlot::default();
        assert_eq!([0, 1, 7].map(|kind| slot.get(kind)), [None; 3]);
        let largest = (1 << LabelSlot::BITS) - 2;
        for (kind, label) in [(0, 0), (7, largest), (1, 5)] {
            slot.set(kind, label);
            assert_eq!((slot.get(kind), slot.get(kind ^ 1)), (Some(label), None));
        }
        slot.set(2, largest + 1);
        slot.set(2, u32::MAX);
        slot.set(8, 3);
        assert_eq!((slot.get(1), slot.get(2)), (Some(5), None));
    }

    #[test]
    fn a_known_text_is_not_made_again() {
        let (slots, mut labels) = (LabelSlots::default(), Labels::default());
        let place = Some((&slots.cell, 1));
        assert!(Text::known(place).is_none());
        let label = labels.number(Text::New("f".into(), place));
        assert_eq!(Text::known(place).map(|text| labels.number(text)), Some(label));
        assert!(Text::known(Some((&slots.frame, 1))).is_none() && Text::known(None).is_none());
    }
}
