//! An event of the plan.

use recrep_format::abi::{EventType, SwEvent};
use recrep_format::attr::Attr;

use crate::event::Probe;

/// The length of the attrs that rec gives to the kernel and writes: the struct as perf 6.1 knows it
/// (`PERF_ATTR_SIZE_VER7`), which reads no longer one. It holds every field that rec sets but `config3`.
pub const ATTR_SIZE: u32 = 128;
/// With `config3` (`PERF_ATTR_SIZE_VER8`).
pub(super) const ATTR_SIZE_CONFIG3: u32 = 136;

/// An event and the attr for its counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedEvent {
    /// Its name without modifiers.
    pub name: String,
    /// Its modifiers as text.
    pub modifiers: String,
    /// What the kernel is asked for first.
    pub attr: Attr,
    /// Whether `precise_ip` may be lowered (`P`).
    pub max_precise: bool,
    /// Whether guests were named (`G`, `H`), so that leaving them out or letting them in is no choice of rec's.
    pub guests_named: bool,
    /// The place of its group's leader among the events; none where it leads or is alone.
    pub leader: Option<usize>,
    /// Whether it may be opened alone where its group has no place on the PMU (`W`).
    pub weak: bool,
    /// The CPUs to open it on, where they are others than the plan's.
    pub cpus: Option<Vec<u32>>,
    /// Whether it counts what runs on those CPUs, whomever the recording is about.
    pub system_wide: bool,
    /// The cgroup to count in the place of the target.
    pub cgroup: Option<String>,
    /// The kernel leaves out what does not pass.
    pub filter: Option<String>,
    /// The PMU that it was named with.
    pub pmu: Option<String>,
    /// Whether it writes to an AUX area.
    pub has_aux: bool,
    /// The unit of its counts, where its PMU says so.
    pub unit: Option<String>,
    /// What its counts are multiplied with to be in that unit, as its PMU spells it.
    pub scale: Option<String>,
    /// Its `system:name`, where it is a tracepoint.
    pub tracepoint: Option<String>,
    /// What it is put on, where it is a probe.
    pub probe: Option<Probe>,
    /// Whether `--off-cpu` added it: where the kernel refuses it, the SWITCH records stand alone.
    pub off_cpu: bool,
}

impl PlannedEvent {
    /// The name with its modifiers, as the file has it.
    #[must_use]
    pub fn full_name(&self) -> String {
        let colon = if self.modifiers.is_empty() || self.name.ends_with('/') { "" } else { ":" };
        format!("{}{colon}{}", self.name, self.modifiers)
    }

    /// Whether this is its name, with its modifiers or without.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.full_name() == name || self.name == name
    }

    /// Whether it counts nothing, so that others can be told of on its behalf.
    #[must_use]
    pub fn is_dummy(&self) -> bool {
        self.is_software(SwEvent::DUMMY)
    }

    /// Whether it counts context switches.
    #[must_use]
    pub fn is_context_switches(&self) -> bool {
        self.is_software(SwEvent::CONTEXT_SWITCHES)
    }

    fn is_software(&self, event: SwEvent) -> bool {
        self.attr.kind == EventType::SOFTWARE && self.attr.config == event.0
    }
}
