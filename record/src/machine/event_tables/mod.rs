//! Names of a CPU's own events, and its metrics, from perf's tables (`tools/perf/pmu-events/arch`) in a directory
//! that the user has (`--event-tables`).
//!
//! ```text
//!  arch/x86/mapfile.csv          GenuineIntel-6-55-[01234],v1.35,skylakex,core         cpuid: which folder is for this CPU
//!  arch/x86/skylakex/*.json      [{"EventName": …, "EventCode": "0xC0", "UMask": "0x1", …}]     entry: an event's terms
//!  arch/arm64/*.json             events that several CPUs have, by their ArchStdEvent
//!  arch/arm64/arm/cmn/sys/*.json events of devices, by the identifier that they have in sysfs (Compat)
//! ```
//!
//! Each event becomes a named event of the PMU that counts it, as if sysfs had it:
//! `event=0xc0,umask=0x1,period=2000003`. Entries with a `MetricExpr` are metrics.

pub(crate) mod cpuid;
mod entry;
mod metrics;
mod unit;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::pmu::Pmu;
use crate::messages::error::why_words;
use entry::{EventEntry, Standard, TableEvent};
use metrics::PlacedMetric;
pub(crate) use metrics::{Grouping, MetricEntry, Parts};

const MAPFILE: &str = "mapfile.csv";
/// Origin of the tables, for those who gave another directory.
const ORIGIN: &str = "perf's tables are in tools/perf/pmu-events/arch of the source of Linux, or \
                      of perf alone (kernel.org/pub/linux/kernel/tools/perf)";

/// Tables for the CPUs of one architecture or of several.
#[derive(Clone, Debug)]
pub(crate) struct EventTables {
    dir: PathBuf,
    architectures: Vec<Architecture>,
}

/// The tables for the CPUs of an architecture.
#[derive(Clone, Debug)]
struct Architecture {
    dir: PathBuf,
    /// Patterns of CPUIDs, and the folder for each, by decreasing priority.
    models: Vec<(String, String)>,
}

/// The tables of this machine's CPUs.
#[derive(Debug)]
pub(crate) struct NamedTables {
    /// Names of those that were used.
    pub(crate) used: Vec<String>,
    pub(crate) metrics: Vec<MetricEntry>,
}

/// The table of a model.
#[derive(Default)]
struct ModelTable {
    events: Vec<TableEvent>,
    metrics: Vec<PlacedMetric>,
    /// PMUs that it is for.
    pmus: Vec<usize>,
}

impl EventTables {
    /// Opens the tables: the directory of an architecture, or one with directories of
    /// architectures, or the one above it.
    pub(crate) fn open(dir: &Path) -> Result<Self, String> {
        let mut architectures = Vec::new();
        for dir in
            [dir.to_owned()].into_iter().chain(folders(dir)).chain(folders(&dir.join("arch")))
        {
            if let Some(models) = mapfile(&dir.join(MAPFILE))? {
                architectures.push(Architecture { dir, models });
            }
        }
        if architectures.is_empty() {
            return Err(format!(
                "there is no {MAPFILE} in {} or in a folder of it; {ORIGIN}",
                dir.display()
            ));
        }
        Ok(Self { dir: dir.to_owned(), architectures })
    }

    /// Gives the PMUs the names of their events. `cpuid`: the CPU, where it is not each core that
    /// says what it is (Arm). Returns the tables that were used, and their metrics.
    pub(crate) fn name_events(
        &self,
        pmus: &mut [Pmu],
        cpuid: Option<&str>,
        sysfs: &Path,
    ) -> Result<NamedTables, String> {
        let mut tables: BTreeMap<PathBuf, ModelTable> = BTreeMap::new();
        let (mut unknown, mut used) = (Vec::new(), Vec::new());
        for (index, pmu) in pmus.iter_mut().enumerate() {
            let Some(id) = cpuid.map(str::to_owned).or_else(|| {
                cpuid::of_core(
                    sysfs,
                    pmu.cpus.as_ref().and_then(|cpus| cpus.first()).copied().unwrap_or(0),
                )
            }) else {
                continue;
            };
            let Some((architecture, model)) = self.model(&id) else {
                unknown.push(id);
                continue;
            };
            let path = architecture.dir.join(model);
            let table = match tables.entry(path.clone()) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(new) => {
                    new.insert(architecture.read(&path)?)
                }
            };
            table.pmus.push(index);
            let of_pmu =
                table.events.iter().filter(|event| event.is_of(pmu)).cloned().collect::<Vec<_>>();
            if !of_pmu.is_empty() {
                used.push(format!("{model} for CPU {id}"));
            }
            for event in of_pmu {
                pmu.name(event.name, event.alias);
            }
        }
        used.sort_unstable();
        used.dedup();
        match (used.is_empty(), unknown.first(), tables.is_empty()) {
            (false, ..) => Ok(NamedTables { used, metrics: metrics(tables.values(), pmus) }),
            (true, Some(id), _) => Err(format!(
                "{} has no table for this machine's CPU, {id} (as {MAPFILE} spells CPUs); those \
                 of a newer perf may have one",
                self.dir.display()
            )),
            (true, None, true) => {
                Err("this machine does not tell which CPU it has, so that its table cannot be \
                     chosen"
                    .to_owned())
            }
            (true, None, false) => Err(
                "the table of this machine's CPU is there, but the machine has no PMU that could \
                 count its events: the kernel has no driver for it, or the hypervisor does not \
                 pass it to this virtual machine"
                    .to_owned(),
            ),
        }
    }

    /// The architecture and the folder for a CPU.
    fn model(&self, id: &str) -> Option<(&Architecture, &str)> {
        self.architectures.iter().find_map(|architecture| {
            let mut models = architecture.models.iter();
            models
                .find(|(pattern, _)| cpuid::is_meant_by(id, pattern))
                .map(|(_, model)| (architecture, &model[..]))
        })
    }
}

