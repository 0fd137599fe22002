//! Compression (`-z`): the rings' records go into COMPRESSED records, which together contain one
//! zstd stream. A batch that reaches [`FRAME`] bytes ends a frame of it, so that a reader can
//! decompress the frames on several cores.
//!
//! COMPRESSED is used instead of COMPRESSED2, because readers before Linux 6.17 know only the
//! former. Each record contains whole blocks of the stream: perf stops at a record that
//! decompresses to nothing, and a truncated file can be decompressed up to its last record. Blocks
//! of zstd's default size (128 KiB) would not fit into a record if the data is incompressible, so
//! the stream is flushed after each [`CHUNK`], and at the end of each batch. No record decompresses
//! to more than [`BLOCK`], the size of perf's buffer (`mmap_len` of the feature COMPRESSED).
//!
//! ```text
//!  records   |     chunk     |     chunk     |     chunk     |  rest |
//!               run, flush      run, flush      run, flush     flush
//!  stream    |  blocks  |  blocks  |          blocks         | blocks |
//!  records   | COMPRESSED          |       COMPRESSED                 |
//! ```

use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::feature::Compression;
use recrep_format::record::{Body, Compressed, Record};
use zstd::stream::raw::{Encoder as Zstd, InBuffer, Operation, OutBuffer};

use crate::messages::error::{Error, Result};

/// Bytes after which the stream is flushed. Incompressible data grows by a few bytes per block, and
/// still fits into a [`PIECE`].
const CHUNK: usize = 60 << 10;
/// Maximum payload of a record: with its header it fits into the 16 bits of `size`.
const PIECE: usize = 0xff00;
/// Maximum decompressed bytes of a record.
const BLOCK: usize = 512 << 10;

/// Bytes of records after which a frame ends. What a frame costs is the repetitions that it cannot
/// refer to; frames of this size cost less than a hundredth.
const FRAME: usize = 4 << 20;

pub(super) struct Packer {
    zstd: Zstd<'static>,
    level: i32,
    /// Output of zstd that is not yet in a record.
    packed: Vec<u8>,
    /// Compressed and uncompressed length of the whole chunks in it.
    whole: usize,
    in_record: usize,
    /// Bytes since the stream was flushed, and since its last frame ended.
    in_chunk: usize,
    in_frame: usize,
    /// COMPRESSED records to write.
    out: Encoder,
    /// Total bytes before and after compression.
    totals: (u64, u64),
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packer {{ level: {}, totals: {:?} }}", self.level, self.totals)
    }
}

impl Packer {
    /// Begins a stream.
    pub(super) fn new(level: i32) -> Result<Self> {
        let zstd = Zstd::new(level).map_err(failed)?;
        let out = Encoder::new(Endian::NATIVE);
        let packed = Vec::new();
        Ok(Self {
            zstd,
            level,
            packed,
            whole: 0,
            in_record: 0,
            in_chunk: 0,
            in_frame: 0,
            out,
            totals: (0, 0),
        })
    }

    /// Compresses bytes of records.
    pub(super) fn add(&mut self, mut plain: &[u8]) -> Result<()> {
        self.totals.0 += plain.len() as u64;
        while !plain.is_empty() {
            let (now, later) = plain.split_at(plain.len().min(CHUNK - self.in_chunk));
            let mut input = InBuffer::around(now);
            while input.pos() < now.len() {
                self.step(|zstd, output| zstd.run(&mut input, output))?;
            }
            self.in_chunk += now.len();
            self.in_frame += now.len();
            plain = later;
            if self.in_chunk == CHUNK {
                self.end_chunk(Operation::flush)?;
            }
        }
        Ok(())
    }

    /// Ends the batch: afterwards everything added is in [`Packer::records`].
    pub(super) fn flush(&mut self) -> Result<()> {
        // Without a chunk, the end of a frame would be in a record of its own, which decompresses
        // to nothing.
        if self.in_frame >= FRAME && self.in_chunk > 0 {
            self.end_chunk(|zstd, output| zstd.finish(output, true))?;
            self.in_frame = 0;
        } else {
            self.end_chunk(Operation::flush)?;
        }
        self.end_record()
    }

