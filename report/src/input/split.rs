//! One pass over the data section: counts the records, cuts them into pieces, and collects those
//! that are not samples.
//!
//! ```text
//!   data:   R R S S S S S R S S S F S S S S … ▒▒▒ (damage: the walk ends here, with a warning)
//!           │ │           │
//!           └─┴───────────┴── side-band, collected      all records: pieces of ~1 MiB for the workers
//! ```
//!
//! Only record headers are read here. The workers walk the pieces again and decode the samples.
//!
//! # On all cores
//! The start of a record is known only from the size of the record before it, so a walk has to
//! start at the beginning. To share the work, the data is cut into chunks of 4 MiB (`CHUNK`), and
//! the walk of each chunk starts at a guess: the first position from which `PLAUSIBLE` headers in a
//! row look valid (`Piece::guess`). A guess may be wrong (the data of an AUXTRACE record, or the
//! bytes of a copied stack, can look like anything), so the walk of a chunk counts only if the walk
//! of the chunk before it ended exactly where this one started; otherwise the chunk is walked again
//! from there. The result is that of one walk from the beginning, whatever the guesses were, in
//! damaged data too.

use std::collections::BTreeMap;

use rayon::prelude::*;
use recrep_format::abi::RecordType;
use recrep_format::endian::Endian;
use recrep_format::error::Error;
use recrep_format::read::Frames;
use recrep_format::record::{RawRecord, RecordHeader};

use super::unpack::{DecodedPart, UnpackBuffer, UnpackedPart};
use crate::terminal::progress;

/// Minimum length of a piece in bytes; the last piece of a chunk may be shorter.
const PIECE: usize = 1 << 20;
/// Length of a chunk in bytes.
const CHUNK: usize = 4 * PIECE;
/// Number of headers in a row that must look valid where a chunk starts.
const PLAUSIBLE: usize = 8;

/// Number of positions of the records of a decoded part, whose length is not known before: more
/// than their bytes.
const DECODED_SPAN: u64 = 1 << 32;

/// A part of a stream: for the workers, consecutive whole records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    part: &'a UnpackedPart<'a, Skimmed>,
    /// Where it begins in the part.
    begin: usize,
    /// Size of the records in bytes.
    pub size: usize,
    /// Its offset in the file.
    pub offset: u64,
    endian: Endian,
}

/// All that the pass finds in records whose bytes are not kept.
#[derive(Debug, Default)]
pub(crate) struct Skimmed {
    len: usize,
    counts: BTreeMap<RecordType, u64>,
    first_round: Option<u64>,
    /// Bytes of the side-band records.
    side_band: Vec<u8>,
    /// Offset of each side-band record.
    offsets: Vec<u64>,
}

/// Result of the pass.
#[derive(Debug, Default)]
pub(crate) struct Split<'a> {
    /// Number of records of each type.
    pub counts: BTreeMap<RecordType, u64>,
    /// Records of the kernel other than samples and context switches, and records with build IDs or
    /// the kernel's symbols, in file order.
    pub side_band: Vec<RawRecord<'a>>,
    /// All records, cut into pieces for the workers.
    pub pieces: Vec<Piece<'a>>,
    /// Offset of the first FINISHED_ROUND record.
    pub first_round: Option<u64>,
    /// Offset from which on records are decoded from others.
    pub decoded_from: Option<u64>,
    /// Errors that ended the walk before the end of the data, at most one for each stream.
    pub damage: Vec<Error>,
}

impl<'a> Split<'a> {
    /// Returns the records of a profile: its samples. Those that were made of it are nobody's.
    pub(crate) fn counts_of_profile(samples: u64) -> BTreeMap<RecordType, u64> {
        [(RecordType::SAMPLE, samples)].into()
    }

    /// Returns the number of samples.
    pub(crate) fn samples(&self) -> u64 {
        self.counts.get(&RecordType::SAMPLE).copied().unwrap_or(0)
    }

