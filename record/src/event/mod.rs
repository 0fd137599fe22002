//! Event specs: what follows `-e`, as perf's users write it.
//!
//! ```text
//! list  = spec { "," spec }
//! spec  = name [ ":" modifiers ]          cycles:u   page-faults   L1-dcache-load-misses   r1a8:k
//! ```
//!
//! Pure: the text and the tables of names decide, not the machine. What perf has and rec has not yet
//! (groups, PMU terms, tracepoints, breakpoints) is told apart from what nobody has.

mod error;
mod modifiers;
mod names;

pub use error::SpecError;
pub use modifiers::Modifiers;
use recrep_format::abi::{BranchSampleType, EventType, hw, sw};

use crate::sampling::{Callchain, Rate};

/// An event as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// The name as typed, without its modifiers.
    pub name: String,
    /// `perf_event_attr.type`.
    pub kind: EventType,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `config1`; the address of a breakpoint.
    pub config1: u64,
    /// `config2`; the length of a breakpoint.
    pub config2: u64,
    /// `config3`.
    pub config3: u64,
    /// `bp_type`: what of an address a breakpoint is about.
    pub bp_type: u32,
    /// What follows the colon.
    pub modifiers: Modifiers,
    /// The place of the group's leader in the list of all events; none where the event leads or is alone.
    pub leader: Option<usize>,
    /// What was said of this event alone.
    pub terms: Terms,
    /// The PMU that was named, or that the event was found at.
    pub pmu: Option<PmuUse>,
    /// The kernel leaves out what does not pass (`--filter`).
    pub filter: Option<String>,
}

/// What is said of one event alone, among its terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// `period=`, `freq=`.
    pub rate: Option<Rate>,
    /// `call-graph=`; `Some(None)`: none, whatever the flags say.
    pub callchain: Option<Option<Callchain>>,
    /// `branch_type=`.
    pub branches: Option<BranchSampleType>,
    /// `inherit`, `no-inherit`.
    pub inherit: Option<bool>,
    /// `time=`.
    pub time: Option<bool>,
    /// `max-stack=`.
    pub max_stack: Option<u16>,
    /// `max-events=`: stop after so many.
    pub max_events: Option<u64>,
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
    /// Whether its events write to an AUX area.
    pub has_aux: bool,
}

impl EventSpec {
    /// The event that is recorded where none is named: `cycles:P`.
    #[must_use]
    pub fn default_event() -> Self {
        Self {
            modifiers: Modifiers { max_precise: true, ..Modifiers::default() },
            ..Self::numbered("cycles", EventType::HARDWARE, hw::CPU_CYCLES)
        }
    }

    /// An event by its numbers, with nothing else said of it.
    #[must_use]
    pub fn numbered(name: &str, kind: EventType, config: u64) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            config,
            config1: 0,
            config2: 0,
            config3: 0,
            bp_type: 0,
            modifiers: Modifiers::default(),
            leader: None,
            terms: Terms::default(),
            pmu: None,
            filter: None,
        }
    }

    /// Whether this is a software event of that number.
    #[must_use]
    pub fn is_software(&self, config: u64) -> bool {
        self.kind == EventType::SOFTWARE && self.config == config
    }

    /// Whether samples of it carry raw bytes and each counts (what BPF programs write).
    #[must_use]
    pub fn is_bpf_output(&self) -> bool {
        self.is_software(sw::BPF_OUTPUT)
    }
}

/// Reads a comma list of event specs.
///
/// # Errors
/// The first spec that cannot be used.
pub fn parse_list(list: &str) -> Result<Vec<EventSpec>, SpecError> {
    if list.contains('{') {
        return Err(SpecError::NotBuilt { spec: list.to_owned(), what: "a group of events" });
    }
    if list.contains('/') {
        return Err(SpecError::NotBuilt { spec: list.to_owned(), what: "an event with PMU terms" });
    }
    list.split(',')
        .map(|spec| match spec.trim() {
            "" => Err(SpecError::Empty { list: list.to_owned() }),
            spec => parse(spec),
        })
        .collect()
}

/// Reads one event spec.
fn parse(spec: &str) -> Result<EventSpec, SpecError> {
    let (name, suffix) = spec.split_once(':').map_or((spec, None), |(n, m)| (n, Some(m)));
    let Some((kind, config)) = names::find(name).or_else(|| raw(name)) else {
        return Err(unknown(spec, name, suffix));
    };
    let modifiers = suffix.map(|m| Modifiers::parse(spec, m)).transpose()?.unwrap_or_default();
    Ok(EventSpec { modifiers, ..EventSpec::numbered(name, kind, config) })
}

