//! `rec mem`, `rec c2c` and `rec trace`: the options of `perf mem record` and `perf c2c record`, and
//! the events that these commands choose.
//!
//! ```text
//!  rec mem [record] [OPTIONS] -- COMMAND            (report is refused: rep reports)
//!       │ the flags of rec, some letters with other meanings (-p -t -e, in c2c -k -u), --type, --ldlat
//!       ▼
//!  event::memory_events(machine) ── -t, -e, -C ──▶ event specs, and flags: -d, -W, in c2c --phys-data
//!  rec trace: entries and exits of system calls, each one, and what -e adds
//! ```

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgMatches, Args as _, Command};

use super::flags::{Flags, Sizes};
use super::values;
use super::words::is_negated;
use crate::event::sampling::Callchain;
use crate::event::{Accesses, DEFAULT_LATENCY, MemoryEvent, memory_events};
use crate::machine::Machine;
use crate::machine::registers::Arch;
use crate::machine::sources::EventSources;
use crate::messages::error::{Error, Result};
use crate::plan::config::RingSize;
use crate::tasks;

/// A command that chooses what it records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// `rec mem`
    Mem,
    /// `rec c2c`
    C2c,
    /// `rec trace`
    Trace,
}

/// The events that a command chose.
#[derive(Debug, Default)]
pub(super) struct ToolEvents {
    /// Lists of event specs, as `rec -e` takes them.
    pub(super) lists: Vec<String>,
    /// Notes for the user on the choice.
    pub(super) notes: Vec<String>,
    /// Command of rep that shows the file; empty for the report.
    pub(super) view: &'static str,
}

impl Tool {
    /// The tool that the command line, the program's name first, asks for.
    pub(super) fn of(args: &[OsString]) -> Option<Self> {
        match args.get(1).map(OsString::as_os_str).and_then(OsStr::to_str) {
            Some("mem") => Some(Self::Mem),
            Some("c2c") => Some(Self::C2c),
            Some("trace") => Some(Self::Trace),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Mem => "mem",
            Self::C2c => "c2c",
            Self::Trace => "trace",
        }
    }

