//! The byte order of a file, known only once its magic was read.
//!
//! A perf.data file is written in the byte order of the machine that recorded it, and says so only
//! by how its magic reads. So the order is a value, not a type: one branch per read, always
//! predicted, instead of every reader compiled twice.

use byteorder::{BigEndian, ByteOrder, LittleEndian};

/// The byte order of a perf.data stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first (x86, arm64, riscv).
    Little,
    /// Most significant byte first (s390, ppc64 of old).
    Big,
}

impl Endian {
    /// The byte order of the machine this code runs on: what a recorder writes.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// Reads two bytes.
    #[inline]
    #[must_use]
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => LittleEndian::read_u16(&bytes),
            Self::Big => BigEndian::read_u16(&bytes),
        }
    }

    /// Reads four bytes.
    #[inline]
    #[must_use]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => LittleEndian::read_u32(&bytes),
            Self::Big => BigEndian::read_u32(&bytes),
        }
    }

    /// Reads eight bytes.
    #[inline]
    #[must_use]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => LittleEndian::read_u64(&bytes),
            Self::Big => BigEndian::read_u64(&bytes),
        }
    }

    /// Returns the two bytes of `value`.
    #[inline]
    #[must_use]
    pub fn bytes_u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// Returns the four bytes of `value`.
    #[inline]
    #[must_use]
    pub fn bytes_u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// Returns the eight bytes of `value`.
    #[inline]
    #[must_use]
    pub fn bytes_u64(self, value: u64) -> [u8; 8] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// Reads the `u64` at byte `at` of `bytes`; `None` where it is not wholly inside.
    #[inline]
    #[must_use]
    pub fn u64_at(self, bytes: &[u8], at: usize) -> Option<u64> {
        let end = at.checked_add(8)?;
        bytes.get(at..end)?.try_into().ok().map(|b| self.u64(b))
    }

    /// Reads the `u32` at byte `at` of `bytes`; `None` where it is not wholly inside.
    #[inline]
    #[must_use]
    pub fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        let end = at.checked_add(4)?;
        bytes.get(at..end)?.try_into().ok().map(|b| self.u32(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_read_what_they_write() {
        for order in [Endian::Little, Endian::Big] {
            assert_eq!(order.u16(order.bytes_u16(0x0102)), 0x0102);
            assert_eq!(order.u32(order.bytes_u32(0x0102_0304)), 0x0102_0304);
            assert_eq!(order.u64(order.bytes_u64(0x0102_0304_0506_0708)), 0x0102_0304_0506_0708);
        }
        assert_eq!(Endian::Big.bytes_u32(1), [0, 0, 0, 1]);
        assert_eq!(Endian::Little.bytes_u32(1), [1, 0, 0, 0]);
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        let bytes = [0u8; 12];
        assert_eq!(Endian::Little.u64_at(&bytes, 4), Some(0));
        assert_eq!(Endian::Little.u64_at(&bytes, 5), None);
        assert_eq!(Endian::Little.u64_at(&bytes, usize::MAX), None);
        assert_eq!(Endian::Big.u32_at(&bytes, 8), Some(0));
        assert_eq!(Endian::Big.u32_at(&bytes, 9), None);
    }
}
