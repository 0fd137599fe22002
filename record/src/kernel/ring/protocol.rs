//! Protocol of the shared areas: the order of accesses to heads, tails and the bytes between them.
//!
//! ```text
//!   kernel                               rec
//!   (K1) load tail: is there space?      (U1) load head, acquire ── observes K3, and so all of K2
//!   (K2) write after head                (U2) read up to head
//!   (K3) store head, release             (U3) store tail, release ── if K1 observes it, U2 has ended
//! ```
//!
//! It is the same for the data area (`perf_output_put_handle` and `__perf_output_begin` in
//! `kernel/events/ring_buffer.c`, where A–D name the barriers) and the AUX area
//! (`perf_aux_output_begin`, `perf_aux_output_end`). The code is generic over the word, so that the
//! model check can run it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A word of the control page, accessed by both sides.
pub trait SharedWord {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
}

impl SharedWord for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
}

/// Rec's side of an area: the position up to which it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    area: &'static str,
    size: u64,
    tail: u64,
}

/// Range of unread bytes in an area, which may wrap around its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Offset in the area.
    pub start: usize,
    /// Number of bytes.
    pub length: usize,
    /// Head at the end of the range.
    pub head: u64,
}

/// Error about an invalid head: the control page was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a ring of {size} bytes has the invalid {area}_head {head} at {area}_tail {tail}")]
pub struct Overrun {
    /// `data` or `aux`.
    pub area: &'static str,
    pub head: u64,
    /// Position up to which rec has read.
    pub tail: u64,
    pub size: u64,
}

impl Reader {
    /// Creates the reader of an area (`data` or `aux`) of this size, read up to `tail`.
    pub(crate) fn new(area: &'static str, size: usize, tail: u64) -> Self {
        Self { area, size: size as u64, tail }
    }

    /// Returns the position up to which it was read.
    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    /// Returns the range of unread bytes, which the kernel does not touch until
    /// [`release`](Self::release).
    pub(crate) fn pending(&self, head: &impl SharedWord) -> Result<Stretch, Overrun> {
        let head = head.load(Ordering::Acquire);
        let overrun = self.overrun(head);
        let length =
            head.checked_sub(self.tail).filter(|length| *length <= self.size).ok_or(overrun)?;
        let start = self.tail.checked_rem(self.size).ok_or(overrun)?;
        let [start, length] = [start, length].map(usize::try_from);
        Ok(Stretch {
            start: start.map_err(|_| overrun)?,
            length: length.map_err(|_| overrun)?,
            head,
        })
    }

    /// Releases the space up to `to` to the kernel.
    pub(crate) fn release(&mut self, tail: &impl SharedWord, to: u64) {
        self.pass(to);
        tail.store(to, Ordering::Release);
    }

    /// Advances to `to` without releasing space, for overwritten rings.
    pub(crate) fn pass(&mut self, to: u64) {
        self.tail = to;
    }

    /// Returns the error for an invalid head.
    pub(crate) fn overrun(&self, head: u64) -> Overrun {
        Overrun { area: self.area, head, tail: self.tail, size: self.size }
    }
}
