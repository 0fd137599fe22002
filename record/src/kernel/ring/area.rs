//! The AUX area: what the CPU's tracing hardware writes, as bytes without records.
//!
//! In the usual way the kernel stops the trace where the area is full and goes on when the counter is enabled again. An area that is
//! overwritten goes on for ever; `aux_head` is then a place in it with some PMUs (Intel PT, Intel BTS) and a number that
//! only grows with others (Arm SPE, CoreSight).

#![allow(unsafe_code)] // Lends out shared memory.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::memory::SharedMemory;
use super::page::{AUX_HEAD, AUX_OFFSET, AUX_SIZE, AUX_TAIL};
use super::pending::{Mark, Pending};
use super::protocol::{Overrun, Reader};

/// A mapped AUX area. It is unmapped when dropped.
#[derive(Debug)]
pub struct AuxRing {
    /// The ring that it belongs to: its control page has our head and tail.
    control: Arc<SharedMemory>,
    area: SharedMemory,
    size: usize,
    reader: Reader,
    overwrite: bool,
}

impl AuxRing {
    /// Maps `size` bytes of a counter from `offset` on, after saying so in the control page.
    pub(super) fn map(
        counter: BorrowedFd<'_>,
        control: &Arc<SharedMemory>,
        offset: u64,
        size: usize,
        overwrite: bool,
    ) -> Result<Self, Errno> {
        control.word(AUX_OFFSET).store(offset, Ordering::Relaxed);
        control.word(AUX_SIZE).store(size as u64, Ordering::Relaxed);
        let area = SharedMemory::new(counter, offset, size, !overwrite)?;
        let tail = control.word(AUX_TAIL).load(Ordering::Relaxed);
        Ok(Self { control: Arc::clone(control), area, size, reader: Reader::new("aux", size, tail), overwrite })
    }

    /// The size of the area in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether it is overwritten.
    #[must_use]
    pub fn is_overwritten(&self) -> bool {
        self.overwrite
    }

    /// What there is to read of an area that is not overwritten, in multiples of `unit` bytes: the rest is left for later. It
    /// stays where it is until [`release`](Self::release).
    ///
    /// # Errors
    /// An `aux_head` that cannot be.
    pub fn pending(&self, unit: usize) -> Result<Pending<'_>, Overrun> {
        let stretch = self.reader.pending(self.control.word(AUX_HEAD))?;
        let rest = stretch.length.checked_rem(unit).unwrap_or(0);
        let (start, length) = (stretch.start, stretch.length - rest);
        // SAFETY: the kernel does not write between aux_tail and aux_head of an area that is not overwritten (of one that is,
        // nothing is lent out), and aux_tail cannot move while the slices borrow `self` (`release` takes `&mut self`).
        let halves = unsafe { self.area.halves(0, self.size, start, if self.overwrite { 0 } else { length }) };
        Ok(Pending::new(halves, stretch.head - rest as u64))
    }

    /// Where the first pending byte is in the trace: how many bytes came before it.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.reader.tail()
    }

    /// Gives the room up to `mark` back to the kernel.
    pub fn release(&mut self, mark: Mark) {
        self.reader.release(self.control.word(AUX_TAIL), mark.0);
    }

    /// The head of an area that is overwritten. All counters that write to the area should be stopped, and stay so until
    /// what [`last`](Self::last) gives was read.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.control.word(AUX_HEAD).load(Ordering::Acquire)
    }

    /// Copies the last `length` bytes before `head`: those up to the end of the area, and those from its beginning on.
    #[must_use]
    pub fn last(&self, head: u64, length: usize) -> (Vec<u8>, Vec<u8>) {
        let length = length.min(self.size);
        // As offsets, since a head that is a place may be smaller than `length`.
        let end = usize::try_from(head % self.size as u64).unwrap_or(0);
        let start = if end >= length { end - length } else { end + self.size - length };
        let mut first = self.area.copy(0, self.size, start, length);
        let second = first.split_off(length.min(self.size - start));
        (first, second)
    }
}
