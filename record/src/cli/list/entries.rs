//! The entries of the list: generalized events, PMU events, tracepoints.

use recrep_console::glob;
use recrep_console::nearest::did_you_mean;
use recrep_format::abi::{AttrFlags, EventType};
use recrep_format::attr::Attr;
use rustix::io::Errno;
use serde::Serialize;

use crate::event::{KnownEvent, known, probe_terms};
use crate::kernel::{Kernel, Place};
use crate::machine::pmu::Pmu;
use crate::machine::sources::EventSources;
use crate::machine::tracepoint::Unreadable;
use crate::plan::ATTR_SIZE;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EntryKind {
    Hardware,
    Software,
    Cache,
    Pmu,
    Tracepoint,
    Metric,
    MetricGroup,
}

/// An event, or a pattern with terms that stands for many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ListEntry {
    /// Name that `-e` takes.
    pub(super) name: String,
    pub(super) kind: EntryKind,
    /// Other names of the same event.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) aliases: Vec<String>,
    /// Terms that a PMU's named event stands for, or that the PMU accepts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) terms: Option<String>,
    /// Unit of its counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unit: Option<String>,
    /// Description of what it counts, from a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// Names and C types of a tracepoint's fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) fields: Vec<(String, String)>,
    /// Expression of a metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expression: Option<String>,
    /// Condition under which a metric's value is remarkable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threshold: Option<String>,
    /// Groups of a metric.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) groups: Vec<String>,
    /// Metrics of a group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) metrics: Vec<String>,
}

impl ListEntry {
    pub(super) fn new(name: String, kind: EntryKind) -> Self {
        Self {
            name,
            kind,
            aliases: Vec::new(),
            terms: None,
            unit: None,
            description: None,
            fields: Vec::new(),
            expression: None,
            threshold: None,
            groups: Vec::new(),
            metrics: Vec::new(),
        }
    }

    fn is_called(&self, pattern: &str) -> bool {
        // Names in tables are written in capitals where the maker documents them.
        let (small, in_table) = (pattern.to_lowercase(), self.description.is_some());
        let matches = |name: &str| {
            glob::matches(pattern, name)
                || (in_table && glob::matches(&small, &name.to_lowercase()))
        };
        std::iter::once(&self.name)
            .chain(&self.aliases)
            .any(|name| matches(name) || without_pmu(name).is_some_and(|name| matches(&name)))
    }
}

fn without_pmu(name: &str) -> Option<String> {
    name.split_once('/').map(|(_, event)| event.trim_end_matches('/').to_owned())
}

const KINDS: &[(&str, EntryKind)] = &[
    ("hw", EntryKind::Hardware),
    ("hardware", EntryKind::Hardware),
    ("sw", EntryKind::Software),
    ("software", EntryKind::Software),
    ("cache", EntryKind::Cache),
    ("hwcache", EntryKind::Cache),
    ("pmu", EntryKind::Pmu),
    ("tracepoint", EntryKind::Tracepoint),
    ("metric", EntryKind::Metric),
    ("metricgroup", EntryKind::MetricGroup),
];

const NO_TABLES: &str = "no metrics: those of a CPU are in perf's tables; give their folder with \
                         --event-tables DIR (tools/perf/pmu-events/arch of the source of Linux)";

const NO_COUNTERS: &str = "no hardware or cache events: this machine has no counters for them, or \
                           does not allow this user to open them";

