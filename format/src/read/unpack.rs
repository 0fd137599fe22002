//! Data sections without their compressed records.
//!
//! COMPRESSED and COMPRESSED2 records (containers) hold pieces of one zstd stream. Each is replaced
//! by the records that it unpacks to; a record that starts in one piece and ends in a later one
//! comes where it ends.
//!
//! ```text
//!   | COMM | COMPRESSED: a b c… | FINISHED_ROUND | COMPRESSED: …c d |     in the file
//!   | COMM | a | b | FINISHED_ROUND | c | d |                             unpacked
//! ```

use std::borrow::Cow;

#[cfg(feature = "zstd")]
use super::decompress::Decompressor;
use crate::abi::RecordType;
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::read::Frames;
use crate::record::RawRecord;

/// Maximum ratio of unpacked to packed size. zstd reduces samples that each carry 64 KiB of the
/// same stack to a seven-hundredth; a few bytes that unpack to gigabytes are not a recording.
const MAX_RATIO: usize = 1000;
/// Maximum unpacked size of one container in bytes: recorders pack at most one ring into it, and
/// this is a large ring.
#[cfg(feature = "zstd")]
const MAX_CONTAINER: usize = 64 << 20;
/// Unpacked size in bytes that a file of any size may have.
const ALWAYS_ALLOWED: usize = 16 << 20;

/// Returns the number of bytes to which a file with so many compressed ones may unpack.
pub fn most_unpacked(packed: usize) -> usize {
    most_of_section(packed).max(ALWAYS_ALLOWED)
}

/// Returns the share of so many compressed bytes in what their file may unpack to.
pub fn most_of_section(packed: usize) -> usize {
    packed.saturating_mul(MAX_RATIO)
}

/// Returns whether the data has compressed records. perf compresses from the first sample on, so
/// only the headers up to the first sample are read.
pub fn is_compressed(frames: Frames<'_>) -> bool {
    let endian = frames.endian();
    let mut first = frames.flatten().take_while(|raw| raw.header.kind != RecordType::SAMPLE);
    first.any(|raw| raw.compressed_piece(endian).is_some())
}

/// Records of a data section, or of a further file of a directory, with those that were compressed
/// in the place of their containers.
///
/// Without the crate's feature `zstd`, containers are left as they are.
#[derive(Clone, Debug)]
pub struct Unpacked<'a> {
    bytes: Cow<'a, [u8]>,
    /// Offset of the first record: in the file, or if the data was compressed in what it unpacks
    /// to.
    offset: u64,
    endian: Endian,
    damage: Option<Error>,
}

impl<'a> Unpacked<'a> {
    /// Unpacks the containers among these records, if there are any.
    pub fn of_frames(frames: Frames<'a>) -> Self {
        #[cfg(feature = "zstd")]
        if is_compressed(frames.clone()) {
            return Self::decompressed(frames);
        }
        let (offset, endian) = (frames.offset(), frames.endian());
        Self { bytes: frames.left().into(), offset, endian, damage: None }
    }

    #[cfg(feature = "zstd")]
    fn decompressed(frames: Frames<'a>) -> Self {
        let endian = frames.endian();
        let mut unpacking = Unpacking::new(frames.left().len(), endian);
        let mut damage = None;
        for raw in frames {
            if let Err(error) = raw.and_then(|raw| unpacking.unpack(&raw)) {
                damage = Some(error);
                break;
            }
            // What comes after bytes that are no records does not matter.
            if unpacking.is_stuck() {
                break;
            }
        }
        Self { bytes: unpacking.pending.into(), offset: 0, endian, damage }
    }

    /// Returns the records in the order of the file; after an error there is nothing more. If the
    /// data was compressed, the offsets of records are those in all that is unpacked.
    pub fn records(&self) -> impl Iterator<Item = Result<RawRecord<'_>>> {
        let frames = Frames::new(&self.bytes, self.offset, self.endian);
        // Of several reasons to end, the first is the cause.
        let damage = self.damage.clone();
        let is_whole = move |raw: &Result<RawRecord<'_>>| damage.is_none() || raw.is_ok();
        frames.filter(is_whole).chain(self.damage.clone().map(Err))
    }
}

/// Memory to unpack data sections in, one after another. zstd's is kept too: it includes the last
/// bytes of a frame.
#[cfg(feature = "zstd")]
#[derive(Debug, Default)]
pub struct UnpackBuffer {
    bytes: Vec<u8>,
    decompressor: Option<Decompressor>,
}

#[cfg(feature = "zstd")]
impl UnpackBuffer {
    /// Starts a stream in this memory, of at most `allowed` unpacked bytes.
    pub fn unpacking(&mut self, endian: Endian, allowed: usize) -> Unpacking {
        let mut pending = std::mem::take(&mut self.bytes);
        pending.clear();
        Unpacking {
            pending,
            decompressor: self.decompressor.take(),
            allowed,
            ..Unpacking::new(0, endian)
        }
    }

