//! One pass over the data section: what there is, where to cut it, and the records that are not samples.
//!
//! ```text
//!   data:   R R S S S S S R S S S F S S S S … ▒▒▒ (damage: the walk ends here, with a warning)
//!           │ │           │                │
//!           └─┴── side-band, kept by place ─┘      pieces of ~1 MiB, each beginning at a record, for the workers
//! ```
//!
//! Only record headers are touched here. Samples are left for the workers, which walk their pieces again.

use std::collections::BTreeMap;

use recrep_format::abi::RecordType;
use recrep_format::endian::Endian;
use recrep_format::error::Error;
use recrep_format::read::Frames;
use recrep_format::record::RawRecord;

use crate::progress;

/// How long a piece is at least, in bytes.
const PIECE: usize = 1 << 20;

/// Records that follow each other, all whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Their bytes.
    pub bytes: &'a [u8],
    /// Where they begin in the file.
    pub offset: u64,
}

/// What the pass found.
#[derive(Debug, Default)]
pub struct Split<'a> {
    /// How many records of each type.
    pub counts: BTreeMap<RecordType, u64>,
    /// The records that are not samples, in file order.
    pub side_band: Vec<RawRecord<'a>>,
    /// All records, cut for the workers.
    pub pieces: Vec<Piece<'a>>,
    /// Where the first round ends.
    pub first_round: Option<u64>,
    /// Why the walk ended before the end of the data; for each stream once at most.
    pub damage: Vec<Error>,
}

impl<'a> Split<'a> {
    /// Walks `data`, which begins at byte `offset` of the file.
    #[must_use]
    pub fn of(data: &'a [u8], offset: u64, endian: Endian) -> Self {
        let mut split = Self::default();
        split.walk(data, offset, endian);
        split
    }

    /// Walks one more stream, whose bytes count from `offset`, where no stream before it has any.
    pub fn walk(&mut self, data: &'a [u8], offset: u64, endian: Endian) {
        // Once to find the records, once to look into them.
        progress::expect(2 * data.len() as u64);
        let mut samples = 0u64;
        let mut frames = Frames::new(data, offset, endian);
        let (mut rest, mut begin) = (data, offset);
        loop {
            let ahead = frames.offset();
            let len = usize::try_from(ahead - begin).unwrap_or(usize::MAX);
            if len >= PIECE {
                rest = self.cut(rest, begin, len);
                begin = ahead;
            }
            match frames.next() {
                None => break,
                Some(Err(error)) => {
                    self.damage.push(error);
                    break;
                }
                Some(Ok(raw)) if raw.header.kind == RecordType::SAMPLE => samples += 1,
                Some(Ok(raw)) => self.keep(raw),
            }
        }
        let len = usize::try_from(frames.offset() - begin).unwrap_or(usize::MAX);
        self.cut(rest, begin, len);
        if samples > 0 {
            *self.counts.entry(RecordType::SAMPLE).or_default() += samples;
        }
    }

    fn cut(&mut self, rest: &'a [u8], offset: u64, len: usize) -> &'a [u8] {
        let (bytes, rest) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        if !bytes.is_empty() {
            progress::advance(bytes.len());
            self.pieces.push(Piece { bytes, offset });
        }
        rest
    }

    #[cold]
    fn keep(&mut self, raw: RawRecord<'a>) {
        *self.counts.entry(raw.header.kind).or_default() += 1;
        match raw.header.kind {
            RecordType::FINISHED_ROUND => {
                self.first_round.get_or_insert(raw.offset);
            }
            kind if kind.is_kernel() || kind == RecordType::BUILD_ID => self.side_band.push(raw),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recrep_format::bytes::Encoder;
    use recrep_format::record::RecordHeader;

    fn stream(kinds: impl IntoIterator<Item = RecordType>, size: u16) -> Vec<u8> {
        let mut e = Encoder::new(Endian::Little);
        for kind in kinds {
            RecordHeader { kind, misc: 0, size }.encode(&mut e);
            e.bytes(&vec![0; usize::from(size) - 8]);
        }
        e.into_bytes()
    }

    #[test]
    fn pieces_hold_everything_once() {
        let kinds = std::iter::repeat_n(RecordType::SAMPLE, 100).chain([RecordType::COMM, RecordType::FINISHED_ROUND]);
        let data = stream(kinds, 50_000);
        let split = Split::of(&data, 104, Endian::Little);
        assert_eq!(split.counts[&RecordType::SAMPLE], 100);
        assert_eq!(split.side_band.len(), 1);
        assert_eq!(split.first_round, Some(104 + 101 * 50_000));
        assert!(split.pieces.len() > 3);
        let mut offset = 104;
        for piece in &split.pieces {
            assert_eq!(piece.offset, offset);
            offset += piece.bytes.len() as u64;
        }
        assert_eq!(offset, 104 + data.len() as u64);
    }

    #[test]
    fn what_is_before_the_damage_is_kept() {
        let mut data = stream([RecordType::SAMPLE, RecordType::COMM], 64);
        data.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0]);
        let split = Split::of(&data, 0, Endian::Little);
        assert_eq!(split.damage[0].offset, 128);
        assert_eq!(split.pieces[0].bytes.len(), 128);
        for cut in 0..128 {
            let split = Split::of(&data[..cut], 0, Endian::Little);
            assert_eq!(!split.damage.is_empty(), cut % 64 != 0);
            assert_eq!(split.pieces.iter().map(|p| p.bytes.len()).sum::<usize>(), cut / 64 * 64);
        }
    }
}
