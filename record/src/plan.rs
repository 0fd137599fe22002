//! What to open: attrs, CPUs, ring size. Pure: what was asked and facts about the machine in, a [`Plan`] out.
//!
//! The shape is perf record's. Each event has one counter for each CPU (and for each thread that is attached to),
//! with `inherit`, so that threads and children are in; all counters of a CPU share a ring. One event also carries
//! the side-band (MMAP2, COMM, FORK, EXIT, …): the first, which a command's exec enables; or, where tasks run already,
//! a `dummy` that is on from the beginning, so that nothing that happens between the reading of
//! `/proc` and the start of the sampling is missed.

use recrep_format::abi::{AttrFlags, EventType, ReadFormat, SampleType, sw};
use recrep_format::attr::Attr;

use crate::config::{Config, RingSize};
use crate::error::{Error, Result};
use crate::event::{EventSpec, Probe};
use crate::machine::Machine;
use crate::sampling::Rate;
use crate::target::Target;

/// perf's default rate.
pub const DEFAULT_HZ: u64 = 4000;
/// The length of the attrs that rec gives to the kernel and writes: the struct as perf 6.1 knows it
/// (`PERF_ATTR_SIZE_VER7`), which holds every field that rec sets.
pub const ATTR_SIZE: u32 = 128;
/// The size of a ring's data area, where the kernel's budget allows it.
const DEFAULT_RING: u64 = 512 << 10;
/// Records stay well below this; `size` is 16 bits wide.
const MOST_RING: u64 = 1 << 30;

/// What to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The events, in the order of the file's attrs.
    pub events: Vec<PlannedEvent>,
    /// The CPUs, each with a ring.
    pub cpus: Vec<u32>,
    /// Whether counters have a thread and no CPU.
    pub per_thread: bool,
    /// Pages in each ring's data area: a power of two.
    pub ring_pages: usize,
    /// What is done otherwise than asked.
    pub notes: Vec<String>,
}

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
    /// The place of its group's leader among the events; none where it leads or is alone.
    pub leader: Option<usize>,
    /// Whether it may be opened alone where its group has no place on the PMU (`W`).
    pub weak: bool,
    /// The only CPUs to open it on, where its PMU says so.
    pub cpus: Option<Vec<u32>>,
    /// The cgroup to count in the place of the target.
    pub cgroup: Option<String>,
    /// The kernel leaves out what does not pass.
    pub filter: Option<String>,
    /// The PMU that it was named with.
    pub pmu: Option<String>,
    /// Whether it writes to an AUX area.
    pub has_aux: bool,
    /// Its `system:name`, where it is a tracepoint.
    pub tracepoint: Option<String>,
    /// What it is put on, where it is a probe.
    pub probe: Option<Probe>,
}

impl PlannedEvent {
    /// The name with its modifiers, as the file has it.
    #[must_use]
    pub fn full_name(&self) -> String {
        let colon = if self.modifiers.is_empty() || self.name.ends_with('/') { "" } else { ":" };
        format!("{}{colon}{}", self.name, self.modifiers)
    }
}

/// Makes the plan.
///
/// # Errors
/// CPUs that are not online; a ring of an impossible size.
pub fn plan(config: &Config, machine: &Machine) -> Result<Plan> {
    let mut notes = Vec::new();
    let rate = rate(config.rate, machine, &mut notes);
    let attached = config.target != Target::Command;
    let specs = match config.events.as_slice() {
        [] => vec![EventSpec::default_event()],
        named => named.to_vec(),
    };
    let mut events: Vec<_> = specs.iter().map(|spec| planned(spec, rate, config)).collect();
    if attached {
        events.push(tracker(rate));
    }
    // The tracker is the dummy at the end, or the first event.
    let tracking = if attached { events.last_mut() } else { events.first_mut() };
    if let Some(event) = tracking {
        event.attr.flags |= side_band(config.sample.data);
    }
    Ok(Plan {
        per_thread: config.per_thread,
        events,
        cpus: cpus(config, machine)?,
        ring_pages: ring_pages(config.rings.data, machine, &mut notes)?,
        notes,
    })
}

