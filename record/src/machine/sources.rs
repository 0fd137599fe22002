//! Sources of events: the machine's PMUs and tracepoints, read when a spec first needs them.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::machine::event_tables::{EventTables, MetricEntry, NamedTables};
use crate::machine::pmu::{self, Pmu};
use crate::machine::tracepoint::Tracefs;

/// The machine's PMUs and tracepoints.
#[derive(Clone, Debug)]
pub(crate) struct EventSources {
    sys: PathBuf,
    kallsyms: PathBuf,
    pmus: OnceCell<Vec<Pmu>>,
    tracefs: Option<Tracefs>,
    tables: Vec<String>,
    metrics: Vec<MetricEntry>,
}

impl EventSources {
    /// Creates the sources of a machine with this sysfs and, if mounted, this tracefs.
    pub(crate) fn new(sys: &Path, tracefs: Option<PathBuf>) -> Self {
        let kallsyms = "/proc/kallsyms".into();
        let tracefs = tracefs.map(Tracefs::at);
        Self {
            sys: sys.to_owned(),
            kallsyms,
            pmus: OnceCell::new(),
            tracefs,
            tables: Vec::new(),
            metrics: Vec::new(),
        }
    }

    /// Creates the sources of a machine whose PMUs do not matter, as all its cores are alike: for
    /// generalized events, without a look at many files.
    pub(crate) fn of_like_cores(sys: &Path) -> Self {
        Self { pmus: OnceCell::from(Vec::new()), ..Self::new(sys, None) }
    }

    /// Adds the named events of perf's tables in `dir`. `cpuid` is the CPU, if its cores do not say
    /// so in sysfs.
    pub(crate) fn with_tables(self, dir: &Path, cpuid: Option<&str>) -> Result<Self, String> {
        let mut pmus = pmu::all(&self.sys);
        let named = EventTables::open(dir)?.name_events(&mut pmus, cpuid, &self.sys)?;
        let NamedTables { used, metrics } = named;
        Ok(Self { pmus: OnceCell::from(pmus), tables: used, metrics, ..self })
    }

    /// The tables that the names of the CPU's own events are from.
    pub(crate) fn tables(&self) -> &[String] {
        &self.tables
    }

    /// Returns the metrics of the tables.
    pub(crate) fn metrics(&self) -> &[MetricEntry] {
        &self.metrics
    }

    /// Returns the PMUs, sorted by name.
    pub(crate) fn pmus(&self) -> &[Pmu] {
        self.pmus.get_or_init(|| pmu::all(&self.sys))
    }

    /// Returns the PMUs of the cores of a hybrid machine; none on other machines.
    pub(crate) fn hybrid(&self) -> impl Iterator<Item = &Pmu> {
        let several = self.pmus().iter().filter(|pmu| pmu.core).count() > 1;
        self.pmus().iter().filter(move |pmu| several && pmu.core)
    }

    /// Returns the tracefs, if mounted.
    pub(crate) fn tracefs(&self) -> Option<&Tracefs> {
        self.tracefs.as_ref()
    }

    /// Returns the path of the kernel's symbols.
    pub(crate) fn kallsyms(&self) -> &Path {
        &self.kallsyms
    }
}