/// Finds the machine's events, and metrics among `metrics`, of these kinds or with matching names.
/// Also returns notes for the user.
pub(super) fn find(
    what: &[String],
    sources: &EventSources,
    is_there: &dyn Fn(&KnownEvent) -> bool,
    metrics: Vec<ListEntry>,
) -> Result<(Vec<ListEntry>, Vec<String>), String> {
    let kinds: Vec<EntryKind> = what.iter().filter_map(kind_named).collect();
    let patterns: Vec<&String> = what.iter().filter(|word| kind_named(word).is_none()).collect();
    let mut notes = Vec::new();
    let mut all = generalized(is_there);
    if (what.is_empty() || kinds.iter().any(|kind| is_of_counters(*kind)))
        && !all.iter().any(|entry| is_of_counters(entry.kind))
    {
        notes.push(NO_COUNTERS.to_owned());
    }
    all.extend(sources.pmus().iter().flat_map(of_pmu));
    all.extend(of_tables(sources.pmus()));
    if what.is_empty()
        || kinds.contains(&EntryKind::Tracepoint)
        || patterns.iter().any(|pattern| glob::is_pattern(pattern) || pattern.contains(':'))
    {
        all.extend(tracepoints(sources, &patterns, &mut notes));
    }
    let wants_metrics =
        kinds.contains(&EntryKind::Metric) || kinds.contains(&EntryKind::MetricGroup);
    if metrics.is_empty() && wants_metrics {
        notes.push(NO_TABLES.to_owned());
    }
    all.extend(metrics);
    let found = all.iter().filter(|entry| {
        what.is_empty()
            || kinds.contains(&entry.kind)
            || patterns.iter().any(|pattern| entry.is_called(pattern))
    });
    let found: Vec<ListEntry> = found.cloned().collect();
    match (found.is_empty(), what) {
        (false, _) => Ok((found, notes)),
        (true, [word]) if patterns.len() == 1 => {
            let near = did_you_mean(word, all.iter().map(|entry| &entry.name[..]));
            Err(notes
                .into_iter()
                .fold(format!("this machine has no event named '{word}'{near}"), |all, note| {
                    format!("{all} ({note})")
                }))
        }
        (true, _) if !notes.is_empty() => Err(notes.join("; ")),
        (true, _) => Err(format!("this machine has no such events: {}", what.join(" "))),
    }
}

fn is_of_counters(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Hardware | EntryKind::Cache)
}

fn kind_named(word: &String) -> Option<EntryKind> {
    KINDS.iter().find(|(name, _)| name == word).map(|(_, kind)| *kind)
}

/// Returns the events that have the same names on all machines.
fn generalized(is_there: &dyn Fn(&KnownEvent) -> bool) -> Vec<ListEntry> {
    let mut entries = Vec::new();
    for event in known().into_iter().filter(|event| is_there(event)) {
        let kind = match event.kind {
            EventType::SOFTWARE => EntryKind::Software,
            EventType::HARDWARE => EntryKind::Hardware,
            _ => EntryKind::Cache,
        };
        let mut names = event.names.into_iter();
        if let Some(name) = names.next() {
            entries.push(ListEntry { aliases: names.collect(), ..ListEntry::new(name, kind) });
        }
    }
    entries
}

/// Returns whether the kernel supports the event, even if this user may not count it.
pub(super) fn is_there<K: Kernel>(kernel: &K, event: &KnownEvent) -> bool {
    let flags = AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
    let attr =
        Attr { size: ATTR_SIZE, kind: event.kind, config: event.config, flags, ..Attr::default() };
    let here = Place { thread: Some(0), cpu: None, cgroup: None };
    match kernel.open(&attr, here, None) {
        Ok(_) => true,
        Err(errno) => {
            matches!(errno, Errno::ACCESS | Errno::PERM | Errno::BUSY | Errno::MFILE | Errno::NFILE)
        }
    }
}

