//! The critical path in a picture: which thread the run waited for at each moment.

use crate::profile::Event;

/// Number of pieces above which neighbours in a step are joined.
const MOST: usize = 200_000;

/// Parts of a step in which pieces begin and end.
pub(super) const PARTS: u64 = 256;

/// What a thread did on the critical path, from one moment to another in [`PARTS`] of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PicturePiece {
    pub(crate) thread: u32,
    /// [`crate::timeline::Activity::byte`].
    pub(crate) activity: u8,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Returns whether the samples of an event are those that times off CPUs, and who ended them, are
/// known by.
pub(super) fn is_of_times(event: &Event) -> bool {
    let wakes = [["sched", "sched_waking"], ["sched", "sched_wakeup_new"]];
    event.is_of_waits || wakes.into_iter().any(|wake| event.name.split(':').take(2).eq(wake))
}

/// Joins neighbours of one thread that do the same, and of many pieces those of one step, which are
/// then the first one's.
pub(super) fn join(path: &mut Vec<PicturePiece>) {
    path.retain(|piece| piece.to > piece.from);
    path.sort_unstable_by_key(|piece| piece.from);
    let is_same = |a: &PicturePiece, b: &PicturePiece| {
        (a.thread, a.activity) == (b.thread, b.activity) && a.to == b.from
    };
    join_if(path, is_same);
    if path.len() > MOST {
        join_if(path, |a, b| a.from / PARTS == b.from / PARTS);
    }
}

fn join_if(path: &mut Vec<PicturePiece>, are_one: impl Fn(&PicturePiece, &PicturePiece) -> bool) {
    path.dedup_by(|next, kept| {
        let is_one = are_one(kept, next);
        if is_one {
            kept.to = next.to.max(kept.to);
        }
        is_one
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_piece() {
        let piece = |thread, activity, from, to| PicturePiece { thread, activity, from, to };
        let mut path = vec![piece(1, 0, 40, 90), piece(1, 0, 10, 40), piece(1, 1, 90, 95)];
        path.push(piece(2, 0, 95, 99));
        join(&mut path);
        assert_eq!(path, [piece(1, 0, 10, 90), piece(1, 1, 90, 95), piece(2, 0, 95, 99)]);
        let many = (0..300_000).map(|i| piece((i % 2) as u32, 0, i * 8, i * 8 + 8));
        let mut path: Vec<PicturePiece> = many.collect();
        join(&mut path);
        assert_eq!(path.len(), 300_000 / 32);
        assert_eq!(path[1], piece(0, 0, 256, 512));
    }
}
