//! A window on an input that moves forward: the bytes that were read and not yet consumed.
//!
//! ```text
//!   input    ░░░░░░░░░░░░░░░░░░│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│············
//!            consumed, dropped  held in memory  not yet read
//!                               ^ offset
//! ```
//!
//! The window grows only as far as one record with its payload needs, and only with bytes that were really read: a record
//! that claims gigabytes takes no more memory than the input is long.

use std::io::{ErrorKind, Read};

use crate::error::{Error, Result};

/// Bytes of an input, from the first that was not consumed on.
#[derive(Debug)]
pub(super) struct Window<R> {
    input: R,
    buffer: Vec<u8>,
    /// Where the held bytes begin and end in `buffer`.
    start: usize,
    end: usize,
    /// Offset in the input of the first held byte.
    offset: u64,
    /// Whether the input has ended.
    ended: bool,
}

impl<R: Read> Window<R> {
    /// Initial length of the buffer, in bytes.
    const CAPACITY: usize = 256 << 10;

    /// Returns a window at the beginning of `input`; nothing is read yet.
    pub(super) fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), start: 0, end: 0, offset: 0, ended: false }
    }

    /// Returns the held bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the offset in the input of the first held byte.
    #[inline]
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Drops the first `len` held bytes.
    #[inline]
    pub(super) fn consume(&mut self, len: usize) {
        let len = len.min(self.end - self.start);
        self.start += len;
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
        if self.end == self.buffer.len() {
            if self.start > 0 && self.start >= self.buffer.len() / 2 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            } else {
                let len = (self.buffer.len() * 2).max(Self::CAPACITY);
                self.buffer.resize(len, 0);
            }
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let read = loop {
            match self.input.read(room) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        let read = read.map_err(|error| Error::io(self.offset + (self.end - self.start) as u64, &error))?;
        self.end += read.min(room.len());
        self.ended = read == 0;
        Ok(!self.ended)
    }

    /// Reads until `len` bytes are held. Returns whether so many are.
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
            assert!(window.buffer.len() <= 2 * Window::<Slow<'_>>::CAPACITY, "{}", window.buffer.len());
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