    /// Returns the memory, for other bytes than unpacked ones.
    pub fn cleared(&mut self) -> &mut Vec<u8> {
        self.bytes.clear();
        &mut self.bytes
    }

    /// Takes the memory of an unpacked stream back, and returns its bytes.
    pub fn keep(&mut self, unpacking: Unpacking) -> &[u8] {
        (self.bytes, self.decompressor) = (unpacking.pending, unpacking.decompressor);
        &self.bytes
    }

    /// Takes zstd's memory back, which a stream needs no more between frames.
    pub fn take_decompressor(&mut self, unpacking: &mut Unpacking) {
        self.decompressor = unpacking.decompressor.take();
    }

    /// Takes the memory of the unpacked bytes back. They count as taken.
    pub fn take_bytes(&mut self, unpacking: &mut Unpacking) {
        (self.bytes, unpacking.complete) = (std::mem::take(&mut unpacking.pending), 0);
    }
}

/// Unpacks the containers of one stream in order, up to a number of bytes.
#[cfg(feature = "zstd")]
#[derive(Debug)]
pub struct Unpacking {
    /// `None` before the first frame, and where it is not kept between frames.
    decompressor: Option<Decompressor>,
    endian: Endian,
    /// Unpacked bytes that were not taken yet.
    pending: Vec<u8>,
    /// Offset of `pending` in the unpacked stream.
    offset: u64,
    /// Length of the complete records in `pending`, as far as [`Unpacking::unpack`] knows them.
    complete: usize,
    /// Number of bytes that were unpacked, and that may be.
    unpacked: usize,
    allowed: usize,
    /// Number of COMPRESSED containers.
    containers: u64,
}

#[cfg(feature = "zstd")]
impl Unpacking {
    /// Starts a stream of `packed` bytes, on which the limit of what it may unpack to depends.
    pub fn new(packed: usize, endian: Endian) -> Self {
        Self {
            decompressor: None,
            endian,
            pending: Vec::new(),
            offset: 0,
            complete: 0,
            unpacked: 0,
            allowed: most_unpacked(packed),
            containers: 0,
        }
    }

    /// Unpacks the next record if it is a container, and puts it between the others if it is not.
    ///
    /// # Errors
    /// Returns the errors of [`Unpacking::feed`].
    pub fn unpack(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        let Some(piece) = raw.compressed_piece(self.endian) else {
            let at = self.complete;
            self.pending.splice(at..at, [raw.bytes, raw.payload].into_iter().flatten().copied());
            self.complete += raw.bytes.len() + raw.payload.len();
            return Ok(());
        };
        self.containers += u64::from(raw.header.kind == RecordType::COMPRESSED);
        let outcome = self.feed(piece?, raw.offset);
        let unframed = self.pending.get(self.complete..).unwrap_or_default();
        let inner = Frames::new(unframed, 0, self.endian).map_while(Result::ok);
        self.complete += inner.map(|raw| raw.bytes.len() + raw.payload.len()).sum::<usize>();
        outcome
    }

    /// Unpacks the next piece, found at byte `offset` of the file. The unpacked records have to be
    /// [taken](Unpacking::take).
    ///
    /// # Errors
    /// Returns an error if the piece is damaged or unpacks to too many bytes, or if zstd cannot
    /// allocate memory; bytes unpacked before that can be taken.
    pub fn feed(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        let before = self.pending.len();
        let limit = (self.allowed - self.unpacked).min(MAX_CONTAINER);
        let decompressor = match self.decompressor.take() {
            Some(decompressor) => decompressor,
            None => Decompressor::new()?,
        };
        let decompressor = self.decompressor.insert(decompressor);
        let outcome = decompressor.decompress(piece, offset, limit, &mut self.pending);
        self.unpacked += self.pending.len() - before;
        outcome
    }

