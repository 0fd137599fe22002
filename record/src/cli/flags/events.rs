//! `rec --help`, Events: which events, and how often they are sampled.

use std::path::PathBuf;

use clap::{ArgAction, ArgMatches, Args};

use crate::cli::{selection, values};
use crate::event::sampling::Rate;
use crate::machine::Machine;
use crate::plan::config::Config;

/// Flags of events.
#[derive(Debug, Args)]
#[command(next_help_heading = "Events")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(in crate::cli) struct EventFlags {
    /// Events to sample, comma-separated; may be repeated [default: cycles:P, or cpu-clock]
    #[arg(short, long, value_name = "EVENTS", action = ArgAction::Append)]
    pub(in crate::cli) event: Vec<String>,
    /// Read names of this CPU's events from perf's tables in DIR (tools/perf/pmu-events/arch of the
    /// Linux source)
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) event_tables: Option<PathBuf>,
    /// Record only what matches FILTER, of the preceding -e's tracepoints or tracing PMUs (address
    /// filters)
    #[arg(long, value_name = "FILTER", action = ArgAction::Append)]
    filter: Vec<String>,
    /// Do not record rec itself, of the preceding -e's tracepoints
    #[arg(long, action = ArgAction::Count)]
    exclude_perf: u8,
    /// Count the preceding events in these cgroups only (with -a or -C): one name per event, or one
    /// for all
    #[arg(short = 'G', long, value_name = "NAMES", action = ArgAction::Append)]
    cgroup: Vec<String>,
    /// Sample HZ times per second, or 'max' for the kernel's limit [default: 4000; 999
    /// where stacks are copied to be unwound (-g)]
    #[arg(short = 'F', long, value_name = "HZ", conflicts_with = "count", value_parser = hertz)]
    freq: Option<Rate>,
    /// Take one sample every N events
    #[arg(short, long, value_name = "N", value_parser = period)]
    count: Option<Rate>,
    /// Fail if the requested frequency is above the kernel's limit, instead of lowering it
    #[arg(long)]
    strict_freq: bool,
    /// Show where threads wait: also sample each context switch, with its callchain; implies
    /// --call-graph fp and --switch-events
    #[arg(long, conflicts_with = "no_samples")]
    off_cpu: bool,
    /// Show who ended each wait, too: --off-cpu, and each wake of a recorded thread, with the
    /// waker's callchain; needs CAP_PERFMON and a readable tracefs
    #[arg(long, conflicts_with = "no_samples")]
    waits: bool,
    /// Count in the kernel only, overriding event modifiers
    #[arg(long, conflicts_with = "all_user")]
    all_kernel: bool,
    /// Count in user space only, overriding event modifiers
    #[arg(long)]
    all_user: bool,
}

impl EventFlags {
    /// Sets the events; `chosen` are lists in place of those of `-e`.
    pub(super) fn configure(
        self,
        config: &mut Config,
        matches: &ArgMatches,
        chosen: Option<Vec<String>>,
        machine: &Machine,
    ) -> Result<(), String> {
        let sources = selection::sources(machine, self.event_tables.as_deref())?;
        (config.events, config.cgroups) = selection::read(matches, chosen, &sources)?;
        config.rate = self.freq.or(self.count).unwrap_or_default();
        config.strict_freq = self.strict_freq;
        config.off_cpu = self.off_cpu || self.waits;
        config.waits = self.waits;
        config.only = values::restriction(self.all_kernel, self.all_user);
        Ok(())
    }
}

fn hertz(text: &str) -> Result<Rate, String> {
    if text.eq_ignore_ascii_case("max") {
        return Ok(Rate::Max);
    }
    values::positive(text)
        .map(Rate::Hz)
        .ok_or_else(|| format!("'{text}' is not a number of samples per second, or 'max'"))
}

fn period(text: &str) -> Result<Rate, String> {
    values::positive(text)
        .map(Rate::Period)
        .ok_or_else(|| format!("'{text}' is not a number of events"))
}
