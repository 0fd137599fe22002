//! A ring: the kernel's buffer of records, shared with us.
//!
//! ```text
//!   one page                 data area: a power of two of pages
//!  ┌──────────────────────┐ ┌───────────────┬────────────────────┬────────────┐
//!  │ perf_event_mmap_page │ │ (free)        │ records to read    │ (free)     │
//!  │ data_head  data_tail │ │               ▲tail                ▲head        │
//!  └──────────────────────┘ └───────────────┴────────────────────┴────────────┘
//! ```
//!
//! `data_head` and `data_tail` only grow; modulo the size they are places in the data area. The kernel writes records
//! behind `data_head` and then moves it; we read up to it and then move `data_tail`, which gives the room back. What
//! is between them is not touched by the kernel until then, so it can be lent out as slices: two where it wraps.
//!
//! A ring that is overwritten (`write_backward`, mapped without the right to write) goes the other way: `data_head` only
//! falls, the newest record is at it, and the older ones follow up to where the oldest was overwritten. It may be read
//! only while its output is paused.
//!
//! Ordering (`kernel/events/ring_buffer.c`, `perf_output_put_handle`): the load of `data_head` is an acquire, so that the
//! records are read after it; the store of `data_tail` is a release, so that it comes after the last read.

#![allow(unsafe_code)] // Shared memory has no safe form.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// Offsets in `struct perf_event_mmap_page`, fixed by the ABI (`include/uapi/linux/perf_event.h`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A mapped ring. It is unmapped when dropped.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    page_size: usize,
    data_size: usize,
    /// Up to where we have read: only we move it.
    tail: u64,
    /// Whether it is overwritten, from the end to the beginning.
    backward: bool,
}

// SAFETY: the mapping belongs to the process, not to a thread, and `Ring` is its only owner; all writing is by `&mut self`.
unsafe impl Send for Ring {}

/// The records that are there to read, in order: what lies up to the end of the data area, then what wrapped.
#[derive(Debug)]
pub struct Pending<'r> {
    /// The first half.
    pub first: &'r [u8],
    /// The second half; empty where nothing wraps.
    pub second: &'r [u8],
    head: u64,
}

impl Pending<'_> {
    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The mark to give to [`Ring::release`].
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.head)
    }
}

/// Up to where a ring was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

/// `data_head` is where it cannot be: the control page was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a ring's data_head is {head} with data_tail at {tail}, more than its {size} bytes apart")]
pub struct Overrun {
    head: u64,
    tail: u64,
    size: u64,
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
        let access = if backward { ProtFlags::READ } else { ProtFlags::READ | ProtFlags::WRITE };
        // SAFETY: a new mapping at an address of the kernel's choosing overlaps nothing of ours.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, counter, 0)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(Errno::NOMEM)?;
        let mut ring = Self { base, page_size, data_size, tail: 0, backward };
        if !backward {
            ring.tail = ring.control(DATA_TAIL).load(Ordering::Relaxed);
        }
        Ok(ring)
    }

    /// The size of the data area in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data_size
    }

    /// What there is to read. It stays where it is until [`release`](Self::release).
    ///
    /// # Errors
    /// A `data_head` that cannot be.
    pub fn pending(&self) -> Result<Pending<'_>, Overrun> {
        let head = self.control(DATA_HEAD).load(Ordering::Acquire);
        let size = self.data_size as u64;
        let overrun = Overrun { head, tail: self.tail, size };
        if self.backward {
            return self.pending_backward(head).ok_or(overrun);
        }
        let length = head.checked_sub(self.tail).filter(|length| *length <= size).ok_or(overrun)?;
        let length = usize::try_from(length).map_err(|_| overrun)?;
        let start = usize::try_from(self.tail % size).map_err(|_| overrun)?;
        let (first, second) = self.halves(start, length);
        Ok(Pending { first, second, head })
    }

    /// Whether it is overwritten.
    #[must_use]
    pub fn is_backward(&self) -> bool {
        self.backward
    }

    /// What is there of a ring that is overwritten, newest first: as many records as are whole.
    fn pending_backward(&self, head: u64) -> Option<Pending<'_>> {
        let new = usize::try_from(self.tail.wrapping_sub(head)).unwrap_or(usize::MAX).min(self.data_size);
        let start = usize::try_from(head % self.data_size as u64).ok()?;
        let (first, second) = self.halves(start, new);
        let whole = whole_records(first, second);
        let (first, second) = self.halves(start, whole);
        Some(Pending { first, second, head })
    }

    /// `length` bytes of the data area from `start` on, around its end.
    fn halves(&self, start: usize, length: usize) -> (&[u8], &[u8]) {
        let (start, length) = (start.min(self.data_size), length.min(self.data_size));
        let in_first = length.min(self.data_size - start);
        // SAFETY: the data area begins one page into the mapping and is `data_size` long.
        let data = unsafe { self.base.add(self.page_size) };
        // SAFETY: `start` is at most `data_size`.
        let at_tail = unsafe { data.add(start) };
        // SAFETY: `start + in_first` is at most `data_size`. The kernel does not write between data_tail and
        // data_head, and data_tail cannot move while the slice borrows `self` (`release` takes `&mut self`); a ring that
        // is overwritten is read only while its output is paused.
        let first = unsafe { std::slice::from_raw_parts(at_tail.as_ptr(), in_first) };
        // SAFETY: what is left is at most `start` bytes from the start of the data area; otherwise as above.
        let second = unsafe { std::slice::from_raw_parts(data.as_ptr(), length - in_first) };
        (first, second)
    }

    /// Gives the room up to `mark` back to the kernel.
    pub fn release(&mut self, mark: Mark) {
        self.tail = mark.0;
        // The page of a ring that is overwritten may not be written to, and nobody waits for room there.
        if self.backward {
            return;
        }
        self.control(DATA_TAIL).store(mark.0, Ordering::Release);
    }

    fn control(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are inside the first page.
        let place = unsafe { self.base.add(offset) };
        // SAFETY: the page is mapped readable and writable for as long as `self` lives, the offsets are multiples of
        // eight, and both sides only use atomic accesses for these two fields.
        unsafe { AtomicU64::from_ptr(place.cast::<u64>().as_ptr()) }
    }
}

