//! One stream of records: framed from a window on its input, with compressed records decompressed on the way.
//!
//! ```text
//!   input ─► Window ─► frame ─┬─ any other record ───────────────────────────► record
//!                             └─ COMPRESSED: piece ─► Decompressor ─► frame ─► record
//! ```
//!
//! Records of a compressed stream have the offset of the COMPRESSED record in which they end.

use std::io::Read;

use super::containers::Containers;
use super::frames::frame;
use super::window::Window;
use crate::endian::Endian;
use crate::error::{Error, ErrorKind, Result};
use crate::record::RawRecord;

/// A record that was found and not yet released.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Offset of the record in the input.
    pub(super) offset: u64,
    /// Length of the record and its payload in bytes.
    pub(super) len: usize,
    /// Whether it was decompressed.
    decompressed: bool,
}

/// A stream of records.
#[derive(Debug)]
pub(super) struct Stream<R> {
    pub(super) window: Window<R>,
    /// Number of bytes of the stream from the window's beginning on; `u64::MAX` if it goes on to the end of the input.
    left: u64,
    /// Length of the record that was returned last.
    taken: usize,
    /// Whether the input ended before the stream did.
    is_cut: bool,
    is_done: bool,
    containers: Containers,
}

impl<R: Read> Stream<R> {
    /// Returns the stream of the next `len` bytes of a window.
    pub(super) fn new(window: Window<R>, len: u64) -> Self {
        Self { window, left: len, taken: 0, is_cut: false, is_done: false, containers: Containers::default() }
    }

    /// Returns whether the input ended before the stream did.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Finds the next record, and releases the one before it. `None` at the end of the stream, and after an error.
    ///
    /// # Errors
    /// Returns an error if a record is damaged or the input fails.
    pub(super) fn advance(&mut self, endian: Endian) -> Result<Option<Place>> {
        if self.is_done {
            return Ok(None);
        }
        let outcome = self.find(endian);
        self.is_done = !matches!(outcome, Ok(Some(_)));
        outcome
    }

    /// Skips what is left of the stream, such as the records after a damaged one.
    ///
    /// # Errors
    /// Returns the error of the input.
    pub(super) fn skip(&mut self) -> Result<()> {
        self.is_done = true;
        while self.left > 0 && self.left < u64::MAX {
            let held = self.window.bytes().len();
            let len = usize::try_from(self.left).map_or(held, |left| left.min(held));
            self.consume(len);
            if self.left > 0 && !self.window.grow()? {
                self.is_cut = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the record at `place`, the one that was found last.
    #[inline]
    pub(super) fn record(&self, place: Place, endian: Endian) -> Result<RawRecord<'_>> {
        let bytes = if place.decompressed { self.containers.bytes() } else { self.window.bytes() };
        frame(bytes.get(..place.len).unwrap_or_default(), place.offset, endian)
    }

    fn consume(&mut self, len: usize) {
        self.window.consume(len);
        if self.left < u64::MAX {
            self.left -= len as u64;
        }
    }

    fn find(&mut self, endian: Endian) -> Result<Option<Place>> {
        loop {
            if let Some((offset, len)) = self.containers.advance(endian)? {
                return Ok(Some(Place { offset, len, decompressed: true }));
            }
            let taken = std::mem::take(&mut self.taken);
            self.consume(taken);
            let Some(raw) = framed(&mut self.window, self.left, &mut self.is_cut, endian)? else {
                self.containers.finish(endian)?;
                return Ok(None);
            };
            self.taken = raw.bytes.len() + raw.payload.len();
            if self.containers.feed(&raw, endian)? {
                continue;
            }
            return Ok(Some(Place { offset: raw.offset, len: self.taken, decompressed: false }));
        }
    }
}

/// Returns the record at the beginning of the window; `None` at the end of the stream, which has `left` more bytes.
#[inline]
fn framed<'w, R: Read>(
    window: &'w mut Window<R>,
    left: u64,
    is_cut: &mut bool,
    endian: Endian,
) -> Result<Option<RawRecord<'w>>> {
    loop {
        let held = window.bytes();
        let len = usize::try_from(left).map_or(held.len(), |left| left.min(held.len()));
        let is_whole = len as u64 == left;
        let outcome = match held.get(..len).unwrap_or_default() {
            [] if is_whole => return Ok(None),
            [] => None,
            bytes => Some(frame(bytes, window.offset(), endian)),
        };
        let error: Option<Error> = match outcome {
            // Framed again, because the borrow checker does not see that the window is not grown then.
            Some(Ok(_)) => break,
            Some(Err(error)) if is_whole || !matches!(error.kind, ErrorKind::Truncated { .. }) => return Err(error),
            outcome => outcome.and_then(Result::err),
        };
        if !window.grow()? {
            *is_cut = left < u64::MAX;
            return error.map_or(Ok(None), Err);
        }
    }
    let held = window.bytes();
    let len = usize::try_from(left).map_or(held.len(), |left| left.min(held.len()));
    frame(held.get(..len).unwrap_or_default(), window.offset(), endian).map(Some)
}
