//! One stream of records: framed from a window on its input, with compressed records decompressed
//! on the way.
//!
//! ```text
//!   Input  ─► frame ─┬─ any other record ───────────────────────────► record
//!                     └─ COMPRESSED: piece ─► Decompressor ─► frame ─► record
//! ```
//!
//! Records of a compressed stream have the offset of the COMPRESSED record in which they end.

use super::blocks;
use super::containers::Containers;
use super::frames::frame;
use super::window::Input;
use crate::endian::Endian;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{RawRecord, RecordHeader};

/// A record that was found, and is there until the next one is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) header: RecordHeader,
    /// Offset of the record in the input.
    pub(super) offset: u64,
    /// Length of the record and its payload in bytes.
    pub(super) len: usize,
    is_decompressed: bool,
}

/// A record that is held: it stays in memory until it is released.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldRecord {
    place: blocks::Held,
    pub(super) offset: u64,
    is_decompressed: bool,
}

/// A stream of records.
#[derive(Debug)]
pub(super) struct Stream<I> {
    pub(super) input: I,
    /// Offset in the input of the end of the stream; `u64::MAX` if it goes on to the end of the
    /// input.
    end: u64,
    /// Length of the record that was found last.
    taken: usize,
    /// `true` if the input ended before the stream did.
    is_cut: bool,
    is_done: bool,
    containers: Containers,
}

impl<I: Input> Stream<I> {
    /// Returns the stream of the next `len` bytes of an input; of all bytes for `u64::MAX`.
    pub(super) fn new(input: I, len: u64) -> Self {
        // All ones is the mark of a stream without an end.
        let end = if len == u64::MAX {
            len
        } else {
            input.offset().saturating_add(len).min(u64::MAX - 1)
        };
        Self {
            input,
            end,
            taken: 0,
            is_cut: false,
            is_done: false,
            containers: Containers::default(),
        }
    }

    /// Returns whether the stream has no more records.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns whether the input ended before the stream did.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the number of bytes that held records keep in memory.
    #[inline]
    pub(super) fn pinned(&self) -> usize {
        self.input.pinned() + self.containers.blocks.pinned()
    }

    /// Finds the next record. `None` at the end of the stream, and after an error.
    #[inline]
    pub(super) fn advance(&mut self, endian: Endian) -> Result<Option<Found>> {
        if self.is_done {
            return Ok(None);
        }
        let outcome = self.find(endian);
        self.is_done = !matches!(outcome, Ok(Some(_)));
        outcome
    }

    /// Skips what is left of the stream, such as the records after a damaged one.
    pub(super) fn skip(&mut self) -> Result<()> {
        self.is_done = true;
        while self.end < u64::MAX && self.input.offset() < self.end {
            let len = usize::try_from(self.end - self.input.offset()).unwrap_or(usize::MAX);
            self.input.consume(len);
            if self.input.offset() < self.end && !self.input.grow()? {
                self.is_cut = true;
                break;
            }
        }
        Ok(())
    }

    /// Returns the record that was found last.
    #[inline]
    pub(super) fn record(&self, found: Found) -> RawRecord<'_> {
        let bytes =
            if found.is_decompressed { self.containers.blocks.bytes() } else { self.input.bytes() };
        let bytes = bytes.get(..found.len).unwrap_or_default();
        let (bytes, payload) = bytes.split_at_checked(found.header.len()).unwrap_or((bytes, &[]));
        RawRecord { header: found.header, offset: found.offset, bytes, payload }
    }

    /// Holds the record that was found last.
    #[inline]
    pub(super) fn hold(&mut self, found: Found) -> HeldRecord {
        let place =
            if found.is_decompressed { self.containers.blocks.hold() } else { self.input.hold() };
        HeldRecord { place, offset: found.offset, is_decompressed: found.is_decompressed }
    }

    /// Returns a held record.
    #[inline]
    pub(super) fn held(&self, held: HeldRecord, endian: Endian) -> Result<RawRecord<'_>> {
        let blocks = &self.containers.blocks;
        let bytes =
            if held.is_decompressed { blocks.get(held.place) } else { self.input.held(held.place) };
        frame(bytes, held.offset, endian)
    }

    /// Releases a held record.
    pub(super) fn release(&mut self, held: HeldRecord) {
        if held.is_decompressed {
            self.containers.blocks.release(held.place);
        } else {
            self.input.release(held.place);
        }
    }

    #[inline]
    fn find(&mut self, endian: Endian) -> Result<Option<Found>> {
        loop {
            if let Some((header, offset, len)) = self.containers.advance(endian)? {
                return Ok(Some(Found { header, offset, len, is_decompressed: true }));
            }
            self.input.consume(std::mem::take(&mut self.taken));
            let Some((header, len)) = self.frame(endian)? else {
                self.containers.finish(endian)?;
                return Ok(None);
            };
            self.taken = len;
            let found = Found { header, offset: self.input.offset(), len, is_decompressed: false };
            if !Containers::is_container(header.kind) {
                return Ok(Some(found));
            }
            let bytes = self.input.bytes().get(..len).unwrap_or_default();
            self.containers
                .feed(&RawRecord { header, offset: found.offset, bytes, payload: &[] }, endian)?;
        }
    }

    /// Returns the header of the next record in the window and its length with its payload; `None`
    /// at the end.
    #[inline]
    fn frame(&mut self, endian: Endian) -> Result<Option<(RecordHeader, usize)>> {
        loop {
            let (bytes, offset) = (self.input.bytes(), self.input.offset());
            // How many of the bytes belong to the stream.
            let len = usize::try_from(self.end - offset)
                .map_or(bytes.len(), |left| left.min(bytes.len()));
            let is_whole = offset + len as u64 == self.end;
            let error = match bytes.get(..len).unwrap_or_default() {
                [] if is_whole => return Ok(None),
                [] => None,
                bytes => match frame(bytes, offset, endian) {
                    Ok(raw) => return Ok(Some((raw.header, raw.bytes.len() + raw.payload.len()))),
                    Err(error)
                        if is_whole || !matches!(error.kind, ErrorKind::Truncated { .. }) =>
                    {
                        return Err(error);
                    }
                    Err(error) => Some(error),
                },
            };
            // A record that ends behind the stream is not waited for.
            if let Some(Error { kind: ErrorKind::Truncated { what, needed, left }, .. }) = &error
                && self.end < u64::MAX
            {
                let left = left + (self.end - offset - len as u64);
                if left < *needed {
                    return Err(Error::truncated(offset, what, *needed, left));
                }
            }
            if !self.input.grow()? {
                self.is_cut = self.end < u64::MAX;
                return error.map_or(Ok(None), Err);
            }
        }
    }
}
