//! Choice of the tracking event, and of its side-band records (MMAP2, COMM, FORK, EXIT, …).

use recrep_format::abi::{AttrFlags, ReadFormat};

use super::aux::AuxPlan;
use super::context::Context;
use super::event::PlannedEvent;
use crate::event::sampling::Callchain;
use crate::plan::config::{BuildIds, Delay};
use crate::tasks::Target;

/// Chooses the tracking event, or adds one, and gives it its flags.
///
/// The first event tracks where it can: only a thread's own counters report what it maps and forks,
/// on the CPU where it does so, so a dummy beside it costs another descriptor for each thread and
/// CPU. A dummy tracks on whole CPUs; where the first event is not on every CPU, is overwritten or
/// not inherited; and where it stops while tasks go on (`-D`, `--control`). `switches_carried`:
/// another event carries the SWITCH records.
pub(super) fn choose(
    events: &mut Vec<PlannedEvent>,
    area: &AuxPlan,
    switches_carried: bool,
    dummy: &PlannedEvent,
    context: &Context<'_>,
) {
    let is_partial = events.first().is_some_and(|first| first.cpus.is_some() || first.system_wide);
    if area.switches_everywhere {
        events.push(everywhere(dummy, AttrFlags::CONTEXT_SWITCH, context));
    }
    let Some(first) = events.first() else { return };
    // A dummy of the user's own tracks, too, if it may.
    let is_usable = first.is_dummy() && !area.wants_tracker && !is_overwritten(first);
    let is_own =
        needs_dummy(first, area, context) || (context.config.target.is_attached() && is_usable);
    if is_own && !is_usable {
        let mut dummy = dummy.clone();
        // Tasks move between CPUs, so their mappings must be recorded on all CPUs.
        if context.config.cpus.is_some() && context.system {
            dummy.cpus = Some(context.machine.online.clone());
        }
        events.push(dummy);
    }
    let tracker = if is_own && !is_usable { events.last_mut() } else { events.first_mut() };
    let Some(tracker) = tracker else { return };
    tracker.attr.flags |= side_band(area, is_own, context);
    if switches_carried {
        tracker.attr.flags -= AttrFlags::CONTEXT_SWITCH;
    }
    if is_own {
        let waits = context.config.target == Target::Command && !area.immediate && !is_partial;
        tracker.attr.flags.set(AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC, waits);
    }
    if area.text_poke {
        // The decoders of a trace need the changes of the kernel's code.
        events.push(everywhere(dummy, AttrFlags::TEXT_POKE | AttrFlags::KSYMBOL, context));
    }
}

/// Returns whether the first event cannot track.
fn needs_dummy(first: &PlannedEvent, area: &AuxPlan, context: &Context<'_>) -> bool {
    let is_attached = context.config.target.is_attached();
    let is_partial = first.cpus.is_some() || first.system_wide;
    let stops =
        context.config.delay != Delay::None || (is_attached && context.config.control.is_some());
    // Threads that are not counted map what others run in.
    let is_uninherited =
        is_attached && context.inherits && (!first.inherits() || reads_group(first));
    context.system
        || stops
        || is_partial
        || is_overwritten(first)
        || is_uninherited
        || area.wants_tracker
}

/// Returns whether side-band records in the event's ring would be overwritten.
fn is_overwritten(event: &PlannedEvent) -> bool {
    event.attr.flags.contains(AttrFlags::WRITE_BACKWARD)
}

/// Returns whether samples have the values of a group, so that a kernel before Linux 6.13 takes the
/// inheritance away.
fn reads_group(event: &PlannedEvent) -> bool {
    event.attr.read_format.contains(ReadFormat::GROUP)
}

/// Returns a dummy with these flags that is on from the beginning, on all CPUs, regardless of the
/// target.
fn everywhere(dummy: &PlannedEvent, flags: AttrFlags, context: &Context<'_>) -> PlannedEvent {
    let mut dummy = dummy.clone();
    dummy.attr.flags -= AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC;
    dummy.attr.flags |= flags;
    dummy.cpus = Some(context.machine.online.clone());
    dummy.system_wide = true;
    dummy
}

fn side_band(area: &AuxPlan, own: bool, context: &Context<'_>) -> AttrFlags {
    use AttrFlags as F;
    let asked = &context.config.side_band;
    let mut flags = F::MMAP | F::MMAP2 | F::COMM | F::COMM_EXEC | F::TASK;
    flags.set(F::KSYMBOL, !area.text_poke);
    flags.set(F::BPF_EVENT, !asked.no_bpf);
    flags.set(F::MMAP_DATA, samples_data(context, own));
    flags.set(F::NAMESPACES, asked.namespaces);
    flags.set(F::CGROUP, asked.cgroups);
    flags.set(F::CONTEXT_SWITCH, asked.switch.unwrap_or(area.switches));
    flags.set(F::BUILD_ID, context.config.build_ids == BuildIds::InMmap);
    flags
}

/// Returns whether samples have data addresses: if requested, or for unwinding of copied stacks.
fn samples_data(context: &Context<'_>, own: bool) -> bool {
    let asked = &context.config.sample;
    // The first event's terms matter only if it is the tracking event.
    let first = context
        .config
        .events
        .first()
        .filter(|_| !own)
        .and_then(|spec| spec.terms.callchain.flatten());
    asked.data || copies_stacks(asked.callchain) || copies_stacks(first)
}

fn copies_stacks(chain: Option<Callchain>) -> bool {
    matches!(chain, Some(Callchain::Dwarf { .. }))
}
