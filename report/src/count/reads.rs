//! Samples with counter values (`PERF_SAMPLE_READ`): their periods are differences of values.
//!
//! Such a sample counts for each counter that it reads. The period is the increment since the
//! counter's last value; an increment of zero is not counted. The values of a counter are in the
//! order of the file, since they come through one ring. A worker knows the last value only within
//! its piece, so the first value of each counter in a piece waits until all pieces are read and
//! sorted:
//!
//! ```text
//!   piece 0: id 7: 100, 130     first 100 → waits; 130 → 30        last 130
//!   piece 1: id 7: 150          first 150 → waits                  last 150
//!   in order:       100 - 0,  150 - 130
//! ```
//!
//! A counter that shares its place in the PMU with others (multiplexing) counts for a part of the
//! time that it is enabled. Where the values have both times, an increment is scaled to the whole
//! time since the last value:
//!
//! ```text
//!   value    100 → 150    50 more while it ran
//!   enabled   20 →  60    40
//!   running   10 →  30    20      50 × 40 / 20 = 100
//! ```
//!
//! Counters never go back by themselves. After a value lower than the one before (somebody reset
//! the counter, or records are lost), the increment is unknown: that sample is not counted, and the
//! next increment starts from its value.

use recrep_format::record::{Counter, ReadValues};
use rustc_hash::FxHashMap;

use super::histogram::{Histogram, SampleRows};

/// What a count of such values means.
pub(crate) const LOWER_VALUES: [&str; 2] = [
    "counter value in samples is lower than the value before (reset, or records lost?): the \
     increment is unknown and left out",
    "counter values in samples are lower than the value before (reset, or records lost?): the \
     increment is unknown and left out",
];

/// A counter whose values follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CounterKey {
    /// Event ID.
    pub id: u64,
    /// The thread whose counter it is, packed, if each thread that inherited it has its own;
    /// else 0.
    pub thread: u64,
}

/// A value of a counter, and its times, in nanoseconds; both are 0 if they were not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub value: u64,
    /// `true` if increments are scaled to the time enabled ([`crate::scan::scaled`]).
    pub scales: bool,
    /// The time that the counter was enabled.
    pub enabled: u64,
    /// The time that it was on its PMU.
    pub running: u64,
}

impl Reading {
    /// Returns a counter's value, with the times of its group.
    pub(crate) fn of(read: &ReadValues<'_>, counter: &Counter, scales: bool) -> Self {
        let (enabled, running) = read.time_enabled().zip(read.time_running()).unwrap_or_default();
        Self { value: counter.value, scales, enabled, running }
    }

    /// Returns the increment since the last reading, scaled to the time that the counter was
    /// enabled; `None` if it is unknown, because the value is lower.
    pub(crate) fn increment(self, before: Self) -> Option<u64> {
        let counted = self.value.checked_sub(before.value)?;
        let enabled = self.enabled.saturating_sub(before.enabled);
        let running = self.running.saturating_sub(before.running);
        if !self.scales || running == 0 || enabled <= running {
            return Some(counted);
        }
        let (counted, enabled, running) =
            (u128::from(counted), u128::from(enabled), u128::from(running));
        // Rounded to the nearest.
        Some(u64::try_from((counted * enabled + running / 2) / running).unwrap_or(u64::MAX))
    }
}

/// Times of an event's counters, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CounterTimes {
    pub enabled: u64,
    pub running: u64,
}

impl CounterTimes {
    /// Adds times of other counters.
    fn add(&mut self, other: Self) {
        self.enabled = self.enabled.saturating_add(other.enabled);
        self.running = self.running.saturating_add(other.running);
    }

    /// Returns whether the counters were multiplexed. As they are not all enabled at the same
    /// moment, one percent is tolerated.
    pub(crate) fn are_shared(self) -> bool {
        u128::from(self.running) * 100 < u128::from(self.enabled) * 99
    }

