//! Filters of samples, which are options of all commands that read samples.

use std::collections::HashSet;

use super::lists::Names;
use super::times::Times;

/// Filters that commands have which print samples as well as those which count them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SampleFilters {
    /// Times; samples outside do not count in totals either.
    pub times: Option<Times>,
    /// Names of threads.
    pub comms: Option<HashSet<String>>,
    /// Names or paths of modules.
    pub dsos: Option<HashSet<String>>,
    /// Processes.
    pub pids: Option<HashSet<i32>>,
    /// Threads.
    pub tids: Option<HashSet<i32>>,
    /// CPUs; samples on others do not count in totals either.
    pub cpus: Option<HashSet<u32>>,
}

/// Filters of the samples that make rows. As in perf, other samples still count in the event's
/// totals, unless noted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filters {
    /// Those that all commands have.
    pub samples: SampleFilters,
    /// Events with or without modifiers; others do not count in totals either.
    pub events: Option<Names>,
    /// Short, whole or mangled names of functions.
    pub symbols: Option<HashSet<String>>,
    /// Text that names of functions contain.
    pub symbol_part: Option<String>,
    /// Socket of the CPUs.
    pub socket: Option<u32>,
    /// Only samples with a known function; others do not count in totals either.
    pub resolved: bool,
}

impl Filters {
    /// Returns whether a filter needs the functions of samples.
    pub(crate) fn by_symbol(&self) -> bool {
        self.symbols.is_some() || self.symbol_part.is_some() || self.resolved
    }

    /// Returns whether a filter needs the threads of samples.
    pub(crate) fn by_task(&self) -> bool {
        self.samples.pids.is_some() || self.samples.tids.is_some() || self.samples.comms.is_some()
    }
}
