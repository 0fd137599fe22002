//! The kernel's side of the protocol of rings (`record/src/kernel/ring/protocol.rs`): how it finds
//! room, writes, and moves its head.

use std::sync::atomic::Ordering;

use recrep_record::parts::SharedWord;

/// The kernel's side of an area: the position up to which it is written.
#[derive(Clone, Copy, Debug)]
pub struct RingWriter {
    size: u64,
    head: u64,
}

impl RingWriter {
    /// Creates the writer of an area of this size, at `head`.
    pub fn new(size: usize, head: u64) -> Self {
        Self { size: size as u64, head }
    }

    /// Returns the position up to which it is written.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Returns the number of bytes that may be written: one less than are free (`CIRC_SPACE`).
    pub fn room(&self, tail: &impl SharedWord) -> u64 {
        // The kernel's load is relaxed, and a control dependency orders the writes after it. Rust's
        // memory model has no control dependencies, so an acquire load is needed.
        let tail = tail.load(Ordering::Acquire);
        (self.size - 1).saturating_sub(self.head.wrapping_sub(tail))
    }

    /// Returns the offset in the area of the byte that is `ahead` bytes after the head.
    pub fn place(&self, ahead: u64) -> usize {
        usize::try_from(self.head.wrapping_add(ahead).checked_rem(self.size).unwrap_or(0))
            .unwrap_or(0)
    }

    /// Skips bytes without writing them.
    pub fn skip(&mut self, length: u64) {
        self.head = self.head.wrapping_add(length);
    }

    /// Moves the head over `length` written bytes, which makes them visible to the reader.
    pub fn publish(&mut self, head: &impl SharedWord, length: u64) {
        self.head = self.head.wrapping_add(length);
        head.store(self.head, Ordering::Release);
    }
}
