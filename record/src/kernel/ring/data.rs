//! The data ring: records, read forwards, or backwards where it is overwritten.
//!
//! A ring that is overwritten (`write_backward`, mapped without the right to write) goes the other
//! way: `data_head` only falls, the newest record is at it, and the older ones follow up to where
//! the oldest was overwritten. It is read by copying, while its output is paused: the kernel knows
//! no tail there that it would respect.

#![allow(unsafe_code)] // Returns slices of shared memory.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::area::AuxRing;
use super::clock::Clock;
use super::memory::SharedMemory;
use super::page::{DATA_HEAD, DATA_TAIL};
use super::pending::{Mark, Pending};
use super::protocol::{Overrun, Reader};

/// A mapped ring. It is unmapped when dropped.
#[derive(Debug)]
pub struct Ring {
    mapping: Arc<SharedMemory>,
    page_size: usize,
    data_size: usize,
    reader: Reader,
    /// `true` if the ring is overwritten, and filled backwards.
    backward: bool,
}

impl Ring {
    /// Maps the ring of a counter, with a data area of `pages` pages.
    ///
    /// # Errors
    /// Returns the kernel's error: EPERM if the limit on locked memory is reached; EINVAL if
    /// `pages` is not a power of two.
    pub fn map(counter: BorrowedFd<'_>, pages: usize) -> Result<Self, Errno> {
        Self::map_with(counter, pages, false)
    }

    /// Maps the ring of a counter that writes backwards (`write_backward`): the kernel overwrites
    /// the oldest records.
    pub fn map_backward(counter: BorrowedFd<'_>, pages: usize) -> Result<Self, Errno> {
        Self::map_with(counter, pages, true)
    }

    fn map_with(counter: BorrowedFd<'_>, pages: usize, backward: bool) -> Result<Self, Errno> {
        let page_size = rustix::param::page_size();
        if !pages.is_power_of_two() {
            return Err(Errno::INVAL);
        }
        let data_size = pages.checked_mul(page_size).ok_or(Errno::INVAL)?;
        let length = data_size.checked_add(page_size).ok_or(Errno::INVAL)?;
        // The kernel overwrites a ring whose mapping is read-only, as no tail can come.
        let mapping = SharedMemory::new(counter, 0, length, !backward)?;
        let tail = if backward { 0 } else { mapping.word(DATA_TAIL).load(Ordering::Relaxed) };
        let reader = Reader::new("data", data_size, tail);
        Ok(Self { mapping: Arc::new(mapping), page_size, data_size, reader, backward })
    }

    /// Maps the AUX area of the counter that owns this ring, with `pages` pages (a power of two).
    /// With `overwrite`, the kernel overwrites the oldest bytes, and the area may be read only
    /// while its counters are stopped.
    ///
    /// # Errors
    /// Returns the kernel's error: EOPNOTSUPP if the counter's PMU has none; EPERM if the limit on
    /// locked memory is reached; EINVAL if the ring's control page is read-only.
    pub fn map_aux(
        &self,
        counter: BorrowedFd<'_>,
        pages: usize,
        overwrite: bool,
    ) -> Result<AuxRing, Errno> {
        if self.backward || !pages.is_power_of_two() {
            return Err(Errno::INVAL);
        }
        let size = pages.checked_mul(self.page_size).ok_or(Errno::INVAL)?;
        AuxRing::map(
            counter,
            &self.mapping,
            (self.page_size + self.data_size) as u64,
            size,
            overwrite,
        )
    }

    /// Returns the size of the data area in bytes.
    pub fn size(&self) -> usize {
        self.data_size
    }

    /// Returns the conversion from the CPU's cycle counter to timestamps, if available.
    pub fn clock(&self) -> Option<Clock> {
        Clock::read(&self.mapping)
    }

    /// Returns the bytes to read. They stay where they are until [`release`](Self::release). A ring
    /// that is overwritten lends out nothing: [`newest`](Self::newest) copies.
    pub fn pending(&self) -> Result<Pending<'_>, Overrun> {
        if self.backward {
            return Ok(Pending::new(&[], &[], self.reader.tail()));
        }
        let stretch = self.reader.pending(self.mapping.word(DATA_HEAD))?;
        // SAFETY: the kernel does not write between data_tail and data_head of a ring that is not
        // overwritten, and data_tail cannot move while the slices borrow `self` (`release` takes
        // `&mut self`).
        let (first, second) = unsafe {
            self.mapping.halves(self.page_size, self.data_size, stretch.start, stretch.length)
        };
        Ok(Pending::new(first, second, stretch.head))
    }

    /// Returns whether the ring is overwritten.
    pub fn is_backward(&self) -> bool {
        self.backward
    }

    /// Copies the complete records written to an overwrite-mode ring since the last
    /// [`release`](Self::release), newest first. Its output should be paused: if the kernel writes
    /// meanwhile, the oldest records may be damaged.
    pub fn newest(&self) -> (Vec<u8>, Mark) {
        let head = self.mapping.word(DATA_HEAD).load(Ordering::Acquire);
        let new = usize::try_from(self.reader.tail().wrapping_sub(head))
            .unwrap_or(usize::MAX)
            .min(self.data_size);
        let start = usize::try_from(head % self.data_size as u64).unwrap_or(0);
        let mut records = self.mapping.copy(self.page_size, self.data_size, start, new);
        // A record that its own size leads beyond the end was overwritten in part, and a size of 0
        // is room that was never used.
        let whole = Pending::new(&records, &[], 0).records(&mut Vec::new(), |_| ());
        records.truncate(whole);
        (records, Mark(head))
    }

    /// Releases the space up to `mark` to the kernel.
    pub fn release(&mut self, mark: Mark) {
        if self.backward {
            // The control page is read-only, and the kernel does not wait for space.
            self.reader.pass(mark.0);
        } else {
            self.reader.release(self.mapping.word(DATA_TAIL), mark.0);
        }
    }
}
