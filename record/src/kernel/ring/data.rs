//! The data ring: records, read forwards, or backwards where it is overwritten.
//!
//! A ring that is overwritten (`write_backward`, mapped without the right to write) goes the other way: `data_head` only
//! falls, the newest record is at it, and the older ones follow up to where the oldest was overwritten. It may be read
//! only while its output is paused.

#![allow(unsafe_code)] // Lends out shared memory.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use recrep_format::endian::Endian;
use recrep_format::record::{HEADER_SIZE, RecordHeader};
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
    /// Whether it is overwritten, from the end to the beginning.
    backward: bool,
}

impl Ring {
    /// Maps the ring of a counter, its data area `pages` long.
    ///
    /// # Errors
    /// The kernel's refusal: EPERM where the budget for locked memory is used up; EINVAL where `pages` is no power
    /// of two.
    pub fn map(counter: BorrowedFd<'_>, pages: usize) -> Result<Self, Errno> {
        Self::map_with(counter, pages, false)
    }

    /// Maps the ring of a counter that writes backwards (`write_backward`): the kernel overwrites what is oldest.
    ///
    /// # Errors
    /// As [`Ring::map`].
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
        // Whoever may not write does not give room back: so the kernel knows that it is to overwrite.
        let mapping = SharedMemory::new(counter, 0, length, !backward)?;
        let tail = if backward { 0 } else { mapping.word(DATA_TAIL).load(Ordering::Relaxed) };
        let reader = Reader::new("data", data_size, tail);
        Ok(Self { mapping: Arc::new(mapping), page_size, data_size, reader, backward })
    }

    /// Maps the AUX area of the counter that has this ring, `pages` long: a power of two. `overwrite`: the kernel overwrites
    /// what is oldest, and the area may be read only while its counters are stopped.
    ///
    /// # Errors
    /// The kernel's refusal: EOPNOTSUPP where the counter's PMU has none; EPERM where the budget for locked memory is used up;
    /// EINVAL where the ring's control page may not be written to.
    pub fn map_aux(&self, counter: BorrowedFd<'_>, pages: usize, overwrite: bool) -> Result<AuxRing, Errno> {
        if self.backward || !pages.is_power_of_two() {
            return Err(Errno::INVAL);
        }
        let size = pages.checked_mul(self.page_size).ok_or(Errno::INVAL)?;
        AuxRing::map(counter, &self.mapping, (self.page_size + self.data_size) as u64, size, overwrite)
    }

    /// The size of the data area in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data_size
    }

    /// How the counters' clock follows the CPU's, if it does.
    #[must_use]
    pub fn clock(&self) -> Option<Clock> {
        Clock::read(&self.mapping)
    }

    /// What there is to read. It stays where it is until [`release`](Self::release).
    ///
    /// # Errors
    /// A `data_head` that cannot be.
    pub fn pending(&self) -> Result<Pending<'_>, Overrun> {
        let head = self.mapping.word(DATA_HEAD);
        if self.backward {
            let head = head.load(Ordering::Acquire);
            return self.pending_backward(head).ok_or(self.reader.overrun(head));
        }
        let stretch = self.reader.pending(head)?;
        Ok(Pending::new(self.halves(stretch.start, stretch.length), stretch.head))
    }

    /// Whether it is overwritten.
    #[must_use]
    pub fn is_backward(&self) -> bool {
        self.backward
    }

    /// What is there of a ring that is overwritten, newest first: as many records as are whole.
    fn pending_backward(&self, head: u64) -> Option<Pending<'_>> {
        let new = usize::try_from(self.reader.tail().wrapping_sub(head)).unwrap_or(usize::MAX).min(self.data_size);
        let start = usize::try_from(head % self.data_size as u64).ok()?;
        let (first, second) = self.halves(start, new);
        let whole = whole_records(first, second);
        Some(Pending::new(self.halves(start, whole), head))
    }

    /// `length` bytes of the data area from `start` on, around its end.
    fn halves(&self, start: usize, length: usize) -> (&[u8], &[u8]) {
        // SAFETY: the kernel does not write between data_tail and data_head, and data_tail cannot move while the slices borrow
        // `self` (`release` takes `&mut self`); a ring that is overwritten is read only while its output is paused.
        unsafe { self.mapping.halves(self.page_size, self.data_size, start, length) }
    }

    /// Gives the room up to `mark` back to the kernel.
    pub fn release(&mut self, mark: Mark) {
        if self.backward {
            // The page may not be written to, and nobody waits for room there.
            self.reader.pass(mark.0);
        } else {
            self.reader.release(self.mapping.word(DATA_TAIL), mark.0);
        }
    }
}

/// How many bytes of `first` and then `second` are whole records: a record that its own size leads beyond the end was
/// overwritten in part, and a size of 0 is room that was never used.
fn whole_records(first: &[u8], second: &[u8]) -> usize {
    let all = first.len() + second.len();
    let mut at = 0;
    // Records are multiples of 8 bytes, so a header lies in one half.
    let header = |at: usize| {
        let half =
            first.get(at..).filter(|half| !half.is_empty()).or_else(|| second.get(at.checked_sub(first.len())?..))?;
        half.first_chunk::<HEADER_SIZE>()
    };
    while let Some(header) = header(at) {
        let size = usize::from(RecordHeader::read(*header, Endian::NATIVE).size);
        if size < HEADER_SIZE || at + size > all {
            break;
        }
        at += size;
    }
    at
}
