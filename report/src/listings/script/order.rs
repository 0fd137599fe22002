//! The records to print, in order.

use std::collections::BTreeSet;

use recrep_format::abi::RecordType;
use recrep_format::record::{HEADER_SIZE, RawRecord, RecordHeader};

use rayon::prelude::*;

use crate::engine::session::Session;
use crate::input::unpack::UnpackBuffer;
use crate::timeline::Moment;

/// Position of a record, in the order of moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordPosition {
    moment: Moment,
    /// Number of its piece.
    piece: u32,
    /// Offset in the piece.
    at: u32,
}

impl RecordPosition {
    const START: Self = Self { moment: Moment::START, piece: 0, at: 0 };
}

/// Returns the samples and the other records that are asked for, ordered by moment; in file order
/// if FINISHED_ROUND records are among them.
pub(super) fn listed(session: &Session<'_>, records: &BTreeSet<RecordType>) -> Vec<RecordPosition> {
    let attrs = &session.file.attrs;
    let in_file_order = records.contains(&RecordType::FINISHED_ROUND);
    let pieces: Vec<_> = (0u32..).zip(&session.split.pieces).collect();
    let found = pieces.into_par_iter().map(|(number, piece)| {
        let mut found = Vec::new();
        for raw in piece.records(&mut UnpackBuffer::default()) {
            let time = match raw.header.kind {
                RecordType::SAMPLE => {
                    let Some((_, sample)) = attrs.sample(raw) else { continue };
                    sample.time()
                }
                kind if records.contains(&kind) => attrs.time_of(&raw),
                _ => continue,
            };
            let at = u32::try_from(raw.offset - piece.offset).unwrap_or(u32::MAX);
            let moment = session.clock.moment(time, raw.offset);
            found.push(RecordPosition { moment, piece: number, at });
        }
        found
    });
    let found: Vec<Vec<RecordPosition>> = found.collect();
    // Put together by all cores, also the first access to each page: one core takes 3 % of the time
    // of a listing.
    let len = found.iter().map(Vec::len).sum();
    let mut all: Vec<RecordPosition> =
        (0..len).into_par_iter().map(|_| RecordPosition::START).collect();
    let (mut parts, mut rest) = (Vec::with_capacity(found.len()), all.as_mut_slice());
    for piece in found {
        let Some((part, after)) = rest.split_at_mut_checked(piece.len()) else { break };
        parts.push((part, piece));
        rest = after;
    }
    parts.into_par_iter().for_each(|(part, piece)| part.copy_from_slice(&piece));
    if !in_file_order {
        // Stable, because that merges what was recorded in order.
        all.par_sort();
    }
    all
}

/// Returns the record at a position.
pub(super) fn record_at<'f>(
    session: &Session<'f>,
    position: RecordPosition,
) -> Option<RawRecord<'f>> {
    let piece = session.split.pieces.get(position.piece as usize)?;
    let bytes = piece.kept()?.get(position.at as usize..)?;
    let header = RecordHeader::read(*bytes.first_chunk::<HEADER_SIZE>()?, session.file.endian);
    let bytes = bytes.get(..usize::from(header.size))?;
    Some(RawRecord { header, offset: piece.offset + u64::from(position.at), bytes, payload: &[] })
}
