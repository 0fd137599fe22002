//! What the machine says of its events: PMUs and tracepoints, looked up when a spec first asks for them.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::machine::pmu::{self, Pmu};
use crate::machine::tracepoint::Tracefs;

/// The machine's PMUs and tracepoints.
#[derive(Clone, Debug)]
pub struct EventSources {
    sys: PathBuf,
    kallsyms: PathBuf,
    pmus: OnceCell<Vec<Pmu>>,
    tracefs: Option<Tracefs>,
}

impl EventSources {
    /// The sources of a machine with this sysfs and, if it is mounted, this tracefs.
    #[must_use]
    pub fn new(sys: &Path, tracefs: Option<PathBuf>) -> Self {
        let kallsyms = "/proc/kallsyms".into();
        Self { sys: sys.to_owned(), kallsyms, pmus: OnceCell::new(), tracefs: tracefs.map(Tracefs::at) }
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
