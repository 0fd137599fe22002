//! Filters of samples, which are options of all commands that read samples.

use std::collections::HashSet;

use clap::Args;

use super::lists::{Names, cpus, functions, names, numbers};
use super::times::Times;

/// Filters that commands have which print samples as well as those which count them.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Filters")]
pub struct SampleFilters {
    // Samples outside do not count in totals either.
    /// Only samples in these time ranges, such as 10%-20% or 12.5,13 (seconds)
    ///
    /// Either pairs START,END in seconds, like the times in `rep script`, with spaces between
    /// pairs; or comma-separated parts of the recording: 0%-10% or 10%/1 is the first tenth, 10%/2
    /// the second
    #[arg(long = "time", value_name = "TIMES", value_parser = Times::parse)]
    pub times: Option<Times>,

    /// Only threads with these names
    #[arg(
        short = 'c', long, visible_alias = "comm", value_name = "NAME[,NAME…]",
        value_parser = names::<HashSet<String>>
    )]
    pub comms: Option<HashSet<String>>,

    /// Only modules (shared objects) with these names or paths
    #[arg(
        short = 'd', long, visible_alias = "dso", value_name = "DSO[,DSO…]",
        value_parser = names::<HashSet<String>>
    )]
    pub dsos: Option<HashSet<String>>,

    /// Only these processes
    #[arg(
        long = "pid", value_name = "PID[,PID…]", value_parser = |list: &str| numbers("--pid", list)
    )]
    pub pids: Option<HashSet<i32>>,

    /// Only these threads
    #[arg(
        long = "tid", value_name = "TID[,TID…]", value_parser = |list: &str| numbers("--tid", list)
    )]
    pub tids: Option<HashSet<i32>>,

    // Samples on others do not count in totals either.
    /// Only these CPUs, such as 0,2-4
    #[arg(short = 'C', long = "cpu", value_name = "CPU[,CPU…]", value_parser = cpus)]
    pub cpus: Option<HashSet<u32>>,
}

/// Filters of the samples that make rows. As in perf, other samples still count in the event's
/// totals, unless noted.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Filters")]
pub struct Filters {
    /// Those that all commands have.
    #[command(flatten)]
    pub samples: SampleFilters,

    // With or without modifiers; others do not count in totals either.
    /// Only samples of these events
    #[arg(long = "event", value_name = "EVENT[,EVENT…]", value_parser = names::<Names>)]
    pub events: Option<Names>,

    /// Only functions with these names
    ///
    /// A name is short (`f`), whole (`f(int)`) or mangled (`_Z1fi`)
    #[arg(
        short = 'S', long, visible_alias = "symbol", value_name = "NAME[,NAME…]",
        value_parser = functions
    )]
    pub symbols: Option<HashSet<String>>,

    /// Only functions whose names contain TEXT
    #[arg(long = "symbol-filter", value_name = "TEXT")]
    pub symbol_part: Option<String>,

    /// Only CPUs of this socket
    #[arg(long = "socket-filter", value_name = "SOCKET")]
    pub socket: Option<u32>,

    /// Only samples with a known function; others do not count in totals either.
    #[arg(skip)]
    pub resolved: bool,
}

impl Filters {
    /// Returns whether a filter needs the functions of samples.
    pub fn by_symbol(&self) -> bool {
        self.symbols.is_some() || self.symbol_part.is_some() || self.resolved
    }

    /// Returns whether a filter needs the threads of samples.
    pub fn by_task(&self) -> bool {
        self.samples.pids.is_some() || self.samples.tids.is_some() || self.samples.comms.is_some()
    }
}
