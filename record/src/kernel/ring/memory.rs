//! Shared memory mappings, with access to words and byte slices.

#![allow(unsafe_code)] // There is no safe interface to shared memory.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// A mapping. It is unmapped when dropped.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and only `drop` ends it.
unsafe impl Send for SharedMemory {}
// SAFETY: shared access is by atomics, or by `halves`, whose callers guarantee that nothing writes
// there.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps `length` bytes of a counter from `offset` on; read-only unless `writable`.
    pub fn new(
        counter: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        writable: bool,
    ) -> Result<Self, Errno> {
        let access = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choosing overlaps nothing of ours.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                access,
                MapFlags::SHARED,
                counter,
                offset,
            )?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, length })
    }

    /// Returns the address of the byte at `offset`, which must be inside the mapping.
    pub fn place(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.length, "a byte of the mapping");
        // SAFETY: `offset` is inside the mapping, as just checked.
        unsafe { self.base.add(offset) }
    }

    /// Returns the word at `offset`, which must be a multiple of 8 inside the mapping.
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(8) && offset + 8 <= self.length,
            "a word of the control page"
        );
        // SAFETY: the place is aligned (mappings begin at a page, and `offset` is a multiple of 8)
        // and mapped for as long as `self` lives. All access of ours to it is atomic, the kernel's
        // is by READ_ONCE and WRITE_ONCE. Where the mapping may not be written to, the word is only
        // loaded, which atomics of this size do without writing.
        unsafe { AtomicU64::from_ptr(self.place(offset).cast::<u64>().as_ptr()) }
    }

    /// Copies `length` bytes of the area of `size` bytes (both areas and sizes are multiples of a
    /// page) that begins at `area`, from the place `start` in it on, around its end.
    ///
    /// The kernel may write to them meanwhile: each word is loaded atomically, so the bytes may
    /// then be of different times, and that is all that can happen. Who wants them of one time
    /// pauses the output first.
    pub(super) fn copy(&self, area: usize, size: usize, start: usize, length: usize) -> Vec<u8> {
        let (start, length) = (start.min(size), length.min(size));
        let skipped = start % 8;
        let from = start - skipped;
        let len = (skipped + length).next_multiple_of(8);
        let in_first = len.min(size - from);
        let mut bytes = Vec::with_capacity(len);
        for offset in (from..from + in_first).chain(0..len - in_first).step_by(8) {
            bytes
                .extend_from_slice(&self.word(area + offset).load(Ordering::Relaxed).to_ne_bytes());
        }
        bytes.truncate(skipped + length);
        bytes.drain(..skipped);
        bytes
    }

    /// Returns `length` bytes of the area at `area` with `size` bytes, from `start` in the area on,
    /// wrapping around its end.
    ///
    /// # Safety
    /// Nothing may write to these bytes while the slices are alive.
    pub(super) unsafe fn halves(
        &self,
        area: usize,
        size: usize,
        start: usize,
        length: usize,
    ) -> (&[u8], &[u8]) {
        assert!(area <= self.length && size <= self.length - area, "an area inside the mapping");
        let (start, length) = (start.min(size), length.min(size));
        let in_first = length.min(size - start);
        // SAFETY: the area is inside the mapping, as just checked.
        let area = unsafe { self.base.add(area) };
        // SAFETY: `start` is at most `size`.
        let place = unsafe { area.add(start) };
        // SAFETY: `start + in_first` is at most `size`, and the caller guarantees that nothing
        // writes there.
        let first = unsafe { std::slice::from_raw_parts(place.as_ptr(), in_first) };
        // SAFETY: the rest is at most `size` bytes from the start of the area; otherwise as above.
        let second = unsafe { std::slice::from_raw_parts(area.as_ptr(), length - in_first) };
        (first, second)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping created in `new`; slices borrow `self`, so none is
        // alive.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}
