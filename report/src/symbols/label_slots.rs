//! What is kept for each symbol that is shown: its name, and the numbers of the texts made of that.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use zerocopy::FromZeros;

use super::table::SymbolId;

/// Numbers of what is made of a symbol's name, kept since several files show the same.
#[derive(Debug, Default, FromZeros)]
pub struct LabelSlots {
    /// For the number of the text of a cell; its kind is the CPU mode.
    pub cell: LabelSlot,
    /// For the number of the text of a frame, in call trees or folded stacks, all of one kind.
    pub frame: LabelSlot,
}

/// Demangled names of a table's symbols. Most symbols are never shown, so there is only memory for
/// those that are, and those next to them.
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

/// Slot for the number of a text: the number plus one in the lower 29 bits, the kind of the text in
/// the others.
#[derive(Debug, Default, FromZeros)]
pub struct LabelSlot(AtomicU32);

impl LabelSlot {
    const BITS: u32 = 29;

    /// Returns the number of the text if the one that was set last is of this kind.
    pub(crate) fn get(&self, kind: u8) -> Option<u32> {
        let word = self.0.load(Ordering::Relaxed);
        let label = (word & ((1 << Self::BITS) - 1)).checked_sub(1);
        label.filter(|_| word >> Self::BITS == u32::from(kind))
    }

    /// Sets the number of the text of a kind, unless it is too large. Texts of one kind and symbol
    /// are equal.
    pub(crate) fn set(&self, kind: u8, label: u32) {
        if label.saturating_add(1) < 1 << Self::BITS && kind < 1 << (u32::BITS - Self::BITS) {
            self.0.store(u32::from(kind) << Self::BITS | (label + 1), Ordering::Relaxed);
        }
    }
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
}