/// The rate as attrs have it: `sample_period`, and whether it is a frequency.
fn rate(rate: Rate, machine: &Machine, notes: &mut Vec<String>) -> (u64, AttrFlags) {
    let hz = match rate {
        Rate::Period(events) => return (events, AttrFlags::empty()),
        Rate::Max => return (machine.max_rate, AttrFlags::FREQ),
        Rate::Hz(hz) => hz,
        Rate::Default => DEFAULT_HZ,
    };
    if hz > machine.max_rate {
        notes.push(format!(
            "sampling at {} Hz instead of {hz} Hz, which is all that kernel.perf_event_max_sample_rate allows",
            machine.max_rate
        ));
    }
    (hz.min(machine.max_rate), AttrFlags::FREQ)
}

fn planned(spec: &EventSpec, (period, freq): (u64, AttrFlags), config: &Config) -> PlannedEvent {
    let mut attr = base(period, freq);
    attr.kind = spec.kind;
    attr.config = spec.config;
    (attr.config1, attr.config2, attr.config3) = (spec.config1, spec.config2, spec.config3);
    attr.bp_type = spec.bp_type;
    attr.flags |= spec.modifiers.flags() | AttrFlags::DISABLED;
    attr.flags.set(AttrFlags::ENABLE_ON_EXEC, config.target == Target::Command);
    attr.sample_type.set(SampleType::CALLCHAIN, config.sample.callchain.is_some());
    attr.sample_type.set(SampleType::ADDR | SampleType::DATA_SRC, config.sample.data);
    if spec.raw {
        attr.sample_type |= SampleType::RAW | SampleType::PERIOD;
    }
    let asked = !matches!((config.rate, spec.terms.rate), (Rate::Default, None));
    if let (Some(period), false) = (spec.default_period, asked) {
        (attr.sample_period, attr.flags) = (period, attr.flags - AttrFlags::FREQ);
    }
    PlannedEvent {
        name: spec.name.clone(),
        modifiers: spec.suffix(),
        attr,
        max_precise: spec.modifiers.max_precise,
        leader: spec.leader,
        filter: spec.filter.clone(),
        cpus: spec.pmu.as_ref().and_then(|pmu| pmu.cpus.clone()),
        pmu: spec.pmu.as_ref().map(|pmu| pmu.name.clone()),
        has_aux: spec.pmu.as_ref().is_some_and(|pmu| pmu.has_aux),
        weak: spec.modifiers.weak,
        tracepoint: spec.tracepoint.clone(),
        probe: spec.probe.clone(),
        ..PlannedEvent::default()
    }
}

/// What all attrs have: a stream in which each record says which event it is of, when, where and whose it is.
fn base(period: u64, freq: AttrFlags) -> Attr {
    use SampleType as S;
    let mut sample_type = S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU;
    sample_type.set(S::PERIOD, freq.contains(AttrFlags::FREQ));
    Attr {
        size: ATTR_SIZE,
        sample_period: period,
        sample_type,
        read_format: ReadFormat::ID | ReadFormat::LOST,
        flags: freq | AttrFlags::INHERIT | AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    }
}

/// The event that carries the side-band where tasks run already. User-only, so that everyone may open it.
fn tracker((period, freq): (u64, AttrFlags)) -> PlannedEvent {
    let mut attr = base(period, freq);
    attr.kind = EventType::SOFTWARE;
    attr.config = sw::DUMMY;
    attr.flags |= AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV | AttrFlags::EXCLUDE_GUEST;
    PlannedEvent { name: "dummy".to_owned(), modifiers: "u".to_owned(), attr, ..PlannedEvent::default() }
}

fn side_band(data: bool) -> AttrFlags {
    use AttrFlags as F;
    let code = F::MMAP | F::MMAP2 | F::COMM | F::COMM_EXEC | F::TASK | F::KSYMBOL | F::BPF_EVENT;
    if data { code | F::MMAP_DATA } else { code }
}

