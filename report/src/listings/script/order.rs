//! The records to print, in order.

use std::collections::BTreeSet;

use recrep_format::abi::RecordType;
use recrep_format::record::{HEADER_SIZE, RawRecord, RecordHeader};

use rayon::prelude::*;

use crate::engine::session::Session;
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::timeline::Moment;

/// Position of a record: its moment, the number of its piece, and its offset in the piece.
pub(super) type RecordPosition = (Moment, u32, u32);

/// Returns the samples and the other records that are asked for, ordered by moment; in file order
/// if FINISHED_ROUND records are among them.
pub(super) fn listed(session: &Session<'_>, records: &BTreeSet<RecordType>) -> Vec<RecordPosition> {
    let attrs = &session.file.attrs;
    let in_file_order = records.contains(&RecordType::FINISHED_ROUND);
    let of_piece = |(number, piece): (u32, &Piece<'_>)| {
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
            found.push((session.clock.moment(time, raw.offset), number, at));
        }
        found
    };
    let pieces: Vec<_> = (0u32..).zip(&session.split.pieces).collect();
    let found: Vec<Vec<RecordPosition>> = pieces.into_par_iter().map(of_piece).collect();
    // Put together by all cores, also the first access to each page: one core takes 3 % of the time
    // of a listing.
    let len = found.iter().map(Vec::len).sum();
    let mut all: Vec<RecordPosition> =
        (0..len).into_par_iter().map(|_| (Moment::START, 0, 0)).collect();
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
    (_, piece, at): RecordPosition,
) -> Option<RawRecord<'f>> {
    let piece = session.split.pieces.get(piece as usize)?;
    let bytes = piece.kept()?.get(at as usize..)?;
    let header = RecordHeader::read(*bytes.first_chunk::<HEADER_SIZE>()?, session.file.endian);
    let bytes = bytes.get(..usize::from(header.size))?;
    Some(RawRecord { header, offset: piece.offset + u64::from(at), bytes, payload: &[] })
}
