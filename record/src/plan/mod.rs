//! The plan: attrs, CPUs and ring sizes. A pure function from [`Config`] and facts about the
//! machine to a [`Plan`].
//!
//! ```text
//!  Config, Machine
//!    │ off_cpu ─────▶ specs: context switches, each sampled (--off-cpu)
//!    │ waits ───────▶ specs: wakes, each sampled (--waits)
//!    │ rate ────────▶ sample_period, freq             (kernel.perf_event_max_sample_rate)
//!    │ attr ────────▶ one attr for each event         (perf's evsel__config, rule by rule), with its callchain
//!    │ inheritance ─▶ what the kernel cannot let children inherit: probes, breakpoints in the kernel
//!    │ group ───────▶ leaders, leader sampling (:S)
//!    │ off_cpu ─────▶ cgroup of the switches
//!    │ waits ───────▶ wakes by all, on whole CPUs
//!    │ aux ─────────▶ settings for events with an AUX area
//!    │ tracking ────▶ event that carries the side-band: the first one, or a dummy
//!    │ unwinding ───▶ whose stacks are copied to be unwound, and how much of them
//!    │ waits ───────▶ registers that samples of switches have
//!    │ rings ───────▶ sizes, then watermarks
//!    ▼
//!  Plan
//! ```
//!
//! Each step needs what those before it have settled.
//!
//! `counting` is the plan of `rec stat`, whose counters have no rings.
//!
//! The shape is perf record's. Each event has one counter for each CPU (and for each thread that is
//! attached to), with `inherit`, so that threads and children are in; all counters of a CPU share a
//! ring. One event also carries the side-band (MMAP2, COMM, FORK, EXIT, …): the first, which a
//! command's exec enables, or which is enabled before `/proc` is read; or, on whole CPUs and where
//! counting begins later, a `dummy` that is on from the beginning. So nothing that happens between
//! the reading of `/proc` and the start of the sampling is missed.
//!
//! Attrs differ from perf's in these: `PERF_SAMPLE_IDENTIFIER`, `TIME` and `CPU` are always there,
//! `read_format` has `ID`, and small rings wake rec before they are half full.

mod attr;
mod aux;
mod callchain;
pub(crate) mod config;
mod context;
pub(crate) mod counting;
mod event;
mod group;
mod inheritance;
mod notes;
mod off_cpu;
mod rate;
mod rings;
#[cfg(test)]
mod tests;
mod tracking;
pub(crate) mod unwinding;
mod waits;

use crate::event::{self as event_specs, EventSpec};
use crate::machine::Machine;
use crate::machine::sources::EventSources;
use crate::messages::error::{Error, Result};
use crate::plan::config::Config;
use crate::tasks::ranges;
use context::Context;
use group::Group;
use notes::Notes;
use rate::Rates;

pub(crate) use event::{ATTR_SIZE, AddedBy, PlannedEvent};
pub(crate) use waits::{WAKING, WITHOUT_WAKERS};

/// Everything to open for a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Events, in the order of the file's attrs.
    pub events: Vec<PlannedEvent>,
    /// CPUs, each with a ring.
    pub cpus: Vec<u32>,
    /// `true` if counters belong to a thread and no CPU.
    pub per_thread: bool,
    /// Pages in each ring's data area: a power of two.
    pub ring_pages: usize,
    /// Pages in each AUX area: a power of two; 0 without areas.
    pub aux_pages: usize,
    /// Bytes in a snapshot of an AUX area (`-S`); 0 without snapshots.
    pub snapshot_size: u64,
    /// Notes on deviations from the request.
    pub notes: Vec<String>,
}

impl Plan {
    /// Returns the plan adapted to the mapped number of pages (`ring`, `aux`) and the events as
    /// accepted by the kernel. `None` if no counter would wake rec too late (after more than half
    /// of the pages), so that nothing must be opened again.
    pub fn refitted(
        &self,
        events: &[PlannedEvent],
        ring: usize,
        aux: usize,
        page_size: usize,
    ) -> Option<Self> {
        let mut plan =
            Self { events: events.to_vec(), ring_pages: ring, aux_pages: aux, ..self.clone() };
        let late =
            plan.events.iter_mut().map(|event| rings::wake_earlier(event, ring, aux, page_size));
        let any = late.fold(false, |any, late| any | late);
        any.then_some(plan)
    }
}

