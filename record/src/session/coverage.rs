//! Coverage of the counters: threads, or whole CPUs, of which only the target's records are kept.
//!
//! A thread that runs already needs a counter for each event and CPU: the kernel gives no ring to a
//! counter that is inherited and has no CPU, and only a thread's own counters report its mappings. That is too much where
//!
//! - more files would be open than may be, even after the limit was raised as far as this user may;
//! - a stream (`-o -`) has no room for the ids of all counters;
//! - threads would end slowly: the kernel wakes all counters of a ring whenever one of them ends,
//!   so that the cost grows with the square of their number.
//!
//! | who | what is done | what that costs |
//! |---|---|---|
//! | may count whole CPUs | does so; records of others are left out | samples of others are taken, and dropped |
//! | may not | attaches to the threads that ran most (not for slowness alone) | other threads are missing; a line says so |
//!
//! A ring for each thread instead of one for each CPU would need fewer counters, but two
//! locked pages for each thread, of which a user without privileges has 129 for each CPU; and
//! threads that come would be missing.

use std::os::fd::OwnedFd;

use recrep_format::abi::{AttrFlags, SampleType};

use crate::drain::filter::Filter;
use crate::drain::members::Members;
use crate::drain::wakes::{self, WakeFields, Wakes};
use crate::kernel::counters::{self, Counters};
use crate::kernel::probes::Probes;
use crate::machine::Machine;
use crate::messages::Messages;
use crate::messages::error::Result;
use crate::plan::Plan;
use crate::plan::config::Config;
use crate::tasks::workload::Workload;
use crate::tasks::{self, Target, Task, usage};

/// Threads or CPUs that counters are opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// These threads, or whatever runs on the CPUs.
    Listed(Vec<Option<u32>>),
    /// The target's threads, those too that start meanwhile.
    Threads,
    /// Whole CPUs, for the sake of the target alone.
    Filtered,
}

impl Coverage {
    /// Chooses; says what is done otherwise than asked.
    pub(super) fn choose(
        config: &Config,
        plan: &Plan,
        tasks: &[Task],
        workload: Option<&Workload>,
        machine: &Machine,
        messages: &Messages,
    ) -> Self {
        match config.target {
            Target::Command => {
                return Self::Listed(workload.map(|w| Some(w.pid())).into_iter().collect());
            }
            Target::System => return Self::Listed(vec![None]),
            Target::Processes(_) | Target::Threads(_) | Target::User(_) => {}
        }
        let threads = tasks.len();
        let files = counters::allow_files(counters::files(plan, threads));
        let short = too_many(config, plan, threads, files);
        let why = short.clone().or_else(|| too_slow(plan, threads));
        if let Some(why) = why.filter(|_| machine.allows_system() && can_filter(config, plan)) {
            messages.note(format_args!(
                "counting whole CPUs, and keeping the records of what was asked for only: {why}"
            ));
            return Self::Filtered;
        }
        if let Some(why) = short {
            let fits =
                partition_point(threads, |some| too_many(config, plan, some, files).is_none());
            if fits > 0 {
                messages.warn(format_args!(
                    "recording the {fits} threads that ran most just now, of {threads}: {why}; for \
                     all of them raise the hard limit (ulimit -Hn), record fewer events or CPUs \
                     (-C), write a file (-o), or be root or have CAP_PERFMON"
                ));
                return listed(&usage::busiest(tasks, fits));
            }
        }
        // Drain threads know of no records that are left out.
        if config.rings.threads.split.is_some() { listed(tasks) } else { Self::Threads }
    }

    /// Registers the probes that threads and children inherit. Counters of whole CPUs need none.
    pub(super) fn register_probes(&self, plan: &mut Plan, machine: &Machine) -> Result<Probes> {
        if *self == Self::Filtered {
            return Ok(Probes::default());
        }
        Probes::register(&mut plan.events, machine.tracefs.as_deref())
    }

    /// Lists the threads to open counters for.
    pub(super) fn threads(&self, target: &Target) -> Vec<Option<u32>> {
        match self {
            Self::Listed(threads) => threads.clone(),
            // If no thread is left, opening reports that.
            Self::Threads => {
                target.tasks().unwrap_or_default().iter().map(|task| Some(task.tid)).collect()
            }
            Self::Filtered => vec![None],
        }
    }

    /// Returns the filter of the rings' records, if not all go into the file.
    pub(super) fn filter(
        &self,
        config: &Config,
        counters: &Counters,
        tasks: &[Task],
        machine: &Machine,
    ) -> Result<Option<Filter>> {
        let filter = self.filter_of_tasks(config, counters, tasks);
        let Some(event) = counters.events.first().filter(|_| config.waits) else {
            return Ok(filter);
        };
        let of_counters = counters.all.iter().filter_map(|counter| counter.place.thread);
        let ids = of_counters.chain(tasks.iter().map(|task| task.tid)).collect();
        let recorded = Members { ids, threads: true, inherit: !config.no_inherit };
        let fields = WakeFields::read(machine.tracefs.as_deref())?;
        let wakes = Wakes::new(counters, fields, recorded, !wakes::is_in_first_namespace());
        Ok(match wakes {
            Some(wakes) => Some(Filter::with_wakes(filter, &event.attr, wakes)),
            None => filter,
        })
    }

