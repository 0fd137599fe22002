//! The records in COMPRESSED and COMPRESSED2 records.

use super::decompress::Decompressor;
use super::frames::frame;
use crate::abi::RecordType;
use crate::bytes::Cursor;
use crate::endian::Endian;
use crate::error::{ErrorKind, Result};
use crate::record::{Compressed, Compressed2, HEADER_SIZE, RawRecord};
use crate::wire::Wire;

/// The zstd stream of a stream of records: the piece being decompressed, and its output that was not yet consumed.
#[derive(Debug, Default)]
pub(super) struct Containers {
    /// `None` before the first piece.
    decompressor: Option<Decompressor>,
    /// The piece, and how much of it was consumed.
    piece: Vec<u8>,
    consumed: usize,
    /// Whether all output of the piece is in `output`.
    is_drained: bool,
    /// Output; records begin at `start`.
    output: Vec<u8>,
    start: usize,
    /// Length of the record that was returned last.
    taken: usize,
    /// Offset of the record that holds the piece.
    offset: u64,
}

impl Containers {
    /// Maximum number of bytes held for one record. Records with a payload are not compressed by any recorder, and the
    /// others have at most 64 KiB.
    const MAX_HELD: usize = 64 << 20;

    /// Takes the piece of a COMPRESSED or COMPRESSED2 record. Returns `false` for other records, and without `zstd`.
    ///
    /// # Errors
    /// Returns an error if the record is too short, or zstd cannot allocate memory.
    pub(super) fn feed(&mut self, raw: &RawRecord<'_>, endian: Endian) -> Result<bool> {
        let mut c = Cursor::new(raw.body(), raw.offset + HEADER_SIZE as u64, endian);
        let piece = match raw.header.kind {
            RecordType::COMPRESSED => Compressed::decode(&mut c, "COMPRESSED")?.data,
            RecordType::COMPRESSED2 => Compressed2::decode(&mut c, "COMPRESSED2")?.stream(),
            _ => return Ok(false),
        };
        if !cfg!(feature = "zstd") {
            return Ok(false);
        }
        if self.decompressor.is_none() {
            self.decompressor = Some(Decompressor::new()?);
        }
        self.piece.clear();
        self.piece.extend_from_slice(piece);
        (self.consumed, self.is_drained, self.offset) = (0, false, raw.offset);
        Ok(true)
    }

    /// Returns the held output, from the record that was found last on.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.output.get(self.start..).unwrap_or_default()
    }

    /// Finds the next record in the output, and releases the one before it: its offset and its length with its payload.
    /// `None` if the next piece is needed.
    ///
    /// # Errors
    /// Returns an error if the piece or a record is damaged.
    #[inline]
    pub(super) fn advance(&mut self, endian: Endian) -> Result<Option<(u64, usize)>> {
        let Some(decompressor) = &mut self.decompressor else { return Ok(None) };
        self.start += std::mem::take(&mut self.taken);
        loop {
            let held = self.output.get(self.start..).unwrap_or_default();
            match frame(held, self.offset, endian) {
                Ok(raw) => {
                    self.taken = raw.bytes.len() + raw.payload.len();
                    return Ok(Some((self.offset, self.taken)));
                }
                Err(error) if !matches!(error.kind, ErrorKind::Truncated { .. }) => return Err(error),
                Err(error) if held.len() > Self::MAX_HELD => return Err(error),
                Err(_) if self.is_drained => return Ok(None),
                Err(_) => {}
            }
            self.output.drain(..self.start);
            self.start = 0;
            let mut left = self.piece.get(self.consumed..).unwrap_or_default();
            self.is_drained = decompressor.step(&mut left, self.offset, usize::MAX, &mut self.output)?;
            self.consumed = self.piece.len() - left.len();
        }
    }

    /// Fails if the stream ends inside a record.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Truncated`] then.
    pub(super) fn finish(&self, endian: Endian) -> Result<()> {
        let held = self.bytes();
        if held.is_empty() { Ok(()) } else { frame(held, self.offset, endian).map(drop) }
    }
}