    /// Returns the share of time that the counters were on their PMU, in percent.
    #[allow(clippy::cast_precision_loss, reason = "a share in percent")]
    pub(crate) fn share(self) -> f64 {
        100.0 * self.running as f64 / (self.enabled as f64).max(1.0)
    }
}

/// Counter values in one piece.
#[derive(Clone, Debug)]
pub(crate) struct PieceReads {
    pub piece: usize,
    counters: FxHashMap<CounterKey, Readings>,
    /// Number of values that are lower than the one before.
    lower: u64,
}

#[derive(Clone, Debug)]
struct Readings {
    first: Reading,
    event: usize,
    rows: SampleRows,
    last: Reading,
}

/// Results of all counter values besides their increments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Number of values that are lower than the one before.
    pub lower: u64,
    /// Times of the counters of each event.
    pub times: Vec<CounterTimes>,
}

impl PieceReads {
    pub(crate) fn new(piece: usize) -> Self {
        Self { piece, counters: FxHashMap::default(), lower: 0 }
    }

    /// Replaces the waiting keys, of `width` words each: `change` appends the new key of each.
    #[must_use]
    pub(crate) fn map(
        mut self,
        width: usize,
        mut change: impl FnMut(&[u64], &mut Vec<u64>),
    ) -> Self {
        for readings in self.counters.values_mut() {
            let mut changed = Vec::new();
            readings.rows.keys.chunks_exact(width).for_each(|key| change(key, &mut changed));
            readings.rows.keys = changed;
        }
        self
    }

    /// Records a value of a counter. Returns the period, 0 if it is unknown; `None` for the first
    /// value in the piece, whose rows wait.
    pub(crate) fn read(
        &mut self,
        counter: CounterKey,
        reading: Reading,
        event: usize,
        rows: impl FnOnce() -> SampleRows,
    ) -> Option<u64> {
        match self.counters.get_mut(&counter) {
            Some(readings) => {
                let period = reading.increment(readings.last);
                self.lower += u64::from(period.is_none());
                readings.last = reading;
                Some(period.unwrap_or(0))
            }
            None => {
                self.counters.insert(
                    counter,
                    Readings { first: reading, event, rows: rows(), last: reading },
                );
                None
            }
        }
    }
}

/// Counts the first values of all pieces, which waited, and returns what else they tell. The pieces
/// may be in any order.
pub(crate) fn settle_reads(mut pieces: Vec<PieceReads>, histogram: &mut Histogram) -> Settled {
    pieces.sort_by_key(|p| p.piece);
    let mut last = FxHashMap::<CounterKey, (usize, Reading)>::default();
    let mut settled = Settled::default();
    for piece in pieces {
        settled.lower += piece.lower;
        for (counter, readings) in piece.counters {
            let before = last.insert(counter, (readings.event, readings.last));
            match readings.first.increment(before.unwrap_or_default().1) {
                None => settled.lower += 1,
                Some(0) => {}
                Some(period) => histogram.count_rows(readings.event, &readings.rows, period),
            }
        }
    }
    let readings =
        last.into_iter().map(|(counter, (event, reading))| (event, counter.thread, reading));
    settled.times = times(readings);
    settled
}

/// Returns the times of each event's counters, given event, thread and last value of each counter.
///
/// Those of a thread on several CPUs are all enabled while it runs, and one of them runs: the
/// longest time enabled stands for them all.
pub(crate) fn times(
    readings: impl IntoIterator<Item = (usize, u64, Reading)>,
) -> Vec<CounterTimes> {
    let mut of_threads = FxHashMap::<(usize, u64), CounterTimes>::default();
    let mut all = Vec::new();
    for (event, thread, Reading { scales, enabled, running, .. }) in readings {
        if scales {
            add_times(&mut all, event, CounterTimes { enabled, running });
            continue;
        }
        let times = of_threads.entry((event, thread)).or_default();
        times.enabled = times.enabled.max(enabled);
        times.running = times.running.saturating_add(running);
    }
    for ((event, _), times) in of_threads {
        add_times(&mut all, event, times);
    }
    all
}