/// How many bytes of `first` and then `second` are whole records: a record that its own size leads beyond the end was
/// overwritten in part, and a size of 0 is room that was never used.
fn whole_records(first: &[u8], second: &[u8]) -> usize {
    let all = first.len() + second.len();
    let mut at = 0;
    // Records are multiples of 8 bytes, so a header lies in one half.
    while let Some(header) = first.get(at..at + 8).or_else(|| second.get(at.checked_sub(first.len())?..)?.get(..8)) {
        let size = header.last_chunk::<2>().map_or(0, |size| usize::from(u16::from_ne_bytes(*size)));
        if size < 8 || at + size > all {
            break;
        }
        at += size;
    }
    at
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `map`, whole; slices into it borrow `self` and are gone.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.page_size + self.data_size) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A kernel's side of a ring on a memfd, laid out as the kernel lays it out.

    use super::{DATA_HEAD, DATA_TAIL, Ring};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    pub(crate) struct FakeRing {
        memory: File,
        page: u64,
        size: u64,
        head: u64,
        lost: u64,
    }

    impl FakeRing {
        pub(crate) fn new(pages: u64) -> Self {
            let memory = File::from(rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
            let page = rustix::param::page_size() as u64;
            memory.set_len((pages + 1) * page).unwrap();
            Self { memory, page, size: pages * page, head: 0, lost: 0 }
        }

        /// As if so many bytes had passed through already.
        pub(crate) fn start_at(&mut self, position: u64) {
            self.head = position;
            self.memory.write_all_at(&position.to_ne_bytes(), DATA_HEAD as u64).unwrap();
            self.memory.write_all_at(&position.to_ne_bytes(), DATA_TAIL as u64).unwrap();
        }

        pub(crate) fn map(&self) -> Ring {
            Ring::map(self.memory.as_fd(), usize::try_from(self.size / self.page).unwrap()).unwrap()
        }

        pub(crate) fn memory(&self) -> std::os::fd::BorrowedFd<'_> {
            self.memory.as_fd()
        }

        pub(crate) fn tail(&self) -> u64 {
            let mut bytes = [0; 8];
            self.memory.read_exact_at(&mut bytes, DATA_TAIL as u64).unwrap();
            u64::from_ne_bytes(bytes)
        }

        pub(crate) fn set_head(&self, head: u64) {
            self.memory.write_all_at(&head.to_ne_bytes(), DATA_HEAD as u64).unwrap();
        }

        pub(crate) fn map_backward(&self) -> Ring {
            Ring::map_backward(self.memory.as_fd(), usize::try_from(self.size / self.page).unwrap()).unwrap()
        }

        /// Writes a record as the kernel does to a ring that is overwritten: in front of the one before.
        pub(crate) fn write_backward(&mut self, record: &[u8]) {
            self.head = self.head.wrapping_sub(record.len() as u64);
            for (at, byte) in (0..).zip(record) {
                let place = self.head.wrapping_add(at) % self.size;
                self.memory.write_all_at(&[*byte], self.page + place).unwrap();
            }
            self.set_head(self.head);
        }

        /// Writes a record as the kernel does: wrapping, or not at all where there is no room, then with a
        /// LOST record before the next.
        pub(crate) fn write(&mut self, record: &[u8]) -> bool {
            let mut bytes = Vec::new();
            if self.lost > 0 {
                // Its trailer: TID, TIME, CPU, IDENTIFIER.
                bytes.extend(fake_record(2, &[0, self.lost, 0, 0, 0, 0]));
            }
            bytes.extend(record);
            if self.head + bytes.len() as u64 - self.tail() > self.size {
                self.lost += 1;
                return false;
            }
            self.lost = 0;
            for (at, byte) in (self.head..).zip(&bytes) {
                self.memory.write_all_at(&[*byte], self.page + at % self.size).unwrap();
            }
            self.head += bytes.len() as u64;
            self.set_head(self.head);
            true
        }
    }

    /// A record of a type with these numbers after its header.
    pub(crate) fn fake_record(kind: u32, words: &[u64]) -> Vec<u8> {
        let size = u16::try_from(8 + words.len() * 8).unwrap();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(0u16.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::fake::{FakeRing, fake_record};
    use super::*;

    fn take(ring: &mut Ring) -> Vec<u8> {
        let pending = ring.pending().unwrap();
        let bytes = [pending.first, pending.second].concat();
        assert_eq!(pending.len(), bytes.len());
        let mark = pending.mark();
        ring.release(mark);
        bytes
    }

    #[test]
    fn an_empty_ring_has_nothing() {
        let fake = FakeRing::new(1);
        assert!(fake.map().pending().unwrap().is_empty());
    }

    #[test]
    fn records_come_out_as_they_went_in_and_the_room_is_given_back() {
        let mut fake = FakeRing::new(1);
        let mut ring = fake.map();
        let record = fake_record(9, &[1, 2, 3]);
        assert!(fake.write(&record));
        assert_eq!(take(&mut ring), record);
        assert_eq!(fake.tail(), record.len() as u64);
        assert!(ring.pending().unwrap().is_empty());
    }

    #[test]
    fn a_record_that_wraps_comes_in_two_halves() {
        let page = rustix::param::page_size() as u64;
        let mut fake = FakeRing::new(2);
        fake.start_at(page * 2 * 5 - 16);
        let mut ring = fake.map();
        let record = fake_record(9, &[1, 2, 3, 4]);
        assert!(fake.write(&record));
        let pending = ring.pending().unwrap();
        assert_eq!((pending.first.len(), pending.second.len()), (16, 24));
        assert_eq!(take(&mut ring), record);
    }

    #[test]
    fn an_overwritten_ring_gives_the_newest_records_first_and_each_once() {
        let mut fake = FakeRing::new(1);
        let mut ring = fake.map_backward();
        assert!(take(&mut ring).is_empty());
        let record = |n: u64| fake_record(9, &vec![n; 3 + usize::try_from(n % 5).unwrap()]);
        let mut next = 0;
        for (written, round) in [(3u64, 0), (1000, 1), (0, 2), (2, 3)] {
            (next..next + written).for_each(|n| fake.write_backward(&record(n)));
            next += written;
            let got = take(&mut ring);
            let mut expected = Vec::new();
            for n in (next - written..next).rev() {
                if expected.len() + record(n).len() > ring.size() {
                    break;
                }
                expected.extend(record(n));
            }
            assert!(got == expected, "round {round}: {} bytes, not {}", got.len(), expected.len());
            assert_eq!(got.is_empty(), written == 0);
        }
    }

    #[test]
    fn many_records_pass_through_a_small_ring() {
        let mut fake = FakeRing::new(1);
        let mut ring = fake.map();
        let (mut sent, mut got) = (Vec::new(), Vec::new());
        for n in 0..2000u64 {
            let record = fake_record(9, &vec![n; 1 + usize::try_from(n % 7).unwrap()]);
            assert!(fake.write(&record));
            sent.extend(record);
            if n % 11 == 0 {
                got.extend(take(&mut ring));
            }
        }
        got.extend(take(&mut ring));
        assert!(sent == got);
    }

    #[test]
    fn a_full_ring_is_read_whole_and_loses_with_a_record() {
        let mut fake = FakeRing::new(1);
        let mut ring = fake.map();
        let record = fake_record(9, &[7; 63]);
        let mut fits = 0;
        while fake.write(&record) {
            fits += 1;
        }
        assert!(!fake.write(&record));
        assert_eq!(take(&mut ring).len(), fits * record.len());
        assert!(fake.write(&record));
        let after = take(&mut ring);
        assert_eq!(&after[..56], fake_record(2, &[0, 2, 0, 0, 0, 0]));
    }

    #[test]
    fn a_head_that_cannot_be_is_an_error() {
        let fake = FakeRing::new(1);
        let ring = fake.map();
        fake.set_head(1 << 40);
        assert!(ring.pending().unwrap_err().to_string().contains("data_head"));
    }

    #[test]
    fn only_powers_of_two() {
        for pages in [0, 3] {
            assert_eq!(Ring::map(FakeRing::new(3).memory(), pages).unwrap_err(), Errno::INVAL);
        }
    }
}
