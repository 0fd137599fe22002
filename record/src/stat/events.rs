//! The events that are counted: those that were named, or the machine's default ones; for each
//! cgroup.

use recrep_counts::TableMetric;
use recrep_format::abi::EventType;

use super::Settings;
use super::metrics::{self, Facts};
use crate::event::{self, EventSpec};
use crate::machine::registers::Arch;
use crate::machine::sources::EventSources;
use crate::messages::error::{Error, Result};
use crate::tasks::Target;

/// Events, with the cgroup of each.
#[derive(Debug)]
pub(super) struct CountedEvents {
    pub(super) specs: Vec<EventSpec>,
    pub(super) cgroups: Vec<Option<String>>,
    /// Number of the set of each event: only events of the same set are added up.
    pub(super) set_of: Vec<usize>,
    /// Metrics; the events of their inputs are places in `specs`.
    pub(super) metrics: Vec<TableMetric>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
    /// `true` if the user named none: those of a CPU that counts nothing are left out.
    pub(super) by_default: bool,
}

/// Default events of the kernel, besides the clock of tasks or CPUs.
const SOFTWARE: &str = "context-switches,cpu-migrations,page-faults";
const HARDWARE: &str = "cycles,instructions,branches,branch-misses";
/// Events that not all PMUs with cycles have.
const STALLED: [&str; 2] = ["stalled-cycles-frontend", "stalled-cycles-backend"];
/// Events that each `-d` adds.
const DETAILS: [&str; 3] = [
    "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
    "L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses",
    "L1-dcache-prefetches,L1-dcache-prefetch-misses",
];

/// Chooses the events.
pub(super) fn choose(settings: &Settings) -> Result<CountedEvents> {
    let asked = &settings.metrics;
    let has_metrics = !asked.names.is_empty() || asked.topdown.is_some();
    let by_default = settings.events.is_empty() && !has_metrics;
    let mut specs = Vec::new();
    if !settings.null {
        specs.clone_from(&settings.events);
        if by_default || settings.detail > 0 {
            specs.extend(default_specs(settings, by_default)?);
        }
    }
    // Sets of metrics are behind that of the other events.
    let mut set_of = vec![0; specs.len()];
    let (mut metrics, mut notes) = (Vec::new(), Vec::new());
    if has_metrics {
        let system = settings.target == Target::System;
        let facts = Facts::new(&settings.machine, settings.cpus.as_deref(), system);
        let chosen = metrics::choose(asked, &settings.sources, &facts).map_err(Error::Usage)?;
        set_of.extend(chosen.set_of.iter().map(|set| set + 1));
        notes = chosen.notes;
        let first = specs.len();
        append(&mut specs, &chosen.specs);
        metrics = chosen.metrics.iter().map(|metric| moved(metric, first, None)).collect();
    }
    let mut chosen = CountedEvents {
        cgroups: settings.cgroups.clone(),
        specs,
        set_of,
        metrics,
        notes,
        by_default,
    };
    chosen.cgroups.resize(chosen.specs.len(), None);
    if !settings.each_cgroup.is_empty() {
        chosen.repeat_for(&settings.each_cgroup);
    }
    Ok(chosen)
}

/// Returns the default events (if `by_default`), and those of `-d`.
fn default_specs(settings: &Settings, by_default: bool) -> Result<Vec<EventSpec>> {
    let machine = &settings.machine;
    let pmus = machine.sysfs.join("bus/event_source/devices");
    // Kinds of cores have other names only where there are several: on x86, `cpu_core` is one.
    let sources = match machine.arch {
        Arch::X86_64 if !pmus.join("cpu_core").exists() => {
            EventSources::of_like_cores(&machine.sysfs)
        }
        _ => EventSources::new(&machine.sysfs, None),
    };
    let mut lists = Vec::new();
    if by_default {
        let system = settings.target == Target::System;
        lists.push(format!("{},{SOFTWARE}", if system { "cpu-clock" } else { "task-clock" }));
        let stalled = STALLED.iter().filter(|name| pmus.join("cpu/events").join(name).exists());
        lists.push("cycles".to_owned());
        lists.extend(stalled.map(|name| (*name).to_owned()));
        lists.push(HARDWARE.trim_start_matches("cycles,").to_owned());
    }
    let details = DETAILS.iter().take(settings.detail.into());
    lists.extend(details.map(|list| (*list).to_owned()));
    let mut specs = Vec::new();
    for list in lists {
        event::append(&mut specs, &list, &sources).map_err(|why| Error::Usage(why.to_string()))?;
    }
    // Only kinds of cores that are among the counted CPUs.
    let cpus = settings.cpus.as_ref().unwrap_or(&machine.online);
    specs.retain(|spec| spec.counts_on_any(cpus));
    Ok(specs)
}

impl CountedEvents {
    /// Counts all events in each of these cgroups.
    fn repeat_for(&mut self, cgroups: &[String]) {
        let once = std::mem::take(&mut self.specs);
        let metrics = std::mem::take(&mut self.metrics);
        self.cgroups.clear();
        for cgroup in cgroups {
            let first = self.specs.len();
            append(&mut self.specs, &once);
            self.cgroups.resize(self.specs.len(), Some(cgroup.clone()));
            self.metrics.extend(metrics.iter().map(|metric| moved(metric, first, Some(cgroup))));
        }
        self.set_of = self.set_of.repeat(cgroups.len());
    }
}

/// Appends events whose leaders are counted from the first of them.
fn append(specs: &mut Vec<EventSpec>, added: &[EventSpec]) {
    let first = specs.len();
    specs.extend(added.iter().map(|spec| EventSpec {
        leader: spec.leader.map(|leader| leader + first),
        ..spec.clone()
    }));
}

/// Returns a metric whose events are so many places further on.
fn moved(metric: &TableMetric, places: usize, cgroup: Option<&String>) -> TableMetric {
    let mut metric = metric.clone();
    metric.cgroup = cgroup.cloned();
    for event in metric.inputs.iter_mut().flat_map(|input| &mut input.events) {
        *event += places;
    }
    metric
}

/// Returns whether an event is one of the CPU's PMU.
pub(super) fn is_of_cpu(kind: EventType) -> bool {
    matches!(kind, EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW)
}
