//! A compressed data section as the records that it stands for.
//!
//! COMPRESSED records hold pieces of one zstd stream. Here they are replaced by what they unpack to, in their place; a
//! record that one piece begins and a later one ends stands where it ends. Offsets that are told of such data
//! count in the unpacked section.

use recrep_format::abi::RecordType;
use recrep_format::attrs::AttrTable;
use recrep_format::endian::Endian;
use recrep_format::error::{Error, Result};
use recrep_format::read::{Frames, Unpacker};
use recrep_format::record::{Body, RawRecord};

/// How many times its own size a file may unpack to. zstd shrinks samples of one stack that carry 64 KiB of it each to a
/// seven-hundredth; a few bytes that claim to be gigabytes are no recording.
const MOST: usize = 1000;
/// To how much one container may unpack: recorders pack at most one ring into one, of which this is a large one.
const MOST_AT_ONCE: usize = 64 << 20;
/// What even the smallest file may unpack to.
const LEAST: usize = 16 << 20;

/// The data section without its containers.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// The records.
    pub bytes: Vec<u8>,
    /// How many COMPRESSED containers there were. perf's statistics have these, and not those of COMPRESSED2.
    pub containers: u64,
    /// Why it ends early.
    pub damage: Option<Error>,
}

/// Whether the data has compressed records. perf compresses from the first sample on, so this is found out soon; a
/// file without them is walked only by its headers up to its first sample.
#[must_use]
pub fn is_compressed(frames: Frames<'_>) -> bool {
    frames.flatten().take_while(|raw| raw.header.kind != RecordType::SAMPLE).any(|raw| is_container(&raw))
}

/// Unpacks a data section.
#[must_use]
pub fn unpack(frames: Frames<'_>, attrs: &AttrTable) -> Unpacked {
    let mut unpacked = Unpacked::default();
    unpacked.damage = unpack_into(frames, attrs, &mut unpacked).err();
    unpacked
}

fn unpack_into(frames: Frames<'_>, attrs: &AttrTable, unpacked: &mut Unpacked) -> Result<()> {
    let out = &mut unpacked.bytes;
    let mut unpacking = Unpacking::new(frames.left().len(), attrs.endian())?;
    for raw in frames {
        let raw = raw?;
        let Some(piece) = piece(&raw, attrs) else {
            out.extend_from_slice(raw.bytes);
            out.extend_from_slice(raw.payload);
            continue;
        };
        unpacked.containers += u64::from(raw.header.kind == RecordType::COMPRESSED);
        let outcome = unpacking.feed(piece?, raw.offset);
        let whole =
            unpacking.records().map_while(Result::ok).map(|inner| inner.bytes.len() + inner.payload.len()).sum();
        out.extend(unpacking.take(whole));
        outcome?;
        if unpacking.is_stuck() {
            break;
        }
    }
    let rest = unpacking.pending.len();
    out.extend(unpacking.take(rest));
    Ok(())
}

fn is_container(raw: &RawRecord<'_>) -> bool {
    matches!(raw.header.kind, RecordType::COMPRESSED | RecordType::COMPRESSED2)
}

/// Returns the piece of the zstd stream in a container, or `None` for any other record.
pub(crate) fn piece<'a>(raw: &RawRecord<'a>, attrs: &AttrTable) -> Option<Result<&'a [u8]>> {
    if !is_container(raw) {
        return None;
    }
    match attrs.decode(raw).map(|record| record.body) {
        Ok(Body::Compressed(piece)) => Some(Ok(piece.data)),
        Ok(Body::Compressed2(piece)) => Some(Ok(piece.stream())),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    }
}

/// The containers of one stream, unpacked one after another within what its size justifies.
#[derive(Debug)]
pub(crate) struct Unpacking {
    unpacker: Unpacker,
    endian: Endian,
    /// Bytes that are unpacked and not taken yet.
    pending: Vec<u8>,
    /// Where in the unpacked stream `pending` begins.
    offset: u64,
    /// How many more bytes may come.
    left: usize,
}

impl Unpacking {
    /// At the start of a stream of `packed` bytes.
    ///
    /// # Errors
    /// zstd cannot have its memory.
    pub(crate) fn new(packed: usize, endian: Endian) -> Result<Self> {
        let left = packed.saturating_mul(MOST).max(LEAST);
        Ok(Self { unpacker: Unpacker::new()?, endian, pending: Vec::new(), offset: 0, left })
    }

    /// Unpacks the next piece, found at byte `offset` of the file.
    ///
    /// # Errors
    /// The piece is damaged or unpacks to too much; what came out before can be taken.
    pub(crate) fn feed(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        let before = self.pending.len();
        let outcome = self.unpacker.unpack(piece, offset, self.left.min(MOST_AT_ONCE), &mut self.pending);
        self.left = self.left.saturating_sub(self.pending.len() - before);
        outcome
    }

    /// Returns the records that are unpacked and not taken yet.
    pub(crate) fn records(&self) -> Frames<'_> {
        Frames::new(&self.pending, self.offset, self.endian)
    }

    /// Takes the first `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> std::vec::Drain<'_, u8> {
        let len = len.min(self.pending.len());
        self.offset += len as u64;
        self.pending.drain(..len)
    }

    /// Whether what is left after the whole records were taken is longer than any record: then no further piece helps.
    pub(crate) fn is_stuck(&self) -> bool {
        self.pending.len() > usize::from(u16::MAX)
    }
}