/// Returns a PMU's named events, and an entry with the terms for all others.
fn of_pmu(pmu: &Pmu) -> Vec<ListEntry> {
    let mut entries: Vec<ListEntry> = pmu
        .aliases()
        .into_iter()
        .filter_map(|name| {
            let alias = pmu.alias(&name)?;
            let full = format!("{}/{name}/", pmu.name);
            Some(ListEntry {
                terms: Some(alias.terms),
                unit: alias.unit,
                ..ListEntry::new(full, EntryKind::Pmu)
            })
        })
        .collect();
    let own = probe_terms(&pmu.name).iter().map(|term| format!("{term}="));
    let formats = pmu.formats().into_iter().filter_map(|term| {
        let format = pmu.format(&term).ok()??;
        Some(if format.is_flag() { term } else { format!("{term}=0..{:#x}", format.most()) })
    });
    let sinks = pmu.sinks().into_iter().map(|sink| format!("@{sink}"));
    let terms: Vec<String> = own.chain(formats).chain(sinks).collect();
    if pmu.name == "breakpoint" {
        entries.push(ListEntry::new("mem:ADDRESS[/LENGTH][:rwx]".to_owned(), EntryKind::Pmu));
    }
    if !terms.is_empty() {
        let form = ListEntry::new(format!("{}/TERMS/", pmu.name), EntryKind::Pmu);
        entries.push(ListEntry { terms: Some(terms.join(",")), ..form });
    }
    entries
}

/// The named events of tables. Those of PMUs that are the same but for their number are there once,
/// under the name that means all of them.
fn of_tables(pmus: &[Pmu]) -> Vec<ListEntry> {
    let mut entries: Vec<ListEntry> = Vec::new();
    let mut stem = "";
    for pmu in pmus {
        let own = if pmu.core { &pmu.name } else { pmu.numbered().0 };
        if own == std::mem::replace(&mut stem, own) {
            continue;
        }
        entries.extend(pmu.table().map(|(name, event)| {
            let (terms, unit) = (Some(event.terms.clone()), event.unit.clone());
            let description = event.description.clone().or_else(|| Some(String::new()));
            ListEntry {
                terms,
                unit,
                description,
                ..ListEntry::new(format!("{own}/{name}/"), EntryKind::Pmu)
            }
        }));
    }
    entries
}

