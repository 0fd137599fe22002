//! What counters are opened for: threads, or whole CPUs, of which only the target's records are kept.
//!
//! A thread that runs already needs a counter for each event and CPU: the kernel gives no ring to a counter that is inherited and has
//! no CPU, and what a thread maps is told of by its own counters only. Where more are needed than files may be open, even
//! after the limit was raised as far as this user may:
//!
//! | who | what is done | what that costs |
//! |---|---|---|
//! | may count whole CPUs | does so; records of others are left out | samples of others are taken, and dropped |
//! | may not | attaches to the threads that ran most | other threads are missing, which is told |
//!
//! A ring for each thread in the place of one for each CPU would halve the counters on two CPUs, but needs two locked pages
//! for each thread, of which a user without privileges has 129 for each CPU; and threads that come would be missing.

use std::os::fd::OwnedFd;

use recrep_format::abi::{AttrFlags, SampleType};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::drain::filter::{Filter, Members};
use crate::kernel::counters::{self, Counters};
use crate::machine::Machine;
use crate::messages::Messages;
use crate::plan::Plan;
use crate::plan::config::Config;
use crate::target::workload::Workload;
use crate::target::{Target, Task, usage};

/// What counters are opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// These threads, or whatever runs on the CPUs.
    These(Vec<Option<u32>>),
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
        (tasks, workload): (&[Task], Option<&Workload>),
        machine: &Machine,
        messages: &Messages,
    ) -> Self {
        match config.target {
            Target::Command => return Self::These(workload.map(|w| Some(w.pid())).into_iter().collect()),
            Target::System => return Self::These(vec![None]),
            Target::Processes(_) | Target::Threads(_) | Target::User(_) => {}
        }
        let (needed, most) =
            (counters::files(plan, tasks.len()), counters::allow_files(counters::files(plan, tasks.len())));
        if needed <= most {
            // Drain threads know of no counters that are left out.
            return if config.rings.threads.split.is_some() { these(tasks) } else { Self::Threads };
        }
        let why = format!("{} threads need {needed} counters, and {most} files may be open for them", tasks.len());
        if machine.allows_system() && can_filter(config, plan) {
            messages.note(format_args!(
                "{why}: counting whole CPUs, and keeping the records of what was asked for only; more with ulimit -Hn"
            ));
            return Self::Filtered;
        }
        let each = counters::files(plan, 1).saturating_sub(counters::files(plan, 0)).max(1);
        let fits = most.saturating_sub(counters::files(plan, 0)) / each;
        if fits == 0 {
            return Self::Threads;
        }
        messages.warn(format_args!(
            "{why}: recording the {fits} threads that ran most just now; for all of them raise the hard limit (ulimit -Hn), \
             record fewer events or CPUs (-C), or be root or have CAP_PERFMON"
        ));
        these(&usage::busiest(tasks, fits))
    }

    /// Lists the threads to open counters for.
    pub(super) fn threads(&self, target: &Target) -> Vec<Option<u32>> {
        match self {
            Self::These(threads) => threads.clone(),
            // Where there are none any more, the opening says so.
            Self::Threads => target.tasks().unwrap_or_default().iter().map(|task| Some(task.tid)).collect(),
            Self::Filtered => vec![None],
        }
    }

    /// What of the rings goes into the file.
    pub(super) fn filter(&self, config: &Config, counters: &Counters, tasks: &[Task]) -> Option<Filter> {
        let attr = &counters.events.first()?.attr;
        if *self != Self::Filtered {
            return Filter::once(attr, counters);
        }
        let threads = matches!(config.target, Target::Threads(_)) || config.no_inherit;
        let ids = tasks.iter().map(|task| if threads { task.tid } else { task.pid }).collect();
        Some(Filter::members(attr, Members { ids, threads, inherit: !config.no_inherit }))
    }

    /// Readable when the processes end that whole CPUs are counted for, which is nothing that a counter tells.
    /// `None`: counters do.
    pub(super) fn ends(&self, target: &Target, tasks: &[Task]) -> Option<Vec<OwnedFd>> {
        (*self == Self::Filtered).then(|| match target {
            Target::Threads(_) => tasks.iter().filter_map(|task| thread_end(*task)).collect(),
            _ => tasks
                .chunk_by(|a, b| a.pid == b.pid)
                .filter_map(|all| end(all.first()?.pid, PidfdFlags::empty()))
                .collect(),
        })
    }
}

fn these(tasks: &[Task]) -> Coverage {
    Coverage::These(tasks.iter().map(|task| Some(task.tid)).collect())
}

/// Whether whole CPUs give what the threads would: not what is counted, nor AUX trace.
fn can_filter(config: &Config, plan: &Plan) -> bool {
    let counts = |event: &crate::plan::PlannedEvent| {
        let attr = &event.attr;
        attr.sample_type.contains(SampleType::READ) || attr.flags.contains(AttrFlags::INHERIT_STAT) || event.has_aux
    };
    !plan.per_thread && config.rings.threads.split.is_none() && !plan.events.iter().any(counts)
}

fn end(id: u32, flags: PidfdFlags) -> Option<OwnedFd> {
    // One that ended already is not waited for.
    pidfd_open(Pid::from_raw(id.cast_signed())?, flags).ok()
}

/// The end of a thread; before Linux 6.9, of its process.
fn thread_end(task: Task) -> Option<OwnedFd> {
    // PIDFD_THREAD is O_EXCL.
    let thread = PidfdFlags::from_bits_retain(rustix::fs::OFlags::EXCL.bits());
    end(task.tid, thread).or_else(|| end(task.pid, PidfdFlags::empty()))
}
