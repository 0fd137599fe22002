//! COMPRESSED records: pieces of one zstd stream, which together give records.
//!
//! A piece may end inside a record, which the next piece goes on with; so what comes out is a stream of bytes, and
//! is framed as one. Each data file has its own stream.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Result};

/// Unpacks the pieces of a zstd stream, one after another.
/// ```
/// use recrep_format::read::Unpacker;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = zstd::bulk::compress(&[7; 100_000], 1)?;
/// let (first, second) = stream.split_at(10);
/// let (mut unpacker, mut records) = (Unpacker::new()?, Vec::new());
/// // Each piece as it comes, with its place in the file, and not more than is believed.
/// unpacker.unpack(first, 1000, 1 << 20, &mut records)?;
/// unpacker.unpack(second, 1064, 1 << 20, &mut records)?;
/// assert_eq!(records, [7; 100_000]);
/// # Ok(())
/// # }
/// ```
pub struct Unpacker {
    decoder: Decoder<'static>,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unpacker")
    }
}

impl Unpacker {
    /// How many bytes of output are made room for at a time.
    const STEP: usize = 128 << 10;

    /// At the start of a stream.
    ///
    /// # Errors
    /// zstd cannot have its memory.
    pub fn new() -> Result<Self> {
        let failed = |e: std::io::Error| Error::invalid(0, "COMPRESSED", format!("zstd: {e}"));
        Ok(Self { decoder: Decoder::new().map_err(failed)? })
    }

    /// Unpacks one piece, found at byte `offset` of the file, and appends what comes out to `out`: at most `limit` bytes,
    /// because a few bytes can stand for very many.
    ///
    /// # Errors
    /// The piece is damaged, or would give more than `limit` bytes. What came out before is in `out`.
    pub fn unpack(&mut self, piece: &[u8], offset: u64, limit: usize, out: &mut Vec<u8>) -> Result<()> {
        let end = out.len().saturating_add(limit);
        let mut input = InBuffer::around(piece);
        loop {
            let start = out.len();
            // One byte beyond the limit is asked for, and never given: only so is it known whether there is more.
            let room = Self::STEP.min(end.saturating_add(1) - start);
            out.resize(start + room, 0);
            let target = out.get_mut(start..).unwrap_or_default();
            let mut output = OutBuffer::around(target);
            let outcome = self.decoder.run(&mut input, &mut output);
            let written = output.pos();
            out.truncate((start + written).min(end));
            outcome.map_err(|e| Error::invalid(offset, "COMPRESSED", format!("zstd: {e}")))?;
            if start + written > end {
                let detail = format!("it unpacks to more than {limit} bytes");
                return Err(Error::invalid(offset, "COMPRESSED", detail));
            }
            let drained = written < room;
            if input.pos >= piece.len() && drained {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(text, 1).unwrap()
    }

    #[test]
    fn pieces_of_any_length_give_the_same_bytes() {
        let text: Vec<u8> = (0..300_000u32).flat_map(|i| (i / 3).to_le_bytes()).collect();
        let whole = packed(&text);
        for len in [1, 7, 4096, whole.len()] {
            let (mut unpacker, mut out) = (Unpacker::new().unwrap(), Vec::new());
            for piece in whole.chunks(len) {
                unpacker.unpack(piece, 0, usize::MAX / 2, &mut out).unwrap();
            }
            assert!(out == text, "pieces of {len} bytes");
        }
    }

    #[test]
    fn a_bomb_is_stopped_at_its_limit() {
        let bomb = packed(&vec![0; 100 << 20]);
        assert!(bomb.len() < 20_000);
        let mut out = Vec::new();
        let error = Unpacker::new().unwrap().unpack(&bomb, 99, 1 << 20, &mut out).unwrap_err();
        assert_eq!((error.offset, out.len()), (99, 1 << 20));
    }

    #[test]
    fn a_limit_that_is_just_enough_is_enough() {
        let whole = packed(&[7; 300_000]);
        let unpack = |limit| {
            let mut out = Vec::new();
            Unpacker::new().unwrap().unpack(&whole, 0, limit, &mut out).map(|()| out.len())
        };
        assert_eq!(unpack(300_000), Ok(300_000));
        assert!(unpack(299_999).is_err());
    }

    #[test]
    fn damage_is_an_error_with_its_place() {
        let error = Unpacker::new().unwrap().unpack(b"not zstd at all", 5, 1000, &mut Vec::new()).unwrap_err();
        assert_eq!(error.offset, 5);
    }
}
