//! A checked cursor that knows its offset, and its counterpart that writes.
//!
//! Nothing in this crate indexes into input: all reading goes through [`Cursor`] (or
//! [`Endian::u64_at`] for a field at a known place), whose every step is checked and whose errors
//! carry the absolute byte offset.

use std::hint::black_box;

use crate::endian::Endian;
use crate::error::{Error, Result};

/// Reads forward through a slice of a file; every error says at which byte of the file.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    offset: u64,
    endian: Endian,
}

macro_rules! read_numbers {
    ($($number:ident;)*) => {$(
        /// Returns a number in the byte order of the file.
        pub fn $number(&mut self, what: &'static str) -> Result<$number> {
            let endian = self.endian;
            self.array(what).map(|bytes| endian.$number(bytes))
        }
    )*};
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the start of `bytes`, which begin at byte `offset` of the file.
    pub fn new(bytes: &'a [u8], offset: u64, endian: Endian) -> Self {
        Self { bytes, offset, endian }
    }

    /// Returns the offset in the file of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the byte order in which numbers are read.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the number of bytes left.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the next `len` bytes; `what` names them in the error.
    pub fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8]> {
        match self.bytes.split_at_checked(len) {
            Some((head, tail)) => {
                self.bytes = tail;
                self.offset += len as u64;
                Ok(head)
            }
            None => Err(Error::truncated(self.offset, what, len as u64, self.bytes.len() as u64)),
        }
    }

    /// Returns the next `count` × 8 bytes, as numbers read when asked for.
    #[inline]
    pub(crate) fn take_u64s(&mut self, count: u64, what: &'static str) -> Result<U64s<'a>> {
        // No slice is as long as the largest length.
        let len = usize::try_from(count.saturating_mul(8)).unwrap_or(usize::MAX);
        Ok(U64s { bytes: self.take(len, what)?, endian: self.endian })
    }

    /// Returns all that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let all = std::mem::take(&mut self.bytes);
        self.offset += all.len() as u64;
        all
    }

    /// Returns the next `N` bytes.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        match self.bytes.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.bytes = tail;
                self.offset += N as u64;
                Ok(*head)
            }
            None => Err(Error::truncated(self.offset, what, N as u64, self.bytes.len() as u64)),
        }
    }

    /// Returns a byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8> {
        self.array::<1>(what).map(|[b]| b)
    }

    read_numbers! { u16; u32; u64; }
}

/// An array of 64-bit numbers where it lies in the file: unaligned, in the file's byte order.
#[derive(Clone, Copy)]
pub struct U64s<'a> {
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> U64s<'a> {
    /// Returns the numbers in `bytes`; bytes after the last whole number are ignored.
    pub fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self { bytes: bytes.get(..bytes.len() / 8 * 8).unwrap_or_default(), endian }
    }

    /// Returns the byte order in which they lie.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the number of numbers.
    pub fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.endian.u64_at(self.bytes, index.checked_mul(8)?)
    }

    /// Returns the numbers in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + use<'a> {
        let endian = self.endian;
        self.bytes.as_chunks::<8>().0.iter().map(move |b| endian.u64(*b))
    }

    /// Returns the bytes as they lie in the file.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl PartialEq for U64s<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for U64s<'_> {}

impl std::fmt::Debug for U64s<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|v| format!("{v:#x}"))).finish()
    }
}

/// Appends numbers to a buffer in a given byte order: the other half of [`Cursor`].
#[derive(Clone, Debug)]
pub struct Encoder {
    bytes: Vec<u8>,
    endian: Endian,
}

macro_rules! put_numbers {
    ($($number:ident, $bytes_of:ident;)*) => {$(
        /// Appends a number.
        pub fn $number(&mut self, value: $number) {
            self.bytes(&self.endian.$bytes_of(value));
        }
    )*};
}

impl Encoder {
    /// Returns an empty buffer that writes in `endian`.
    pub fn new(endian: Endian) -> Self {
        Self { bytes: Vec::new(), endian }
    }

    /// Returns the byte order in which numbers are written.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the number of bytes written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the buffer, with the bytes written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Forgets what was written and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Forgets what was written after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Appends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends bytes, and zeroes up to `len` bytes in all.
    pub fn padded(&mut self, bytes: &[u8], len: usize) {
        self.bytes(bytes);
        self.bytes.resize(self.bytes.len() + len.saturating_sub(bytes.len()), 0);
    }

