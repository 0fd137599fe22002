//! Positions of records, in order of time.

use std::collections::BTreeSet;

use rayon::prelude::*;
use recrep_format::abi::RecordType;
use recrep_format::record::{HEADER_SIZE, RawRecord, RecordHeader};

use super::pass::{PieceWorker, by_piece};
use super::session::Session;
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::timeline::Moment;

/// Position of a record, in the order of moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordPosition {
    moment: Moment,
    /// Number of its piece.
    piece: u32,
    /// Offset in the piece.
    at: u32,
}

impl RecordPosition {
    const START: Self = Self { moment: Moment::START, piece: 0, at: 0 };
}

/// Collects the positions in one worker's pieces.
struct PositionCollector<'s> {
    session: &'s Session<'s>,
    records: &'s BTreeSet<RecordType>,
    found: Vec<(usize, Vec<RecordPosition>)>,
}

impl PieceWorker for PositionCollector<'_> {
    fn read(&mut self, number: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        let (attrs, mut found) = (&self.session.file.attrs, Vec::new());
        for raw in piece.records(buffer) {
            let time = match attrs.sample(raw) {
                Some((_, sample)) => sample.time(),
                None if self.records.contains(&raw.header.kind) => attrs.time_of(&raw),
                None => continue,
            };
            let at = u32::try_from(raw.offset - piece.offset).unwrap_or(u32::MAX);
            let moment = self.session.clock.moment(time, raw.offset);
            let piece = u32::try_from(number).unwrap_or(u32::MAX);
            found.push(RecordPosition { moment, piece, at });
        }
        self.found.push((number, found));
    }
}

/// Returns the positions of all samples and of the other `records` that are asked for, ordered by
/// moment; in file order if FINISHED_ROUND records are among them.
pub(crate) fn positions(
    session: &Session<'_>,
    records: &BTreeSet<RecordType>,
) -> Vec<RecordPosition> {
    let pieces = &session.split.pieces;
    let workers = by_piece(pieces, |_| PositionCollector { session, records, found: Vec::new() });
    let mut found: Vec<_> = workers.into_iter().flat_map(|worker| worker.found).collect();
    found.sort_unstable_by_key(|(number, _)| *number);
    // Put together by all cores, also the first access to each page: one core takes 3 % of the time
    // of a listing.
    let len = found.iter().map(|(_, piece)| piece.len()).sum();
    let mut all: Vec<RecordPosition> =
        (0..len).into_par_iter().map(|_| RecordPosition::START).collect();
    let (mut parts, mut rest) = (Vec::with_capacity(found.len()), all.as_mut_slice());
    for (_, piece) in found {
        let Some((part, after)) = rest.split_at_mut_checked(piece.len()) else { break };
        parts.push((part, piece));
        rest = after;
    }
    parts.into_par_iter().for_each(|(part, piece)| part.copy_from_slice(&piece));
    if !records.contains(&RecordType::FINISHED_ROUND) {
        // Stable, because that merges what was recorded in order.
        all.par_sort();
    }
    all
}

/// Returns the record at a position.
pub(crate) fn record_at<'f>(
    session: &Session<'f>,
    position: RecordPosition,
) -> Option<RawRecord<'f>> {
    let piece = session.split.pieces.get(position.piece as usize)?;
    let bytes = piece.kept()?.get(position.at as usize..)?;
    let header = RecordHeader::read(*bytes.first_chunk::<HEADER_SIZE>()?, session.file.endian);
    let bytes = bytes.get(..usize::from(header.size))?;
    Some(RawRecord { header, offset: piece.offset + u64::from(position.at), bytes, payload: &[] })
}
