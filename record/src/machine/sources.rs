//! What the machine says of its events: PMUs and tracepoints, looked up when a spec first asks for them.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::machine::event_tables::EventTables;
use crate::machine::pmu::{self, Pmu};
use crate::machine::tracepoint::Tracefs;

/// The machine's PMUs and tracepoints.
#[derive(Clone, Debug)]
pub struct EventSources {
    sys: PathBuf,
    kallsyms: PathBuf,
    pmus: OnceCell<Vec<Pmu>>,
    tracefs: Option<Tracefs>,
    tables: Vec<String>,
}

impl EventSources {
    /// The sources of a machine with this sysfs and, if it is mounted, this tracefs.
    #[must_use]
    pub fn new(sys: &Path, tracefs: Option<PathBuf>) -> Self {
        let kallsyms = "/proc/kallsyms".into();
        let tracefs = tracefs.map(Tracefs::at);
        Self { sys: sys.to_owned(), kallsyms, pmus: OnceCell::new(), tracefs, tables: Vec::new() }
    }

    /// The same with the named events of perf's tables in `dir`. `cpuid`: the CPU, where its cores do not say which it is.
    ///
    /// # Errors
    /// In words, why there is no table for this machine.
    pub fn with_tables(self, dir: &Path, cpuid: Option<&str>) -> Result<Self, String> {
        let mut pmus = pmu::all(&self.sys);
        let tables = EventTables::open(dir)?.name_events(&mut pmus, cpuid, &self.sys)?;
        Ok(Self { pmus: OnceCell::from(pmus), tables, ..self })
    }

    /// The tables that the names of the CPU's own events are from.
    #[must_use]
    pub fn tables(&self) -> &[String] {
        &self.tables
    }

    /// The PMUs, by name.
    #[must_use]
    pub fn pmus(&self) -> &[Pmu] {
        self.pmus.get_or_init(|| pmu::all(&self.sys))
    }

    /// The PMUs of the cores, where cores of several kinds each have their own.
    pub fn hybrid(&self) -> impl Iterator<Item = &Pmu> {
        let several = self.pmus().iter().filter(|pmu| pmu.core).count() > 1;
        self.pmus().iter().filter(move |pmu| several && pmu.core)
    }

    /// The tracefs, where it is mounted.
    #[must_use]
    pub fn tracefs(&self) -> Option<&Tracefs> {
        self.tracefs.as_ref()
    }

    /// The kernel's symbols.
    #[must_use]
    pub fn kallsyms(&self) -> &Path {
        &self.kallsyms
    }
}