    /// Appends a byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    put_numbers! { u16, bytes_u16; u32, bytes_u32; u64, bytes_u64; }

    /// Appends a length as a 32-bit number; `what` names it in the error.
    ///
    /// # Errors
    /// Returns an error if the length takes more than 32 bits.
    pub fn length(&mut self, len: usize, what: &'static str) -> Result<()> {
        let short = u32::try_from(len).map_err(|_| {
            Error::invalid(self.len() as u64, what, format!("{len} is more than 32 bits can say"))
        })?;
        self.u32(short);
        Ok(())
    }

    /// Appends 64-bit numbers.
    pub(crate) fn u64s(&mut self, values: &U64s<'_>) {
        if values.endian == self.endian {
            self.bytes.extend_from_slice(values.bytes);
        } else {
            for value in values.iter() {
                self.u64(value);
            }
        }
    }

    /// Overwrites the `u16` at `at`, which must have been written before; returns whether it was.
    pub(crate) fn patch_u16(&mut self, at: usize, value: u16) -> bool {
        let new = self.endian.bytes_u16(value);
        match at.checked_add(2).and_then(|end| self.bytes.get_mut(at..end)) {
            Some(old) => {
                old.copy_from_slice(&new);
                true
            }
            None => false,
        }
    }
}

/// Reads words whose values nobody needs: since no load depends on another, the processor waits for
/// many at once, and the words are in a core's cache when they are needed.
#[inline]
pub fn read_early(words: impl Iterator<Item = u64>) {
    black_box(words.fold(0, |all, word| all ^ word));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_forward_and_keeps_the_offset() {
        let mut c = Cursor::new(&[1, 0, 2, 0, 0, 0, 9], 100, Endian::Little);
        assert_eq!(c.u16("a").unwrap(), 1);
        assert_eq!(c.u32("b").unwrap(), 2);
        assert_eq!(c.offset(), 106);
        let e = c.u64("c").unwrap_err();
        assert_eq!(e, Error::truncated(106, "c", 8, 1));
        assert_eq!(c.u8("d").unwrap(), 9);
        assert!(c.is_empty());
    }

    #[test]
    fn a_count_that_cannot_be_is_an_error_not_an_allocation() {
        let mut c = Cursor::new(&[0; 16], 0, Endian::Big);
        assert!(c.take_u64s(u64::MAX, "ips").is_err());
        assert_eq!(c.take_u64s(2, "ips").unwrap().len(), 2);
    }

    #[test]
    fn arrays_keep_their_values_across_byte_orders() {
        let mut big = Encoder::new(Endian::Big);
        big.u64(1);
        big.u64(2);
        let numbers = U64s::new(big.as_bytes(), Endian::Big);
        let mut little = Encoder::new(Endian::Little);
        little.u64s(&numbers);
        assert_eq!(U64s::new(little.as_bytes(), Endian::Little), numbers);
        assert_eq!(numbers.iter().rev().collect::<Vec<_>>(), [2, 1]);
        assert_eq!(numbers.get(2), None);
    }

    #[test]
    fn a_length_beyond_32_bits_is_refused() {
        let mut e = Encoder::new(Endian::Big);
        e.length(0x0102, "a list").unwrap();
        assert!(e.length(1 << 32, "a list").is_err());
        assert_eq!(e.as_bytes(), [0, 0, 1, 2]);
    }

    #[test]
    fn a_size_is_patched_only_where_something_is() {
        let mut e = Encoder::new(Endian::Little);
        e.u32(0);
        assert!(e.patch_u16(2, 7));
        assert!(!e.patch_u16(3, 7));
        assert_eq!(e.as_bytes(), [0, 0, 7, 0]);
    }

    #[test]
    fn bytes_behind_the_last_whole_number_do_not_count() {
        let words = U64s::new(&[1; 10], Endian::Little);
        let mut e = Encoder::new(Endian::Little);
        e.u64s(&words);
        assert_eq!((words.len(), e.len(), words.as_bytes().len()), (1, 8, 8));
    }
}