    /// Flushes the stream, by a call of `end` as long as there is output. A chunk that does not fit
    /// into the current record begins the next one.
    fn end_chunk(
        &mut self,
        end: impl Fn(&mut Zstd<'static>, &mut OutBuffer<'_, Vec<u8>>) -> std::io::Result<usize>,
    ) -> Result<()> {
        if self.in_chunk == 0 {
            return Ok(());
        }
        while self.step(&end)? > 0 {}
        if self.packed.len() > PIECE || self.in_record + self.in_chunk > BLOCK {
            self.end_record()?;
        }
        self.whole = self.packed.len();
        self.in_record += std::mem::take(&mut self.in_chunk);
        Ok(())
    }

    /// Puts the whole chunks into a record.
    fn end_record(&mut self) -> Result<()> {
        if let Some(data) = self.packed.get(..self.whole).filter(|data| !data.is_empty()) {
            let record = Record::new(0, Body::Compressed(Compressed { data }));
            record.encode(&mut self.out).map_err(|e| failed(std::io::Error::other(e)))?;
            self.totals.1 += data.len() as u64;
        }
        self.packed.drain(..self.whole);
        (self.whole, self.in_record) = (0, 0);
        Ok(())
    }

    /// Returns the records to write, until [`Packer::clear`].
    pub(super) fn records(&self) -> &[u8] {
        self.out.as_bytes()
    }

    pub(super) fn clear(&mut self) {
        self.out.clear();
    }

    /// Returns what a file says of its compression.
    pub(super) fn feature(&self) -> Compression {
        Self::feature_of([self])
    }

    /// Returns what a directory says of the compression of its files.
    pub(super) fn feature_of<'p>(packers: impl IntoIterator<Item = &'p Self>) -> Compression {
        let (mut level, mut plain, mut packed) = (0, 0u64, 0u64);
        for packer in packers {
            level = packer.level.unsigned_abs();
            (plain, packed) = (plain + packer.totals.0, packed + packer.totals.1);
        }
        let ratio = plain.checked_div(packed).unwrap_or(0).max(1);
        Compression {
            version: 1,
            kind: 1,
            level,
            ratio: u32::try_from(ratio).unwrap_or(u32::MAX),
            mmap_len: u32::try_from(BLOCK).unwrap_or(u32::MAX),
        }
    }

    /// Runs one step of zstd with enough space for its output.
    fn step(
        &mut self,
        act: impl FnOnce(&mut Zstd<'static>, &mut OutBuffer<'_, Vec<u8>>) -> std::io::Result<usize>,
    ) -> Result<usize> {
        const ROOM: usize = 64 << 10;
        self.packed.reserve(ROOM);
        let end = self.packed.len();
        act(&mut self.zstd, &mut OutBuffer::around_pos(&mut self.packed, end)).map_err(failed)
    }
}

