//! Unpacking of compressed data sections.
//!
//! COMPRESSED and COMPRESSED2 records (containers) hold pieces of one zstd stream. Each is replaced by the records that
//! it unpacks to; a record that starts in one piece and ends in a later one comes where it ends. Messages about
//! unpacked records give offsets in the unpacked section.

use recrep_format::abi::RecordType;
use recrep_format::endian::Endian;
use recrep_format::error::{Error, Result};
use recrep_format::read::{Decompressor, Frames};

/// Maximum ratio of unpacked to packed size. zstd reduces samples that each carry 64 KiB of the same stack to a
/// seven-hundredth; a few bytes that unpack to gigabytes are not a recording.
const MAX_RATIO: usize = 1000;
/// Maximum unpacked size of one container in bytes: recorders pack at most one ring into it, and this is a large ring.
const MAX_CONTAINER: usize = 64 << 20;
/// Unpacked size in bytes that a file of any size may have.
const ALWAYS_ALLOWED: usize = 16 << 20;

/// The data section without its containers.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// The records.
    pub bytes: Vec<u8>,
    /// Number of COMPRESSED containers; COMPRESSED2 ones do not count, as in perf's statistics.
    pub containers: u64,
    /// Error that ended unpacking early.
    pub damage: Option<Error>,
}

/// Returns whether the data has compressed records. perf compresses from the first sample on, so only the headers up to
/// the first sample are read.
#[must_use]
pub fn is_compressed(frames: Frames<'_>, endian: Endian) -> bool {
    let mut first = frames.flatten().take_while(|raw| raw.header.kind != RecordType::SAMPLE);
    first.any(|raw| raw.compressed_piece(endian).is_some())
}

/// Unpacks a data section.
#[must_use]
pub fn unpack(frames: Frames<'_>, endian: Endian) -> Unpacked {
    let mut containers = 0;
    let (bytes, damage) = match Unpacking::new(frames.left().len(), endian) {
        Ok(mut unpacking) => {
            let damage = unpacking.all(frames, &mut containers).err();
            (unpacking.pending, damage)
        }
        Err(error) => (Vec::new(), Some(error)),
    };
    Unpacked { bytes, containers, damage }
}

/// Unpacks the containers of one stream in order, with a limit that depends on the stream's size.
#[derive(Debug)]
pub(crate) struct Unpacking {
    decompressor: Decompressor,
    endian: Endian,
    /// Unpacked bytes that were not taken yet.
    pending: Vec<u8>,
    /// Offset of `pending` in the unpacked stream.
    offset: u64,
    /// Number of bytes that may still be unpacked.
    left: usize,
}

impl Unpacking {
    /// Starts a stream of `packed` bytes.
    ///
    /// # Errors
    /// Returns an error if zstd cannot allocate memory.
    pub(crate) fn new(packed: usize, endian: Endian) -> Result<Self> {
        let left = packed.saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED);
        Ok(Self { decompressor: Decompressor::new()?, endian, pending: Vec::new(), offset: 0, left })
    }

    /// Unpacks the containers among the records of a stream, and puts the others between them; counts the COMPRESSED
    /// ones.
    fn all(&mut self, frames: Frames<'_>, containers: &mut u64) -> Result<()> {
        // What is behind is the beginning of a record, which is less than 64 KiB.
        let mut whole = 0;
        for raw in frames {
            let raw = raw?;
            let Some(piece) = raw.compressed_piece(self.endian) else {
                self.pending.splice(whole..whole, [raw.bytes, raw.payload].into_iter().flatten().copied());
                whole += raw.bytes.len() + raw.payload.len();
                continue;
            };
            *containers += u64::from(raw.header.kind == RecordType::COMPRESSED);
            let outcome = self.feed(piece?, raw.offset);
            let unframed = Frames::new(self.pending.get(whole..).unwrap_or_default(), 0, self.endian);
            whole += unframed.map_while(Result::ok).map(|inner| inner.bytes.len() + inner.payload.len()).sum::<usize>();
            outcome?;
            if self.pending.len() - whole > usize::from(u16::MAX) {
                break;
            }
        }
        Ok(())
    }

    /// Unpacks the next piece, found at byte `offset` of the file.
    ///
    /// # Errors
    /// Returns an error if the piece is damaged or unpacks to too many bytes; bytes unpacked before that can be taken.
    pub(crate) fn feed(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        let before = self.pending.len();
        let outcome = self.decompressor.decompress(piece, offset, self.left.min(MAX_CONTAINER), &mut self.pending);
        self.left = self.left.saturating_sub(self.pending.len() - before);
        outcome
    }

    /// Returns the unpacked records that were not taken yet.
    pub(crate) fn records(&self) -> Frames<'_> {
        Frames::new(&self.pending, self.offset, self.endian)
    }

    /// Removes and returns the first `len` unpacked bytes.
    pub(crate) fn take(&mut self, len: usize) -> std::vec::Drain<'_, u8> {
        let len = len.min(self.pending.len());
        self.offset += len as u64;
        self.pending.drain(..len)
    }

    /// Returns whether the bytes left after the whole records were taken exceed the largest record: more pieces do not
    /// help.
    pub(crate) fn is_stuck(&self) -> bool {
        self.pending.len() > usize::from(u16::MAX)
    }
}
