//! Features of the file: information about the machine and the recording, stored after the data.

use std::fs;

use recrep_format::endian::Endian;
use recrep_format::feature::{
    Arch, BuildIdEvent, BuildIds, ClockData, ClockId, Cmdline, CpuDesc, CpuId, DescribedEvent,
    EventDesc, FeatureId, GoBuildIds, GroupDesc, GroupDescEntry, HeaderString, Hostname, Ids,
    NrCpus, OsRelease, PmuMapping, PmuMappings, SampleTime, TotalMem, TracingData, Version,
};
use recrep_format::wire::List;
use recrep_format::write::FeatureWriter;

use crate::kernel::ClockMoment;
use crate::kernel::counters::Counters;
use crate::machine::Machine;
use crate::machine::event_tables::cpuid;
use crate::machine::event_tables::cpuid::field;
use crate::machine::topology;
use crate::output::build_ids::Identified;
use crate::output::tally::Counts;
use crate::output::unwind::Chains;
use crate::plan::config::Config;
use crate::plan::{ATTR_SIZE, PlannedEvent};
use crate::tasks;

/// Returns the features that are known before the first record: the machine, the command line, the
/// events, the formats of tracepoints (`tracing`), and what the clocks show (`now`).
pub(crate) fn at_start(
    config: &Config,
    machine: &Machine,
    counters: &Counters,
    tracing: Option<&[u8]>,
    now: Option<ClockMoment>,
) -> FeatureWriter {
    let mut features = FeatureWriter::new(Endian::NATIVE);
    add_machine(&mut features, machine);
    add_command(&mut features, &config.cmdline);
    add_events(&mut features, counters);
    add_clock(&mut features, config.clock, now);
    if let Some(data) = tracing {
        features.add(&TracingData { data });
    }
    features
}

/// Returns the features of a file with counts (`rec stat record`).
pub(crate) fn of_counts(
    cmdline: &[String],
    machine: &Machine,
    counters: &Counters,
    tracing: Option<&[u8]>,
) -> FeatureWriter {
    let mut features = FeatureWriter::new(Endian::NATIVE);
    add_machine(&mut features, machine);
    add_command(&mut features, cmdline);
    add_events(&mut features, counters);
    if let Some(data) = tracing {
        features.add(&TracingData { data });
    }
    // A mark without contents.
    features.add_bytes(FeatureId::STAT, Vec::new());
    features
}

/// Adds how the callchains ended that were unwound.
pub(crate) fn add_chains(features: &mut FeatureWriter, chains: &Chains) {
    if let Some(ends) = chains.ends() {
        features.add(&ends);
    }
}

/// Adds the features that are known only at the end.
pub(crate) fn add_end(features: &mut FeatureWriter, counts: &Counts, ids: &[Identified]) {
    if let Some(first) = counts.first {
        features.add(&SampleTime { first, last: counts.last });
    }
    let (mut of_go, mut others) = (Vec::new(), Vec::new());
    for Identified { mode, name, id } in ids {
        let list = if id.is_of_go() { &mut of_go } else { &mut others };
        list.push(BuildIdEvent::new(*mode, id, name));
    }
    if !others.is_empty() {
        features.add(&BuildIds { entries: others });
    }
    if !of_go.is_empty() {
        features.add(&GoBuildIds { files: BuildIds { entries: of_go } });
    }
}

fn add_command(features: &mut FeatureWriter, cmdline: &[String]) {
    let args = List(cmdline.iter().map(|word| HeaderString::new(word)).collect());
    features.add(&Version::new(concat!("rec ", env!("CARGO_PKG_VERSION")))).add(&Cmdline { args });
}

/// Adds what the clock of the samples shows at a moment, beside the wall clock; of one that was
/// chosen with `-k`, its resolution, too.
fn add_clock(features: &mut FeatureWriter, chosen: Option<i32>, now: Option<ClockMoment>) {
    use rustix::time::{ClockId as Id, clock_getres};
    let chosen = chosen.and_then(|clock| u32::try_from(clock).ok());
    if let Some(number) = chosen {
        // CLOCK_TAI is the wall clock without leap seconds.
        let id = [Id::Realtime, Id::Monotonic, Id::MonotonicRaw, Id::Boottime]
            .into_iter()
            .find(|id| *id as u32 == number)
            .unwrap_or(Id::Realtime);
        let resolution = clock_getres(id);
        let seconds = u64::try_from(resolution.tv_sec).unwrap_or(0);
        let rest = u64::try_from(resolution.tv_nsec).unwrap_or(0);
        let resolution = seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        features.add(&ClockId { resolution });
    }
    if let Some(ClockMoment { wall_clock, clock }) = now {
        let clockid = chosen.unwrap_or(KERNEL_CLOCK);
        features.add(&ClockData { version: 1, clockid, wall_clock, clock });
    }
}

/// Number in CLOCK_DATA of the kernel's own clock, which clock_gettime(2) does not have: perf calls
/// it `(not found)`.
const KERNEL_CLOCK: u32 = u32::MAX;