fn add_times(all: &mut Vec<CounterTimes>, event: usize, times: CounterTimes) {
    all.resize(all.len().max(event + 1), CounterTimes::default());
    if let Some(sum) = all.get_mut(event) {
        sum.add(times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::{Count, Partition};

    #[test]
    fn periods_do_not_depend_on_where_pieces_are_cut() {
        // Two threads have counters of one ID; that of thread 1 is reset once.
        let values = [(1, 100), (2, 40), (1, 130), (1, 130), (1, 150), (2, 90), (1, 20), (1, 70)];
        for cut in 0..=values.len() {
            let mut histogram = Histogram::new(1, 1);
            let mut reads = Vec::new();
            let (a, b) = values.split_at(cut);
            let row = || SampleRows { count: 1, keys: vec![5], period: None };
            for (piece, part) in [(1, b), (0, a)] {
                let mut piece = PieceReads::new(piece);
                for (thread, value) in part {
                    let reading = Reading { value: *value, ..Reading::default() };
                    if let Some(period) =
                        piece.read(CounterKey { id: 7, thread: *thread }, reading, 0, row)
                        && period != 0
                    {
                        histogram.count_rows(0, &row(), period);
                    }
                }
                reads.push(piece);
            }
            assert_eq!(settle_reads(reads, &mut histogram).lower, 1, "cut at {cut}");
            let all = Count { samples: 6, period: 150 + 50 + 90 };
            let (table, totals) = histogram.finish();
            assert_eq!(totals, [all], "cut at {cut}");
            let counts = table.iter().flat_map(Partition::iter).map(|(_, count)| *count);
            assert_eq!(counts.sum::<Count>(), all, "cut at {cut}");
        }
    }

    #[test]
    fn increments_are_scaled_to_the_time_enabled() {
        let reading = |value, enabled, running| Reading { value, scales: true, enabled, running };
        let increment = |before, now: Reading| now.increment(before);
        assert_eq!(increment(reading(100, 20, 10), reading(150, 60, 30)), Some(100));
        assert_eq!(increment(reading(0, 0, 0), reading(7, 3, 2)), Some(11), "10.5, rounded");
        assert_eq!(
            increment(reading(100, 20, 20), reading(150, 60, 60)),
            Some(50),
            "not multiplexed"
        );
        assert_eq!(
            increment(reading(100, 20, 10), reading(100, 60, 10)),
            Some(0),
            "it did not run"
        );
        assert_eq!(
            increment(reading(100, 20, 10), reading(150, 10, 5)),
            Some(50),
            "times that go back"
        );
        assert_eq!(increment(reading(100, 0, 0), reading(99, 0, 0)), None);
        assert_eq!(
            increment(reading(0, 0, 0), reading(u64::MAX, u64::MAX, 1)),
            Some(u64::MAX),
            "damaged"
        );
        let unscaled = Reading { scales: false, ..reading(150, 60, 30) };
        assert_eq!(increment(reading(100, 20, 10), unscaled), Some(50));
    }

    #[test]
    fn times_of_counters_add_up() {
        let reading = |scales, enabled, running| Reading { value: 1, scales, enabled, running };
        let of = |readings: &[(u64, Reading)]| {
            times(readings.iter().map(|(thread, reading)| (1, *thread, *reading)))
        };
        let whole = of(&[(0, reading(true, 100, 100))]);
        assert!(whole.len() == 2 && !whole[0].are_shared() && !whole[1].are_shared());
        let shared = of(&[(0, reading(true, 100, 100)), (0, reading(true, 100, 20))])[1];
        assert!(shared.are_shared() && (shared.share() - 60.0).abs() < 1e-9);
        let moved = of(&[
            (5, reading(false, 100, 70)),
            (5, reading(false, 90, 30)),
            (6, reading(false, 50, 50)),
        ])[1];
        assert_eq!(
            moved,
            CounterTimes { enabled: 150, running: 150 },
            "two threads, of which one changed the CPU"
        );
    }
}
