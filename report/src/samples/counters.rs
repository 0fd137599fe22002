//! Which counters each thread has for itself.
//!
//! An inherited counter has one ID, but each thread that inherits it counts from 0 on. A counter of
//! a CPU has one value for all threads, and recorders set `inherit` there, too, though it means
//! nothing. The values of an ID, in the order of the file, tell these apart:
//!
//! ```text
//!   thread      1    1    2    2    1        each thread's own: a value below the one before of another thread
//!   value     100  200   90  190  300
//!
//!   thread      1    1    2    0    1        the CPU's: the idle thread inherits from nobody
//!   value     100  200  290  390  500
//! ```

use recrep_format::abi::{AttrFlags, Cpu, ReadFormat, RecordType, SampleType, Tid};
use recrep_format::attr::{AttrEntry, AttrTable};
use recrep_format::layout::UpTo;
use recrep_format::record::{Body, IdIndexEntry, RawRecord, Sample, SampleFields};
use rustc_hash::{FxHashMap, FxHashSet};

use super::session::Session;
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;

/// Number of samples that are examined.
const EXAMINED: usize = 1 << 18;

/// Number of times that a thread's value must follow on those of other threads to be taken for the
/// CPU's.
const FOLLOWING: usize = 8;

/// What is known of the counters that samples read, by event.
#[derive(Debug)]
pub(crate) struct CounterTraits {
    /// Whether threads have their own values.
    pub by_thread: Vec<bool>,
    /// Whether increments of the values are scaled to the time that the counter was enabled.
    pub scales: Vec<bool>,
}

impl CounterTraits {
    pub(crate) fn read(session: &Session<'_>) -> Self {
        let (attrs, side_band) = (&session.file.attrs, &session.split.side_band);
        Self {
            by_thread: counted_by_thread(attrs, side_band, &session.split.pieces),
            scales: scaled(attrs, side_band),
        }
    }
}

