//! The index of functions in files for 32-bit ARM.

use std::ops::{Deref, Range};

use recrep_format::endian::Endian;

/// `.ARM.exidx` (Exception Handling ABI for the Arm Architecture, section 6): an entry of 8 bytes
/// for each function, the distance to it and how it is unwound, in the order of their addresses. A
/// function ends where the next one begins; the last entry is the end of all code.
#[derive(Clone, Copy, Debug)]
pub struct ArmIndex<B> {
    /// Linked address of the section.
    pub address: u64,
    /// Its contents.
    pub bytes: B,
    /// Byte order of the file.
    pub endian: Endian,
}

impl<B: Deref<Target = [u8]>> ArmIndex<B> {
    /// Returns the number of entries.
    pub fn functions(&self) -> usize {
        self.entries().len()
    }

    /// Returns the place of the last entry that is not behind a linked address.
    pub fn function_at(&self, address: u64) -> Option<usize> {
        self.entries_until(address)?.checked_sub(1)
    }

    /// Returns the first linked address behind this one at which a function begins, or the code ends.
    pub fn start_behind(&self, address: u64) -> Option<u64> {
        self.start(self.entries_until(address)?)
    }

    /// Returns the number of entries for this linked address and those before.
    fn entries_until(&self, address: u64) -> Option<usize> {
        let (mut from, mut until) = (0, self.functions());
        while from < until {
            let middle = from.midpoint(until);
            match self.start(middle)? <= address {
                true => from = middle + 1,
                false => until = middle,
            }
        }
        Some(from)
    }

    /// Returns the linked addresses of the function at a place; `None` for the last entry.
    pub fn function(&self, place: usize) -> Option<Range<u64>> {
        let function = self.start(place)?..self.start(place.checked_add(1)?)?;
        (!function.is_empty()).then_some(function)
    }

    fn entries(&self) -> &[[u8; 8]] {
        self.bytes.as_chunks().0
    }

    /// Returns the start of the function that an entry is for.
    fn start(&self, place: usize) -> Option<u64> {
        let [a, b, c, d, ..] = *self.entries().get(place)?;
        let at = self.address.wrapping_add(8 * place as u64);
        // The distance has 31 bits. The lowest bit of an address is that of Thumb code.
        let distance = (self.endian.u32([a, b, c, d]) << 1).cast_signed() >> 1;
        Some(at.wrapping_add_signed(distance.into()) & 0xffff_fffe)
    }
}