    /// Returns the command of rep that shows what was recorded.
    const fn view(self) -> &'static str {
        match self {
            Self::Trace => "syscalls",
            _ => self.name(),
        }
    }

    /// Returns the reason for refusing `report`, which perf has beside `record`.
    pub(super) fn has_no_reports(self) -> String {
        let (name, view) = (self.name(), self.view());
        format!(
            "report: rec only records; rep shows the report: rep {view} [FILE]. To record a \
             program that is called report: rec {name} -- report"
        )
    }

    /// The flags: those of rec, with the letters that perf has for them here.
    pub(super) fn command(self) -> Command {
        let heading = match self {
            Self::Trace => "Events",
            _ => "Memory accesses",
        };
        let name = format!("rec {}", self.name());
        let command = Command::new(name.clone()).bin_name(&name).next_help_heading(heading);
        let command = match self {
            Self::Mem => command.arg(accesses_arg()).arg(latency_arg()),
            Self::C2c => command.arg(latency_arg().short('l')),
            Self::Trace => command,
        };
        let mut usage = format!(
            "{name} [record] [OPTIONS] [--] COMMAND [ARGS]...\n       \
             {name} [record] [OPTIONS] -a | -C LIST | --pid PIDS | ... [[--] COMMAND [ARGS]...]"
        );
        if self != Self::Trace {
            usage += &format!("\n       {name} -e list");
        }
        let command = Flags::augment_args(command.next_help_heading(None::<&str>))
            .name(name.clone())
            .about(self.about())
            .override_usage(usage)
            .after_help(format!(
                "The file is read by rep {}, and by perf {name} {perf}. A program that is called \
                 {name} is recorded by: rec -- {name}",
                self.view(),
                name = self.name(),
                perf = if self == Self::Trace { "-i FILE" } else { "report" },
            ))
            .mut_arg("event", |event| match self {
                Self::Trace => event.help("Record these events, too"),
                _ => event
                    .value_name("NAMES")
                    .help(
                        "Use the memory events with these names; 'list' shows those of this \
                           machine",
                    )
                    .help_heading(heading),
            });
        command.mut_args(|arg| match self.letters().iter().find(|(id, _)| arg.get_id() == id) {
            Some((_, letter)) => arg.short(*letter),
            None => arg,
        })
    }

    /// Flags of rec, by id, that have another letter here; `None`: no letter, as theirs is another
    /// flag's.
    const fn letters(self) -> &'static [(&'static str, Option<char>)] {
        match self {
            Self::Mem => &[
                ("tid", None),
                ("pid", None),
                ("phys_data", Some('p')),
                ("all_kernel", Some('K')),
                ("all_user", Some('U')),
            ],
            Self::C2c => &[
                ("uid", None),
                ("clockid", None),
                ("all_kernel", Some('k')),
                ("all_user", Some('u')),
            ],
            Self::Trace => &[],
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Mem => {
                "Record memory accesses: their addresses, latencies, and where in the memory \
                 hierarchy they hit"
            }
            Self::C2c => {
                "Record memory accesses with physical addresses, to find cache lines that CPUs contend for"
            }
            Self::Trace => {
                "Record every system call: which one, how long it took, what it returned"
            }
        }
    }

    /// Returns the names and specs of this machine's events, a line each (`-e list`), if that is
    /// asked for.
    pub(super) fn listing(self, flags: &Flags, machine: &Machine) -> Result<Option<String>> {
        if flags.events.event != ["list"] || self == Self::Trace {
            return Ok(None);
        }
        Ok(Some(
            self.available(machine, DEFAULT_LATENCY)?
                .iter()
                .map(|event| format!("{:<13} {}\n", event.name, event.spec))
                .collect(),
        ))
    }

    /// Chooses the events and sets the flags that go with them.
    pub(super) fn choose(
        self,
        flags: &mut Flags,
        matches: &ArgMatches,
        machine: &Machine,
    ) -> Result<ToolEvents> {
        if self == Self::Trace {
            return Ok(system_calls(flags, machine));
        }
        let latency = matches.get_one::<u32>("ldlat").copied();
        let mut events = self.available(machine, latency.unwrap_or(DEFAULT_LATENCY))?;
        if let Some(asked) = &flags.targets.cpu {
            events.retain(|event| {
                event.cpus.as_ref().is_none_or(|cpus| cpus.iter().any(|cpu| asked.contains(cpu)))
            });
        }
        let kinds = match self {
            Self::Mem => matches.get_one::<String>("type").map(String::as_str),
            Self::C2c | Self::Trace => None,
        };
        let events = match flags.events.event.as_slice() {
            [] => by_accesses(&events, kinds),
            names => by_name(&events, names),
        };
        let events = events.map_err(Error::Usage)?;
        if latency.is_some() && !events.iter().any(|event| event.has_latency) {
            return Err(Error::Usage(format!(
                "--ldlat: {} samples accesses of any latency on this machine; leave it out, and \
                 see rep mem for latencies",
                names_of(&events)
            )));
        }
        let loads = events.iter().any(|event| event.accesses.have_loads());
        let samples = &mut flags.samples;
        samples.data |= !is_negated(matches, "data");
        samples.weight |= loads && !is_negated(matches, "weight");
        samples.phys_data |= self == Self::C2c && !is_negated(matches, "phys_data");
        let lists = events.iter().map(|event| event.spec.clone()).collect();
        Ok(ToolEvents { lists, notes: partial(&events, machine).into_iter().collect(), view: "" })
    }

    fn available(self, machine: &Machine, latency: u32) -> Result<Vec<MemoryEvent>> {
        let events = memory_events(&EventSources::new(&machine.sysfs, None), latency);
        if !events.is_empty() {
            return Ok(events);
        }
        let (what, why) = match machine.arch {
            Arch::X86_64 => (
                "mem-loads and mem-stores of the PMU cpu (Intel) or the PMU ibs_op (AMD)",
                "the CPU has no precise sampling of addresses, or the hypervisor does not pass it \
                 to this virtual machine",
            ),
            Arch::Aarch64 => (
                "a PMU arm_spe_0 (statistical profiling)",
                "the CPU or the firmware has none, the module arm_spe_pmu is not loaded, or the \
                 kernel runs with kpti=on",
            ),
            Arch::Other => (
                "mem-loads and mem-stores of the CPU's PMU",
                "the CPU or the kernel does not offer them",
            ),
        };
        Err(Error::Failed(format!(
            "rec {}: this machine cannot sample memory accesses: it takes {what}, which {} lacks; \
             {why}",
            self.name(),
            machine.sysfs.join("bus/event_source/devices").display()
        )))
    }
}

fn accesses_arg() -> Arg {
    Arg::new("type")
        .short('t')
        .long("type")
        .value_name("TYPES")
        .conflicts_with("event")
        .help("Sample these accesses: load, store [default: load,store]")
}