fn add_machine(features: &mut FeatureWriter, machine: &Machine) {
    let uname = rustix::system::uname();
    features.add(&Hostname::new(&uname.nodename().to_string_lossy()));
    features.add(&OsRelease::new(&uname.release().to_string_lossy()));
    features.add(&Arch::new(&uname.machine().to_string_lossy()));
    let online = u32::try_from(machine.online.len()).unwrap_or(u32::MAX);
    let present = fs::read_to_string("/sys/devices/system/cpu/present")
        .ok()
        .and_then(|l| tasks::parse_cpus(&l).ok());
    // Readers expect the highest CPU number plus one.
    let available =
        present.and_then(|cpus| cpus.last().map(|last| last.saturating_add(1))).unwrap_or(online);
    features.add(&NrCpus { available, online });
    topology::add(features, &machine.sysfs, &machine.online, available);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if let Some(desc) = cpu_desc(&cpuinfo) {
        features.add(&CpuDesc::new(desc));
    }
    if let Some(id) = cpu_id(&cpuinfo).or_else(|| cpuid::of_core(&machine.sysfs, 0)) {
        features.add(&CpuId::new(&id));
    }
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if let Some(kib) = total_mem(&meminfo) {
        features.add(&TotalMem { kib });
    }
    let pmus = pmus();
    let pmus: Vec<_> = pmus
        .iter()
        .map(|(kind, name)| PmuMapping { kind: *kind, name: HeaderString::new(name) })
        .collect();
    if !pmus.is_empty() {
        features.add(&PmuMappings { pmus: List(pmus) });
    }
}

fn add_events(features: &mut FeatureWriter, counters: &Counters) {
    let names: Vec<_> = counters.events.iter().map(PlannedEvent::full_name).collect();
    let ids: Vec<_> = (0..counters.events.len()).map(|event| counters.ids(event)).collect();
    let events = counters.events.iter().zip(&names).zip(&ids);
    let events = events
        .map(|((event, name), ids)| DescribedEvent {
            attr: event.attr.clone(),
            name: HeaderString::new(name),
            ids: Ids::List(ids),
        })
        .collect();
    let attr_size = counters.events.iter().map(|event| event.attr.size).max().unwrap_or(ATTR_SIZE);
    features.add(&EventDesc { attr_size, events });
    let groups = groups(&counters.events);
    if !groups.is_empty() {
        features.add(&GroupDesc { groups: List(groups) });
    }
}

/// Returns the groups with more than one event.
fn groups(events: &[PlannedEvent]) -> Vec<GroupDescEntry<'_>> {
    (0..events.len())
        .filter_map(|leader| {
            let led = events.iter().filter(|event| event.leader == Some(leader)).count();
            let entry = GroupDescEntry {
                name: HeaderString::new("{anon_group}"),
                leader: count(leader),
                members: count(led + 1),
            };
            (led > 0).then_some(entry)
        })
        .collect()
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Returns the CPU's name. x86, Arm, PowerPC, s390 and MIPS have it in different fields.
fn cpu_desc(cpuinfo: &str) -> Option<&str> {
    ["model name", "Processor", "cpu", "vendor_id", "cpu model", "uarch"]
        .into_iter()
        .find_map(|name| field(cpuinfo, name))
}

/// Returns vendor, family, model and stepping (x86), in perf's form.
fn cpu_id(cpuinfo: &str) -> Option<String> {
    let [vendor, family, model, stepping] =
        ["vendor_id", "cpu family", "model", "stepping"].map(|name| field(cpuinfo, name));
    Some(format!("{},{},{},{}", vendor?, family?, model?, stepping?))
}

fn total_mem(meminfo: &str) -> Option<u64> {
    field(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()
}

/// Returns the numbers and names of the machine's PMUs.
fn pmus() -> Vec<(u32, String)> {
    let entries = fs::read_dir("/sys/bus/event_source/devices").into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        .filter_map(|entry| {
            let kind = fs::read_to_string(entry.path().join("type")).ok()?.trim().parse().ok()?;
            Some((kind, entry.file_name().to_string_lossy().into_owned()))
        })
        .collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_cpu_is() {
        let x86 = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: \
                   167\nmodel name\t: Intel(R) Xeon(R)\nstepping\t: 8\n";
        assert_eq!(cpu_desc(x86), Some("Intel(R) Xeon(R)"));
        assert_eq!(cpu_id(x86).as_deref(), Some("GenuineIntel,6,167,8"));
        let arm = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n";
        assert_eq!((cpu_desc(arm), cpu_id(arm)), (None, None));
        assert_eq!(cpu_desc("processor : 0\ncpu\t\t: POWER9, altivec\n"), Some("POWER9, altivec"));
    }

    #[test]
    fn memory_in_kib() {
        assert_eq!(total_mem("MemTotal:       24684084 kB\nMemFree:  1 kB\n"), Some(24_684_084));
        assert_eq!(total_mem(""), None);
    }
}
