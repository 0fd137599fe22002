//! `--waits`: samples of wakes, besides the switches of `--off-cpu`, so that each wait has a waker.
//!
//! | event | counters | samples |
//! |---|---|---|
//! | `context-switches` | threads | also the registers with the arguments of the system call |
//! | `sched:sched_waking` | threads | callchain, raw data: wakes by recorded threads |
//! | `sched:sched_wakeup_new` | threads | callchain, raw data: starts of threads |
//! | `sched:sched_waking` | whole CPUs | raw data: wakes by interrupts, by others, and by threads that exit, whose counters the kernel has removed |
//!
//! Of the last one, `drain` keeps what wakes a recorded thread and is not a sample of the thread's
//! own event already. Where whole CPUs are recorded, the second one has everything.

use recrep_format::abi::{AttrFlags, SampleType};

use super::context::Context;
use super::event::{AddedBy, PlannedEvent};
use super::off_cpu;
use crate::event::{self, EventSpec};
use crate::machine::Machine;
use crate::machine::sources::EventSources;
use crate::messages::error::{Error, Result};
use crate::plan::config::{Config, Only};
use crate::tasks::Target;

/// The tracepoint of a wake.
pub(crate) const WAKING: &str = "sched:sched_waking";
/// The tracepoint of a new thread.
const NEW: &str = "sched:sched_wakeup_new";
/// Advice for users who may not sample wakes.
pub(crate) const WITHOUT_WAKERS: &str =
    "or record waits without their wakers, as any user may: --off-cpu";

/// Adds the events of wakes.
pub(super) fn sample_wakes(
    specs: &mut Vec<EventSpec>,
    config: &Config,
    machine: &Machine,
) -> Result<()> {
    if !config.waits {
        return Ok(());
    }
    refuse(config, machine)?;
    let sources = EventSources::new(&machine.sysfs, machine.tracefs.clone());
    for name in [WAKING, NEW] {
        let from = specs.len();
        event::append(specs, name, &sources)
            .map_err(|why| Error::Failed(format!("--waits: {why}; {WITHOUT_WAKERS}")))?;
        for spec in specs.iter_mut().skip(from) {
            off_cpu::sample_all(spec, config);
        }
    }
    if config.target != Target::System
        && let Some(mut everybody) = specs.iter().rev().find(|spec| is_waking(spec)).cloned()
    {
        everybody.terms.callchain = Some(None);
        everybody.terms.max_stack = None;
        specs.push(everybody);
    }
    Ok(())
}

fn is_waking(spec: &EventSpec) -> bool {
    spec.tracepoint.as_deref() == Some(WAKING)
}

/// Refuses what wakes cannot be recorded with.
fn refuse(config: &Config, machine: &Machine) -> Result<()> {
    let usage = |why: &str| Err(Error::Usage(format!("--waits: {why}")));
    if config.only == Some(Only::User) {
        return usage(
            "wakes are events of the kernel, which --all-user leaves out; leave it out, or use \
             --off-cpu",
        );
    }
    if config.per_thread {
        return usage(
            "wakes by others are in the rings of CPUs, which --per-thread does without; leave it \
             out, or use --off-cpu",
        );
    }
    if config.rings.threads.split.is_some() && config.target != Target::System {
        return usage(
            "which wakes are of recorded threads is known to one draining thread only; leave \
             --threads out, or record the whole machine (-a)",
        );
    }
    if machine.privileged || machine.paranoid < 0 {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "--waits: kernel.perf_event_paranoid is {}, which hides tracepoint data from users without \
         CAP_PERFMON; be root, or set kernel.perf_event_paranoid to -1; {WITHOUT_WAKERS}",
        machine.paranoid
    )))
}

/// Gives the wakes by all their counters: whole CPUs. The added events are those from `from` on.
pub(super) fn count_whole_cpus(events: &mut [PlannedEvent], from: usize, context: &Context<'_>) {
    let Some(added) = events.get_mut(from..) else { return };
    for event in added.iter_mut() {
        event.added = Some(AddedBy::Waits);
        // A thread that runs on one of the CPUs of -C may be woken on another.
        if context.system && context.config.cpus.is_some() {
            event.cpus = Some(context.machine.online.clone());
        }
    }
    if let Some(everybody) = added.last_mut().filter(|_| !context.system) {
        everybody.system_wide = true;
        everybody.cpus = context.config.cpus.as_ref().map(|_| context.machine.online.clone());
        // The command's exec starts the counters of its threads only.
        everybody.attr.flags -= AttrFlags::INHERIT | AttrFlags::ENABLE_ON_EXEC;
    }
}

/// Adds the registers of a system call's arguments to the samples of switches.
pub(super) fn sample_arguments(events: &mut [PlannedEvent], context: &Context<'_>) {
    let Some(registers) = context.machine.arch.arguments().filter(|_| context.config.waits) else {
        return;
    };
    let arguments = registers.iter().fold(0, |mask, register| mask | 1 << register);
    for event in events.iter_mut().filter(|event| event.is_context_switches()) {
        event.attr.sample_regs_user |= arguments;
        event.attr.sample_type |= SampleType::REGS_USER;
    }
}
