//! Counter values at the end of a piece: lost samples, and the share of time that each event was on
//! its PMU.

use std::collections::{BTreeSet, HashMap};

use recrep_counts::Count;
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::layout::SampleIdLayout;
use recrep_format::record::{Body, LostSamples, Record, SampleId};

use crate::kernel::Place;
use crate::kernel::counters::{Counters, Reading};
use crate::plan::PlannedEvent;

/// Lost samples of each counter at the end of the last piece, by event id.
#[derive(Debug, Default)]
pub(super) struct Losses(HashMap<u64, u64>);

impl Losses {
    /// Returns a LOST_SAMPLES record for each counter that lost samples since the last call, and
    /// their sum.
    pub(super) fn records(&mut self, counters: &Counters, readings: &[Reading]) -> (Vec<u8>, u64) {
        let mut e = Encoder::new(Endian::NATIVE);
        let mut all = 0;
        let by_id = counters.by_id();
        for reading in readings {
            let before = self.0.insert(reading.id, reading.lost).unwrap_or(0);
            let lost = reading.lost.saturating_sub(before);
            let Some(counter) = by_id.get(&reading.id).filter(|_| lost > 0) else { continue };
            let event = counters.events.get(counter.event);
            let layout = event.map_or(SampleIdLayout::NONE, |e| SampleIdLayout::of(&e.attr));
            let cpu = counter.place.cpu.map(|cpu| [cpu, 0]);
            let trailer = SampleId { identifier: Some(counter.id), cpu, ..SampleId::default() }
                .shaped(&layout);
            // A record of a few numbers cannot exceed the size limit.
            let _ = Record::new(0, Body::LostSamples(LostSamples { lost }))
                .with_trailer(trailer)
                .encode(&mut e);
            all += lost;
        }
        (e.into_bytes(), all)
    }
}

/// Returns what all counters of each event have counted, and for how long.
///
/// A thread's counters on several CPUs are all enabled when it runs, but only one of them is
/// running, so the longest enabled time is that of the thread.
pub(super) fn totals(counters: &Counters, readings: &[Reading]) -> Vec<Count> {
    let mut of_threads: HashMap<(usize, Option<u32>), Count> = HashMap::new();
    let by_id = counters.by_id();
    for reading in readings {
        let Some(counter) = by_id.get(&reading.id) else { continue };
        let sum = of_threads.entry((counter.event, counter.place.thread)).or_default();
        sum.enabled = match counter.place {
            Place { thread: Some(_), cpu: Some(_), .. } => reading.enabled.max(sum.enabled),
            _ => sum.enabled + reading.enabled,
        };
        sum.running += reading.running;
        sum.value = sum.value.saturating_add(reading.value);
    }
    let mut totals = vec![Count::default(); counters.events.len()];
    for ((event, _), count) in of_threads {
        if let Some(total) = totals.get_mut(event) {
            total.enabled += count.enabled;
            total.running += count.running;
            total.value = total.value.saturating_add(count.value);
        }
    }
    totals
}

/// Returns whether an event had to share its PMU with others: one percent is tolerated, as counters
/// are not all enabled at the same moment.
pub(super) fn is_multiplexed(total: Count) -> bool {
    total.running.saturating_mul(100) < total.enabled.saturating_mul(99)
}

/// Returns the multiplexed events, with the share of time that they were on their PMU, in percent.
pub(super) fn multiplexed(counters: &Counters, readings: &[Reading]) -> Vec<(String, f64)> {
    let events = counters.events.iter().zip(totals(counters, readings));
    let shared = events.filter(|(_, total)| is_multiplexed(*total));
    shared.map(|(event, total)| (event.full_name(), share_on_pmu(total))).collect()
}

/// Returns the share of time that an event was on its PMU, in percent.
#[allow(clippy::cast_precision_loss, reason = "a share in percent")]
fn share_on_pmu(total: Count) -> f64 {
    100.0 * total.running as f64 / total.enabled as f64
}

/// Returns the events of which a pinned counter found no room on its PMU, in their order.
pub(super) fn failed<'c>(counters: &'c Counters, readings: &[Reading]) -> Vec<&'c PlannedEvent> {
    let by_id = counters.by_id();
    let failed = readings.iter().filter(|reading| reading.failed);
    let events: BTreeSet<usize> =
        failed.filter_map(|reading| Some(by_id.get(&reading.id)?.event)).collect();
    events.into_iter().filter_map(|event| counters.events.get(event)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::counters::Counter;

    fn counters() -> Counters {
        let fd = || rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let place = Place { thread: Some(1), cpu: Some(0), cgroup: None };
        let all = vec![Counter::new(fd(), 7, 0, place), Counter::new(fd(), 8, 1, place)];
        let event = |name: &str| PlannedEvent { name: name.to_owned(), ..PlannedEvent::default() };
        Counters { all, events: vec![event("a"), event("b")], ..Counters::default() }
    }

    #[test]
    fn each_piece_tells_of_its_own_losses() {
        let (counters, mut losses) = (counters(), Losses::default());
        let reading = |id, lost| Reading { id, lost, ..Reading::default() };
        let (records, sum) = losses.records(&counters, &[reading(7, 5), reading(8, 0)]);
        assert_eq!((records.is_empty(), sum), (false, 5));
        let (records, sum) = losses.records(&counters, &[reading(7, 5), reading(8, 2)]);
        assert_eq!((records.is_empty(), sum), (false, 2));
        assert_eq!(losses.records(&counters, &[reading(7, 5), reading(8, 2)]), (vec![], 0));
    }

    #[test]
    fn events_that_shared_their_pmu_are_told() {
        let reading = |id, enabled, running| Reading { id, enabled, running, ..Reading::default() };
        let shared = multiplexed(&counters(), &[reading(7, 100, 100), reading(8, 200, 50)]);
        assert_eq!(shared, [("b".to_owned(), 25.0)]);
    }

    #[test]
    fn events_of_pinned_counters_without_room_are_named_once() {
        let reading = |id, failed| Reading { id, failed, ..Reading::default() };
        let counters = counters();
        let names = |readings: &[Reading]| -> Vec<String> {
            failed(&counters, readings).into_iter().map(PlannedEvent::full_name).collect()
        };
        assert_eq!(names(&[reading(8, true), reading(7, false), reading(8, true)]), ["b"]);
        assert_eq!(names(&[reading(7, false)]), [""; 0]);
    }

    #[test]
    fn what_shared_its_pmu_is_counted_in_part() {
        let reading = |id, value, enabled, running| Reading {
            id,
            value,
            enabled,
            running,
            ..Reading::default()
        };
        let of_both = totals(&counters(), &[reading(7, 9, 100, 100), reading(8, 5, 200, 50)]);
        let told: Vec<_> = of_both.iter().map(|one| (is_multiplexed(*one), one.scaled())).collect();
        assert_eq!(told, [(false, Some(9)), (true, Some(20))]);
    }

    #[test]
    fn a_thread_that_went_from_cpu_to_cpu_shared_nothing() {
        let fd = || rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let place = |cpu| Place { thread: Some(1), cpu: Some(cpu), cgroup: None };
        let mut counters = counters();
        counters.all = vec![Counter::new(fd(), 7, 0, place(0)), Counter::new(fd(), 8, 0, place(1))];
        let reading = |id, running| Reading { id, enabled: 100, running, ..Reading::default() };
        assert_eq!(multiplexed(&counters, &[reading(7, 30), reading(8, 70)]), []);
        assert_eq!(
            multiplexed(&counters, &[reading(7, 20), reading(8, 30)]),
            [("a".to_owned(), 50.0)]
        );
    }
}
