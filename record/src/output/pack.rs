//! Compression (`-z`): what the rings give goes into COMPRESSED records, each with a piece of one zstd stream.
//!
//! COMPRESSED and not COMPRESSED2, because readers before Linux 6.17 know only the first. The stream is flushed after each
//! [`BLOCK`] at the latest and at the end of each batch, so that a file that ends early can be unpacked up to there, and so
//! that no record unpacks to more than the feature COMPRESSED promises (`mmap_len`): perf makes room for so much.

use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::feature::Compression;
use recrep_format::record::{Body, Compressed, Record};
use zstd::stream::raw::{Encoder as Zstd, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Result};

/// The stream is flushed after so many bytes of records at most.
const BLOCK: usize = 512 << 10;
/// A record's payload: with its header it stays below what 16 bits of `size` hold.
const PIECE: usize = 0xff00;

/// Packs records.
pub(super) struct Packer {
    zstd: Zstd<'static>,
    level: i32,
    /// What zstd gave and no record holds yet.
    packed: Vec<u8>,
    /// Records to write.
    out: Encoder,
    in_block: usize,
    /// Bytes in and bytes out.
    totals: (u64, u64),
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packer {{ level: {}, totals: {:?} }}", self.level, self.totals)
    }
}

impl Packer {
    /// At the start of a stream.
    pub(super) fn new(level: i32) -> Result<Self> {
        let zstd = Zstd::new(level).map_err(|e| Error::io("cannot compress (-z)", e))?;
        let out = Encoder::new(Endian::NATIVE);
        Ok(Self { zstd, level, packed: Vec::new(), out, in_block: 0, totals: (0, 0) })
    }

    /// Packs bytes of records.
    pub(super) fn add(&mut self, mut plain: &[u8]) -> Result<()> {
        self.totals.0 += plain.len() as u64;
        while !plain.is_empty() {
            let (now, later) = plain.split_at(plain.len().min(BLOCK - self.in_block));
            let mut input = InBuffer::around(now);
            while input.pos() < now.len() {
                self.step(|zstd, output| zstd.run(&mut input, output))?;
            }
            self.in_block += now.len();
            plain = later;
            if self.in_block == BLOCK {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Ends the batch: all that was added is in [`Packer::records`] then.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.in_block > 0 {
            while self.step(Operation::flush)? > 0 {}
            self.in_block = 0;
        }
        for piece in self.packed.chunks(PIECE) {
            // A piece is never too long for a record.
            let _ = Record::new(0, Body::Compressed(Compressed { data: piece })).encode(&mut self.out);
            self.totals.1 += piece.len() as u64;
        }
        self.packed.clear();
        Ok(())
    }

    /// The records to write; they are forgotten by [`Packer::clear`].
    pub(super) fn records(&self) -> &[u8] {
        self.out.as_bytes()
    }

    pub(super) fn clear(&mut self) {
        self.out.clear();
    }

    /// What the file says of it.
    pub(super) fn feature(&self) -> Compression {
        let (plain, packed) = self.totals;
        let ratio = plain.checked_div(packed).unwrap_or(0).max(1);
        Compression {
            version: 1,
            kind: 1,
            level: self.level.unsigned_abs(),
            ratio: u32::try_from(ratio).unwrap_or(u32::MAX),
            mmap_len: u32::try_from(BLOCK).unwrap_or(u32::MAX),
        }
    }

    /// One step of zstd with room for its output.
    fn step(
        &mut self,
        act: impl FnOnce(&mut Zstd<'static>, &mut OutBuffer<'_, [u8]>) -> std::io::Result<usize>,
    ) -> Result<usize> {
        const ROOM: usize = 64 << 10;
        let start = self.packed.len();
        self.packed.resize(start + ROOM, 0);
        let target = self.packed.get_mut(start..).unwrap_or_default();
        let mut output = OutBuffer::around(target);
        let outcome = act(&mut self.zstd, &mut output);
        let written = output.pos();
        self.packed.truncate(start + written);
        outcome.map_err(|e| Error::io("cannot compress (-z)", e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recrep_format::abi::RecordType;
    use recrep_format::read::{Frames, Unpacker};

    #[test]
    fn what_goes_in_comes_out_and_no_record_unpacks_to_more_than_promised() {
        let mut packer = Packer::new(1).unwrap();
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let plain: Vec<u8> =
            (0..400_000u64).flat_map(|i| if i % 3 == 0 { random() } else { i }.to_ne_bytes()).collect();
        let mut bytes = Vec::new();
        for batch in plain.chunks(700_001) {
            batch.chunks(99_999).for_each(|part| packer.add(part).unwrap());
            packer.flush().unwrap();
            bytes.extend(packer.records());
            packer.clear();
        }
        let (mut unpacker, mut out) = (Unpacker::new().unwrap(), Vec::new());
        let mut most = 0;
        for raw in Frames::new(&bytes, 0, Endian::NATIVE) {
            let raw = raw.unwrap();
            assert_eq!(raw.header.kind, RecordType::COMPRESSED);
            let before = out.len();
            unpacker.unpack(raw.body(), 0, usize::MAX / 2, &mut out).unwrap();
            most = most.max(out.len() - before);
        }
        assert!(out == plain);
        assert!(most <= BLOCK, "{most}");
        assert!(packer.feature().ratio >= 1);
    }
}
