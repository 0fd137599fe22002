//! When a record takes effect, and the order of all records.
//!
//! A perf.data file is not in time order: each ring is, and rings are copied one after the other in rounds. A
//! record with a time takes effect at (its time, its place in the file). A record without one (what `perf record`
//! synthesizes has time 0; an attr without `PERF_SAMPLE_TIME` gives none) takes effect where the reader meets
//! it: after everything that the rounds before it have already delivered. [`FlushLimits`] knows up to
//! which time that is:
//!
//! ```text
//!   file:   t=3  t=9  ROUND  t=7  t=12  ROUND  (no time)  t=20  ROUND …
//!                       │                 │         └─ takes effect after t<=9, before t=12
//!                       │                 └─ delivers what is <= 9, the largest time at the ROUND before
//!                       └─ delivers nothing yet: there was no round before it
//! ```
//!
//! A stream whose attrs have no `sample_id_all` has side-band without times: it is read in file order throughout.

/// The largest time that stands for "no time".
const NO_TIME: u64 = u64::MAX;

/// Set in [`Moment::seq`] of a record without a time: it comes after the timed records of the same time.
const UNTIMED: u64 = 1 << 63;

/// The point in the order of all records at which one takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    time: u64,
    seq: u64,
}

impl Moment {
    /// Before every record.
    pub const START: Self = Self { time: 0, seq: 0 };

    /// After every record.
    pub const END: Self = Self { time: u64::MAX, seq: u64::MAX };

    /// The moment of a record with a time, `offset` bytes into its file.
    #[must_use]
    #[inline]
    pub fn timed(time: u64, offset: u64) -> Self {
        Self { time, seq: offset }
    }

    /// The moment of a record without a time: after everything up to `limit`.
    #[must_use]
    pub fn untimed(limit: u64, offset: u64) -> Self {
        Self { time: limit, seq: offset | UNTIMED }
    }

    /// Where in its file the record is.
    #[must_use]
    pub fn offset(self) -> u64 {
        self.seq & !UNTIMED
    }
}

/// Whether `time` is one: 0 and the largest number are what a record without a time carries.
#[must_use]
#[inline]
pub fn is_time(time: u64) -> bool {
    time != 0 && time != NO_TIME
}

/// Up to which time the rounds have delivered, for each place in the file.
#[derive(Clone, Debug, Default)]
pub struct FlushLimits {
    /// (offset of a round's end, the limit in force from there on), by offset.
    limits: Vec<(u64, u64)>,
    largest: u64,
    waiting: bool,
    next: u64,
    delivered: u64,
}

impl FlushLimits {
    /// Takes note of the next record of the file, which has this time (see [`is_time`]).
    pub fn record(&mut self, time: u64) {
        if is_time(time) {
            self.largest = if self.waiting { self.largest.max(time) } else { time };
            self.waiting = true;
        }
    }

    /// Takes note of a `FINISHED_ROUND` at this offset.
    pub fn round(&mut self, offset: u64) {
        if !self.waiting {
            return;
        }
        let limit = self.next;
        if limit > self.delivered {
            self.delivered = limit;
            self.limits.push((offset, limit));
        }
        if self.largest <= limit {
            self.waiting = false;
        }
        self.next = self.largest;
    }

    /// The limit in force at this offset.
    #[must_use]
    pub fn at(&self, offset: u64) -> u64 {
        let after = self.limits.partition_point(|&(end, _)| end <= offset);
        after.checked_sub(1).and_then(|i| self.limits.get(i)).map_or(0, |&(_, limit)| limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The queue as it is: a list of times, of which a round delivers those up to the limit.
    #[derive(Default)]
    struct Queue {
        times: Vec<u64>,
        next: u64,
        delivered: u64,
    }

    impl Queue {
        fn round(&mut self) {
            let Some(largest) = self.times.iter().max().copied() else { return };
            let limit = self.next;
            self.times.retain(|&t| t > limit);
            self.delivered = self.delivered.max(limit);
            self.next = largest;
        }
    }

    #[test]
    fn a_round_delivers_up_to_the_round_before() {
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
    fn without_a_time_comes_after_the_same_time() {
        assert!(Moment::timed(9, 500) < Moment::untimed(9, 10));
        assert!(Moment::untimed(9, 10) < Moment::timed(10, 0));
        assert!(Moment::untimed(0, 10) < Moment::timed(1, 0));
    }

    proptest! {
        #[test]
        fn the_limits_are_those_of_the_queue(steps in prop::collection::vec(prop::option::of(0u64..50), 0..200)) {
            let mut limits = FlushLimits::default();
            let mut queue = Queue::default();
            let mut want = Vec::new();
            for (offset, step) in (0u64..).zip(&steps) {
                match *step {
                    None => { limits.round(offset); queue.round(); }
                    Some(t) => { limits.record(t); if is_time(t) { queue.times.push(t); } }
                }
                want.push(queue.delivered);
            }
            let got: Vec<u64> = (0u64..).take(steps.len()).map(|o| limits.at(o)).collect();
            prop_assert_eq!(got, want);
        }
    }
}