fn latency_arg() -> Arg {
    Arg::new("ldlat")
        .long("ldlat")
        .value_name("CYCLES")
        .value_parser(values::number::<u32>)
        .help(format!("Sample only loads that take at least CYCLES [default: {DEFAULT_LATENCY}]"))
}

/// Chooses the entries and exits of system calls, each one whatever the rate of other events is.
/// Only entries have callchains, as those of exits would be the same. Frames of the C library have
/// no frame pointers, so stacks are unwound where rec can: of copies that lead out of that library,
/// as larger ones would fill the rings.
fn system_calls(flags: &mut Flags, machine: &Machine) -> ToolEvents {
    let mode = flags.samples.call_graph.map(|mode| mode.callchain);
    let unwinds = flags.samples.graph && mode.is_none() && machine.arch != Arch::Other;
    let chain = if unwinds { ",call-graph=unwind,stack-size=4096" } else { "" };
    let has_stacks =
        unwinds || matches!(mode, Some(Callchain::Unwind { .. } | Callchain::Dwarf { .. }));
    let rings = rings_of_calls(has_stacks, machine.online.len());
    flags.rings.mmap_pages.get_or_insert(Sizes { data: Some(rings), aux: None });
    let mut lists = vec![
        format!("raw_syscalls:sys_enter/period=1{chain}/"),
        "raw_syscalls:sys_exit/period=1,call-graph=no/".to_owned(),
    ];
    lists.extend(flags.events.event.iter().cloned());
    ToolEvents { lists, notes: Vec::new(), view: Tool::Trace.view() }
}

/// Returns the size of rings for system calls. A busy program fills the default one in a few
/// milliseconds; with copied stacks, it is to hold what comes until rec has unwound them.
fn rings_of_calls(has_stacks: bool, cpus: usize) -> RingSize {
    /// Sizes in MiB.
    const LEAST: u64 = 8;
    const MOST: u64 = 64;
    const MOST_OF_ALL_CPUS: u64 = 512;
    let size = match has_stacks {
        true => (MOST_OF_ALL_CPUS / cpus.max(1) as u64).clamp(LEAST, MOST),
        false => LEAST,
    };
    RingSize::Bytes((1 << size.ilog2()) << 20)
}

/// The events that sample these accesses: `load`, `store`, both with a comma between them.
fn by_accesses(all: &[MemoryEvent], kinds: Option<&str>) -> Result<Vec<MemoryEvent>, String> {
    let (mut loads, mut stores) = (kinds.is_none(), kinds.is_none());
    for kind in kinds.into_iter().flat_map(|kinds| kinds.split(',')) {
        match kind {
            _ if kind.eq_ignore_ascii_case("load") => loads = true,
            _ if kind.eq_ignore_ascii_case("store") => stores = true,
            _ => return Err(format!("-t: '{kind}' is neither load nor store")),
        }
    }
    let both = with_accesses(all, Accesses::Both);
    if loads && stores && !both.is_empty() {
        return Ok(both);
    }
    let mut chosen = Vec::new();
    for (wanted, accesses, kind, other) in
        [(loads, Accesses::Loads, "load", "store"), (stores, Accesses::Stores, "store", "load")]
    {
        let found = if wanted { with_accesses(all, accesses) } else { Vec::new() };
        if wanted && found.is_empty() {
            let advice = match both.is_empty() {
                true => {
                    format!("it has {} only; record those with rec mem -t {other}", names_of(all))
                }
                false => {
                    format!("{} samples loads and stores together; leave -t out", names_of(&both))
                }
            };
            return Err(format!("this machine has no event that samples {kind}s alone: {advice}"));
        }
        chosen.extend(found);
    }
    // The events of a PMU together.
    chosen.sort_by_key(|event| all.iter().position(|other| other.spec == event.spec));
    Ok(chosen)
}

fn with_accesses(all: &[MemoryEvent], accesses: Accesses) -> Vec<MemoryEvent> {
    all.iter().filter(|event| event.accesses == accesses).cloned().collect()
}

/// The events with names that contain these, as perf selects them.
fn by_name(all: &[MemoryEvent], lists: &[String]) -> Result<Vec<MemoryEvent>, String> {
    let names: Vec<&str> = lists.iter().flat_map(|list| list.split(',')).collect();
    if let Some(unknown) =
        names.iter().find(|name| name.is_empty() || !all.iter().any(|e| e.name.contains(*name)))
    {
        return Err(format!(
            "-e: there is no memory event '{unknown}' on this machine; there is {}",
            names_of(all)
        ));
    }
    Ok(all
        .iter()
        .filter(|event| names.iter().any(|name| event.name.contains(name)))
        .cloned()
        .collect())
}

