//! Numbers that users of symbols keep with them, since several files show the same symbols. What they
//! mean is the users' business.

use std::sync::atomic::{AtomicU32, Ordering};

use zerocopy::FromZeros;

/// What is kept with a symbol.
#[derive(Debug, Default, FromZeros)]
pub struct SymbolCache([CacheSlot; 2]);

impl SymbolCache {
    /// Returns one of the slots, by its place.
    pub(crate) fn slot(&self, place: usize) -> Option<&CacheSlot> {
        self.0.get(place)
    }
}

/// Slot for a number: the number plus one in the lower 29 bits, its kind in the others.
#[derive(Debug, Default, FromZeros)]
pub struct CacheSlot(AtomicU32);

impl CacheSlot {
    const BITS: u32 = 29;

    /// Returns the number if the one that was set last is of this kind.
    pub(crate) fn get(&self, kind: u8) -> Option<u32> {
        let word = self.0.load(Ordering::Relaxed);
        let number = (word & ((1 << Self::BITS) - 1)).checked_sub(1);
        number.filter(|_| word >> Self::BITS == u32::from(kind))
    }

    /// Sets the number of a kind, unless it is too large. A symbol has one number of each kind.
    pub(crate) fn set(&self, kind: u8, number: u32) {
        if number.saturating_add(1) < 1 << Self::BITS && kind < 1 << (u32::BITS - Self::BITS) {
            self.0.store(u32::from(kind) << Self::BITS | (number + 1), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_the_number_of_one_kind() {
        let slot = CacheSlot::default();
        assert_eq!([0, 1, 7].map(|kind| slot.get(kind)), [None; 3]);
        let largest = (1 << CacheSlot::BITS) - 2;
        for (kind, number) in [(0, 0), (7, largest), (1, 5)] {
            slot.set(kind, number);
            assert_eq!((slot.get(kind), slot.get(kind ^ 1)), (Some(number), None));
        }
        slot.set(2, largest + 1);
        slot.set(2, u32::MAX);
        slot.set(8, 3);
        assert_eq!((slot.get(1), slot.get(2)), (Some(5), None));
    }
}
