//! Arguments of filters.

use std::collections::HashSet;

use clap::Args;

use crate::query::lists::{Names, cpus, functions, names, numbers, ranges};
use crate::query::{Filters, Itrace, SampleFilters, Times};

/// Filters by time, task and CPU.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct TaskFilterArgs {
    /// Only samples in these time ranges, such as 10%-20% or 12.5,13 (seconds)
    ///
    /// Either pairs START,END in seconds, like the times in `rep script`, with spaces between
    /// pairs; or comma-separated parts of the recording: 0%-10% or 10%/1 is the first tenth, 10%/2
    /// the second
    #[arg(long = "time", value_name = "TIMES", value_parser = Times::parse)]
    times: Option<Times>,

    /// Only threads with these names
    #[arg(
        short = 'c', long, visible_alias = "comm", value_name = "NAME[,NAME…]",
        value_parser = names::<HashSet<String>>
    )]
    comms: Option<HashSet<String>>,

    /// Only these processes
    #[arg(
        long = "pid", value_name = "PID[,PID…]", value_parser = |list: &str| numbers("--pid", list)
    )]
    pids: Option<HashSet<i32>>,

    /// Only these threads
    #[arg(
        long = "tid", value_name = "TID[,TID…]", value_parser = |list: &str| numbers("--tid", list)
    )]
    tids: Option<HashSet<i32>>,

    /// Only these CPUs, such as 0,2-4
    #[arg(short = 'C', long = "cpu", value_name = "CPU[,CPU…]", value_parser = cpus)]
    cpus: Option<HashSet<u32>>,
}

impl TaskFilterArgs {
    pub(crate) fn filters(self) -> SampleFilters {
        let Self { times, comms, pids, tids, cpus } = self;
        SampleFilters { times, comms, pids, tids, cpus, ..SampleFilters::default() }
    }
}

/// Filters that commands have which print samples as well as those which count them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct SampleFilterArgs {
    #[command(flatten)]
    tasks: TaskFilterArgs,

    /// Only modules (shared objects) with these names or paths
    #[arg(
        short = 'd', long, visible_alias = "dso", value_name = "DSO[,DSO…]",
        value_parser = names::<HashSet<String>>
    )]
    dsos: Option<HashSet<String>>,

    /// Samples to make of traces (Intel PT, Intel BTS, Arm SPE), by letter
    ///
    /// i and y: instructions and cycles, with a period such as 100us (ms, us, ns), 1000i
    /// (instructions) or 10t (ticks); A: approximate cycles; b: branches, c: calls, r: returns; f,
    /// m, t, a, M: accesses to the first and the last level of the cache and to the TLB, remote
    /// ones, memory; x: transactions; w: ptwrites; p: power events; I: interrupts; o: other events;
    /// g and l with a number: callchains and last branches of so many entries; s with a number: all
    /// but the first so many; e: errors. Without LETTERS, all that perf makes by default
    #[arg(
        long, value_name = "LETTERS", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = Itrace::parse, overrides_with = "no_itrace"
    )]
    itrace: Option<Itrace>,

    /// Do not decode traces
    #[arg(long, overrides_with = "itrace")]
    no_itrace: bool,
}

impl SampleFilterArgs {
    pub(crate) fn filters(self) -> SampleFilters {
        let itrace = if self.no_itrace { Itrace::Nothing } else { self.itrace.unwrap_or_default() };
        SampleFilters { dsos: self.dsos, itrace, ..self.tasks.filters() }
    }
}

/// Filters of the samples that make rows.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    samples: SampleFilterArgs,

    /// Only samples of these events
    #[arg(long = "event", value_name = "EVENT[,EVENT…]", value_parser = names::<Names>)]
    events: Option<Names>,

    /// Only functions with these names
    ///
    /// A name is short (`f`), whole (`f(int)`) or mangled (`_Z1fi`)
    #[arg(
        short = 'S', long, visible_alias = "symbol", value_name = "NAME[,NAME…]",
        value_parser = functions
    )]
    symbols: Option<HashSet<String>>,

    /// Only functions whose names contain TEXT
    #[arg(long = "symbol-filter", value_name = "TEXT")]
    symbol_part: Option<String>,

    /// Only moments at which this many threads ran, such as 1,2-4 (files with switches)
    #[arg(
        long, value_name = "N[,N…]",
        value_parser = |list: &str| ranges("--parallelism", "numbers", list)
    )]
    parallelism: Option<HashSet<u32>>,

    /// Only CPUs of this socket
    #[arg(long = "socket-filter", value_name = "SOCKET")]
    socket: Option<u32>,
}

impl FilterArgs {
    /// Returns whether functions are named.
    pub(crate) fn names_functions(&self) -> bool {
        self.symbols.is_some()
    }

    /// Returns the filters; with `resolved`, functions must be known.
    pub(crate) fn filters(self, resolved: bool) -> Filters {
        let Self { samples, events, symbols, symbol_part, parallelism, socket } = self;
        let samples = samples.filters();
        Filters { samples, events, symbols, symbol_part, parallelism, socket, resolved }
    }
}
