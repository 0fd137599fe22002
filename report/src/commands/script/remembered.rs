//! What was found for frames before, by address and context: a direct-mapped cache, in which each place holds what came
//! last.

use crate::timeline::cache_place;

/// Log2 of the number of frames that a worker remembers.
const FRAMES: u32 = 16;

#[derive(Default)]
pub(super) struct Remembered<T>(Vec<Slot<T>>);

/// A remembered frame. Many are read for each sample, most of them from slow memory, so none may lie in two cache lines.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct Slot<T> {
    ip: u64,
    /// The number of its context plus one; 0 is no frame.
    context: u32,
    found: T,
}

impl<T: Copy + Default> Remembered<T> {
    /// Returns what was found for a frame, if it is remembered.
    #[inline]
    pub(super) fn get(&self, ip: u64, context: u32) -> Option<T> {
        let slot = self.0.get(cache_place(ip, context, FRAMES))?;
        (slot.ip == ip && slot.context == context).then_some(slot.found)
    }

    pub(super) fn put(&mut self, ip: u64, context: u32, found: T) {
        if self.0.is_empty() {
            self.clear();
        }
        if let Some(place) = self.0.get_mut(cache_place(ip, context, FRAMES)) {
            *place = Slot { ip, context, found };
        }
    }

    pub(super) fn clear(&mut self) {
        self.0 = vec![Slot::default(); 1 << FRAMES];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_remembered_by_address_and_context() {
        let mut frames = Remembered::default();
        assert_eq!(frames.get(7, 1), None);
        frames.put(7, 1, 'a');
        frames.put(7, 2, 'b');
        assert_eq!((frames.get(7, 1), frames.get(7, 2)), (Some('a'), Some('b')));
        assert_eq!((frames.get(8, 1), frames.get(7, 3)), (None, None));
        frames.clear();
        assert_eq!(frames.get(7, 1), None);
    }
}