fn cpus(config: &Config, machine: &Machine) -> Result<Vec<u32>> {
    let Some(asked) = &config.cpus else { return Ok(machine.online.clone()) };
    match asked.iter().find(|cpu| !machine.online.contains(cpu)) {
        None => Ok(asked.clone()),
        Some(cpu) => {
            Err(Error::Failed(format!("cannot record on CPU {cpu} (-C): online are {}", ranges(&machine.online))))
        }
    }
}

/// `0-3,8` again.
fn ranges(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b).filter_map(|run| run.first().zip(run.last()));
    let texts: Vec<_> = runs.map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    texts.join(",")
}

fn ring_pages(asked: Option<RingSize>, machine: &Machine, notes: &mut Vec<String>) -> Result<usize> {
    let page = machine.page_size as u64;
    let pages = match asked {
        Some(RingSize::Pages(pages)) => pages,
        Some(RingSize::Bytes(bytes)) => bytes.div_ceil(page),
        // One page of the budget is for the control page.
        None => {
            return Ok(previous_power_of_two(
                (machine.mlock_kb << 10).min(DEFAULT_RING + page).saturating_sub(page) / page,
            ));
        }
    };
    let rounded = pages.checked_next_power_of_two().filter(|p| p.saturating_mul(page) <= MOST_RING);
    let rounded = rounded
        .ok_or_else(|| Error::Usage(format!("-m: rings of {pages} pages are larger than a ring may be (1G)")))?;
    if rounded != pages {
        notes.push(format!("rings of {rounded} pages instead of {pages}: the size must be a power of two"));
    }
    usize::try_from(rounded).map_err(|_| Error::Usage(format!("-m: {pages} pages are too many")))
}