fn names_of(events: &[MemoryEvent]) -> String {
    let mut names: Vec<&str> = events.iter().map(|event| event.name).collect();
    names.dedup();
    names.join(", ")
}

/// A note where accesses are not sampled on all CPUs.
fn partial(events: &[MemoryEvent], machine: &Machine) -> Option<String> {
    let (with, without): (Vec<u32>, Vec<u32>) = machine.online.iter().partition(|cpu| {
        events.iter().any(|event| event.cpus.as_ref().is_none_or(|cpus| cpus.contains(cpu)))
    });
    (!without.is_empty()).then(|| {
        format!(
            "sampling memory accesses on CPU {} only; CPU {} has no events for them",
            tasks::ranges(&with),
            tasks::ranges(&without)
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;

    fn event(name: &'static str, accesses: Accesses, spec: &str) -> MemoryEvent {
        MemoryEvent { name, accesses, spec: spec.to_owned(), has_latency: false, cpus: None }
    }

    fn specs(events: Result<Vec<MemoryEvent>, String>) -> Result<Vec<String>, String> {
        events.map(|events| events.into_iter().map(|event| event.spec).collect())
    }

    #[test]
    fn events_by_their_accesses() {
        let hybrid = [
            event("ldlat-loads", Accesses::Loads, "a"),
            event("ldlat-stores", Accesses::Stores, "b"),
            event("ldlat-loads", Accesses::Loads, "c"),
        ];
        assert_eq!(specs(by_accesses(&hybrid, None)).unwrap(), ["a", "b", "c"]);
        assert_eq!(specs(by_accesses(&hybrid, Some("load"))).unwrap(), ["a", "c"]);
        assert_eq!(specs(by_accesses(&hybrid, Some("Store"))).unwrap(), ["b"]);
        assert!(by_accesses(&hybrid, Some("load,x")).unwrap_err().contains("'x'"));
        assert!(by_accesses(&hybrid[..1], None).unwrap_err().contains("rec mem -t load"));
        let both = [event("mem-ldst", Accesses::Both, "d")];
        assert_eq!(specs(by_accesses(&both, Some("store,load"))).unwrap(), ["d"]);
        assert!(
            by_accesses(&both, Some("load"))
                .unwrap_err()
                .contains("mem-ldst samples loads and stores together")
        );
    }

    #[test]
    fn callers_of_system_calls_are_in_small_copies_and_large_rings() {
        let rings_and_entry = |words: &[&str], cpus: u32| {
            let words = ["rec"].iter().chain(words).chain(&["x"]);
            let matches = Flags::command().get_matches_from(words);
            let mut flags = Flags::from_arg_matches(&matches).unwrap();
            let online = (0..cpus).collect();
            let machine = Machine { online, arch: Arch::X86_64, ..Machine::default() };
            let ToolEvents { mut lists, .. } = system_calls(&mut flags, &machine);
            (flags.rings.mmap_pages.and_then(|sizes| sizes.data).unwrap(), lists.remove(0))
        };
        let small = "raw_syscalls:sys_enter/period=1,call-graph=unwind,stack-size=4096/";
        let plain = "raw_syscalls:sys_enter/period=1/";
        for (words, cpus, rings, entry) in [
            (&["-g"][..], 2, 64, small),
            (&["-g"], 12, 32, small),
            (&["-g"], 200, 8, small),
            (&["--call-graph", "unwind"], 2, 64, plain),
            (&["--call-graph", "fp"], 2, 8, plain),
            (&["-g", "-m", "1M"], 2, 1, small),
            (&[], 2, 8, plain),
        ] {
            let expected = (RingSize::Bytes(rings << 20), entry.to_owned());
            assert_eq!(rings_and_entry(words, cpus), expected, "{words:?}");
        }
    }

    #[test]
    fn events_by_parts_of_their_names() {
        let all = [event("spe-load", Accesses::Loads, "a"), event("spe-ldst", Accesses::Both, "b")];
        let found = |names: &str| specs(by_name(&all, &[names.to_owned()]));
        assert_eq!(found("spe-load").unwrap(), ["a"]);
        assert_eq!(found("spe").unwrap(), ["a", "b"]);
        assert!(found("cycles").unwrap_err().ends_with("there is spe-load, spe-ldst"));
        assert!(found("spe-load,").is_err());
    }
}
