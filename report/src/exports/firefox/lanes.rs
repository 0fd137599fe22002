//! Lanes: what the viewer shows as a thread. Each is an event of a thread; of an idle task, which is
//! one thread on all CPUs, a CPU's.
//!
//! ```text
//!   event 0 of thread 7 ─► lane                          main threads keep the name of their process
//!   event 1 of thread 7 ─► lane `name (event 1)`
//!   lighter ones than the first MOST ─► joined by the names of their processes
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::exports::timed::{NO_CPU, SampledThread, TimedSamples};

/// Number of lanes that the viewer opens within seconds.
const MOST: usize = 500;

/// Samples that are shown as those of one thread.
#[derive(Debug)]
pub(super) struct Lane<'p> {
    /// Process and its name; -1 for joined lanes.
    pub(super) pid: i32,
    pub(super) process: &'p str,
    /// Thread; `None` for joined lanes.
    pub(super) tid: Option<i32>,
    pub(super) name: String,
    /// Number of the event.
    pub(super) event: u32,
    /// Places in [`TimedSamples::all`], in order of time.
    pub(super) samples: Vec<u32>,
}

/// All lanes.
#[derive(Debug)]
pub(super) struct Lanes<'p> {
    pub(super) all: Vec<Lane<'p>>,
    /// `true` if several events have samples.
    pub(super) have_several_events: bool,
    /// Number of lanes that were joined.
    pub(super) joined: usize,
}

/// Event, thread and, of an idle task, CPU.
type LaneKey = (u32, u32, Option<u32>);

impl<'p> Lanes<'p> {
    pub(super) fn of(samples: &'p TimedSamples<'_>) -> Self {
        let mut places = BTreeMap::<LaneKey, Vec<u32>>::new();
        for (place, sample) in (0..).zip(&samples.all) {
            let thread = samples.threads.get(sample.thread as usize);
            let is_idle = thread.is_some_and(|thread| thread.tid == 0);
            let cpu = Some(sample.cpu).filter(|cpu| is_idle && *cpu != NO_CPU);
            places.entry((sample.event, sample.thread, cpu)).or_default().push(place);
        }
        let mut events: Vec<u32> = places.keys().map(|(event, ..)| *event).collect();
        events.dedup();
        let mut all: Vec<Lane<'p>> = places
            .into_iter()
            .filter_map(|((event, thread, cpu), samples_of)| {
                Some(Lane::of(samples.threads.get(thread as usize)?, event, cpu, samples_of))
            })
            .collect();
        let joined = join(&mut all);
        Self { all, have_several_events: events.len() > 1, joined }
    }
}

impl<'p> Lane<'p> {
    fn of(thread: &'p SampledThread, event: u32, cpu: Option<u32>, samples: Vec<u32>) -> Self {
        let SampledThread { pid, tid, process, name } = thread;
        let (tid, name) = match cpu {
            Some(cpu) => (i32::try_from(cpu).unwrap_or(0), format!("{name}/{cpu}")),
            None => (*tid, name.clone()),
        };
        Self { pid: *pid, process, tid: Some(tid), name, event, samples }
    }
}

/// Joins the lightest lanes if there are too many, and returns how many were joined.
fn join(lanes: &mut Vec<Lane<'_>>) -> usize {
    if lanes.len() <= MOST {
        return 0;
    }
    lanes.sort_by_key(|lane| Reverse(lane.samples.len()));
    let lightest = lanes.split_off(MOST);
    let joined = lightest.len();
    let mut by_names = BTreeMap::<(u32, &str), Vec<u32>>::new();
    for lane in lightest {
        by_names.entry((lane.event, lane.process)).or_default().extend(lane.samples);
    }
    if by_names.len() > MOST {
        let mut by_events = BTreeMap::<(u32, &str), Vec<u32>>::new();
        for ((event, _), samples) in by_names {
            by_events.entry((event, "others")).or_default().extend(samples);
        }
        by_names = by_events;
    }
    for ((event, process), mut samples) in by_names {
        samples.sort_unstable();
        let name = format!("{process} (other threads)");
        lanes.push(Lane { pid: -1, process, tid: None, name, event, samples });
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lightest_lanes_are_joined_by_process() {
        let lane = |process: &'static str, samples: Vec<u32>| {
            let name = process.to_owned();
            Lane { pid: 7, process, tid: Some(7), name, event: 0, samples }
        };
        let heavy = (0..500).map(|_| lane("heavy", vec![1, 2]));
        let light = [lane("a", vec![9]), lane("b", vec![8]), lane("a", vec![3])];
        let mut lanes: Vec<Lane<'_>> = light.into_iter().chain(heavy).collect();
        assert_eq!(join(&mut lanes), 3);
        let joined: Vec<_> =
            lanes.iter().skip(500).map(|lane| (lane.process, &lane.samples)).collect();
        assert_eq!(joined, [("a", &vec![3, 9]), ("b", &vec![8])]);
        assert_eq!(join(&mut lanes.drain(..3).collect()), 0);
    }
}
