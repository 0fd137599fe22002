//! The AUX area: raw bytes written by the CPU's tracing hardware, without records.
//!
//! Normally the kernel stops the trace when the area is full, and resumes when the counter is
//! enabled again. In an overwritten area the trace never stops. There `aux_head` is an offset in
//! the area with some PMUs (Intel PT, Intel BTS), and an always growing position with others (Arm
//! SPE, CoreSight).

#![allow(unsafe_code)] // Returns slices of shared memory.

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
    /// Memory of the ring that it belongs to, whose control page has `aux_head` and `aux_tail`.
    control: Arc<SharedMemory>,
    area: SharedMemory,
    size: usize,
    reader: Reader,
    overwrite: bool,
}

impl AuxRing {
    /// Writes `offset` and `size` to the control page, and maps that part of a counter.
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
        Ok(Self {
            control: Arc::clone(control),
            area,
            size,
            reader: Reader::new("aux", size, tail),
            overwrite,
        })
    }

    /// Returns the size of the area in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the unread bytes of an area that is not overwritten, in multiples of `unit` bytes; a
    /// remainder is left for later. They stay valid until [`release`](Self::release).
    pub fn pending(&self, unit: usize) -> Result<Pending<'_>, Overrun> {
        let stretch = self.reader.pending(self.control.word(AUX_HEAD))?;
        let rest = stretch.length.checked_rem(unit).unwrap_or(0);
        let (start, length) = (stretch.start, stretch.length - rest);
        // SAFETY: the kernel does not write between aux_tail and aux_head of an area that is not
        // overwritten (of one that is, nothing is lent out), and aux_tail cannot move while the
        // slices borrow `self` (`release` takes `&mut self`).
        let (first, second) = unsafe {
            self.area.halves(0, self.size, start, if self.overwrite { 0 } else { length })
        };
        Ok(Pending::new(first, second, stretch.head - rest as u64))
    }

    /// Returns the position of the first pending byte in the trace, which is the number of bytes
    /// before it.
    pub fn position(&self) -> u64 {
        self.reader.tail()
    }

    /// Releases the space up to `mark` to the kernel.
    pub fn release(&mut self, mark: Mark) {
        self.reader.release(self.control.word(AUX_TAIL), mark.0);
    }

    /// The head of an area that is overwritten. All counters that write to the area should be
    /// stopped, and stay so until what [`last`](Self::last) gives was read.
    pub fn head(&self) -> u64 {
        self.control.word(AUX_HEAD).load(Ordering::Acquire)
    }

    /// Copies the last `length` bytes before `head`: those up to the end of the area, and those
    /// from its beginning on.
    pub fn last(&self, head: u64, length: usize) -> (Vec<u8>, Vec<u8>) {
        let length = length.min(self.size);
        // Computed with offsets in the area, as a head that is an offset may be smaller than
        // `length`.
        let end = usize::try_from(head % self.size as u64).unwrap_or(0);
        let start = if end >= length { end - length } else { end + self.size - length };
        let mut first = self.area.copy(0, self.size, start, length);
        let second = first.split_off(length.min(self.size - start));
        (first, second)
    }
}