    fn filter_of_tasks(
        &self,
        config: &Config,
        counters: &Counters,
        tasks: &[Task],
    ) -> Option<Filter> {
        let attr = &counters.events.first()?.attr;
        if *self != Self::Filtered {
            return Filter::once(attr, counters);
        }
        let threads = matches!(config.target, Target::Threads(_)) || config.no_inherit;
        let ids = tasks.iter().map(|task| if threads { task.tid } else { task.pid }).collect();
        Some(Filter::members(attr, Members { ids, threads, inherit: !config.no_inherit }))
    }

    /// Returns descriptors that are readable when the tasks end, which counters of whole CPUs do not
    /// report.
    /// `None`: counters do.
    pub(super) fn ends(&self, target: &Target, tasks: &[Task]) -> Result<Option<Vec<OwnedFd>>> {
        if *self != Self::Filtered {
            return Ok(None);
        }
        let threads = matches!(target, Target::Threads(_));
        let waited =
            tasks.chunk_by(|a, b| !threads && a.pid == b.pid).filter_map(|all| all.first());
        waited
            .filter_map(|task| tasks::end(*task, threads).transpose())
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// The most ids that the record of an attr in a stream has room for, with some left for threads
/// that start meanwhile.
const MOST_IN_STREAM: usize = 8000;
/// Number of counters that the ends of all threads may wake: a second or two of the kernel's time
/// (150 ns each).
const MOST_WAKEUPS: usize = 10_000_000;

/// Returns why counters for this many threads cannot be opened.
fn too_many(config: &Config, plan: &Plan, threads: usize, files: usize) -> Option<String> {
    let needed = counters::files(plan, threads);
    if needed > files {
        return Some(format!(
            "{threads} threads need {needed} counters, and {files} files may be open for them"
        ));
    }
    let ids =
        plan.events.iter().map(|event| counters::files_of(event, plan, threads)).max().unwrap_or(0);
    (config.output.is_stdout() && ids > MOST_IN_STREAM).then(|| {
        format!(
            "{threads} threads need {ids} counters, and a stream names {MOST_IN_STREAM} of an event"
        )
    })
}

/// Returns why counters for this many threads would slow down their ends.
fn too_slow(plan: &Plan, threads: usize) -> Option<String> {
    let needed = counters::files(plan, threads);
    let in_ring = needed.checked_div(plan.cpus.len()).unwrap_or(0);
    (needed.saturating_mul(in_ring) > MOST_WAKEUPS && !plan.per_thread)
        .then(|| format!("{threads} threads with {needed} counters of their own would end slowly"))
}

/// The largest number up to `most` that fits, where smaller ones fit too.
fn partition_point(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

fn listed(tasks: &[Task]) -> Coverage {
    Coverage::Listed(tasks.iter().map(|task| Some(task.tid)).collect())
}

/// Returns whether per-CPU counters can stand in for per-thread ones (not for plain counts or AUX
/// trace).
fn can_filter(config: &Config, plan: &Plan) -> bool {
    !plan.per_thread
        && config.rings.threads.split.is_none()
        && !plan.events.iter().any(|event| {
            let attr = &event.attr;
            attr.sample_type.contains(SampleType::READ)
                || attr.flags.contains(AttrFlags::INHERIT_STAT)
                || event.has_aux
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> (Config, Plan) {
        let config =
            crate::cli::parse(["rec"].into_iter().chain(line.split_whitespace()).map(Into::into))
                .unwrap();
        let machine = Machine { online: vec![0, 1], ..Machine::default() };
        let plan = crate::plan::plan(&config, &machine).unwrap();
        (config, plan)
    }

    #[test]
    fn what_is_too_many_or_too_slow() {
        let (config, plan) = planned("-p 7 -e cpu-clock");
        let most =
            |files| partition_point(20_000, |some| too_many(&config, &plan, some, files).is_none());
        assert_eq!([most(1), most(2), most(10_000), most(100_000)], [0, 1, 5_000, 20_000]);
        assert!(
            too_many(&config, &plan, 5_001, 10_000)
                .unwrap()
                .contains("5001 threads need 10002 counters, and 10000")
        );
        assert_eq!((too_slow(&plan, 2_000), too_slow(&plan, 2_300).is_some()), (None, true));
        let (config, plan) = planned("-p 7 -e cpu-clock -o -");
        assert!(too_many(&config, &plan, 4_000, 100_000).is_none());
        assert!(too_many(&config, &plan, 4_001, 100_000).unwrap().contains("a stream names 8000"));
    }

    #[test]
    fn whoever_ended_is_not_waited_for() {
        let me = std::process::id();
        let [running, gone] = [me, 0x7fff_fff0].map(|pid| Task { pid, tid: pid });
        for target in [Target::Processes(vec![me]), Target::Threads(vec![me])] {
            let ends =
                |tasks: &[Task]| Coverage::Filtered.ends(&target, tasks).unwrap().unwrap().len();
            assert_eq!([ends(&[running, gone]), ends(&[gone])], [1, 0]);
            assert!(Coverage::Threads.ends(&target, &[running]).unwrap().is_none());
        }
    }

    #[test]
    fn whole_cpus_give_neither_counts_nor_rings_of_threads() {
        for (line, can) in [
            ("-p 7 -e cpu-clock,faults -g", true),
            ("-p 7 -e {cpu-clock,faults}:S", false),
            ("-p 7 -e cpu-clock -s", false),
            ("-p 7 -e cpu-clock --per-thread", false),
            ("-p 7 -e cpu-clock --threads", false),
        ] {
            let (config, plan) = planned(line);
            assert_eq!(can_filter(&config, &plan), can, "{line}");
        }
    }
}