/// Returns all tracepoints, with the fields of those requested by full name.
fn tracepoints(
    sources: &EventSources,
    patterns: &[&String],
    notes: &mut Vec<String>,
) -> Vec<ListEntry> {
    let Some(tracefs) = sources.tracefs() else {
        notes.push(crate::machine::tracepoint::NOT_MOUNTED.to_owned());
        return Vec::new();
    };
    let systems = match tracefs.systems() {
        Ok(systems) => systems,
        Err(Unreadable::Forbidden) => {
            notes.push(format!(
                "no tracepoints: this user may not read {}; be root",
                tracefs.root().display()
            ));
            return Vec::new();
        }
        Err(Unreadable::Absent) => return Vec::new(),
    };
    // perf_event_open(2) refuses ftrace's own events.
    let systems = systems.into_iter().filter(|system| system != "ftrace");
    systems
        .flat_map(|system| {
            let names = tracefs.names(&system).unwrap_or_default();
            names.into_iter().map(move |name| (system.clone(), name))
        })
        .map(|(system, name)| {
            let full = format!("{system}:{name}");
            let fields = if patterns.contains(&&full) {
                tracefs.fields(&system, &name)
            } else {
                Ok(Vec::new())
            };
            let fields = fields
                .unwrap_or_default()
                .into_iter()
                .map(|field| (field.name, field.kind))
                .collect();
            ListEntry { fields, ..ListEntry::new(full, EntryKind::Tracepoint) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::sysfs::{CORE, machine};

    fn listed(
        what: &[&str],
        is_there: &dyn Fn(&KnownEvent) -> bool,
    ) -> Result<(Vec<String>, Vec<String>), String> {
        let dir = machine(CORE);
        let sources = EventSources::new(&dir.path().join("sys"), Some(dir.path().join("tracing")));
        let what: Vec<_> = what.iter().map(|word| (*word).to_owned()).collect();
        find(&what, &sources, is_there, Vec::new())
            .map(|(entries, notes)| (entries.into_iter().map(|e| e.name).collect(), notes))
    }

    fn names(what: &[&str]) -> Vec<String> {
        listed(what, &|_| true).unwrap().0
    }

    #[test]
    fn by_kind_and_by_pattern() {
        assert!(names(&["sw"]).contains(&"page-faults".to_owned()));
        assert!(!names(&["sw"]).contains(&"cycles".to_owned()));
        assert_eq!(names(&["hw"]).len(), 10);
        assert!(names(&["cache"]).contains(&"L1-dcache-prefetch-misses".to_owned()));
        assert_eq!(
            names(&["tracepoint"]),
            ["irq:softirq_entry", "sched:sched_switch", "sched:sched_wakeup"]
        );
        assert_eq!(names(&["sched:*wit*"]), ["sched:sched_switch"]);
        assert_eq!(
            names(&["*-fault*"]),
            ["page-faults", "minor-faults", "major-faults", "alignment-faults", "emulation-faults"]
        );
        assert_eq!(names(&["mem-loads", "faults"]), ["page-faults", "cpu/mem-loads/"]);
        assert!(names(&["pmu"]).contains(&"uprobe/TERMS/".to_owned()));
        assert_eq!(
            listed(&["shced:*"], &|_| true).unwrap_err(),
            "this machine has no event named 'shced:*'"
        );
        assert!(
            listed(&["page-fault"], &|_| true)
                .unwrap_err()
                .ends_with("did you mean 'page-faults'?")
        );
    }

    #[test]
    fn what_the_machine_has_not_is_left_out() {
        let software = |event: &KnownEvent| event.kind == EventType::SOFTWARE;
        let (names, notes) = listed(&[], &software).unwrap();
        assert!(
            names.contains(&"cpu-clock".to_owned()) && !names.contains(&"cpu-cycles".to_owned())
        );
        assert!(notes[0].contains("no hardware or cache events"));
        assert!(listed(&["hw"], &software).unwrap_err().contains("no hardware"));
    }

    #[test]
    fn what_a_pmu_s_events_stand_for() {
        let dir = machine(CORE);
        let sources = EventSources::new(&dir.path().join("sys"), Some(dir.path().join("tracing")));
        let find = |name: &str| {
            find(&[name.to_owned()], &sources, &|_| true, Vec::new()).unwrap().0.remove(0)
        };
        assert_eq!(find("cas").unit.as_deref(), Some("MiB"));
        assert_eq!(
            find("cpu/TERMS/").terms.as_deref(),
            Some("event=0..0xfff,inv,ldlat=0..0xffff,umask=0..0xff")
        );
        assert_eq!(
            find("uprobe/TERMS/").terms.as_deref(),
            Some("path=,offset=,func=,ret=,retprobe")
        );
        let fields = find("sched:sched_switch").fields;
        assert_eq!(fields, [("prev_comm".to_owned(), "char[16]".to_owned())]);
    }

    #[test]
    fn names_in_tables_with_descriptions() {
        let (dir, tables) = (machine(CORE), tempfile::tempdir().unwrap());
        std::fs::create_dir(tables.path().join("model")).unwrap();
        let write =
            |path: &str, text: &str| std::fs::write(tables.path().join(path), text).unwrap();
        write("mapfile.csv", "Family-model,Version,Filename,EventType\nTest-6-1,v1,model,core\n");
        write(
            "model/all.json",
            r#"[{"EventName": "OPS.DONE", "EventCode": "0xC0", "BriefDescription": "Done operations."},
                {"EventName": "READS", "EventCode": "0x4", "Unit": "iMC"}]"#,
        );
        let sources = EventSources::new(&dir.path().join("sys"), None)
            .with_tables(tables.path(), Some("Test-6-1"));
        let sources = sources.unwrap();
        let find =
            |name: &str| find(&[name.to_owned()], &sources, &|_| true, Vec::new()).unwrap().0;
        let [ops] = &find("OPS.*")[..] else { panic!("one event") };
        assert_eq!((&ops.name[..], ops.terms.as_deref()), ("cpu/ops.done/", Some("event=0xc0")));
        assert_eq!(ops.description.as_deref(), Some("Done operations"));
        let reads: Vec<_> = find("reads").into_iter().map(|entry| entry.name).collect();
        assert_eq!(reads, ["uncore_imc/reads/"], "once for all that are the same");
    }
}