fn failed(why: std::io::Error) -> Error {
    Error::io("cannot compress records (-z); record without -z", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recrep_format::abi::RecordType;
    use recrep_format::read::Frames;
    use zstd::stream::raw::Decoder;

    /// Returns random words masked by `bits`; every `regular`th word is a counter instead, unless
    /// `regular` is 0.
    fn bytes(len: usize, bits: u64, regular: u64) -> Vec<u8> {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 32) ^ state.rotate_left(32)
        };
        let mut bytes = vec![0; len];
        for (place, i) in bytes.chunks_mut(8).zip(0u64..) {
            let word = if regular > 0 && i % regular == 0 { i } else { random() & bits };
            place.copy_from_slice(&word.to_ne_bytes()[..place.len()]);
        }
        bytes
    }

    /// Decompresses records like perf: each gives some bytes in a single call of zstd, into a
    /// buffer of the size in the feature.
    fn unpack(zstd: &mut Decoder<'_>, records: &[u8], promised: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for raw in Frames::new(records, 0, Endian::NATIVE) {
            let raw = raw.unwrap();
            assert_eq!(raw.header.kind, RecordType::COMPRESSED);
            let (mut input, mut room) = (InBuffer::around(raw.body()), vec![0; promised]);
            let mut output = OutBuffer::around(&mut room[..]);
            zstd.run(&mut input, &mut output).unwrap();
            assert_eq!(input.pos(), raw.body().len(), "more than was promised");
            let length = output.pos();
            assert!(length > 0, "a record of {} bytes holds no whole block", raw.body().len());
            all.extend_from_slice(&room[..length]);
        }
        all
    }

    /// Compresses in batches of parts, and decompresses each batch. Returns the number of
    /// compressed bytes.
    fn round_trip(level: i32, plain: &[u8], batch: usize, part: usize) -> usize {
        let (mut packer, mut zstd) = (Packer::new(level).unwrap(), Decoder::new().unwrap());
        let mut packed = 0;
        for batch in plain.chunks(batch) {
            batch.chunks(part).for_each(|part| packer.add(part).unwrap());
            packer.flush().unwrap();
            let promised = usize::try_from(packer.feature().mmap_len).unwrap();
            assert!(
                unpack(&mut zstd, packer.records(), promised) == batch,
                "{} bytes, level {level}",
                plain.len()
            );
            packed += packer.records().len();
            packer.clear();
            packer.flush().unwrap();
            assert!(packer.records().is_empty());
        }
        assert!(packer.feature().ratio >= 1);
        packed
    }

    #[test]
    fn what_does_not_compress_is_in_records_that_unpack_one_by_one() {
        const ZSTD_BLOCK: usize = 128 << 10;
        for limit in [
            0,
            CHUNK,
            PIECE,
            1 << 16,
            2 * CHUNK,
            ZSTD_BLOCK,
            2 * ZSTD_BLOCK,
            BLOCK,
            2 * BLOCK,
            3 << 20,
        ] {
            for len in [limit.saturating_sub(1), limit, limit + 1, limit + 8] {
                // Incompressible, and hardly compressible: then zstd makes blocks that can be
                // decompressed only as a whole.
                for (level, bits) in [(1, u64::MAX), (1, 0x7f7f_7f7f_7f7f_7f7f), (12, u64::MAX)] {
                    let packed = round_trip(level, &bytes(len, bits, 0), usize::MAX, usize::MAX);
                    assert!(packed <= len + len / 500 + 64, "{len} bytes became {packed}");
                }
            }
        }
    }

    #[test]
    fn batches_and_parts_of_any_length() {
        for regular in [1, 2, 3, 16] {
            let plain = bytes(3_200_000, u64::MAX, regular);
            for (batch, part) in [
                (700_001, 99_999),
                (70_000, 65_528),
                (CHUNK, 1 << 20),
                (5_000_000, 1 << 20),
                (997, 8),
            ] {
                round_trip(1, &plain, batch, part);
            }
        }
    }

    #[test]
    fn large_batches_end_with_a_frame() {
        let plain = bytes(2 * FRAME + 3 * CHUNK, u64::MAX, 2);
        let mut packer = Packer::new(1).unwrap();
        // The batches' lengths are multiples of a chunk, too: a frame does not end without bytes of
        // its own.
        let batches = [FRAME, 16, CHUNK, CHUNK - 16, FRAME, CHUNK];
        let (mut zstd, mut at, mut begun) = (Decoder::new().unwrap(), 0, Vec::new());
        for batch in batches {
            let batch = &plain[at..at + batch];
            packer.add(batch).unwrap();
            packer.flush().unwrap();
            assert!(unpack(&mut zstd, packer.records(), BLOCK) == batch);
            let mut frames = Frames::new(packer.records(), 0, Endian::NATIVE);
            // RFC 8878, section 3.1.1.
            begun.push(
                frames.next().unwrap().unwrap().body().starts_with(&[0x28, 0xb5, 0x2f, 0xfd]),
            );
            packer.clear();
            at += batch.len();
        }
        assert_eq!(begun, [true, true, false, false, false, true]);
    }

    #[test]
    fn what_compresses_well_is_in_few_records() {
        let plain = vec![7; 8 << 20];
        let mut packer = Packer::new(1).unwrap();
        packer.add(&plain).unwrap();
        packer.flush().unwrap();
        let records = Frames::new(packer.records(), 0, Endian::NATIVE).count();
        assert!(records <= plain.len() / BLOCK * 10 / 9, "{records}");
    }
}
