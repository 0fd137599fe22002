//! Sample filters, compiled once per file into small tables, so that filtering a sample costs a few
//! lookups.

use std::collections::HashSet;

use recrep_format::record::Sample;

use super::session::Session;
use crate::query::{Interval, SampleFilters, Times, is_named};
use crate::symbols::Module;
use crate::timeline::{CommRef, ModuleId, Task};

/// Filters in the terms of one file.
#[derive(Debug)]
pub(crate) struct SampleFilter<'f> {
    /// Filters that are the same for all files.
    pub filters: &'f SampleFilters,
    /// Selected comms, by number; `None` without a filter by comm.
    pub comms: Option<Vec<bool>>,
    /// Selected events; `None` without a filter by event.
    pub events: Option<Vec<bool>>,
    /// Selected modules; `None` without a filter by module.
    pub modules: Option<Vec<bool>>,
    /// CPUs of the selected socket.
    pub socket: Option<HashSet<u32>>,
    /// Selected time intervals; `None` without a filter by time.
    pub times: Option<Vec<Interval>>,
    /// `true` if what has no CPU passes the filter by CPU, and what has no time counts as the last:
    /// as in `perf script`, not in `perf report`.
    pub takes_unknown: bool,
}

impl<'f> SampleFilter<'f> {
    /// Compiles filters for a file: `events` has the names of the selected events, `socket` the
    /// CPUs of the selected one.
    pub(crate) fn new(
        session: &Session<'_>,
        filters: &'f SampleFilters,
        events: Option<&[String]>,
        socket: Option<HashSet<u32>>,
    ) -> Self {
        let passes = |wanted: &HashSet<String>| {
            session.timeline.comms.iter().map(|comm| wanted.contains(comm)).collect()
        };
        let comms = filters.comms.as_ref().map(passes);
        let modules = filters.dsos.as_ref().map(|wanted| {
            let has = |name: &str| wanted.contains(name);
            let is_wanted = |m: &Module| has(&m.name()) || has(&String::from_utf8_lossy(&m.path));
            session.side_band.modules.iter().map(is_wanted).collect()
        });
        let events = events.map(|wanted| {
            let is_wanted = |name: &String| wanted.iter().any(|wanted| is_named(name, wanted));
            session.events.iter().map(is_wanted).collect()
        });
        let times = filters.times.as_ref().map(|times| {
            let (first, last) = match times {
                Times::Absolute(_) => (0, 0),
                Times::Shares(_) => session.sampled_between(),
            };
            times.intervals(first, last)
        });
        Self { filters, comms, events, modules, socket, times, takes_unknown: false }
    }

    /// Returns whether a sample of this time, in nanoseconds, passes the filter by time.
    #[inline]
    pub(crate) fn takes_time(&self, time: Option<u64>) -> bool {
        let Some(times) = &self.times else { return true };
        let time = time.or(self.takes_unknown.then_some(u64::MAX));
        time.is_some_and(|time| times.iter().any(|&(from, to)| from <= time && time <= to))
    }

    /// Returns whether a sample in this module passes the filter by module.
    #[inline]
    pub(crate) fn takes_module(&self, module: Option<ModuleId>) -> bool {
        let Some(wanted) = &self.modules else { return true };
        module.is_some_and(|ModuleId(module)| wanted.get(module as usize) == Some(&true))
    }

    /// Returns whether a sample counts at all, in rows or in totals: by event, by CPU and by time,
    /// as in perf.
    #[inline]
    pub(crate) fn counts(&self, event: usize, sample: &Sample<'_, '_>) -> bool {
        self.counts_event(event) && self.counts_sample(sample)
    }

    /// Returns whether samples of this event count at all.
    #[inline]
    pub(crate) fn counts_event(&self, event: usize) -> bool {
        self.events.as_ref().is_none_or(|events| events.get(event) == Some(&true))
    }

    /// Returns whether what happened on this CPU passes the filter by CPU.
    #[inline]
    pub(crate) fn counts_cpu(&self, cpu: impl FnOnce() -> Option<u32>) -> bool {
        let Some(wanted) = &self.filters.cpus else { return true };
        match cpu().filter(|cpu| *cpu != u32::MAX) {
            Some(cpu) => wanted.contains(&cpu),
            None => self.takes_unknown,
        }
    }

    /// Returns whether a sample counts at all, of whichever event: by CPU and by time.
    #[inline]
    pub(crate) fn counts_sample(&self, sample: &Sample<'_, '_>) -> bool {
        self.counts_cpu(|| sample.cpu()) && (self.times.is_none() || self.takes_time(sample.time()))
    }

    /// Returns whether any filter may leave out samples ([`SampleFilter::counts`]).
    pub(crate) fn leaves_out_samples(&self) -> bool {
        self.events.is_some() || self.filters.cpus.is_some() || self.times.is_some()
    }

    /// Returns whether time from this moment on, after running on this CPU, counts at all.
    pub(crate) fn counts_time(&self, cpu: Option<u32>, time: u64) -> bool {
        self.counts_cpu(|| cpu) && self.takes_time(Some(time))
    }

    /// Returns whether a sample passes all filters but those by event and by function.
    pub(crate) fn takes(
        &self,
        time: Option<u64>,
        cpu: Option<u32>,
        task: &Task,
        tid: i32,
        module: Option<ModuleId>,
    ) -> bool {
        self.takes_time(time)
            && self.counts_cpu(|| cpu)
            && self.takes_task(task, tid)
            && self.takes_module(module)
    }

    /// Returns whether the samples of a thread get rows, judging by pid, tid and comm.
    pub(crate) fn takes_task(&self, task: &Task, tid: i32) -> bool {
        for (wanted, number) in [(&self.filters.pids, task.pid), (&self.filters.tids, tid)] {
            if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&number)) {
                return false;
            }
        }
        match (&self.comms, &self.filters.comms, task.comm) {
            (Some(passes), _, CommRef::Known(id)) => passes.get(id as usize) == Some(&true),
            (_, Some(wanted), CommRef::Bare(tid)) => wanted.contains(&format!(":{tid}")),
            _ => true,
        }
    }

    /// Returns whether the samples of a CPU get rows.
    #[inline]
    pub(crate) fn takes_cpu(&self, cpu: Option<u32>) -> bool {
        self.socket.as_ref().is_none_or(|cpus| cpu.is_some_and(|cpu| cpus.contains(&cpu)))
    }
}
