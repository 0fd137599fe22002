//! The moments at which records take effect, and so the order of all records.
//!
//! A perf.data file is not in time order: each ring is, and rings are copied one after the other in
//! rounds. A record with a time takes effect at (its time, its offset in the file). A record
//! without one (records synthesized by `perf record` have time 0; an attr without
//! `PERF_SAMPLE_TIME` gives none) takes effect where the reader meets it: after all records that
//! the preceding rounds have flushed. [`FlushLimits`] computes the time of the last of those:
//!
//! ```text
//!   file:   t=3  t=9  ROUND  t=7  t=12  ROUND  (no time)  t=20  ROUND …
//!                       │                 │         └─ takes effect after t<=9, before t=12
//!                       │                 └─ flushes t<=9, the largest time at the preceding ROUND
//!                       └─ flushes nothing: there was no preceding round
//! ```
//!
//! If the attrs have no `sample_id_all`, the side-band has no times, and the whole stream is read
//! in file order.

use std::ops::Range;
use std::sync::OnceLock;

use recrep_format::abi::RecordType;
use recrep_format::attr::AttrTable;
use recrep_format::read::Mode;

use crate::input::split::{Piece, Split};
use crate::input::unpack::UnpackBuffer;

/// Largest time value, which like 0 means "no time".
const NO_TIME: u64 = u64::MAX;

/// Bit set in [`Moment::seq`] of a record without a time, which sorts it after timed records with
/// the same time.
const UNTIMED: u64 = 1 << 63;

/// Position in the order of all records at which a record takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment {
    time: u64,
    seq: u64,
}

impl Moment {
    /// Moment before every record.
    pub(crate) const START: Self = Self { time: 0, seq: 0 };

    /// Moment after every record.
    pub(crate) const END: Self = Self { time: u64::MAX, seq: u64::MAX };

    /// Returns the moment of a record with a time, `offset` bytes into its file.
    #[inline]
    pub(crate) fn timed(time: u64, offset: u64) -> Self {
        Self { time, seq: offset }
    }

    /// Returns the moment of a record without a time: after all records with times up to `limit`.
    pub(crate) fn untimed(limit: u64, offset: u64) -> Self {
        Self { time: limit, seq: offset | UNTIMED }
    }

    /// Returns the time, or the limit of a record without one.
    pub(crate) fn time(self) -> u64 {
        self.time
    }

    /// Returns the record's offset in its file.
    pub(crate) fn offset(self) -> u64 {
        self.seq & !UNTIMED
    }
}

/// Returns the moment of a record with a time, at the beginning of a file.
#[cfg(test)]
pub(crate) fn at(time: u64) -> Moment {
    Moment::timed(time, 0)
}

/// Returns whether `time` is a real time: 0 and the largest value mean that a record has no time.
#[inline]
pub(super) fn is_time(time: u64) -> bool {
    time != 0 && time != NO_TIME
}

/// Computes the moments of a file's records. The flush limits are computed only when a record
/// without a time follows the first round, which is rare.
#[derive(Debug)]
pub(crate) struct Clock<'f> {
    attrs: &'f AttrTable,
    pieces: Vec<Piece<'f>>,
    first_round: u64,
    decoded_from: u64,
    ordered: bool,
    limits: OnceLock<FlushLimits>,
}

impl<'f> Clock<'f> {
    /// Creates the clock of a file. Without `sample_id_all` the side-band has no times, so the
    /// whole file is read in file order; except in pipe mode, where perf decides before it has read
    /// the attrs.
    pub(crate) fn new(attrs: &'f AttrTable, mode: Mode, split: &Split<'f>) -> Self {
        let Split { pieces, first_round, decoded_from, .. } = split;
        let all = attrs.entries().first().is_some_and(|e| e.attr.sample_id_all());
        Self {
            attrs,
            pieces: pieces.iter().filter(|piece| piece.is_recorded()).copied().collect(),
            first_round: first_round.unwrap_or(u64::MAX),
            decoded_from: decoded_from.unwrap_or(u64::MAX),
            ordered: all || mode == Mode::Pipe,
            limits: OnceLock::new(),
        }
    }

    /// Returns the moment of the record at `offset` with this time.
    #[inline]
    pub(crate) fn moment(&self, time: Option<u64>, offset: u64) -> Moment {
        match time {
            _ if !self.ordered => Moment::timed(0, offset),
            Some(time) if is_time(time) => Moment::timed(time, offset),
            _ => self.untimed(offset),
        }
    }

