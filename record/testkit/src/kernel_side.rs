//! The kernel's side of a ring on a memfd, for fake kernels: same layout and same order of writes
//! as in the kernel.

#![allow(unsafe_code)] // There is no safe interface to shared memory.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use recrep_record::parts::{Clock, SharedMemory};
use rustix::io::Errno;

use super::ring_writer::RingWriter;

// Offsets in `struct perf_event_mmap_page`, stated here anew: a witness of rec's own.
const LOCK: usize = 8;
const CAPABILITIES: usize = 40;
const TIME_SHIFT_MULT: usize = 48;
const TIME_ZERO: usize = 64;
const TIME_CYCLES: usize = 80;
const TIME_MASK: usize = 88;
pub(crate) const DATA_HEAD: usize = 1024;
pub(crate) const DATA_TAIL: usize = 1032;
const AUX_HEAD: usize = 1056;
const AUX_TAIL: usize = 1064;
const AUX_OFFSET: usize = 1072;
const AUX_SIZE: usize = 1080;

/// One of the two areas of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingPart {
    Data,
    Aux,
}

/// Control page, data area, and AUX area if any, in one mapping.
#[derive(Debug)]
pub struct KernelSide {
    mapping: SharedMemory,
    /// Offset of the data area.
    page: usize,
    data_size: usize,
    aux_size: usize,
}

impl KernelSide {
    /// Maps a memfd that has the length of the page and both areas.
    pub fn map(memory: BorrowedFd<'_>, data_size: usize, aux_size: usize) -> Result<Self, Errno> {
        let page = rustix::param::page_size();
        let mapping = SharedMemory::new(memory, 0, page + data_size + aux_size, true)?;
        Ok(Self { mapping, page, data_size, aux_size })
    }

    /// Returns a writer at the beginning of an area.
    pub fn writer(&self, area: RingPart) -> RingWriter {
        RingWriter::new(if area == RingPart::Data { self.data_size } else { self.aux_size }, 0)
    }

    pub fn head(&self, area: RingPart) -> &AtomicU64 {
        self.mapping.word(if area == RingPart::Data { DATA_HEAD } else { AUX_HEAD })
    }

    pub fn tail(&self, area: RingPart) -> &AtomicU64 {
        self.mapping.word(if area == RingPart::Data { DATA_TAIL } else { AUX_TAIL })
    }

    /// Returns offset and size of the AUX area, from the control page.
    pub fn aux_place(&self) -> (u64, u64) {
        let word = |offset| self.mapping.word(offset).load(Ordering::Relaxed);
        (word(AUX_OFFSET), word(AUX_SIZE))
    }

    /// Writes the fields of the clock like the kernel: `lock` is odd during the change.
    pub fn set_clock(&self, clock: Clock) {
        let word = |offset| self.mapping.word(offset);
        let [shift_0, shift_1] = clock.shift.to_ne_bytes();
        let mult = clock.mult.to_ne_bytes();
        let mut times = [0, 0, shift_0, shift_1, 0, 0, 0, 0];
        times[4..].copy_from_slice(&mult);
        word(LOCK).store(u64::from_ne_bytes([1; 8]), Ordering::SeqCst);
        word(TIME_SHIFT_MULT).store(u64::from_ne_bytes(times), Ordering::SeqCst);
        word(TIME_ZERO).store(clock.zero, Ordering::SeqCst);
        word(TIME_CYCLES).store(clock.cycles, Ordering::SeqCst);
        word(TIME_MASK).store(clock.mask, Ordering::SeqCst);
        // cap_user_time_zero, cap_user_time_short: bit fields begin where the byte order does.
        let bits = 1 << 4 | u64::from(clock.short) << 5;
        let bits = if cfg!(target_endian = "big") { bits.reverse_bits() } else { bits };
        word(CAPABILITIES).store(bits, Ordering::SeqCst);
        word(LOCK).store(0, Ordering::SeqCst);
    }

    /// Writes bytes after a writer's head, wrapping around the end of the area.
    /// [`RingWriter::publish`] makes them visible to the reader.
    pub fn write(&self, area: RingPart, writer: &RingWriter, bytes: &[u8]) {
        let start = if area == RingPart::Data { self.page } else { self.page + self.data_size };
        for (ahead, byte) in (0..).zip(bytes) {
            self.byte(start + writer.place(ahead)).store(*byte, Ordering::Relaxed);
        }
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        let place = self.mapping.place(offset);
        // SAFETY: the byte is mapped, writable, for as long as `self` lives; this side only
        // accesses it so, and the other side reads it only when the protocol says that this side
        // does not write.
        unsafe { AtomicU8::from_ptr(place.as_ptr()) }
    }
}
