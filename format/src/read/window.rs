//! Inputs that are read front to back: a window on them moves forward.
//!
//! ```text
//!   input    ░░░░░░░░░░░░░░░░░░│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│············
//!            consumed           in memory       not yet read
//!                               ^ offset
//! ```
//!
//! The window grows only as far as one record with its payload needs, and only with bytes that were
//! really read: a record that claims gigabytes takes no more memory than the input is long. Of
//! bytes in memory the window is all that was not consumed.

use std::io::{ErrorKind, Read};

use super::blocks::{self, Blocks};
use crate::error::{Error, Result};

/// Input of a [`Recording`](super::Recording): [`Reader`], or [`Memory`]. Its methods are the
/// crate's own.
pub trait Input: sealed::Bytes {}

impl<I: sealed::Bytes> Input for I {}

pub(super) mod sealed {
    use super::blocks;
    use crate::error::Result;

    /// Bytes of an input, from the first that was not consumed on.
    pub trait Bytes {
        /// Returns the bytes that are in memory.
        fn bytes(&self) -> &[u8];

        /// Returns the offset in the input of the first byte.
        fn offset(&self) -> u64;

        /// Drops the first `len` bytes.
        fn consume(&mut self, len: usize);

        /// Reads more bytes. Returns `false` if the input has ended.
        fn grow(&mut self) -> Result<bool>;

        /// Holds the first record; it stays in memory until it is released.
        fn hold(&mut self) -> blocks::Held;

        /// Returns a held record, and what follows it in memory.
        fn held(&self, held: blocks::Held) -> &[u8];

        /// Releases a held record.
        fn release(&mut self, held: blocks::Held);

        /// Returns the number of bytes that held records keep in memory.
        fn pinned(&self) -> usize;

        /// Reads until there are `len` bytes. Returns whether there are so many.
        fn fill(&mut self, len: u64) -> Result<bool> {
            while (self.bytes().len() as u64) < len {
                if !self.grow()? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// An input that is read front to back.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    blocks: Blocks,
    /// Offset in the input of the first byte.
    offset: u64,
    /// `true` if the input has ended.
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Returns a window at the beginning of `input`; nothing is read yet.
    pub(super) fn new(input: R) -> Self {
        Self { input, blocks: Blocks::default(), offset: 0, ended: false }
    }
}

impl<R: Read> sealed::Bytes for Reader<R> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.blocks.bytes()
    }

    #[inline]
    fn offset(&self) -> u64 {
        self.offset
    }

    #[inline]
    fn consume(&mut self, len: usize) {
        let len = len.min(self.blocks.bytes().len());
        self.blocks.consume(len);
        self.offset += len as u64;
    }

    fn grow(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let room = self.blocks.room();
        let read = loop {
            match self.input.read(room) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        let end = self.offset + self.blocks.bytes().len() as u64;
        let read = read.map_err(|error| Error::io(end, &error))?;
        self.blocks.append(read);
        self.ended = read == 0;
        Ok(!self.ended)
    }

    #[inline]
    fn hold(&mut self) -> blocks::Held {
        self.blocks.hold()
    }

    #[inline]
    fn held(&self, held: blocks::Held) -> &[u8] {
        self.blocks.get(held)
    }

    #[inline]
    fn release(&mut self, held: blocks::Held) {
        self.blocks.release(held);
    }

    #[inline]
    fn pinned(&self) -> usize {
        self.blocks.pinned()
    }
}

/// Bytes in memory: records are not copied.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    bytes: &'a [u8],
    /// Number of bytes that were consumed.
    start: usize,
}

impl<'a> Memory<'a> {
    /// Returns the bytes as an input.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, start: 0 }
    }
}

impl sealed::Bytes for Memory<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    #[inline]
    fn offset(&self) -> u64 {
        self.start as u64
    }

    #[inline]
    fn consume(&mut self, len: usize) {
        self.start += len.min(self.bytes.len() - self.start);
    }

    fn grow(&mut self) -> Result<bool> {
        Ok(false)
    }

    #[inline]
    fn hold(&mut self) -> blocks::Held {
        blocks::Held::at(self.start)
    }

    #[inline]
    fn held(&self, held: blocks::Held) -> &[u8] {
        self.bytes.get(held.start()..).unwrap_or_default()
    }

    #[inline]
    fn release(&mut self, _: blocks::Held) {}

    #[inline]
    fn pinned(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::sealed::Bytes as _;
    use super::*;

    /// An input that gives `step` bytes at a time, and is interrupted before each.
    struct Slow<'a>(&'a [u8], usize, bool);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(ErrorKind::Interrupted.into());
            }
            let len = self.1.min(to.len());
            self.0.read(&mut to[..len])
        }
    }

    #[test]
    fn any_steps_give_the_same_bytes() {
        let all: Vec<u8> = (0..=u8::MAX).cycle().step_by(7).take(2_000_000).collect();
        for step in [1_000, 77_777, usize::MAX] {
            let mut window = Reader::new(Slow(&all, step, false));
            let mut back = Vec::new();
            while window.fill(50_000).unwrap() {
                assert_eq!(window.offset(), back.len() as u64);
                back.extend_from_slice(&window.bytes()[..40_000]);
                window.consume(40_000);
            }
            back.extend_from_slice(window.bytes());
            assert!(back == all);
            assert_eq!(window.blocks.len(), Blocks::LEN);
        }
    }

    #[test]
    fn an_error_says_where_the_input_failed() {
        struct Broken(u8);
        impl Read for Broken {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                self.0 += 1;
                if self.0 > 2 { Err(ErrorKind::BrokenPipe.into()) } else { Ok(to.len().min(10)) }
            }
        }
        let mut window = Reader::new(Broken(0));
        let error = window.fill(100).unwrap_err();
        assert_eq!((error.offset, error.kind.code()), (20, "io"));
    }
}
