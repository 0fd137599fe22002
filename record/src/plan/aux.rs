//! AUX area tracing: settings for events that write to an AUX area.
//!
//! AUX data in samples of other events, and the side-band records that decoders need: context
//! switches, and changes of the kernel's code (text_poke). Sizes are in [`super::rings`].

use recrep_format::abi::{AttrFlags, SampleType};

use super::context::Context;
use super::event::PlannedEvent;
use crate::event::EventSpec;
use crate::messages::error::{Error, Result};
use crate::tasks::Target;

/// Requirements of AUX areas for the rest of the plan.
#[derive(Debug, Default)]
pub(super) struct AuxPlan {
    /// Largest number of bytes of AUX data in a sample.
    pub(super) sampled: u32,
    /// `true` if rec must be woken when a quarter of an area is full.
    pub(super) wakes: bool,
    /// `true` if there are areas, so that a dummy must carry the side-band.
    pub(super) wants_tracker: bool,
    /// `true` if that dummy must be enabled before the command runs.
    pub(super) immediate: bool,
    /// `true` if that dummy records context switches.
    pub(super) switches: bool,
    /// `true` if another dummy records the context switches of all threads.
    pub(super) switches_everywhere: bool,
    /// `true` if changes of the kernel's code are recorded.
    pub(super) text_poke: bool,
}

/// Maximum bytes of AUX data in a sample, so that the record stays below 64 KiB.
const MOST_IN_SAMPLE: u32 = 60 << 10;

/// Example of a group, in messages.
const GROUPED: &str = "({intel_pt//,cycles})";

/// Intel PT's `tsc`: without TSC packets, the trace cannot be sorted by time.
const PT_TSC: u64 = 1 << 10;
/// Intel PT's `psb_period`. The default of rec is a synchronization packet every 16K bytes.
const PT_PSB_PERIOD: u64 = 15 << 24;
const PT_PSB_USUAL: u64 = 3 << 24;
/// Arm SPE's `ts_enable` and `pa_enable`.
const SPE_TIMES: u64 = 1;
const SPE_PHYSICAL: u64 = 1 << 1;
/// CoreSight's `timestamp` and `contextid`, which show which thread runs at which time.
const ETM_TIMES_AND_THREADS: u64 = 1 << 28 | 1 << 14;

/// Sets up the events with AUX areas, and events whose samples have AUX data.
pub(super) fn arrange(
    events: &mut [PlannedEvent],
    specs: &[EventSpec],
    context: &Context<'_>,
) -> Result<AuxPlan> {
    regroup(events, specs);
    let sampled = sample_areas(events, specs, context)?;
    let Some(index) = events.iter().position(|event| event.has_aux) else {
        return without(context);
    };
    let name =
        specs.get(index).and_then(|spec| spec.pmu.as_ref()).map_or("", |pmu| pmu.name.as_str());
    refuse(name, context)?;
    let is_read = context.config.aux.snapshots.is_none() && sampled == 0;
    let mut area = AuxPlan {
        sampled,
        wakes: is_read && name == "intel_pt",
        wants_tracker: true,
        ..AuxPlan::default()
    };
    for event in events.iter_mut().filter(|event| event.has_aux) {
        set_up(event, name, context);
        if sampled > 0 && name == "intel_pt" && event.attr.config & PT_PSB_PERIOD == PT_PSB_USUAL {
            // AUX data in a sample is short, and cannot be decoded before the first such packet.
            event.attr.config &= !PT_PSB_PERIOD;
        }
    }
    if let Some(event) = events.get(index) {
        side_band(&mut area, event, name, context);
    }
    Ok(area)
}

fn without(context: &Context<'_>) -> Result<AuxPlan> {
    let flag = match context.config.aux.snapshots {
        Some(_) => "-S",
        None if context.config.rings.aux.is_some() => "-m ,SIZE",
        None => return Ok(AuxPlan::default()),
    };
    Err(Error::Usage(format!(
        "{flag} applies to AUX areas, but no event has one; add such an event, for example -e \
         intel_pt//"
    )))
}

