//! The records in COMPRESSED and COMPRESSED2 records.

use super::blocks::Blocks;
#[cfg(feature = "zstd")]
use super::decompress::Decompressor;
use super::frames::frame;
use crate::abi::RecordType;
use crate::endian::Endian;
use crate::error::{ErrorKind, Result};
use crate::record::{RawRecord, RecordHeader};

/// In the place of the decompressor where the crate is built without `zstd`: there is none, and
/// COMPRESSED records are returned as they are.
#[cfg(not(feature = "zstd"))]
#[derive(Debug)]
enum Decompressor {}

#[cfg(not(feature = "zstd"))]
impl Decompressor {
    fn new() -> Result<Self> {
        Err(crate::error::Error::invalid(0, "COMPRESSED", "built without the feature zstd"))
    }

    fn step(&mut self, _: &mut &[u8], _: u64, _: &mut [u8]) -> Result<(usize, bool)> {
        match *self {}
    }
}

/// The zstd stream of a stream of records: the piece being decompressed, and its output.
#[derive(Debug, Default)]
pub(super) struct Containers {
    /// `None` before the first piece.
    decompressor: Option<Decompressor>,
    /// The piece, and how much of it was consumed.
    piece: Vec<u8>,
    consumed: usize,
    /// `true` if all output of the piece is in `blocks`.
    is_drained: bool,
    /// The output.
    pub(super) blocks: Blocks,
    /// Length of the record that was found last.
    taken: usize,
    /// Offset of the record that holds the piece.
    offset: u64,
}

impl Containers {
    /// Maximum number of bytes of a record and its payload. No recorder compresses records with a
    /// payload, and the others have at most 64 KiB.
    const MAX_RECORD: usize = 64 << 20;

    /// Returns whether records of this type are decompressed.
    #[inline]
    pub(super) fn is_container(kind: RecordType) -> bool {
        cfg!(feature = "zstd") && matches!(kind, RecordType::COMPRESSED | RecordType::COMPRESSED2)
    }

    /// Takes the piece of a COMPRESSED or COMPRESSED2 record.
    pub(super) fn feed(&mut self, raw: &RawRecord<'_>, endian: Endian) -> Result<()> {
        let Some(piece) = raw.compressed_piece(endian) else { return Ok(()) };
        let piece = piece?;
        if self.decompressor.is_none() {
            self.decompressor = Some(Decompressor::new()?);
        }
        self.piece.clear();
        self.piece.extend_from_slice(piece);
        (self.consumed, self.is_drained, self.offset) = (0, false, raw.offset);
        Ok(())
    }

    /// Finds the next record in the output: its header, its offset and its length with its payload.
    /// `None` if the next piece is needed.
    #[inline]
    pub(super) fn advance(&mut self, endian: Endian) -> Result<Option<(RecordHeader, u64, usize)>> {
        let Some(decompressor) = &mut self.decompressor else { return Ok(None) };
        self.blocks.consume(std::mem::take(&mut self.taken));
        loop {
            let bytes = self.blocks.bytes();
            match frame(bytes, self.offset, endian) {
                Ok(raw) => {
                    self.taken = raw.bytes.len() + raw.payload.len();
                    return Ok(Some((raw.header, self.offset, self.taken)));
                }
                Err(error) if !matches!(error.kind, ErrorKind::Truncated { .. }) => {
                    return Err(error);
                }
                Err(error) if bytes.len() > Self::MAX_RECORD => return Err(error),
                Err(_) if self.is_drained => return Ok(None),
                Err(_) => {}
            }
            let mut piece = self.piece.get(self.consumed..).unwrap_or_default();
            let (written, is_done) =
                decompressor.step(&mut piece, self.offset, self.blocks.room())?;
            self.blocks.append(written);
            (self.consumed, self.is_drained) = (self.piece.len() - piece.len(), is_done);
        }
    }

    /// Checks that the stream does not end inside a record.
    pub(super) fn finish(&self, endian: Endian) -> Result<()> {
        let bytes = self.blocks.bytes();
        if bytes.is_empty() { Ok(()) } else { frame(bytes, self.offset, endian).map(drop) }
    }
}
