//! An event spec: all that the text after `-e` says of one event.

use std::ffi::CString;

use recrep_format::abi::{BranchSampleType, EventType, HwEvent, SwEvent};

use super::modifiers::Modifiers;
use crate::event::sampling::{Callchain, Rate};

/// An event as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// The name as typed, without its modifiers; or what `name=` gives.
    pub name: String,
    /// Whether the name is what `name=` gives: the file has it as it is, without modifiers.
    pub named: bool,
    /// `perf_event_attr.type`.
    pub kind: EventType,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `config1`; the address of a breakpoint.
    pub config1: u64,
    /// `config2`; the length of a breakpoint; where a probe is.
    pub config2: u64,
    /// `config3`.
    pub config3: u64,
    /// `bp_type`: what of an address a breakpoint is about.
    pub bp_type: u32,
    /// What follows the colon or the last slash, and what the group's modifiers add to it.
    pub modifiers: Modifiers,
    /// The event's own modifiers, as typed.
    pub letters: String,
    /// The place of the group's leader in the list of all events; none where the event leads or is alone.
    pub leader: Option<usize>,
    /// What was said of this event alone.
    pub terms: Terms,
    /// The PMU that was named, or that the event was found at.
    pub pmu: Option<PmuUse>,
    /// The kernel leaves out what does not pass (`--filter`).
    pub filter: Option<String>,
    /// Which of the lists (`-e`) it came with, for `--filter`, which is about all events of the last one.
    pub list: usize,
    /// The period where neither flags (`-c`, `-F`) nor terms say one: 1 for what is counted one by one (tracepoints,
    /// breakpoints, probes, what BPF programs write). None: the default rate.
    pub default_period: Option<u64>,
    /// Whether its samples carry raw bytes and their period in any case (tracepoints, what BPF programs write).
    pub raw: bool,
    /// Its `system:name`, whatever it is called here.
    pub tracepoint: Option<String>,
    /// What a probe is put on.
    pub probe: Option<Probe>,
    /// The unit of its counts, by the PMU's word.
    pub unit: Option<String>,
    /// What its counts are multiplied with to be in that unit, as the PMU spells it.
    pub scale: Option<String>,
}

/// What is said of one event alone, among its terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// `period=`, `freq=`.
    pub rate: Option<Rate>,
    /// `call-graph=`; `Some(None)`: none, whatever the flags say. `stack-size=` is in it.
    pub callchain: Option<Option<Callchain>>,
    /// `stack-size=`: how much of the stack is copied, also where the flags ask for callchains.
    pub stack_size: Option<u32>,
    /// `branch_type=`; empty: no branch stacks, whatever the flags say.
    pub branches: Option<BranchSampleType>,
    /// `inherit`, `no-inherit`.
    pub inherit: Option<bool>,
    /// `time=`.
    pub time: Option<bool>,
    /// `max-stack=`.
    pub max_stack: Option<u16>,
    /// `overwrite`, `no-overwrite`.
    pub overwrite: Option<bool>,
    /// `aux-output`.
    pub aux_output: bool,
    /// `aux-sample-size=`.
    pub aux_sample_size: Option<u32>,
}

/// A PMU as an event needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PmuUse {
    /// Its name, as `/sys/bus/event_source/devices` has it.
    pub name: String,
    /// The CPUs that it wants its events opened on; none: all.
    pub cpus: Option<Vec<u32>>,
    /// Whether its events count for whole CPUs only, not for threads.
    pub uncore: bool,
    /// Whether its events write to an AUX area.
    pub has_aux: bool,
    /// How many ranges of code its filters can have; none: filters of this kind are not for it.
    pub address_filters: u64,
}

/// What a probe is put on. The attr points to the text (`uprobe_path`, `kprobe_func`: the field is `config1`) while
/// the counter is opened, and only then: a pointer means nothing in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The path of the file, or the name of the kernel's function.
    pub target: CString,
}

impl EventSpec {
    /// The event that is recorded where none is named: `cycles:P`.
    #[must_use]
    pub fn default_event() -> Self {
        Self {
            modifiers: Modifiers { max_precise: true, ..Modifiers::default() },
            letters: "P".to_owned(),
            ..Self::numbered("cycles", EventType::HARDWARE, HwEvent::CPU_CYCLES.0)
        }
    }

    /// An event by its numbers, with nothing else said of it.
    #[must_use]
    pub fn numbered(name: &str, kind: EventType, config: u64) -> Self {
        let bpf_output = kind == EventType::SOFTWARE && config == SwEvent::BPF_OUTPUT.0;
        let one_by_one = bpf_output || kind == EventType::TRACEPOINT || kind == EventType::BREAKPOINT;
        Self {
            name: name.to_owned(),
            named: false,
            kind,
            config,
            config1: 0,
            config2: 0,
            config3: 0,
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

    /// The modifiers as the file's name for the event has them: nothing where the event was given a name, and not those of its
    /// group.
    #[must_use]
    pub fn suffix(&self) -> String {
        if self.named { String::new() } else { self.letters.clone() }
    }

    /// Whether this is a software event of that number.
    #[must_use]
    pub fn is_software(&self, config: u64) -> bool {
        self.kind == EventType::SOFTWARE && self.config == config
    }

    /// Whether this is a tracepoint.
    #[must_use]
    pub fn is_tracepoint(&self) -> bool {
        self.kind == EventType::TRACEPOINT
    }

    /// Whether samples of it carry raw bytes and each counts (what BPF programs write).
    #[must_use]
    pub fn is_bpf_output(&self) -> bool {
        self.is_software(SwEvent::BPF_OUTPUT.0)
    }
}