fn previous_power_of_two(n: u64) -> usize {
    usize::try_from(n).ok().and_then(usize::checked_ilog2).map_or(1, |log| 1 << log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            page_size: 4096,
            online: vec![0, 1, 2, 5],
            paranoid: 2,
            max_rate: 100_000,
            mlock_kb: 516,
            ..Machine::default()
        }
    }

    fn planned(line: &str) -> Plan {
        planned_on(line, &machine())
    }

    fn planned_on(line: &str, machine: &Machine) -> Plan {
        let args = ["rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
        plan(&crate::args::parse(args).unwrap(), machine).unwrap()
    }

    #[test]
    fn every_attr_describes_its_stream() {
        for line in ["x", "-a", "-p 1 -g", "-c 1 -e faults,cs x", "-e dummy -d x"] {
            for event in planned(line).events {
                let attr = event.attr;
                let always =
                    SampleType::IDENTIFIER | SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::CPU;
                assert!(attr.sample_type.contains(always), "{line}");
                assert!(attr.flags.contains(AttrFlags::SAMPLE_ID_ALL | AttrFlags::INHERIT), "{line}");
                assert_eq!(attr.read_format, ReadFormat::ID | ReadFormat::LOST);
            }
        }
    }

    #[test]
    fn a_command_s_first_event_tracks_and_starts_on_exec() {
        let plan = planned("-e cpu-clock,faults x");
        let flags: Vec<_> = plan.events.iter().map(|e| e.attr.flags).collect();
        assert_eq!(plan.events.len(), 2);
        assert!(flags.iter().all(|f| f.contains(AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC)));
        assert!(flags[0].contains(AttrFlags::MMAP2 | AttrFlags::COMM_EXEC | AttrFlags::TASK));
        assert!(!flags[1].intersects(AttrFlags::MMAP2 | AttrFlags::COMM | AttrFlags::TASK));
        assert!(!flags[0].contains(AttrFlags::MMAP_DATA));
    }

    #[test]
    fn what_runs_already_is_tracked_by_a_dummy_from_the_start() {
        for line in ["-a", "-p 1", "-t 1", "-C 0"] {
            let plan = planned(line);
            let [event, dummy] = plan.events.as_slice() else { panic!("{line}") };
            assert!(event.attr.flags.contains(AttrFlags::DISABLED));
            assert!(!event.attr.flags.intersects(AttrFlags::ENABLE_ON_EXEC | AttrFlags::MMAP2));
            assert_eq!((dummy.attr.kind, dummy.attr.config), (EventType::SOFTWARE, sw::DUMMY));
            assert!(dummy.attr.flags.contains(AttrFlags::MMAP2) && !dummy.attr.flags.contains(AttrFlags::DISABLED));
            assert_eq!(dummy.full_name(), "dummy:u");
        }
    }

    #[test]
    fn the_default_is_cycles_as_precise_as_can_be() {
        let plan = planned("x");
        assert_eq!(plan.events[0].full_name(), "cycles:P");
        assert_eq!(plan.events[0].attr.flags.precise_ip(), 3);
        assert_eq!(plan.events[0].attr.frequency(), Some(4000));
        assert!(plan.events[0].attr.sample_type.contains(SampleType::PERIOD));
    }

    #[test]
    fn rates_are_lowered_to_the_kernel_s_limit() {
        let slow = Machine { max_rate: 1000, ..machine() };
        let plan = planned_on("x", &slow);
        assert_eq!(plan.events[0].attr.frequency(), Some(1000));
        assert!(plan.notes[0].starts_with("sampling at 1000 Hz instead of 4000 Hz"), "{:?}", plan.notes);
        assert_eq!(planned_on("-F max x", &slow).events[0].attr.frequency(), Some(1000));
        assert!(planned_on("-F max x", &slow).notes.is_empty());
        assert!(planned_on("-F 1000 x", &slow).notes.is_empty());
        let exact = planned_on("-c 7 x", &slow);
        assert_eq!((exact.events[0].attr.frequency(), exact.events[0].attr.sample_period), (None, 7));
        assert!(!exact.events[0].attr.sample_type.contains(SampleType::PERIOD));
    }

    #[test]
    fn what_samples_carry() {
        let sample_type = |line| planned(line).events[0].attr.sample_type;
        assert!(sample_type("-g x").contains(SampleType::CALLCHAIN));
        assert!(sample_type("-d x").contains(SampleType::ADDR | SampleType::DATA_SRC));
        assert!(!sample_type("x").intersects(SampleType::CALLCHAIN | SampleType::ADDR | SampleType::DATA_SRC));
        assert!(planned("-d x").events[0].attr.flags.contains(AttrFlags::MMAP_DATA));
        assert!(sample_type("-e bpf-output x").contains(SampleType::RAW));
    }

    #[test]
    fn rings_fit_the_budget_and_are_powers_of_two() {
        assert_eq!(planned("x").ring_pages, 128);
        assert_eq!(planned_on("x", &Machine { mlock_kb: 300, ..machine() }).ring_pages, 64);
        assert_eq!(planned_on("x", &Machine { mlock_kb: 0, ..machine() }).ring_pages, 1);
        assert_eq!(planned_on("x", &Machine { page_size: 65536, mlock_kb: 4096, ..machine() }).ring_pages, 8);
        assert_eq!(planned("-m 2 x").ring_pages, 2);
        assert_eq!(planned("-m 1M x").ring_pages, 256);
        let odd = planned("-m 3 x");
        assert_eq!(odd.ring_pages, 4);
        assert!(odd.notes[0].contains("4 pages instead of 3"));
    }

    #[test]
    fn only_cpus_that_are_online() {
        assert_eq!(planned("-C 0-1,5").cpus, [0, 1, 5]);
        assert_eq!(planned("x").cpus, [0, 1, 2, 5]);
        let args = ["rec", "-C", "3"].into_iter().map(Into::into);
        let error = plan(&crate::args::parse(args).unwrap(), &machine()).unwrap_err();
        assert_eq!(error.to_string(), "cannot record on CPU 3 (-C): online are 0-2,5");
    }
}
