//! Who may touch which bytes when: the order of accesses to heads, tails and what is between them.
//!
//! ```text
//!   kernel                               we
//!   (K1) load tail: is there room?       (U1) load head, acquire ── sees K3, and so all of K2
//!   (K2) write behind head               (U2) read up to head
//!   (K3) store head, release             (U3) store tail, release ── K1 sees it, and so U2 is over
//! ```
//!
//! The same for the data area (`perf_output_put_handle` and `__perf_output_begin` in `kernel/events/ring_buffer.c`, where A–D name
//! the barriers) and for the AUX area (`perf_aux_output_begin`, `perf_aux_output_end`). Generic over the word, so that the
//! model check runs this very code.

use std::sync::atomic::{AtomicU64, Ordering};

/// A word of the control page that both sides access.
pub trait Word {
    /// Loads it.
    fn load(&self, order: Ordering) -> u64;
    /// Stores to it.
    fn store(&self, value: u64, order: Ordering);
}

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
}

/// Our side of an area: up to where it was read.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    area: &'static str,
    size: u64,
    tail: u64,
}

/// What there is to read: so many bytes from a place in the area, around its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The place.
    pub start: usize,
    /// How many bytes.
    pub length: usize,
    /// Up to where.
    pub head: u64,
}

/// A head is where it cannot be: the control page was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a ring's {area}_head is {head} with {area}_tail at {tail}, more than its {size} bytes apart")]
pub struct Overrun {
    /// `data` or `aux`.
    pub area: &'static str,
    /// Where the kernel says it is.
    pub head: u64,
    /// Up to where we have read.
    pub tail: u64,
    /// The area's size.
    pub size: u64,
}

impl Reader {
    /// Of an area (`data` or `aux`) of a size, read up to `tail`.
    #[must_use]
    pub fn new(area: &'static str, size: usize, tail: u64) -> Self {
        Self { area, size: size as u64, tail }
    }

    /// Up to where it was read.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// What there is to read, which the kernel does not touch until [`release`](Self::release).
    ///
    /// # Errors
    /// A head that cannot be.
    pub fn pending(&self, head: &impl Word) -> Result<Stretch, Overrun> {
        let head = head.load(Ordering::Acquire);
        let overrun = self.overrun(head);
        let length = head.checked_sub(self.tail).filter(|length| *length <= self.size).ok_or(overrun)?;
        let start = self.tail.checked_rem(self.size).ok_or(overrun)?;
        let [start, length] = [start, length].map(usize::try_from);
        Ok(Stretch { start: start.map_err(|_| overrun)?, length: length.map_err(|_| overrun)?, head })
    }

    /// Gives the room up to `to` back to the kernel.
    pub fn release(&mut self, tail: &impl Word, to: u64) {
        self.pass(to);
        tail.store(to, Ordering::Release);
    }

    /// Has read up to `to` where nobody waits for room.
    pub fn pass(&mut self, to: u64) {
        self.tail = to;
    }

    /// The error of a head.
    #[must_use]
    pub fn overrun(&self, head: u64) -> Overrun {
        Overrun { area: self.area, head, tail: self.tail, size: self.size }
    }
}

/// The kernel's side of an area, for what stands in for the kernel.
#[cfg(any(test, feature = "fake-kernel"))]
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    size: u64,
    head: u64,
}

#[cfg(any(test, feature = "fake-kernel"))]
impl Writer {
    /// Of an area of a size that begins with `head`.
    #[must_use]
    pub fn new(size: usize, head: u64) -> Self {
        Self { size: size as u64, head }
    }

    /// Up to where it is written.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// How many bytes may be written: one less than are free (`CIRC_SPACE`).
    #[must_use]
    pub fn room(&self, tail: &impl Word) -> u64 {
        // The kernel's load is relaxed, and what it decides keeps the writes behind it: a control dependency. In the
        // memory model of this language only an acquire says so.
        let tail = tail.load(Ordering::Acquire);
        (self.size - 1).saturating_sub(self.head.wrapping_sub(tail))
    }

    /// The place in the area of the byte that lies so far behind the head.
    #[must_use]
    pub fn place(&self, ahead: u64) -> usize {
        usize::try_from(self.head.wrapping_add(ahead).checked_rem(self.size).unwrap_or(0)).unwrap_or(0)
    }

    /// Passes over so many bytes that are not written.
    pub fn skip(&mut self, length: u64) {
        self.head = self.head.wrapping_add(length);
    }

    /// Says that so many bytes more are written.
    pub fn publish(&mut self, head: &impl Word, length: u64) {
        self.head = self.head.wrapping_add(length);
        head.store(self.head, Ordering::Release);
    }
}