pub(crate) fn plan(config: &Config, machine: &Machine) -> Result<Plan> {
    let mut notes = Notes(config.notes.clone());
    let cpus = cpus(config, machine)?;
    let mut specs = match config.events.as_slice() {
        [] => default_events(machine, &cpus),
        named => named.to_vec(),
    };
    let asked = specs.len();
    off_cpu::sample_switches(&mut specs, config, &mut notes);
    let before_wakes = specs.len();
    waits::sample_wakes(&mut specs, config, machine)?;
    let context = Context::new(config, machine, Rates::new(config, machine, &mut notes)?);
    let dummy = PlannedEvent::dummy(attr::of_dummy(&context));
    let mut events = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let group = Group::of(&specs, index);
        let attr = attr::from_spec(spec, group, &context, &mut notes)?;
        let mut event = PlannedEvent::from_spec(spec, attr);
        event.cpus = own_cpus(spec, &cpus)?;
        event.cgroup = config.cgroups.get(index).cloned().flatten();
        inheritance::restrict(&mut event, context.system)?;
        events.push(event);
    }
    group::lead(&mut events, &specs);
    let switches_carried = off_cpu::share_cgroup(&mut events, asked..before_wakes, config)?;
    waits::count_whole_cpus(&mut events, before_wakes, &context);
    let area = aux::arrange(&mut events, &specs, &context)?;
    tracking::choose(&mut events, &area, switches_carried, &dummy, &context);
    let unwinds = unwinding::size_copies(&mut events, &specs, &cpus, &context, &mut notes);
    waits::sample_arguments(&mut events, &context);
    let sizes = rings::sizes(&area, unwinds, unwinding::has_bursts(&events), &context, &mut notes)?;
    rings::set_watermarks(&mut events, &area, sizes, unwinds, &context);
    Ok(Plan {
        per_thread: config.per_thread,
        events,
        cpus,
        ring_pages: sizes.ring_pages,
        aux_pages: sizes.area_pages,
        snapshot_size: sizes.snapshot,
        notes: notes.0,
    })
}

/// Returns the default events: cycles on each kind of core among the CPUs.
fn default_events(machine: &Machine, cpus: &[u32]) -> Vec<EventSpec> {
    let sources = EventSources::new(&machine.sysfs, None);
    let mut events = event_specs::default_events(&sources);
    if events.iter().any(|event| event.counts_on_any(cpus)) {
        events.retain(|event| event.counts_on_any(cpus));
    }
    events
}

/// Returns the CPUs of an event, if its PMU restricts them.
fn own_cpus(spec: &EventSpec, cpus: &[u32]) -> Result<Option<Vec<u32>>> {
    let Some(own) = spec.pmu.as_ref().and_then(|pmu| pmu.cpus.as_ref()) else { return Ok(None) };
    let both: Vec<u32> = cpus.iter().filter(|cpu| own.contains(cpu)).copied().collect();
    if both.is_empty() {
        return Err(Error::Failed(format!(
            "cannot count {} on CPU {}: its PMU counts on CPU {} only; use that with -C",
            spec.name,
            ranges(cpus),
            ranges(own)
        )));
    }
    Ok(Some(both))
}

fn cpus(config: &Config, machine: &Machine) -> Result<Vec<u32>> {
    let Some(asked) = &config.cpus else { return Ok(machine.online.clone()) };
    match asked.iter().find(|cpu| !machine.online.contains(cpu)) {
        None => Ok(asked.clone()),
        Some(cpu) => Err(Error::Failed(format!(
            "cannot record on CPU {cpu} (-C): online CPUs are {}",
            ranges(&machine.online)
        ))),
    }
}
