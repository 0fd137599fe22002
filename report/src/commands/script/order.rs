//! The records to print, in order.

use std::collections::BTreeSet;

use recrep_format::abi::RecordType;
use recrep_format::record::{HEADER_SIZE, RawRecord, RecordHeader};

use rayon::prelude::*;

use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::pipeline::session::Session;
use crate::timeline::Moment;

/// Position of a record: its moment, the number of its piece, and its offset in the piece.
pub(super) type RecordPosition = (Moment, u32, u32);

/// Returns the samples and the other records that are asked for, ordered by moment; in file order if FINISHED_ROUND
/// records are among them. They come in parts, so that no core has to join what all have found.
pub(super) fn listed(session: &Session<'_>, records: &BTreeSet<RecordType>) -> Vec<Vec<RecordPosition>> {
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
        if !in_file_order {
            // Stable, because that merges what was recorded in order.
            found.sort();
        }
        found
    };
    let pieces: Vec<_> = (0u32..).zip(&session.split.pieces).collect();
    let lists: Vec<Vec<RecordPosition>> = pieces.into_par_iter().map(of_piece).collect();
    if in_file_order { lists } else { merged(&lists, 1 << 12) }
}

/// Merges sorted lists into parts that follow each other. Every `step`th item of a list begins a part.
fn merged<T: Copy + Ord + Send + Sync>(lists: &[Vec<T>], step: usize) -> Vec<Vec<T>> {
    let mut begins: Vec<T> = lists.iter().flat_map(|list| list.iter().step_by(step)).copied().collect();
    begins.sort_unstable();
    let part = |(index, begin): (usize, &T)| {
        let end = begins.get(index + 1);
        let mut part = Vec::new();
        // Recordings are nearly in order: few lists have items of one part.
        let ends_before = |list: &&Vec<T>| list.last() < Some(begin);
        let begins_after = |list: &&Vec<T>| end.is_some_and(|end| list.first() >= Some(end));
        for list in lists.iter().filter(|list| !ends_before(list) && !begins_after(list)) {
            let from = list.partition_point(|item| item < begin);
            let to = end.map_or(list.len(), |end| list.partition_point(|item| item < end));
            part.extend_from_slice(list.get(from..to).unwrap_or_default());
        }
        part.sort();
        part
    };
    begins.par_iter().enumerate().map(part).collect()
}

/// Returns the record at a position.
pub(super) fn record_at<'f>(session: &Session<'f>, (_, piece, at): RecordPosition) -> Option<RawRecord<'f>> {
    let piece = session.split.pieces.get(piece as usize)?;
    let bytes = piece.kept()?.get(at as usize..)?;
    let header = RecordHeader::read(*bytes.first_chunk::<HEADER_SIZE>()?, session.file.endian);
    let bytes = bytes.get(..usize::from(header.size))?;
    Some(RawRecord { header, offset: piece.offset + u64::from(at), bytes, payload: &[] })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_all_items_in_order(
            mut lists in prop::collection::vec(prop::collection::vec(0u8..100, 0..20), 0..8),
            step in 1usize..10,
        ) {
            lists.iter_mut().for_each(|list| list.sort());
            let mut all = lists.concat();
            all.sort();
            prop_assert_eq!(merged(&lists, step).concat(), all);
        }
    }
}
