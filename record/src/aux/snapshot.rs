//! Which bytes of an area that is overwritten are new since the last snapshot.
//!
//! With some PMUs `aux_head` only grows, and its distance from the last one tells. With others it is a place in the area, and
//! says nothing of how often the trace went around. So the bytes before the last head are kept: the trace comes there last, and
//! where they are others now, it went around. An area is zeroed when it is mapped, and what is before its first byte
//! is its end.

use crate::kernel::ring::AuxRing;

/// So many bytes are kept at most.
const KEPT: usize = 64 << 10;

/// What was seen at the last snapshot.
#[derive(Debug)]
pub(super) struct Seen {
    head: u64,
    /// The bytes before it.
    kept: Vec<u8>,
}

impl Seen {
    /// Of an area that was just mapped.
    pub(super) fn nothing(ring: &AuxRing) -> Self {
        Self { head: 0, kept: vec![0; KEPT.min(ring.size() / 4)] }
    }

    /// How many bytes before `head` are new. All counters of the area must be stopped.
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
        // Those of the kept bytes that are in front of the head again were written over only if the trace went around.
        let ahead = usize::try_from(size - distance).unwrap_or(usize::MAX).min(now.len());
        let went_around = now.iter().rev().zip(self.kept.iter().rev()).take(ahead).any(|(now, kept)| now != kept);
        if went_around { size } else { distance }
    }
}

fn bytes(ring: &AuxRing, head: u64, length: usize) -> Vec<u8> {
    let (first, second) = ring.last(head, length);
    [first, second].concat()
}
