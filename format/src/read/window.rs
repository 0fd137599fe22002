//! A window on an input that moves forward: the bytes that were read and not yet consumed.
//!
//! ```text
//!   input    ░░░░░░░░░░░░░░░░░░│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│············
//!            consumed           in memory       not yet read
//!                               ^ offset
//! ```
//!
//! The window grows only as far as one record with its payload needs, and only with bytes that were really read: a record
//! that claims gigabytes takes no more memory than the input is long.

use std::io::{ErrorKind, Read};

use super::blocks::Blocks;
use crate::error::{Error, Result};

/// Bytes of an input, from the first that was not consumed on.
#[derive(Debug)]
pub(super) struct Window<R> {
    input: R,
    pub(super) blocks: Blocks,
    /// Offset in the input of the first byte.
    offset: u64,
    /// Whether the input has ended.
    ended: bool,
}

impl<R: Read> Window<R> {
    /// Returns a window at the beginning of `input`; nothing is read yet.
    pub(super) fn new(input: R) -> Self {
        Self { input, blocks: Blocks::default(), offset: 0, ended: false }
    }

    /// Returns the bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.blocks.bytes()
    }

    /// Returns the offset in the input of the first byte.
    #[inline]
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Drops the first `len` bytes.
    #[inline]
    pub(super) fn consume(&mut self, len: usize) {
        let len = len.min(self.bytes().len());
        self.blocks.consume(len);
        self.offset += len as u64;
    }

    /// Reads more bytes. Returns `false` if the input has ended.
    ///
    /// # Errors
    /// Returns the error of the input.
    pub(super) fn grow(&mut self) -> Result<bool> {
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
        let end = || self.offset + self.blocks.bytes().len() as u64;
        let read = read.map_err(|error| Error::io(end(), &error))?;
        self.blocks.append(read);
        self.ended = read == 0;
        Ok(!self.ended)
    }

    /// Reads until there are `len` bytes. Returns whether there are so many.
    ///
    /// # Errors
    /// Returns the error of the input.
    pub(super) fn fill(&mut self, len: u64) -> Result<bool> {
        while (self.bytes().len() as u64) < len {
            if !self.grow()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
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
            let mut window = Window::new(Slow(&all, step, false));
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
        let mut window = Window::new(Broken(0));
        let error = window.fill(100).unwrap_err();
        assert_eq!((error.offset, error.kind.code()), (20, "io"));
    }
}
