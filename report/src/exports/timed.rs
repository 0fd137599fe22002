//! Samples one by one in order of time, each with its thread and CPU: for exports that show time.
//!
//! ```text
//!   rows by process, thread, CPU, nanosecond ─► samples ─► sorted by time, then by what they are:
//!   callchains (a tree)                      ─────┘        the same order with any number of threads
//! ```
//!
//! A sample refers to its callchain by number; no text is copied for it.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::frames::{self, ExportedFrame, Frames};
use crate::callchain::Sample;
use crate::count::Count;
use crate::profile::Profile;
use crate::query::{Column, Query, SortKey, TimeSteps};
use crate::table::RowTexts;

/// CPU of samples that do not have it.
pub(super) const NO_CPU: u32 = u32::MAX;

/// The columns of a row, in this order.
const COLUMNS: [(&str, SortKey); 4] = [
    ("pid", SortKey::Process),
    ("tid", SortKey::Tid),
    ("cpu", SortKey::Cpu),
    ("time", SortKey::Time),
];

/// Adds to a query what samples one by one need.
pub(super) fn complete(query: &mut Query) {
    frames::complete(query);
    query.columns.clear();
    for (typed, key) in COLUMNS {
        query.columns.push(Column { typed: typed.into(), key });
    }
    query.steps = TimeSteps::Length(1);
    query.nanosecs = true;
}

/// A thread that was sampled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SampledThread {
    /// Process and thread; -1 if unknown.
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) process: String,
    pub(super) name: String,
}

/// A sample, or several that are equal.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedSample {
    pub(super) time: u64,
    /// Number of the event.
    pub(super) event: u32,
    /// Number of the thread in [`TimedSamples::threads`].
    pub(super) thread: u32,
    /// CPU, or [`NO_CPU`].
    pub(super) cpu: u32,
    /// Number in the profile's callchains.
    sample: u32,
}

/// All samples of a profile.
pub(super) struct TimedSamples<'p> {
    profile: &'p Profile,
    /// Sorted.
    pub(super) threads: Vec<SampledThread>,
    /// In order of time.
    pub(super) all: Vec<TimedSample>,
}

impl<'p> TimedSamples<'p> {
    pub(super) fn of(profile: &'p Profile, query: &Query, frames: &Frames<'_>) -> Self {
        let (threads, bases) = rows(profile, query);
        let calls = &profile.calls;
        let samples =
            calls.samples.par_iter().zip(0..calls.samples.len()).filter_map(|(sample, number)| {
                let base = bases.get(sample.base as usize).copied().flatten()?;
                Some(TimedSample { sample: u32::try_from(number).ok()?, ..base })
            });
        let mut all: Vec<TimedSample> = samples.collect();
        let timed = Self { profile, threads, all: Vec::new() };
        all.par_sort_unstable_by(|a, b| {
            let key = |of: &TimedSample| (of.time, of.event, of.thread, of.cpu);
            // Samples of one thread at one time are rare.
            key(a).cmp(&key(b)).then_with(|| {
                let by_frames = timed.frames(a, frames).cmp(timed.frames(b, frames));
                let [x, y] = [a, b].map(|of| timed.count(of));
                by_frames.then_with(|| (x.samples, x.period).cmp(&(y.samples, y.period)))
            })
        });
        Self { all, ..timed }
    }

    /// Returns the sample as callchains have it.
    pub(super) fn sample(&self, of: &TimedSample) -> Sample {
        self.profile.calls.samples.get(of.sample as usize).copied().unwrap_or_default()
    }

    pub(super) fn count(&self, of: &TimedSample) -> Count {
        self.sample(of).count
    }

    /// Returns the frames of a sample, innermost first.
    fn frames<'f>(
        &self,
        of: &TimedSample,
        frames: &'f Frames<'_>,
    ) -> impl Iterator<Item = &'f ExportedFrame> {
        let calls = &self.profile.calls;
        let sample = calls.samples.get(of.sample as usize);
        let numbers = sample.into_iter().flat_map(|sample| sample.frames(&calls.chains));
        numbers.filter_map(|number| frames.get(number))
    }
}

/// Returns the sampled threads, sorted, and what the samples of each base have in common.
fn rows(profile: &Profile, query: &Query) -> (Vec<SampledThread>, Vec<Option<TimedSample>>) {
    let texts = RowTexts::new(profile, query, &profile.names);
    // Threads by the cells of process and thread.
    let (mut numbers, mut threads) = (FxHashMap::<[u64; 2], u32>::default(), Vec::new());
    let mut bases = Vec::new();
    for ((base, _), row) in &profile.calls.rows {
        let base = *base as usize;
        bases.resize(bases.len().max(base + 1), None);
        let (Some(slot), Some((event, &[pid, tid, cpu, time]))) =
            (bases.get_mut(base), texts.row(*row))
        else {
            continue;
        };
        let thread = *numbers.entry([pid, tid]).or_insert_with(|| {
            threads.push(thread(&texts, pid, tid));
            u32::try_from(threads.len() - 1).unwrap_or(u32::MAX)
        });
        let event = u32::try_from(event).unwrap_or(u32::MAX);
        let cpu = u32::try_from(cpu).unwrap_or(NO_CPU);
        *slot = Some(TimedSample { time, event, thread, cpu, sample: 0 });
    }
    let mut order: Vec<(SampledThread, usize)> = threads.into_iter().zip(0..).collect();
    order.sort_unstable();
    let mut ranks = vec![0; order.len()];
    for (rank, (_, number)) in (0..).zip(&order) {
        if let Some(slot) = ranks.get_mut(*number) {
            *slot = rank;
        }
    }
    for base in bases.iter_mut().flatten() {
        base.thread = ranks.get(base.thread as usize).copied().unwrap_or(0);
    }
    (order.into_iter().map(|(thread, _)| thread).collect(), bases)
}

fn thread(texts: &RowTexts<'_>, pid: u64, tid: u64) -> SampledThread {
    let name = |column, cell| texts.task_name(column, cell).unwrap_or_default();
    SampledThread {
        pid: texts.task(0, pid).unwrap_or(-1),
        tid: texts.task(1, tid).unwrap_or(-1),
        process: name(0, pid),
        name: name(1, tid),
    }
}