    /// Walks another stream, whose offsets start at `offset`, after those of all streams before it.
    pub(crate) fn walk(
        &mut self,
        parts: &'a [UnpackedPart<'a, Skimmed>],
        mut offset: u64,
        endian: Endian,
    ) {
        let mut all = Vec::new();
        for part in parts {
            // Once here, once by the workers.
            progress::expect(2 * part.size() as u64);
            all.push(Piece::new(part, offset, endian));
            offset += part.span();
        }
        self.walk_chunks(&all, CHUNK);
    }

    fn walk_chunks(&mut self, parts: &[Piece<'a>], chunk: usize) {
        let mut chunks: Vec<(Piece<'a>, usize, usize)> = Vec::new();
        for data in parts {
            let len = data.bytes().len();
            for start in (0..len.max(1)).step_by(chunk) {
                chunks.push((*data, start, start.saturating_add(chunk).min(len)));
            }
        }
        let walks = chunks.par_iter().with_max_len(1).map(|&(data, start, end)| {
            let begin = if start == 0 { 0 } else { data.guess(start, end)? };
            Some((begin, data.walk(begin, end)))
        });
        let walks: Vec<Option<(usize, (usize, Self))>> = walks.collect();
        let mut at = 0;
        for (walk, (data, start, end)) in walks.into_iter().zip(chunks) {
            if start == 0 {
                at = 0;
            }
            let counts = walk.filter(|(begin, _)| *begin == at).map(|(_, walk)| walk);
            let found;
            (at, found) = counts.unwrap_or_else(|| data.walk(at, end));
            let is_over = !found.damage.is_empty();
            self.append(found);
            if is_over {
                break;
            }
        }
    }

    /// Appends the result of the walk that follows.
    fn append(&mut self, next: Self) {
        for (kind, count) in next.counts {
            *self.counts.entry(kind).or_default() += count;
        }
        self.side_band.extend(next.side_band);
        progress::advance(next.pieces.iter().map(|piece| piece.size).sum());
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
            kind if is_side_band(kind) => self.side_band.push(raw),
            _ => {}
        }
    }
}

/// Returns whether records of this type are side-band that is kept. Context switches tell nothing
/// of what is counted, and there may be millions of them. Of perf's own records, only these are
/// needed, among them those of `perf stat record`.
fn is_side_band(kind: RecordType) -> bool {
    let is_switch = matches!(kind, RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE);
    let is_other = matches!(
        kind,
        RecordType::BUILD_ID
            | RecordType::ID_INDEX
            | RecordType::AUXTRACE
            | RecordType::AUXTRACE_INFO
            | RecordType::TIME_CONV
            | RecordType::SIMPLEPERF_KERNEL_SYMBOL
            | RecordType::EVENT_UPDATE
            | RecordType::THREAD_MAP
            | RecordType::STAT_CONFIG
            | RecordType::STAT
            | RecordType::STAT_ROUND
    );
    kind.is_kernel() && !is_switch || is_other
}

impl<'a> Piece<'a> {
    /// Returns a whole part, whose first byte has this offset in the file.
    fn new(part: &'a UnpackedPart<'a, Skimmed>, offset: u64, endian: Endian) -> Self {
        Self { part, begin: 0, size: part.size(), offset, endian }
    }

    /// Returns whether its records are those of the file, not decoded from other data.
    pub(crate) fn is_recorded(&self) -> bool {
        !matches!(self.part, UnpackedPart::Decoded(_))
    }

