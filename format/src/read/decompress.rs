//! COMPRESSED records: pieces of one zstd stream, which decompress to records.
//!
//! ```text
//! | COMPRESSED: piece 1 | COMPRESSED: piece 2 | …     in the file
//!            └────────────┐         └──────────┐
//! | record | record | rec ┆ ord | record | re  ┆ …    decompressed
//! ```
//!
//! A piece may end inside a record, which the next piece continues; so the output is a stream of
//! bytes, and is framed as one. Each data file has its own stream.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Result};

/// First bytes of a zstd frame (RFC 8878, section 3.1.1).
const FRAME_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

/// Decompresses the pieces of a zstd stream, one after another.
///
/// A stream has one or more zstd frames. `perf` writes one, and a decompressor has to begin with
/// its first piece; where there are several, several decompressors can share the work: each frame
/// can be decompressed on its own.
/// ```
/// use recrep_format::read::Decompressor;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = zstd::bulk::compress(&[7; 100_000], 1)?;
/// let (first, second) = stream.split_at(10);
/// let (mut decompressor, mut records) = (Decompressor::new()?, Vec::new());
/// // Each piece with its file offset, and a limit of its output.
/// decompressor.decompress(first, 1000, 1 << 20, &mut records)?;
/// decompressor.decompress(second, 1064, 1 << 20, &mut records)?;
/// assert_eq!(records, [7; 100_000]);
/// # Ok(())
/// # }
/// ```
pub struct Decompressor {
    decoder: Decoder<'static>,
    is_between_frames: bool,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decompressor")
    }
}

impl Decompressor {
    /// Number of bytes of output that room is made for at a time.
    const STEP: usize = 128 << 10;

    /// Returns a decompressor at the start of a stream.
    ///
    /// # Errors
    /// Returns an error if zstd cannot allocate memory.
    pub fn new() -> Result<Self> {
        let failed = |e: std::io::Error| Error::invalid(0, "COMPRESSED", format!("zstd: {e}"));
        Ok(Self { decoder: Decoder::new().map_err(failed)?, is_between_frames: true })
    }

    /// Returns whether a piece probably begins a frame. In the middle of a frame any bytes can
    /// come, these too; so what is decompressed from here on counts only if all before it ends
    /// [between frames](Self::is_between_frames).
    pub fn may_begin_frame(piece: &[u8]) -> bool {
        piece.starts_with(&FRAME_MAGIC)
    }

    /// Returns whether all frames that were begun have ended, and all their output was written.
    pub fn is_between_frames(&self) -> bool {
        self.is_between_frames
    }

    /// Decompresses one piece, found at byte `offset` of the file, and appends the output to `out`:
    /// at most `limit` bytes, because a few bytes can stand for very many.
    ///
    /// # Errors
    /// Returns an error if the piece is damaged or decompresses to more than `limit` bytes. The
    /// output before that is in `out`.
    pub fn decompress(
        &mut self,
        piece: &[u8],
        offset: u64,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let end = out.len().saturating_add(limit);
        let mut left = piece;
        loop {
            // zstd writes into the spare room, which is not cleared before.
            out.reserve(Self::STEP);
            let start = out.len();
            let is_done = self.step(&mut left, offset, out).inspect_err(|_| out.truncate(start))?;
            if out.len() > end {
                out.truncate(end);
                let detail = format!("it decompresses to more than {limit} bytes");
                return Err(Error::invalid(offset, "COMPRESSED", detail));
            }
            if is_done {
                return Ok(());
            }
        }
    }

    /// Decompresses a part of `piece` into the spare room of `out`, and removes from `piece` what
    /// was consumed. Returns whether the piece is done: it is empty, and all its output was
    /// written.
    fn step(&mut self, piece: &mut &[u8], offset: u64, out: &mut Vec<u8>) -> Result<bool> {
        let start = out.len();
        let mut output = OutBuffer::around_pos(out, start);
        let room = output.capacity() - start;
        let mut input = InBuffer::around(piece);
        let outcome = self.decoder.run(&mut input, &mut output);
        let (consumed, written) = (input.pos, output.pos() - start);
        let hint =
            outcome.map_err(|e| Error::invalid(offset, "COMPRESSED", format!("zstd: {e}")))?;
        // After a frame's end zstd expects nothing; a call without input and output says what the
        // next frame needs.
        if consumed > 0 || written > 0 {
            self.is_between_frames = hint == 0;
        }
        *piece = piece.get(consumed..).unwrap_or_default();
        Ok(piece.is_empty() && written < room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(text: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(text, 1).unwrap()
    }

    #[test]
    fn pieces_of_any_length_give_the_same_bytes() {
        let text: Vec<u8> = (0..300_000u32).flat_map(|i| (i / 3).to_le_bytes()).collect();
        let whole = compressed(&text);
        for len in [1, 7, 4096, whole.len()] {
            let (mut decompressor, mut out) = (Decompressor::new().unwrap(), Vec::new());
            for piece in whole.chunks(len) {
                decompressor.decompress(piece, 0, usize::MAX / 2, &mut out).unwrap();
            }
            assert!(out == text, "pieces of {len} bytes");
        }
    }

    #[test]
    fn frames_follow_each_other() {
        let frames = [compressed(&[1; 300_000]), compressed(&[2; 10])];
        let (mut decompressor, mut out) = (Decompressor::new().unwrap(), Vec::new());
        for frame in &frames {
            assert!(decompressor.is_between_frames() && Decompressor::may_begin_frame(frame));
            let (begin, end) = frame.split_at(frame.len() - 1);
            decompressor.decompress(begin, 0, usize::MAX / 2, &mut out).unwrap();
            assert!(!decompressor.is_between_frames() && !Decompressor::may_begin_frame(end));
            decompressor.decompress(end, 0, usize::MAX / 2, &mut out).unwrap();
        }
        assert!(decompressor.is_between_frames());
        assert!(out == [[1; 300_000].as_slice(), &[2; 10]].concat());
    }

    #[test]
    fn a_bomb_is_stopped_at_its_limit() {
        let bomb = compressed(&vec![0; 100 << 20]);
        assert!(bomb.len() < 20_000);
        let mut out = Vec::new();
        let error =
            Decompressor::new().unwrap().decompress(&bomb, 99, 1 << 20, &mut out).unwrap_err();
        assert_eq!((error.offset, out.len()), (99, 1 << 20));
    }

    #[test]
    fn a_limit_that_is_just_enough_is_enough() {
        let whole = compressed(&[7; 300_000]);
        let decompress = |limit| {
            let mut out = Vec::new();
            Decompressor::new().unwrap().decompress(&whole, 0, limit, &mut out).map(|()| out.len())
        };
        assert_eq!(decompress(300_000), Ok(300_000));
        assert!(decompress(299_999).is_err());
    }

    #[test]
    fn damage_is_an_error_with_its_place() {
        let error = Decompressor::new()
            .unwrap()
            .decompress(b"not zstd at all", 5, 1000, &mut Vec::new())
            .unwrap_err();
        assert_eq!(error.offset, 5);
    }
}