/// `rNNN`: a number that the CPU's PMU knows, in hexadecimal.
fn raw(name: &str) -> Option<(EventType, u64)> {
    let digits = name.strip_prefix('r').filter(|d| !d.is_empty() && d.len() <= 16)?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(())?;
    u64::from_str_radix(digits, 16).ok().map(|config| (EventType::RAW, config))
}

fn unknown(spec: &str, name: &str, suffix: Option<&str>) -> SpecError {
    let spec = spec.to_owned();
    if name == "mem" && suffix.is_some() {
        return SpecError::NotBuilt { spec, what: "a breakpoint" };
    }
    let hint = names::nearest(name).map(str::to_owned);
    // `sched:sched_switch`; but `cycels:u` is a mistyped name with its modifiers.
    let is_tracepoint = suffix.is_some_and(|s| s.len() > 2 && Modifiers::parse("", s).is_err());
    if is_tracepoint && hint.is_none() {
        return SpecError::NotBuilt { spec, what: "a tracepoint" };
    }
    SpecError::Unknown { name: name.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(spec: &str) -> EventSpec {
        let mut all = parse_list(spec).unwrap();
        assert_eq!(all.len(), 1, "{spec}");
        all.remove(0)
    }

    fn refusal(spec: &str) -> String {
        parse_list(spec).unwrap_err().to_string()
    }

    #[test]
    fn names_and_their_aliases() {
        for (name, kind, config) in [
            ("cycles", EventType::HARDWARE, 0),
            ("cpu-cycles", EventType::HARDWARE, 0),
            ("instructions", EventType::HARDWARE, 1),
            ("branches", EventType::HARDWARE, 4),
            ("cpu-clock", EventType::SOFTWARE, 0),
            ("task-clock", EventType::SOFTWARE, 1),
            ("faults", EventType::SOFTWARE, 2),
            ("page-faults", EventType::SOFTWARE, 2),
            ("cs", EventType::SOFTWARE, 3),
            ("migrations", EventType::SOFTWARE, 4),
            ("minor-faults", EventType::SOFTWARE, 5),
            ("major-faults", EventType::SOFTWARE, 6),
            ("dummy", EventType::SOFTWARE, 9),
            ("cgroup-switches", EventType::SOFTWARE, 11),
            ("L1-dcache-load-misses", EventType::HW_CACHE, 0x10000),
            ("LLC-stores", EventType::HW_CACHE, 0x102),
            ("dTLB-prefetch-misses", EventType::HW_CACHE, 0x10203),
            ("r1a8", EventType::RAW, 0x1a8),
        ] {
            let spec = one(name);
            assert_eq!((spec.kind, spec.config), (kind, config), "{name}");
            assert_eq!(spec.name, name);
        }
    }

    #[test]
    fn lists_keep_their_order() {
        let all = parse_list("page-faults,cpu-clock:u").unwrap();
        assert_eq!(all[0].name, "page-faults");
        assert_eq!(all[1].modifiers.to_string(), "u");
    }

    #[test]
    fn a_wrong_name_gets_a_hint() {
        assert_eq!(refusal("cpuclock"), "there is no event 'cpuclock'; did you mean 'cpu-clock'?");
        assert_eq!(refusal("cycels:u"), "there is no event 'cycels'; did you mean 'cycles'?");
        assert_eq!(refusal("zzzzqq"), "there is no event 'zzzzqq'");
        assert_eq!(refusal("cycles,"), "an event name is missing in 'cycles,'");
    }

    #[test]
    fn what_perf_has_and_rec_has_not_is_named() {
        assert!(refusal("{cycles,instructions}:S").contains("a group of events"));
        assert!(refusal("cpu/event=0x3c/").contains("PMU terms"));
        assert!(refusal("mem:0x1000:rw").contains("a breakpoint"));
        assert!(refusal("sched:sched_switch").contains("a tracepoint"));
        assert!(refusal("cycles:S").contains("groups of events"));
    }

    #[test]
    fn raw_events_are_hexadecimal() {
        assert!(parse_list("rxyz").is_err());
        assert!(parse_list("r").is_err());
        assert_eq!(one("rffffffffffffffff").config, u64::MAX);
        assert!(parse_list("r10000000000000000").is_err());
    }
}