impl Architecture {
    /// The events and metrics of a model, and of devices that can be beside it.
    fn read(&self, model: &Path) -> Result<ModelTable, String> {
        let mut standard = Standard::new();
        for file in json_files(&self.dir) {
            standard.extend(entries(&file)?.into_iter().filter_map(EventEntry::standard));
        }
        let mut files = json_files(model);
        if files.is_empty() {
            return Err(format!(
                "there are no tables (*.json) in {}, which {MAPFILE} names",
                model.display()
            ));
        }
        devices(&self.dir, 3, &mut files);
        let mut table = ModelTable::default();
        for file in files {
            for entry in entries(&file)? {
                table.events.extend(entry.event(&standard).map_err(|why| in_file(&file, &why))?);
                table.metrics.extend(entry.metric(&standard).map_err(|why| in_file(&file, &why))?);
            }
        }
        Ok(table)
    }
}

/// Returns the metrics that are for PMUs of this machine, each once.
fn metrics<'a>(tables: impl Iterator<Item = &'a ModelTable>, pmus: &[Pmu]) -> Vec<MetricEntry> {
    let cores = pmus.iter().filter(|pmu| pmu.core).count();
    let mut found = Vec::new();
    let mut known: BTreeSet<(String, Option<String>)> = BTreeSet::new();
    for table in tables {
        for PlacedMetric { unit, metric } in &table.metrics {
            let own: Vec<&Pmu> = table.pmus.iter().filter_map(|index| pmus.get(*index)).collect();
            let of = own.iter().filter(|pmu| unit.has(pmu));
            let of_cores: Vec<&str> =
                of.clone().filter(|pmu| pmu.core).map(|pmu| &pmu.name[..]).collect();
            let is_for_any = unit.is_of_cores() && of_cores.len() == cores;
            let kinds: Vec<Option<&str>> = match of_cores.is_empty() {
                _ if is_for_any => vec![None],
                true => of.take(1).map(|_| None).collect(),
                false => of_cores.into_iter().map(Some).collect(),
            };
            for kind in kinds {
                let pmu = kind.map(str::to_owned);
                if known.insert((metric.name.clone(), pmu.clone())) {
                    found.push(MetricEntry { pmu, ..metric.clone() });
                }
            }
        }
    }
    found
}

/// Adds the tables of devices: those in folders that are called `sys`, at most so deep.
fn devices(dir: &Path, depth: u32, files: &mut Vec<PathBuf>) {
    for folder in folders(dir) {
        if folder.ends_with("sys") {
            files.extend(json_files(&folder));
        } else if depth > 1 {
            devices(&folder, depth - 1, files);
        }
    }
}

fn entries(file: &Path) -> Result<Vec<EventEntry>, String> {
    let text = fs::read(file).map_err(|e| in_file(file, &why_words(&e)))?;
    serde_json::from_slice(&text)
        .map_err(|e| in_file(file, &format!("this is no table of events: {e}")))
}

fn in_file(file: &Path, why: &str) -> String {
    format!("{}: {why}", file.display())
}

/// Reads which CPU has which folder; none: there is no such file.
fn mapfile(path: &Path) -> Result<Option<Vec<(String, String)>>, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {}", path.display(), why_words(&error))),
    };
    let rows = text.lines().skip(1).filter(|line| !line.starts_with('#'));
    Ok(Some(
        rows.filter_map(|line| {
            let mut cells = line.split(',');
            Some((cells.next()?.to_owned(), cells.nth(1)?.trim().to_owned()))
        })
        .collect(),
    ))
}

/// The tables in a directory, by name. `metricgroups.json` only describes.
fn json_files(dir: &Path) -> Vec<PathBuf> {
    paths(dir)
        .into_iter()
        .filter(|path| {
            path.extension().is_some_and(|end| end == "json")
                && !path.ends_with("metricgroups.json")
                && path.is_file()
        })
        .collect()
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    paths(dir).into_iter().filter(|path| path.is_dir()).collect()
}

fn paths(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

#[cfg(test)]
mod tests;
