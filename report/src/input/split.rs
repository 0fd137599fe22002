//! One pass over the data section: what there is, where to cut it, and the records that are not samples.
//!
//! ```text
//!   data:   R R S S S S S R S S S F S S S S … ▒▒▒ (damage: the walk ends here, with a warning)
//!           │ │           │                │
//!           └─┴── side-band, kept by place ─┘      pieces of ~1 MiB, each beginning at a record, for the workers
//! ```
//!
//! Only record headers are touched here. Samples are left for the workers, which walk their pieces again.
//!
//! # On all cores
//! A record says only where the next one begins, so a walk has to start at the beginning. To share it, the data is cut
//! every 4 MiB (`CHUNK`), and the walk of each chunk starts at a guess: the first place from which a row of records can
//! be read whose headers all look like records (`Data::guess`). A guess may be wrong (the data of an AUXTRACE record, or
//! bytes of a copied stack, can look like anything), so a chunk counts only if the walk of the chunk before it ended exactly
//! where this one began; otherwise the chunk is walked again, from there. The result is that of one walk from the
//! beginning, whatever the guesses were, in damaged data too.

use std::collections::BTreeMap;

use rayon::prelude::*;
use recrep_format::abi::RecordType;
use recrep_format::endian::Endian;
use recrep_format::error::Error;
use recrep_format::read::Frames;
use recrep_format::record::{RawRecord, RecordHeader};

use crate::terminal::progress;

/// The least length of a piece, in bytes; the last of a chunk may be shorter.
const PIECE: usize = 1 << 20;
/// The length of a chunk, in bytes.
const CHUNK: usize = 4 * PIECE;
/// The number of headers in a row that must look like records where a chunk begins.
const PLAUSIBLE: usize = 8;

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

/// The bytes of a stream.
#[derive(Clone, Copy)]
struct Data<'a> {
    bytes: &'a [u8],
    /// Where they begin in the file.
    offset: u64,
    endian: Endian,
}