    /// Returns the bytes of the records if they are in memory.
    pub(crate) fn kept(&self) -> Option<&'a [u8]> {
        match self.part {
            UnpackedPart::Kept(bytes) => bytes.get(self.begin..self.begin + self.size),
            UnpackedPart::Packed(..) | UnpackedPart::Decoded(_) => None,
        }
    }

    #[inline]
    pub(crate) fn records<'b>(
        &self,
        buffer: &'b mut UnpackBuffer,
    ) -> impl Iterator<Item = RawRecord<'b>>
    where
        'a: 'b,
    {
        self.frames(buffer).map_while(Result::ok)
    }

    /// Like [`Piece::records`]; all items are records.
    #[inline]
    pub(crate) fn frames<'b>(&self, buffer: &'b mut UnpackBuffer) -> Frames<'b>
    where
        'a: 'b,
    {
        let bytes = match self.part {
            UnpackedPart::Kept(_) => self.bytes(),
            UnpackedPart::Packed(section, _) => section.unpack(self.endian, buffer),
            UnpackedPart::Decoded(part) => part.decode(buffer),
        };
        Frames::new(bytes, self.offset, self.endian)
    }

    /// Returns its bytes; none if they are not in memory.
    fn bytes(self) -> &'a [u8] {
        self.kept().unwrap_or_default()
    }

    /// Walks the records that start in `begin..end`. Returns the position after the last one, too.
    fn walk(self, begin: usize, end: usize) -> (usize, Split<'a>) {
        match self.part {
            UnpackedPart::Kept(_) => {}
            UnpackedPart::Packed(_, skimmed) => return (end, self.skimmed(skimmed)),
            UnpackedPart::Decoded(_) => {
                return (end, Split { pieces: vec![self], ..Split::default() });
            }
        }
        let mut found = Split::default();
        let mut samples = 0u64;
        let bytes = self.bytes();
        let mut frames = Frames::new(
            bytes.get(begin..).unwrap_or_default(),
            self.offset + begin as u64,
            self.endian,
        );
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
            at = bytes.len() - frames.left().len();
            if at - cut >= PIECE {
                found.pieces.extend(self.piece(cut, at));
                cut = at;
            }
        }
        found.pieces.extend(self.piece(cut, at));
        if samples > 0 {
            found.counts.insert(RecordType::SAMPLE, samples);
        }
        (at, found)
    }

    fn piece(self, begin: usize, end: usize) -> Option<Self> {
        let (size, offset) = (end - begin, self.offset + begin as u64);
        (size > 0).then_some(Self { begin: self.begin + begin, size, offset, ..self })
    }

    /// Returns what was found before in records whose bytes are not in memory.
    fn skimmed(self, skimmed: &'a Skimmed) -> Split<'a> {
        let Self { offset, endian, .. } = self;
        let records = Frames::new(&skimmed.side_band, 0, endian).flatten().zip(&skimmed.offsets);
        Split {
            counts: skimmed.counts.clone(),
            side_band: records.map(|(raw, at)| RawRecord { offset: offset + at, ..raw }).collect(),
            pieces: vec![self],
            first_round: skimmed.first_round.map(|at| offset + at),
            decoded_from: None,
            damage: Vec::new(),
        }
    }

    /// Returns a position in `from..to` where a record probably starts. The sizes of the kernel's
    /// records, and of nearly all of perf's, are multiples of 8.
    fn guess(self, from: usize, to: usize) -> Option<usize> {
        (from..to).step_by(8).find(|begin| self.looks_like_records(*begin))
    }

    fn looks_like_records(self, mut at: usize) -> bool {
        let bytes = self.bytes();
        for _ in 0..PLAUSIBLE {
            let Some((head, _)) = bytes.get(at..).and_then(<[u8]>::split_first_chunk) else {
                return at == bytes.len();
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

impl UnpackedPart<'_, Skimmed> {
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Kept(bytes) => bytes.len(),
            Self::Packed(_, skimmed) => skimmed.len,
            Self::Decoded(DecodedPart { size, .. }) => *size,
        }
    }

    /// Returns the number of positions that its records may take.
    pub(crate) fn span(&self) -> u64 {
        match self {
            Self::Decoded(_) => DECODED_SPAN,
            part => part.size() as u64,
        }
    }
}

impl Skimmed {
    /// Finds in whole records all that the pass needs.
    pub(crate) fn of(bytes: &[u8], endian: Endian) -> Self {
        let part = UnpackedPart::Kept(bytes.into());
        let (_, Split { counts, side_band, first_round, .. }) =
            Piece::new(&part, 0, endian).walk(0, bytes.len());
        let offsets = side_band.iter().map(|raw| raw.offset).collect();
        let side_band =
            side_band.iter().flat_map(|raw| raw.bytes.iter().chain(raw.payload)).copied().collect();
        Self { len: bytes.len(), counts, first_round, side_band, offsets }
    }
}

#[cfg(test)]
mod tests;
