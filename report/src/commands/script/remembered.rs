//! What was found before, by address and context: direct-mapped caches, in which each place holds what came last.

use std::ops::Range;

use crate::timeline::{ModuleId, Place, cache_place};

/// Log2 of the number of frames that a worker remembers.
const FRAMES: u32 = 16;

/// Log2 of the number of pieces of mappings that a worker remembers.
const PIECES: u32 = 12;

/// Log2 of the number of neighboring addresses that share a place in the cache of pieces.
const NEIGHBORS: u32 = 20;

/// What was found for frames.
#[derive(Default)]
pub(super) struct Remembered<T>(Vec<Slot<T>>);

/// A remembered frame. Many are read for each sample, most of them from slow memory, so none may lie in two cache lines.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct Slot<T> {
    pub(super) ip: u64,
    /// The number of its context plus one; 0 is no frame.
    pub(super) context: u32,
    pub(super) found: T,
}

impl<T: Copy + Default> Remembered<T> {
    /// Returns what is in the place of a frame, perhaps another frame.
    #[inline]
    pub(super) fn slot(&self, ip: u64, context: u32) -> Slot<T> {
        self.0.get(cache_place(ip, context, FRAMES)).copied().unwrap_or_default()
    }

    /// Remembers a frame.
    pub(super) fn put(&mut self, slot: Slot<T>) {
        if self.0.is_empty() {
            self.clear();
        }
        if let Some(place) = self.0.get_mut(cache_place(slot.ip, slot.context, FRAMES)) {
            *place = slot;
        }
    }

    /// Forgets all frames.
    pub(super) fn clear(&mut self) {
        self.0 = vec![Slot::default(); 1 << FRAMES];
    }
}

impl<T: Copy> Slot<T> {
    /// Returns what was found for a frame, if the slot is that frame's.
    #[inline]
    pub(super) fn of(&self, ip: u64, context: u32) -> Option<T> {
        (self.ip == ip && self.context == context).then_some(self.found)
    }
}

/// Pieces of address spaces in which the same is mapped.
#[derive(Default)]
pub(super) struct Pieces(Vec<Piece>);

#[derive(Clone, Default)]
struct Piece {
    /// 0 is no piece.
    context: u32,
    addresses: Range<u64>,
    module: Option<ModuleId>,
    /// Number to add to an address to get the address in the module.
    shift: u64,
}

impl Pieces {
    /// Returns the module at an address, and the address in it; `find` looks it up, with a range in which it is the same.
    #[inline]
    pub(super) fn place(
        &mut self,
        address: u64,
        context: u32,
        find: impl FnOnce() -> (Place, Range<u64>),
    ) -> (Option<ModuleId>, u64) {
        let slot = cache_place(address >> NEIGHBORS, context, PIECES);
        if let Some(Piece { module, shift, .. }) =
            self.0.get(slot).filter(|piece| piece.context == context && piece.addresses.contains(&address))
        {
            return (*module, address.wrapping_add(*shift));
        }
        let (place, addresses) = find();
        self.0.resize(1 << PIECES, Piece::default());
        if let Some(piece) = self.0.get_mut(slot) {
            let shift = place.address.wrapping_sub(address);
            *piece = Piece { context, addresses, module: place.module, shift };
        }
        (place.module, place.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_remembered_by_address_and_context() {
        let mut frames = Remembered::default();
        assert_eq!(frames.slot(7, 1).of(7, 1), None);
        frames.put(Slot { ip: 7, context: 1, found: 'a' });
        frames.put(Slot { ip: 7, context: 2, found: 'b' });
        assert_eq!((frames.slot(7, 1).of(7, 1), frames.slot(7, 2).of(7, 2)), (Some('a'), Some('b')));
        assert_eq!((frames.slot(7, 1).of(8, 1), frames.slot(7, 1).of(7, 2)), (None, None));
        frames.clear();
        assert_eq!(frames.slot(7, 1).of(7, 1), None);
    }

    #[test]
    fn a_piece_is_looked_up_once_in_each_context() {
        let mut pieces = Pieces::default();
        let mut place = |address: u64, context, module| {
            let mut is_found = false;
            let place = pieces.place(address, context, || {
                is_found = true;
                let module = Some(ModuleId(module));
                (Place { module, address: address - 0x1000, size: 0x2000, is_shared: false }, 0x2000..0x4000)
            });
            (place, is_found)
        };
        assert_eq!(place(0x2010, 1, 5), ((Some(ModuleId(5)), 0x1010), true));
        assert_eq!(place(0x3fff, 1, 6), ((Some(ModuleId(5)), 0x2fff), false));
        assert_eq!(place(0x4000, 1, 6), ((Some(ModuleId(6)), 0x3000), true));
        assert_eq!(place(0x2010, 2, 7), ((Some(ModuleId(7)), 0x1010), true));
    }
}