/// Returns whether each event's values in samples are counted by each thread.
fn counted_by_thread(
    attrs: &AttrTable,
    side_band: &[RawRecord<'_>],
    pieces: &[Piece<'_>],
) -> Vec<bool> {
    let mut found: Vec<bool> = attrs.entries().iter().map(can_be_of_threads).collect();
    if !found.contains(&true) {
        return found;
    }
    let mut is_indexed = false;
    for raw in side_band.iter().filter(|raw| raw.header.kind == RecordType::ID_INDEX) {
        let Ok(Body::IdIndex(index)) = attrs.decode(raw).map(|record| record.body) else {
            continue;
        };
        is_indexed = true;
        for IdIndexEntry { id, .. } in index.iter().filter(|entry| entry.tid == Tid::ANY) {
            let event = attrs.by_id(id).and_then(|event| found.get_mut(event.0));
            event.into_iter().for_each(|event| *event = false);
        }
    }
    if !is_indexed {
        by_values(attrs, pieces, &mut found);
    }
    found
}

/// Returns whether increments of each event's values are scaled to the time that its counters were
/// enabled.
///
/// A counter of a thread on one CPU is also enabled while the thread runs on another one, so its
/// times do not tell when it was multiplexed. Where ID_INDEX does not say what counters are of,
/// only those that are their event's only one are sure.
fn scaled(attrs: &AttrTable, side_band: &[RawRecord<'_>]) -> Vec<bool> {
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    let is_alone = attrs
        .entries()
        .iter()
        .map(|AttrEntry { attr, ids, .. }| attr.read_format.contains(times) && ids.len() <= 1);
    let mut found: Vec<bool> = is_alone.collect();
    let any_cpu = Cpu::ANY;
    for raw in side_band.iter().filter(|raw| raw.header.kind == RecordType::ID_INDEX) {
        let Ok(Body::IdIndex(index)) = attrs.decode(raw).map(|record| record.body) else {
            continue;
        };
        let mut is_of_both = vec![None; found.len()];
        for IdIndexEntry { id, cpu, tid, .. } in index.iter() {
            if let Some(event) = attrs.by_id(id).and_then(|event| is_of_both.get_mut(event.0)) {
                *event = Some(*event == Some(true) || (tid != Tid::ANY && cpu != any_cpu));
            }
        }
        for ((scales, is_of_both), AttrEntry { attr, .. }) in
            found.iter_mut().zip(is_of_both).zip(attrs.entries())
        {
            if let Some(is_of_both) = is_of_both {
                *scales = !is_of_both && attr.read_format.contains(times);
            }
        }
    }
    found
}

/// Returns whether threads may inherit the event's counters, which samples read.
fn can_be_of_threads(AttrEntry { attr, .. }: &AttrEntry) -> bool {
    attr.flags.contains(AttrFlags::INHERIT)
        && attr.sample_type.contains(SampleType::READ | SampleType::TID)
}

/// Values of one ID.
#[derive(Default)]
struct Values {
    last: Option<(u32, u64)>,
    tids: FxHashSet<u32>,
    /// Number of values of a thread that came before which follow on those of another thread.
    following: usize,
}

/// Clears the mark of each event whose values are those of CPUs.
fn by_values(attrs: &AttrTable, pieces: &[Piece<'_>], of_threads: &mut [bool]) {
    let (mut buffer, mut left) = (UnpackBuffer::default(), EXAMINED);
    let mut open = of_threads.to_vec();
    let mut ids = FxHashMap::<u64, Values>::default();
    for piece in pieces {
        for raw in piece.records(&mut buffer) {
            let Some((event, sample)) = attrs.sample(raw) else { continue };
            if open.get(event.0) != Some(&true) {
                continue;
            }
            let Some(is_of_threads) = value(&sample).and_then(|(id, value)| {
                ids.entry(id).or_default().add(sample.pid()?, sample.tid()?, value)
            }) else {
                left -= 1;
                if left == 0 {
                    return;
                }
                continue;
            };
            open.get_mut(event.0).into_iter().for_each(|open| *open = false);
            of_threads
                .get_mut(event.0)
                .into_iter()
                .for_each(|of_threads| *of_threads = is_of_threads);
            if !open.contains(&true) {
                return;
            }
        }
    }
}

/// Returns ID and value of the counter that took a sample.
fn value(sample: &Sample<'_, '_>) -> Option<(u64, u64)> {
    let mut fields = SampleFields::default();
    sample.walk(UpTo::field(SampleType::READ), &mut fields).ok()?;
    let (own, read) = (sample.event_id(), fields.read?);
    let mut counters =
        read.counters().map(|counter| (counter.id.or(own).unwrap_or(0), counter.value));
    counters.find(|(id, _)| own.is_none_or(|own| own == *id))
}

impl Values {
    /// Adds the next value; returns whether it is a thread's, once that is known.
    fn add(&mut self, pid: u32, tid: u32, value: u64) -> Option<bool> {
        if (pid, tid) == (0, 0) {
            return Some(false);
        }
        let is_new = self.tids.insert(tid);
        let (before, last) = self.last.replace((tid, value)).unwrap_or((tid, 0));
        if before == tid {
            return None;
        }
        // The counter that takes a sample counted something since the sample before.
        if value <= last {
            return Some(true);
        }
        self.following += usize::from(!is_new);
        (self.following >= FOLLOWING).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_of_threads(values: &[(u32, u64)]) -> Option<bool> {
        let mut all = Values::default();
        values.iter().find_map(|&(tid, value)| all.add(tid, tid, value))
    }

    #[test]
    fn values_of_threads_start_from_0() {
        assert_eq!(is_of_threads(&[(1, 100), (1, 200), (2, 90), (2, 190), (1, 300)]), Some(true));
        assert_eq!(is_of_threads(&[(1, 1), (2, 1)]), Some(true), "threads that take turns");
        assert_eq!(is_of_threads(&[(1, 100), (1, 50)]), None, "a counter that was reset");
        assert_eq!(is_of_threads(&[(1, 100), (1, 200), (2, 1000), (1, 1100)]), None);
    }

    #[test]
    fn values_of_cpus_go_on() {
        assert_eq!(is_of_threads(&[(1, 100), (2, 200), (0, 300)]), Some(false));
        let turns: Vec<(u32, u64)> =
            (1..20).map(|turn| (1 + u32::from(turn % 2 == 0), 100 * turn)).collect();
        assert_eq!(is_of_threads(&turns), Some(false));
    }
}
