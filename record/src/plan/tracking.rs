//! Choice of the tracking event, and of its side-band records (MMAP2, COMM, FORK, EXIT, …).

use recrep_format::abi::{AttrFlags, EventType, ReadFormat, SwEvent};

use super::attr;
use super::aux::AuxPlan;
use super::context::Context;
use super::event::PlannedEvent;
use crate::event::EventSpec;
use crate::event::sampling::Callchain;
use crate::plan::config::{BuildIds, Delay};

/// Chooses the event that tracks, or adds one, and gives it its flags.
///
/// The first event does where it can: a thread's own counters alone tell of what it maps and forks,
/// on the CPU that it does it on, so a dummy beside it costs another descriptor for each thread and
/// CPU. It is a dummy all the same on whole CPUs, where the first event is not on every CPU, is
/// overwritten or not inherited, and where it stops while tasks go on (`-D`, `--control`).
/// `switches_carried`: another event carries the SWITCH records.
pub(super) fn add(
    events: &mut Vec<PlannedEvent>,
    area: &AuxPlan,
    switches_carried: bool,
    context: &Context<'_>,
) {
    let attached = context.config.target.is_attached();
    let partial = events.first().is_some_and(|first| first.cpus.is_some() || first.system_wide);
    if let Some(dummy) = switches(area, context) {
        events.push(dummy);
    }
    let Some(first) = events.first() else { return };
    // Side-band records must not be overwritten.
    let overwritten = first.attr.flags.contains(AttrFlags::WRITE_BACKWARD);
    let stops =
        context.config.delay != Delay::None || (attached && context.config.control.is_some());
    // Threads that are not counted map what others run in.
    let uninherited =
        attached && attr::inherits(context) && (!first.inherits() || reads_group(first));
    let reused = first.is_dummy() && !area.wants_tracker && !overwritten;
    let own = context.system
        || stops
        || partial
        || overwritten
        || uninherited
        || area.wants_tracker
        || (attached && reused);
    if own && !reused {
        let mut dummy = dummy(context);
        // Tasks move between CPUs, so their mappings must be recorded on all CPUs.
        if context.config.cpus.is_some() && context.system {
            dummy.cpus = Some(context.machine.online.clone());
        }
        events.push(dummy);
    }
    let tracker = if own && !reused { events.last_mut() } else { events.first_mut() };
    let Some(tracker) = tracker else { return };
    tracker.attr.flags |= side_band(area, own, context);
    if switches_carried {
        tracker.attr.flags -= AttrFlags::CONTEXT_SWITCH;
    }
    if own {
        let waits =
            context.config.target == crate::tasks::Target::Command && !area.immediate && !partial;
        tracker.attr.flags.set(AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC, waits);
    }
    if let Some(dummy) = text_poke(area, context) {
        events.push(dummy);
    }
}

/// Returns whether samples have the values of a group, so that a kernel before Linux 6.13 takes the
/// inheritance away.
fn reads_group(event: &PlannedEvent) -> bool {
    event.attr.read_format.contains(ReadFormat::GROUP)
}

/// Returns a dummy, which counts nothing and carries side-band records.
fn dummy(context: &Context<'_>) -> PlannedEvent {
    let spec = EventSpec::numbered("dummy", EventType::SOFTWARE, SwEvent::DUMMY.0);
    let mut attr = attr::of_dummy(&spec, context);
    attr.flags -= AttrFlags::WRITE_BACKWARD;
    PlannedEvent {
        name: "dummy".to_owned(),
        modifiers: "u".to_owned(),
        attr,
        ..PlannedEvent::default()
    }
}

/// Returns a dummy that is enabled from the beginning, on all CPUs, regardless of the target.
fn dummy_everywhere(context: &Context<'_>, flags: AttrFlags) -> PlannedEvent {
    let mut dummy = dummy(context);
    dummy.attr.flags -= AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC;
    dummy.attr.flags |= flags;
    dummy.cpus = Some(context.machine.online.clone());
    dummy.system_wide = true;
    dummy
}

/// Returns a dummy that records changes of the kernel's code, if the decoders of a trace need them.
fn text_poke(area: &AuxPlan, context: &Context<'_>) -> Option<PlannedEvent> {
    area.text_poke.then(|| dummy_everywhere(context, AttrFlags::TEXT_POKE | AttrFlags::KSYMBOL))
}

fn switches(area: &AuxPlan, context: &Context<'_>) -> Option<PlannedEvent> {
    area.switches_everywhere.then(|| dummy_everywhere(context, AttrFlags::CONTEXT_SWITCH))
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