    /// Returns whether records take effect at their times.
    pub(crate) fn has_times(&self) -> bool {
        self.ordered
    }

    /// Returns times that records have only at these moments.
    pub(crate) fn times_within(&self, moments: &Range<Moment>) -> Range<u64> {
        if self.ordered { moments.start.time().saturating_add(1)..moments.end.time() } else { 0..0 }
    }

    #[cold]
    fn untimed(&self, offset: u64) -> Moment {
        if offset >= self.decoded_from {
            // A trace without times: what is mapped at its end is the best guess.
            return Moment::untimed(u64::MAX, offset);
        }
        if offset < self.first_round {
            return Moment::untimed(0, offset);
        }
        Moment::untimed(self.limits.get_or_init(|| self.find_limits()).at(offset), offset)
    }

    fn find_limits(&self) -> FlushLimits {
        let (mut limits, mut buffer) = (FlushLimits::default(), UnpackBuffer::default());
        for piece in &self.pieces {
            for raw in piece.records(&mut buffer) {
                if raw.header.kind == RecordType::FINISHED_ROUND {
                    limits.round(raw.offset);
                } else if let Some(time) = self.attrs.time_of(&raw) {
                    limits.record(time);
                }
            }
        }
        limits
    }
}

/// Largest time that the rounds have flushed, for each offset in the file.
#[derive(Debug, Default)]
struct FlushLimits {
    /// (offset of a `FINISHED_ROUND`, limit from there on), sorted by offset.
    limits: Vec<(u64, u64)>,
    /// Largest time of the records that wait; `None` if none do.
    largest: Option<u64>,
    next: u64,
}

impl FlushLimits {
    /// Processes the next record of the file, which has this time (see [`is_time`]).
    fn record(&mut self, time: u64) {
        if is_time(time) {
            self.largest = self.largest.max(Some(time));
        }
    }

    /// Processes a `FINISHED_ROUND` at this offset.
    fn round(&mut self, offset: u64) {
        let Some(largest) = self.largest else { return };
        let limit = self.next;
        if limit > self.limits.last().map_or(0, |(_, flushed)| *flushed) {
            self.limits.push((offset, limit));
        }
        self.largest = Some(largest).filter(|largest| *largest > limit);
        self.next = largest;
    }

    fn at(&self, offset: u64) -> u64 {
        let after = self.limits.partition_point(|&(end, _)| end <= offset);
        after.checked_sub(1).and_then(|i| self.limits.get(i)).map_or(0, |&(_, limit)| limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Naive reference: a list of times, of which a round flushes those up to the limit.
    #[derive(Default)]
    struct Queue {
        times: Vec<u64>,
        next: u64,
        flushed: u64,
    }

    impl Queue {
        fn round(&mut self) {
            let Some(largest) = self.times.iter().max().copied() else { return };
            let limit = self.next;
            self.times.retain(|&t| t > limit);
            self.flushed = self.flushed.max(limit);
            self.next = largest;
        }
    }

    #[test]
    fn a_round_flushes_up_to_the_largest_time_of_the_preceding_round() {
        let mut limits = FlushLimits::default();
        for t in [3, 9] {
            limits.record(t);
        }
        limits.round(100);
        limits.record(7);
        limits.record(12);
        limits.round(200);
        assert_eq!([limits.at(0), limits.at(150), limits.at(200), limits.at(999)], [0, 0, 9, 9]);
    }

    #[test]
    fn a_record_without_a_time_follows_records_at_the_limit() {
        assert!(Moment::timed(9, 500) < Moment::untimed(9, 10));
        assert!(Moment::untimed(9, 10) < Moment::timed(10, 0));
        assert!(Moment::untimed(0, 10) < Moment::timed(1, 0));
    }

    proptest! {
        #[test]
        fn the_limits_agree_with_the_naive_queue(
            steps in prop::collection::vec(prop::option::of(0u64..50), 0..200),
        ) {
            let mut limits = FlushLimits::default();
            let mut queue = Queue::default();
            let mut want = Vec::new();
            for (offset, step) in (0u64..).zip(&steps) {
                match *step {
                    None => { limits.round(offset); queue.round(); }
                    Some(t) => { limits.record(t); if is_time(t) { queue.times.push(t); } }
                }
                want.push(queue.flushed);
            }
            let got: Vec<u64> = (0u64..).take(steps.len()).map(|o| limits.at(o)).collect();
            prop_assert_eq!(got, want);
        }
    }
}
