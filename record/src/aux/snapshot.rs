//! Detection of the bytes of an overwritten area that are new since the last snapshot.
//!
//! With some PMUs `aux_head` only grows, so the distance from the last head is the number of new
//! bytes. With others it is an offset in the area, which does not show whether the trace has
//! wrapped. So the bytes before the last head are kept: they are the last to be overwritten, and if
//! they have changed, the trace has wrapped. A newly mapped area is zeroed, and the bytes before
//! its first byte are those at its end.

use crate::kernel::ring::AuxRing;

/// Maximum number of kept bytes.
const KEPT: usize = 64 << 10;

/// State at the last snapshot.
#[derive(Debug)]
pub(super) struct LastSnapshot {
    head: u64,
    /// Bytes before the head.
    kept: Vec<u8>,
}

impl LastSnapshot {
    /// Returns the state of a newly mapped area.
    pub(super) fn nothing(ring: &AuxRing) -> Self {
        Self { head: 0, kept: vec![0; KEPT.min(ring.size() / 4)] }
    }

    /// Returns the number of new bytes before `head`. All counters of the area must be stopped.
    pub(super) fn new_bytes(&mut self, ring: &AuxRing, head: u64) -> usize {
        let size = ring.size() as u64;
        let new = if head >= size || self.head >= size {
            head.saturating_sub(self.head).min(size)
        } else {
            self.new_by_place(ring, head)
        };
        self.head = head;
        self.kept = bytes(ring, head, self.kept.len());
        usize::try_from(new).unwrap_or(ring.size())
    }

    fn new_by_place(&self, ring: &AuxRing, head: u64) -> u64 {
        let size = ring.size() as u64;
        let distance = if head >= self.head { head - self.head } else { head + size - self.head };
        let now = bytes(ring, self.head, self.kept.len());
        // The kept bytes at or after the head are overwritten only if the trace has wrapped.
        let ahead = usize::try_from(size - distance).unwrap_or(usize::MAX).min(now.len());
        let went_around =
            now.iter().rev().zip(self.kept.iter().rev()).take(ahead).any(|(now, kept)| now != kept);
        if went_around { size } else { distance }
    }
}

fn bytes(ring: &AuxRing, head: u64, length: usize) -> Vec<u8> {
    let (first, second) = ring.last(head, length);
    [first, second].concat()
}
