//! Filters of samples, which are options of all commands that read samples.

use std::collections::HashSet;

use super::itrace::Itrace;
use super::lists::Names;
use super::times::Times;
use super::warning::Warning;

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
    /// Samples that are made of the traces of processors.
    pub itrace: Itrace,
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
    /// Numbers of threads that ran.
    pub parallelism: Option<HashSet<u32>>,
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

    /// Returns whether a filter leaves out parts of what a thread did.
    pub(crate) fn leave_out_parts(&self) -> bool {
        let SampleFilters { cpus, times, dsos, .. } = &self.samples;
        let by_cpu = cpus.is_some() || self.socket.is_some();
        by_cpu || times.is_some() || dsos.is_some() || self.by_symbol()
    }

    /// Returns a warning for each name that no event of the inputs has.
    pub(crate) fn unknown_events(&self, events: &[&str]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for wanted in self.events.iter().flatten() {
            if !events.is_empty() && !events.iter().any(|event| is_named(event, wanted)) {
                let events = events.join(", ");
                let message =
                    format!("--event: no event is named `{wanted}`; events of the input: {events}");
                warnings.push(Warning::new("unknown-event", message));
            }
        }
        warnings
    }

    /// Returns whether a filter needs the threads of samples.
    pub(crate) fn by_task(&self) -> bool {
        self.samples.pids.is_some() || self.samples.tids.is_some() || self.samples.comms.is_some()
    }
}

/// Returns whether an event is the one that a user named, with or without its modifiers.
pub(crate) fn is_named(event: &str, wanted: &str) -> bool {
    event == wanted || event.split_once(':').is_some_and(|(bare, _)| bare == wanted)
}
