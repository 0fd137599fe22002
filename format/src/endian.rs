//! The byte order of a file, known only once its magic was read.
//!
//! A perf.data file is written in the byte order of the machine that recorded it, and says so only
//! by how its magic reads. So the order is a value, not a type: one branch per read, always
//! predicted, instead of every reader compiled twice. Each branch is one of byteorder's types.

use byteorder::{BigEndian, ByteOrder, LittleEndian};

/// The byte order of a perf.data stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first (x86, arm64, riscv).
    Little,
    /// Most significant byte first (s390, ppc64 of old).
    Big,
}

macro_rules! numbers {
    ($($number:ident: $len:literal, $read:ident, $write:ident, $bytes_of:ident, $at:ident;)*) => {$(
        /// Reads a number.
        #[inline]
        pub fn $number(self, bytes: [u8; $len]) -> $number {
            match self {
                Self::Little => LittleEndian::$read(&bytes),
                Self::Big => BigEndian::$read(&bytes),
            }
        }

        /// Returns the bytes of a number.
        #[inline]
        pub fn $bytes_of(self, value: $number) -> [u8; $len] {
            let mut bytes = [0; $len];
            match self {
                Self::Little => LittleEndian::$write(&mut bytes, value),
                Self::Big => BigEndian::$write(&mut bytes, value),
            }
            bytes
        }

        /// Reads the number at byte `at` of `bytes`; `None` unless all of it lies inside.
        #[inline]
        pub fn $at(self, bytes: &[u8], at: usize) -> Option<$number> {
            let end = at.checked_add($len)?;
            bytes.get(at..end)?.try_into().ok().map(|bytes| self.$number(bytes))
        }
    )*};
}

impl Endian {
    /// The byte order of the machine this code runs on: what a recorder writes.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    numbers! {
        u16: 2, read_u16, write_u16, bytes_u16, u16_at;
        u32: 4, read_u32, write_u32, bytes_u32, u32_at;
        u64: 8, read_u64, write_u64, bytes_u64, u64_at;
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
