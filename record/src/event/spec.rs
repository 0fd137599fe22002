//! An event spec: everything that the text after `-e` specifies about one event.

use std::ffi::CString;

use recrep_format::abi::{BranchSampleType, EventType, HwEvent, SwEvent};

use super::modifiers::Modifiers;
use crate::event::sampling::{Callchain, Rate};

/// An event as specified by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Name as typed, without modifiers; or the name in the term `name=`.
    pub name: String,
    /// `true` if the name comes from `name=`, so that the file has it without modifiers.
    pub named: bool,
    /// Name as typed, if it means the same event of several PMUs.
    pub family: Option<String>,
    /// `perf_event_attr.type`.
    pub kind: EventType,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `config1`; the address of a breakpoint.
    pub config1: u64,
    /// `config2`; the length of a breakpoint; the offset or address of a probe.
    pub config2: u64,
    pub config3: u64,
    pub config4: u64,
    /// `bp_type`: accesses that trigger a breakpoint.
    pub bp_type: u32,
    /// Modifiers after the colon or the last slash, combined with those of the group.
    pub modifiers: Modifiers,
    /// Modifiers of the event itself, as typed.
    pub letters: String,
    /// Index of the group's leader among all events; `None` if the event leads or is alone.
    pub leader: Option<usize>,
    /// Settings of this event only.
    pub terms: Terms,
    /// PMU that was named, or that has the event.
    pub pmu: Option<PmuUse>,
    /// Filter that the kernel applies (`--filter`).
    pub filter: Option<String>,
    /// Index of its list (`-e`). `--filter` applies to all events of the last list.
    pub list: usize,
    /// Default period, without flags (`-c`, `-F`) and terms for the rate: 1 for events that are
    /// sampled one by one (tracepoints, breakpoints, probes, output of BPF programs). `None` for
    /// the default rate.
    pub default_period: Option<u64>,
    /// `true` if its samples always have raw data and their period (tracepoints, output of BPF
    /// programs).
    pub raw: bool,
    /// `system:name` of a tracepoint, regardless of `name=`.
    pub tracepoint: Option<String>,
    pub probe: Option<Probe>,
    /// Unit of its counts, if its PMU has one.
    pub unit: Option<String>,
    /// Factor from its counts to that unit, as spelled by its PMU.
    pub scale: Option<String>,
}

/// Settings of one event, given by its terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// `period=`, `freq=`.
    pub rate: Option<Rate>,
    /// `call-graph=`, including `stack-size=`; `Some(None)` for no callchains, regardless of flags.
    pub callchain: Option<Option<Callchain>>,
    /// `stack-size=`: bytes of the stack to copy, even if flags request callchains.
    pub stack_size: Option<u32>,
    /// `branch_type=`; empty for no branch stacks, regardless of flags.
    pub branches: Option<BranchSampleType>,
    /// `inherit`, `no-inherit`.
    pub inherit: Option<bool>,
    /// `time=`.
    pub time: Option<bool>,
    /// `max-stack=`.
    pub max_stack: Option<u16>,
    /// `overwrite`, `no-overwrite`.
    pub overwrite: Option<bool>,
    pub aux_output: bool,
    /// `aux-sample-size=`.
    pub aux_sample_size: Option<u32>,
}

/// Properties of a PMU that its events need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PmuUse {
    /// Name in `/sys/bus/event_source/devices`.
    pub name: String,
    /// CPUs to open its events on; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// `true` if its events can count only whole CPUs, not threads.
    pub uncore: bool,
    /// `true` if its events write to an AUX area.
    pub has_aux: bool,
    /// Maximum number of address filters; 0 if it does not support them.
    pub address_filters: u64,
}

/// A probe on code, beside what the attr says of it. The attr points to the target (`uprobe_path`,
/// `kprobe_func`, which are `config1`) only while the counter is opened, as a pointer is
/// meaningless in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Path of the file, or name of the kernel's function; `None` for an address of the kernel.
    pub target: Option<CString>,
    /// `true` if threads and children that come are counted too: their counters cannot be inherited
    /// from one of the probe's PMU, but from one of a tracepoint.
    pub inherits: bool,
    /// Number of that tracepoint, once it is registered.
    pub tracepoint: Option<u64>,
}

impl EventSpec {
    /// Returns whether its PMU counts on any of these CPUs.
    pub(crate) fn counts_on_any(&self, cpus: &[u32]) -> bool {
        let own = self.pmu.as_ref().and_then(|pmu| pmu.cpus.as_ref());
        own.is_none_or(|own| own.iter().any(|cpu| cpus.contains(cpu)))
    }

    /// Returns the default event: `cycles:P`.
    pub fn default_event() -> Self {
        Self {
            modifiers: Modifiers { max_precise: true, ..Modifiers::default() },
            letters: "P".to_owned(),
            ..Self::numbered("cycles", EventType::HARDWARE, HwEvent::CPU_CYCLES.0)
        }
    }

    /// Creates an event with this type and config, and no other settings.
    pub fn numbered(name: &str, kind: EventType, config: u64) -> Self {
        let bpf_output = kind == EventType::SOFTWARE && config == SwEvent::BPF_OUTPUT.0;
        let one_by_one =
            bpf_output || kind == EventType::TRACEPOINT || kind == EventType::BREAKPOINT;
        Self {
            name: name.to_owned(),
            named: false,
            family: None,
            kind,
            config,
            config1: 0,
            config2: 0,
            config3: 0,
            config4: 0,
            bp_type: 0,
            modifiers: Modifiers::default(),
            letters: String::new(),
            leader: None,
            terms: Terms::default(),
            pmu: None,
            filter: None,
            list: 0,
            default_period: one_by_one.then_some(1),
            raw: bpf_output || kind == EventType::TRACEPOINT,
            tracepoint: None,
            probe: None,
            unit: None,
            scale: None,
        }
    }

    /// Returns the modifiers in the file's name of the event: its own, without the group's; none if
    /// the name comes from `name=`.
    pub fn suffix(&self) -> String {
        if self.named { String::new() } else { self.letters.clone() }
    }

    pub fn is_software(&self, config: u64) -> bool {
        self.kind == EventType::SOFTWARE && self.config == config
    }

    pub fn is_tracepoint(&self) -> bool {
        self.kind == EventType::TRACEPOINT
    }
}