/// Refuses settings that exclude an AUX area.
fn refuse(name: &str, context: &Context<'_>) -> Result<()> {
    let is_bts = name == "intel_bts";
    let why = if context.config.clock.is_some() {
        "its trace has times of the kernel's own clock, which do not match other clocks; leave out \
         -k"
    } else if is_bts && !context.config.per_thread {
        "it traces threads, not CPUs; add --per-thread"
    } else if is_bts && context.config.aux.sample.is_some() {
        "samples cannot have data of its AUX area; leave out --aux-sample"
    } else {
        return Ok(());
    };
    Err(Error::Usage(format!("{name}: {why}")))
}

/// Moves events that write to an AUX area, or whose samples have AUX data, into the group of the
/// preceding event with an AUX area.
fn regroup(events: &mut [PlannedEvent], specs: &[EventSpec]) {
    let mut area = None;
    for index in 0..events.len() {
        let (Some(event), Some(spec)) = (events.get_mut(index), specs.get(index)) else { continue };
        let wants =
            spec.terms.aux_output || spec.terms.aux_sample_size.is_some_and(|size| size > 0);
        if event.has_aux {
            area = Some(index);
        } else if wants && event.leader.is_none() && area.is_some() {
            event.leader = area;
            event.attr.flags -= AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC;
        }
    }
}

/// Sets up the events whose samples have AUX data. Returns the largest size of the data.
fn sample_areas(
    events: &mut [PlannedEvent],
    specs: &[EventSpec],
    context: &Context<'_>,
) -> Result<u32> {
    let areas: Vec<bool> = events.iter().map(|event| event.has_aux).collect();
    let mut most = 0;
    for (event, spec) in events.iter_mut().zip(specs) {
        let in_group = event.leader.is_some_and(|leader| areas.get(leader) == Some(&true));
        let size = spec
            .terms
            .aux_sample_size
            .or(context.config.aux.sample.filter(|_| in_group))
            .unwrap_or(0);
        if size == 0 {
            continue;
        }
        if !in_group {
            return Err(Error::Usage(format!(
                "'{}': samples can have AUX data only in the group of an AUX event; group it after \
                 one {GROUPED}",
                event.name
            )));
        }
        if size > MOST_IN_SAMPLE {
            return Err(Error::Usage(format!(
                "'{}': {size} bytes of an AUX area do not fit into a sample; use up to \
                 {MOST_IN_SAMPLE}",
                event.name
            )));
        }
        event.attr.aux_sample_size = size;
        event.attr.sample_type |= SampleType::AUX;
        most = most.max(size);
    }
    if most == 0 && context.config.aux.sample.is_some() {
        return Err(Error::Usage(format!(
            "--aux-sample applies to events in the group of an AUX event; group them {GROUPED}"
        )));
    }
    Ok(most)
}

fn set_up(event: &mut PlannedEvent, name: &str, context: &Context<'_>) {
    let attr = &mut event.attr;
    if name == "intel_pt" {
        // Guests are traced along with the host, unless they trace themselves.
        attr.flags.set(AttrFlags::EXCLUDE_GUEST, context.machine.guests_trace);
    }
    let per_cpu = !context.config.per_thread;
    if name.starts_with("cs_etm") && per_cpu {
        attr.config |= ETM_TIMES_AND_THREADS;
    }
    if name.starts_with("arm_spe") {
        attr.config |= if per_cpu { SPE_TIMES } else { 0 };
        attr.sample_type |= SampleType::DATA_SRC;
        attr.sample_type.set(SampleType::PHYS_ADDR, attr.config & SPE_PHYSICAL != 0);
    }
}

/// Requests the records that decoders of the trace need.
fn side_band(area: &mut AuxPlan, event: &PlannedEvent, name: &str, context: &Context<'_>) {
    let config = context.config;
    let timed =
        if name == "intel_pt" { event.attr.config & PT_TSC != 0 } else { name != "intel_bts" };
    let system = context.machine.allows_system();
    if !timed || config.per_thread {
        return;
    }
    if config.side_band.switch != Some(false) {
        area.switches_everywhere = name == "intel_pt" && config.target != Target::System && system;
        area.switches = !area.switches_everywhere;
        area.immediate = name == "intel_pt" && area.switches;
    }
    area.text_poke =
        name == "intel_pt" && !event.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL) && system;
}
