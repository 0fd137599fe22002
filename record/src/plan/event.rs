//! An event of the plan.

use recrep_format::abi::{AttrFlags, EventType, SwEvent};
use recrep_format::attr::Attr;

use crate::event::{EventSpec, Probe};

/// Length of the attrs that rec passes to the kernel and writes: `PERF_ATTR_SIZE_VER7`, the longest
/// that perf 6.1 can read. It has every field that rec sets except `config3` and `config4`.
pub(crate) const ATTR_SIZE: u32 = 128;
/// Length of attrs with `config3` (`PERF_ATTR_SIZE_VER8`).
pub(super) const ATTR_SIZE_CONFIG3: u32 = 136;
/// Length of attrs with `config4` (`PERF_ATTR_SIZE_VER9`).
pub(super) const ATTR_SIZE_CONFIG4: u32 = 144;

/// An event and the attr for its counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedEvent {
    /// Name without modifiers.
    pub name: String,
    pub modifiers: String,
    /// Name without modifiers that means the same event of several PMUs.
    pub family: Option<String>,
    /// Attr to try first.
    pub attr: Attr,
    /// `true` if `precise_ip` may be lowered (`P`).
    pub max_precise: bool,
    /// `true` if the modifiers name guests or host (`G`, `H`), so that rec must not change whether
    /// guests are counted.
    pub guests_named: bool,
    /// Index of its group's leader; `None` if it leads or is alone.
    pub leader: Option<usize>,
    /// `true` if it may be opened alone if its group does not fit on the PMU (`W`).
    pub weak: bool,
    /// CPUs to open it on, if different from the plan's.
    pub cpus: Option<Vec<u32>>,
    /// `true` if it counts everything on those CPUs, regardless of the target.
    pub system_wide: bool,
    /// Cgroup to count instead of the target.
    pub cgroup: Option<String>,
    /// Filter that the kernel applies.
    pub filter: Option<String>,
    /// PMU in its name.
    pub pmu: Option<String>,
    /// `true` if it writes to an AUX area.
    pub has_aux: bool,
    /// Unit of its counts, if its PMU has one.
    pub unit: Option<String>,
    /// Factor from its counts to that unit, as spelled by its PMU.
    pub scale: Option<String>,
    /// `system:name`, if it is a tracepoint.
    pub tracepoint: Option<String>,
    /// Location, if it is a probe.
    pub probe: Option<Probe>,
    /// Flag that added it, if the user did not name it.
    pub added: Option<AddedBy>,
}

/// Flag that adds events to those of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedBy {
    /// `--off-cpu`: where the kernel refuses the event, the SWITCH records stand alone.
    OffCpu,
    /// `--waits`.
    Waits,
}

impl PlannedEvent {
    /// Returns an event of the user's, with this attr.
    pub(super) fn from_spec(spec: &EventSpec, attr: Attr) -> Self {
        Self {
            name: spec.name.clone(),
            modifiers: spec.suffix(),
            family: spec.family.clone(),
            attr,
            max_precise: spec.modifiers.max_precise,
            guests_named: spec.modifiers.guest || spec.modifiers.host,
            leader: spec.leader,
            filter: spec.filter.clone(),
            pmu: spec.pmu.as_ref().map(|pmu| pmu.name.clone()),
            has_aux: spec.pmu.as_ref().is_some_and(|pmu| pmu.has_aux),
            system_wide: spec.pmu.as_ref().is_some_and(|pmu| pmu.uncore),
            weak: spec.modifiers.weak,
            unit: spec.unit.clone(),
            scale: spec.scale.clone(),
            tracepoint: spec.tracepoint.clone(),
            probe: spec.probe.clone(),
            ..Self::default()
        }
    }

    /// Returns a dummy, which counts nothing and carries side-band records.
    pub(super) fn dummy(attr: Attr) -> Self {
        Self { name: "dummy".to_owned(), modifiers: "u".to_owned(), attr, ..Self::default() }
    }

    /// Returns the name with modifiers, as in the file.
    pub fn full_name(&self) -> String {
        let colon = if self.modifiers.is_empty() || self.name.ends_with('/') { "" } else { ":" };
        format!("{}{colon}{}", self.name, self.modifiers)
    }

    /// Returns whether this is its name, with or without modifiers.
    pub fn is_called(&self, name: &str) -> bool {
        self.full_name() == name || self.name == name
    }

    /// Returns whether it counts future threads and children too.
    pub fn inherits(&self) -> bool {
        self.attr.flags.contains(AttrFlags::INHERIT)
            || self.probe.as_ref().is_some_and(|probe| probe.inherits)
    }

    /// Returns whether it is a dummy, which counts nothing and can carry the side-band.
    pub fn is_dummy(&self) -> bool {
        self.is_software(SwEvent::DUMMY)
    }

    pub fn is_context_switches(&self) -> bool {
        self.is_software(SwEvent::CONTEXT_SWITCHES)
    }

    /// Returns whether it counts nanoseconds of CPU time.
    pub fn is_clock(&self) -> bool {
        self.is_software(SwEvent::CPU_CLOCK) || self.is_software(SwEvent::TASK_CLOCK)
    }

    fn is_software(&self, event: SwEvent) -> bool {
        self.attr.kind == EventType::SOFTWARE && self.attr.config == event.0
    }
}