    /// Returns the unpacked records that were not taken yet.
    pub fn records(&self) -> Frames<'_> {
        Frames::new(&self.pending, self.offset, self.endian)
    }

    /// Removes and returns the first `len` unpacked bytes.
    pub fn take(&mut self, len: usize) -> std::vec::Drain<'_, u8> {
        let len = len.min(self.pending.len());
        self.offset += len as u64;
        self.pending.drain(..len)
    }

    /// Returns the unpacked bytes that were not taken yet.
    pub fn as_bytes(&self) -> &[u8] {
        &self.pending
    }

    /// Returns the unpacked bytes that were not taken yet.
    pub fn into_bytes(self) -> Vec<u8> {
        self.pending
    }

    /// Gives the memory back that no bytes need.
    pub fn shrink_to_fit(&mut self) {
        self.pending.shrink_to_fit();
    }

    /// Returns the number of COMPRESSED containers; COMPRESSED2 ones do not count, as in perf's
    /// statistics.
    pub fn containers(&self) -> u64 {
        self.containers
    }

    /// Returns whether everything so far ended with a zstd frame and with a record.
    pub fn is_at_end(&self) -> bool {
        self.decompressor.as_ref().is_none_or(Decompressor::is_between_frames)
            && self.complete == self.pending.len()
    }

    /// Returns whether the bytes after the complete records exceed the largest record: more pieces
    /// do not help.
    pub fn is_stuck(&self) -> bool {
        self.pending.len() - self.complete > usize::from(u16::MAX)
    }

    /// Goes on with `next`, which was unpacked as if nothing were before it, and returns what was
    /// unpacked until here. `None` if `next` has to be unpacked again: a frame or a record goes on
    /// in it, or both together are too many bytes.
    pub fn follow(&mut self, mut next: Self) -> Option<Self> {
        if !self.is_at_end() || self.unpacked + next.unpacked > self.allowed {
            return None;
        }
        next.unpacked += self.unpacked;
        next.allowed = self.allowed;
        Some(std::mem::replace(self, next))
    }
}

#[cfg(test)]
#[cfg(feature = "zstd")]
mod tests {
    use super::*;
    use crate::bytes::Encoder;
    use crate::record::RecordHeader;

    fn record(e: &mut Encoder, kind: RecordType, body: &[u8]) {
        let size = u16::try_from(8 + body.len()).unwrap();
        RecordHeader { kind, misc: 0, size }.encode(e);
        e.bytes(body);
    }

    /// Returns three records of 24 bytes, compressed into two containers of which the first ends
    /// inside a record, with a FINISHED_ROUND between the containers.
    fn packed(endian: Endian) -> Vec<u8> {
        let mut inner = Encoder::new(endian);
        for number in 1..4 {
            record(&mut inner, RecordType::COMM, &[number; 16]);
        }
        let (first, second) = inner.as_bytes().split_at(40);
        let mut e = Encoder::new(endian);
        record(&mut e, RecordType::MMAP2, &[9; 8]);
        record(&mut e, RecordType::COMPRESSED, &zstd::bulk::compress(first, 1).unwrap());
        record(&mut e, RecordType::FINISHED_ROUND, &[]);
        record(&mut e, RecordType::COMPRESSED, &zstd::bulk::compress(second, 1).unwrap());
        e.into_bytes()
    }

    #[test]
    fn records_stand_in_the_place_of_their_containers() {
        for endian in [Endian::Little, Endian::Big] {
            let data = packed(endian);
            let unpacked = Unpacked::of_frames(Frames::new(&data, 1000, endian));
            let records: Vec<_> = unpacked.records().map(Result::unwrap).collect();
            let found: Vec<_> = records.iter().map(|raw| (raw.header.kind, raw.offset)).collect();
            let (comm, round) = (RecordType::COMM, RecordType::FINISHED_ROUND);
            let mmap = (RecordType::MMAP2, 0);
            assert_eq!(found, [mmap, (comm, 16), (round, 40), (comm, 48), (comm, 72)]);
            assert_eq!(records[3].bytes[8..], [2; 16]);
        }
    }

    #[test]
    fn damage_ends_the_records_with_its_place() {
        let data = packed(Endian::Little);
        // The first bytes of the first container, and a byte of the record in it.
        for (at, place) in [(24, 1016), (45, 16)] {
            let mut damaged = data.clone();
            damaged[at] ^= 0xff;
            let unpacked = Unpacked::of_frames(Frames::new(&damaged, 1000, Endian::Little));
            let mut records: Vec<_> = unpacked.records().collect();
            let last = records.pop().unwrap();
            assert!(last.is_ok() || last.is_err_and(|error| error.offset >= place), "{at}");
            assert!(records.iter().all(Result::is_ok));
        }
        let cut = Frames::new(&data[..data.len() - 1], 1000, Endian::Little);
        let unpacked = Unpacked::of_frames(cut);
        let (last, before) = (unpacked.records().last(), unpacked.records().count());
        assert_eq!(last.unwrap().unwrap_err().kind.code(), "truncated");
        assert_eq!(before, 4);
    }

    #[test]
    fn what_is_not_compressed_is_not_copied() {
        let mut e = Encoder::new(Endian::Little);
        record(&mut e, RecordType::COMM, &[1; 16]);
        let unpacked = Unpacked::of_frames(Frames::new(e.as_bytes(), 1000, Endian::Little));
        assert!(matches!(unpacked.bytes, Cow::Borrowed(_)));
        assert_eq!(unpacked.records().next().unwrap().unwrap().offset, 1000);
    }
}