/// A walk over a part of a stream.
struct Walk<'a> {
    /// Its first byte in the stream.
    begin: usize,
    /// The byte behind its last record.
    end: usize,
    found: Split<'a>,
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
        self.walk_chunks(Data { bytes: data, offset, endian }, CHUNK);
    }

    fn walk_chunks(&mut self, data: Data<'a>, chunk: usize) {
        let ends = (0..data.bytes.len()).step_by(chunk).map(|start| start.saturating_add(chunk));
        let ends: Vec<usize> = ends.map(|end| end.min(data.bytes.len())).collect();
        let walk = |(index, end): (usize, &usize)| {
            let begin = if index == 0 { Some(0) } else { data.guess(index * chunk, *end) };
            begin.map(|begin| data.walk(begin, *end))
        };
        let walks: Vec<Option<Walk<'a>>> = ends.par_iter().enumerate().map(walk).collect();
        let mut at = 0;
        for (walk, end) in walks.into_iter().zip(ends) {
            let walk = walk.filter(|walk| walk.begin == at).unwrap_or_else(|| data.walk(at, end));
            at = walk.end;
            let is_over = !walk.found.damage.is_empty();
            self.append(walk.found);
            if is_over {
                break;
            }
        }
    }

    /// Adds what follows.
    fn append(&mut self, next: Self) {
        for (kind, count) in next.counts {
            *self.counts.entry(kind).or_default() += count;
        }
        self.side_band.extend(next.side_band);
        progress::advance(next.pieces.iter().map(|piece| piece.bytes.len()).sum());
        self.pieces.extend(next.pieces);
        self.first_round = self.first_round.or(next.first_round);
        self.damage.extend(next.damage);
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

impl<'a> Data<'a> {
    fn frames(self, begin: usize) -> Frames<'a> {
        Frames::new(self.bytes.get(begin..).unwrap_or_default(), self.offset + begin as u64, self.endian)
    }

    /// Walks the records that begin at `begin` or later and before `end`.
    fn walk(self, begin: usize, end: usize) -> Walk<'a> {
        let mut found = Split::default();
        let mut samples = 0u64;
        let mut frames = self.frames(begin);
        let (mut at, mut cut) = (begin, begin);
        while at < end {
            match frames.next() {
                None => break,
                Some(Err(error)) => {
                    found.damage.push(error);
                    break;
                }
                Some(Ok(raw)) if raw.header.kind == RecordType::SAMPLE => samples += 1,
                Some(Ok(raw)) => found.keep(raw),
            }
            at = self.bytes.len() - frames.left().len();
            if at - cut >= PIECE {
                found.pieces.extend(self.piece(cut, at));
                cut = at;
            }
        }
        found.pieces.extend(self.piece(cut, at));
        if samples > 0 {
            found.counts.insert(RecordType::SAMPLE, samples);
        }
        Walk { begin, end: at, found }
    }

    fn piece(self, begin: usize, end: usize) -> Option<Piece<'a>> {
        let bytes = self.bytes.get(begin..end).filter(|bytes| !bytes.is_empty())?;
        Some(Piece { bytes, offset: self.offset + begin as u64 })
    }

    /// Where a record may begin, at `from` or later and before `to`. The kernel's records and nearly all of perf's have sizes that are
    /// multiples of 8.
    fn guess(self, from: usize, to: usize) -> Option<usize> {
        (from..to).step_by(8).find(|begin| self.looks_like_records(*begin))
    }

    fn looks_like_records(self, mut at: usize) -> bool {
        for _ in 0..PLAUSIBLE {
            let Some((head, _)) = self.bytes.get(at..).and_then(<[u8]>::split_first_chunk) else {
                return at == self.bytes.len();
            };
            let header = RecordHeader::read(*head, self.endian);
            if header.size < 8 || !header.size.is_multiple_of(8) || header.kind.name().is_none() {
                return false;
            }
            at += usize::from(header.size);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use recrep_format::bytes::Encoder;

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

    /// A stream whose trace and copied bytes look like records, damaged by the end of `damage`.
    fn misleading(records: &[(u8, u16)], damage: Option<usize>) -> Vec<u8> {
        let mut e = Encoder::new(Endian::Little);
        let record = |e: &mut Encoder, kind, size| RecordHeader { kind, misc: 0, size }.encode(e);
        for &(what, words) in records {
            let size = 8 + 8 * words;
            match what {
                0 => record(&mut e, RecordType::FINISHED_ROUND, 8),
                1 => {
                    // Its data is as long as `words` says, and not always a multiple of 8.
                    record(&mut e, RecordType::AUXTRACE, 48);
                    let len = 8 * usize::from(words) + usize::from(words % 3);
                    e.u64(len as u64);
                    e.bytes(&[0; 32]);
                    let mut data = Encoder::new(Endian::Little);
                    (0..=words).for_each(|_| record(&mut data, RecordType::SAMPLE, 8));
                    e.bytes(&data.as_bytes()[..len]);
                }
                _ => {
                    let kind = if what == 2 { RecordType::MMAP2 } else { RecordType::SAMPLE };
                    record(&mut e, kind, size);
                    (0..words).for_each(|n| record(&mut e, RecordType::COMM, 8 + 8 * (n % 2)));
                }
            }
        }
        let mut bytes = e.into_bytes();
        if let Some(at) = damage.filter(|_| !bytes.is_empty()) {
            let at = at % bytes.len();
            bytes[at] ^= 0xff;
        }
        bytes
    }

    proptest! {
        #[test]
        fn chunks_are_as_one_walk(
            records in prop::collection::vec((0u8..6, 0u16..60), 0..60),
            damage in prop::option::of(any::<usize>()),
            chunk in 1usize..40,
        ) {
            let bytes = misleading(&records, damage);
            let mut split = Split::default();
            split.walk_chunks(Data { bytes: &bytes, offset: 104, endian: Endian::Little }, 8 * chunk);
            // What one walk finds.
            let mut frames = Frames::new(&bytes, 104, Endian::Little);
            let mut counts = BTreeMap::<RecordType, u64>::new();
            let (mut kept, mut rounds, mut damage) = (Vec::new(), Vec::new(), Vec::new());
            for raw in &mut frames {
                match raw {
                    Ok(raw) => {
                        *counts.entry(raw.header.kind).or_default() += 1;
                        match raw.header.kind {
                            RecordType::FINISHED_ROUND => rounds.push(raw.offset),
                            kind if kind != RecordType::SAMPLE && kind.0 < 64 => kept.push(raw.offset),
                            _ => {}
                        }
                    }
                    Err(error) => damage.push(error.to_string()),
                }
            }
            let whole = bytes.len() - frames.left().len();
            let places: Vec<u64> = split.side_band.iter().map(|raw| raw.offset).collect();
            prop_assert_eq!(split.counts, counts);
            prop_assert_eq!(places, kept);
            prop_assert_eq!(split.first_round, rounds.first().copied());
            prop_assert_eq!(split.damage.iter().map(ToString::to_string).collect::<Vec<_>>(), damage);
            let mut at = 0;
            for piece in &split.pieces {
                prop_assert_eq!(piece.offset, 104 + at as u64);
                prop_assert_eq!(piece.bytes, &bytes[at..at + piece.bytes.len()]);
                at += piece.bytes.len();
            }
            prop_assert_eq!(at, whole);
        }
    }
}
