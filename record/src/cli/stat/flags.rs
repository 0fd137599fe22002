//! The flags as clap parses them, with perf stat's letters and meanings; those of perf stat that rec
//! lacks.

use crate::cli::target::TargetWords;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Parser};

const AFTER: &str = "\
Examples:
  rec stat ./app                              Time, faults, cycles, instructions of a program
  rec stat -r 10 ./app                        Mean and spread of ten runs
  rec stat -e '{cycles,instructions}:u' ./app
  rec stat -a -I 1000 -e 'power/energy-pkg/'  The whole machine, a line for each second
  rec stat -a --per-socket -- sleep 10
  rec stat -M TopdownL1 --event-tables arch ./app
  rec stat record -o out.data ./app           Into a file, for rep stat and perf stat report

The table goes to standard error. Exit status: that of the command; 125 if rec failed, 126 if the \
command cannot be executed, 127 if it was not found; 2 for a usage error. A program that is called \
stat is recorded by: rec -- stat";

/// Count events, and print how often each occurred.
#[derive(Debug, Parser)]
#[command(
    name = "rec stat",
    bin_name = "rec stat",
    args_override_self = true,
    infer_long_args = true,
    override_usage = "rec stat [record] [OPTIONS] [--] COMMAND [ARGS]...\n       rec stat [record] \
                      [OPTIONS] -a | -C LIST | -p PIDS | -t TIDS | -u USER [[--] COMMAND [ARGS]...]",
    after_help = AFTER
)]
#[command(group = ArgGroup::new("of_metrics").args(["metrics", "topdown"]).multiple(true))]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(in crate::cli) struct StatFlags {
    /// Events to count, comma-separated; may be repeated [default: time, switches, faults, and
    /// cycles, instructions, branches where the CPU counts them]
    #[arg(short, long, value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events")]
    pub(super) event: Vec<String>,
    /// Add events of the caches; twice and three times: more of them
    #[arg(short, long, action = ArgAction::Count, help_heading = "Events")]
    pub(super) detailed: u8,
    /// Read names of this CPU's events, and its metrics, from perf's tables in DIR
    /// (tools/perf/pmu-events/arch of the Linux source)
    #[arg(long, value_name = "DIR", help_heading = "Events")]
    pub(super) event_tables: Option<PathBuf>,
    /// Compute these metrics, or all of a group, from the tables of --event-tables: names,
    /// comma-separated, each perhaps with modifiers (IPC:u)
    #[arg(
        short = 'M', long, value_name = "NAMES", action = ArgAction::Append,
        help_heading = "Metrics"
    )]
    pub(super) metrics: Vec<String>,
    /// Print ratios and metrics without the counts
    #[arg(long, help_heading = "Metrics")]
    pub(super) metric_only: bool,
    /// Do not group the events of metrics
    #[arg(long, requires = "of_metrics", help_heading = "Metrics")]
    pub(super) metric_no_group: bool,
    /// Count events for each metric anew, even if another one needs them too
    #[arg(long, requires = "of_metrics", help_heading = "Metrics")]
    pub(super) metric_no_merge: bool,
    /// Do not tell values that are beyond their thresholds
    #[arg(long, requires = "of_metrics", help_heading = "Metrics")]
    pub(super) metric_no_threshold: bool,
    /// Print the top-down metrics of the first level (-M TopdownL1 --metric-only)
    #[arg(long, help_heading = "Metrics")]
    pub(super) topdown: bool,
    /// With --topdown, the level
    #[arg(long, value_name = "LEVEL", requires = "topdown", help_heading = "Metrics")]
    pub(super) td_level: Option<u32>,

    /// Count only what matches FILTER, of the preceding -e's tracepoints
    #[arg(long, value_name = "FILTER", action = ArgAction::Append, help_heading = "Events")]
    pub(super) filter: Vec<String>,
    /// Do not count rec itself, of the preceding -e's tracepoints
    #[arg(long, action = ArgAction::Count, hide = true)]
    pub(super) exclude_perf: u8,
    /// Count the preceding events in these cgroups only (with -a or -C): one name per event, or one
    /// for all
    #[arg(
        short = 'G', long, value_name = "NAMES", action = ArgAction::Append,
        conflicts_with = "for_each_cgroup", help_heading = "Events"
    )]
    pub(super) cgroup: Vec<String>,
    /// Count all events in each of these cgroups (with -a or -C)
    #[arg(long, value_name = "NAMES", help_heading = "Events")]
    pub(super) for_each_cgroup: Option<String>,
    /// Count in the kernel only, overriding event modifiers
    #[arg(long, conflicts_with = "all_user", help_heading = "Events")]
    pub(super) all_kernel: bool,
    /// Count in user space only, overriding event modifiers
    #[arg(long, help_heading = "Events")]
    pub(super) all_user: bool,
    /// Print values as they were counted, if a counter was on the PMU for a part of the time only
    #[arg(long, help_heading = "Events")]
    pub(super) no_scale: bool,
    /// Count nothing: print the times only
    #[arg(short, long, conflicts_with_all = ["event", "detailed", "of_metrics"], help_heading = "Events")]
    pub(super) null: bool,

    /// Count all processes on all CPUs
    #[arg(short, long, help_heading = "Targets")]
    pub(super) all_cpus: bool,
    /// Count all processes on these CPUs only, such as 0-3,8
    #[arg(short = 'C', long, value_name = "LIST", help_heading = "Targets")]
    pub(super) cpu: Option<String>,
    /// Count existing processes
    #[arg(
        short, long, value_name = "PIDS", conflicts_with_all = ["tid", "uid", "all_cpus", "cpu"],
        help_heading = "Targets"
    )]
    pub(super) pid: Option<String>,
    /// Count existing threads
    #[arg(
        short, long, value_name = "TIDS", conflicts_with_all = ["uid", "all_cpus", "cpu"],
        help_heading = "Targets"
    )]
    pub(super) tid: Option<String>,
    /// Count all processes of a user
    #[arg(
        short, long, value_name = "USER", conflicts_with_all = ["all_cpus", "cpu"],
        help_heading = "Targets"
    )]
    pub(super) uid: Option<String>,
    /// Do not count new threads and child processes
    #[arg(short = 'i', long, help_heading = "Targets")]
    pub(super) no_inherit: bool,

    /// Run the command N times, and print mean and spread; 0: until Ctrl-C
    #[arg(short, long, value_name = "N", conflicts_with = "interval_print", help_heading = "Runs")]
    pub(super) repeat: Option<u32>,
    /// With -r, print the time of each run
    #[arg(long, requires = "repeat", help_heading = "Runs")]
    pub(super) table: bool,
    /// Run this shell command before each run
    #[arg(long, value_name = "COMMAND", help_heading = "Runs")]
    pub(super) pre: Option<String>,
    /// Run this shell command after each run
    #[arg(long, value_name = "COMMAND", help_heading = "Runs")]
    pub(super) post: Option<String>,
    /// Write all cached data to disk (sync) before each run
    #[arg(short = 'S', long, help_heading = "Runs")]
    pub(super) sync: bool,
    /// Start counting after MS milliseconds
    #[arg(short = 'D', long, value_name = "MS", allow_hyphen_values = true, help_heading = "Runs")]
    pub(super) delay: Option<String>,
    /// Stop after MS milliseconds
    #[arg(long, value_name = "MS", help_heading = "Runs")]
    pub(super) timeout: Option<u32>,
    /// Print what was counted in each MS milliseconds
    #[arg(short = 'I', long, value_name = "MS", help_heading = "Runs")]
    pub(super) interval_print: Option<u32>,
    /// Stop after N intervals
    #[arg(long, value_name = "N", requires = "interval_print", help_heading = "Runs")]
    pub(super) interval_count: Option<u32>,
    /// Clear the screen before each interval
    #[arg(long, requires = "interval_print", help_heading = "Runs")]
    pub(super) interval_clear: bool,
    /// With -I, print the sums too at the end
    #[arg(long, requires = "interval_print", help_heading = "Runs")]
    pub(super) summary: bool,

    /// Print a line for each CPU
    #[arg(short = 'A', long, group = "by", help_heading = "Sums")]
    pub(super) no_aggr: bool,
    /// Sum by core
    #[arg(long, group = "by", help_heading = "Sums")]
    pub(super) per_core: bool,
    /// Sum by die
    #[arg(long, group = "by", help_heading = "Sums")]
    pub(super) per_die: bool,
    /// Sum by NUMA node
    #[arg(long, group = "by", help_heading = "Sums")]
    pub(super) per_node: bool,
    /// Sum by processor package
    #[arg(long, group = "by", help_heading = "Sums")]
    pub(super) per_socket: bool,
    /// Print a line for each thread that exists at the start (with -p, -t or -u)
    #[arg(long, group = "by", help_heading = "Sums")]
    pub(super) per_thread: bool,
    /// Do not add up the same event of several PMUs
    #[arg(long, help_heading = "Sums")]
    pub(super) no_merge: bool,

    /// Print to FILE; with record: write the data file FILE [default: out.data]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// Append to the file of -o
    #[arg(long, requires = "output", help_heading = "Output")]
    pub(super) append: bool,
    /// Print to the open file descriptor N
    #[arg(long, value_name = "N", conflicts_with = "output", help_heading = "Output")]
    pub(super) log_fd: Option<i32>,
    /// Print lines of fields, separated by SEP
    #[arg(
        short = 'x',
        long,
        value_name = "SEP",
        conflicts_with = "json_output",
        help_heading = "Output"
    )]
    pub(super) field_separator: Option<String>,
    /// Print JSON (recrep-stat/1): a document on one line; with -I one for each interval
    #[arg(short, long, visible_alias = "json", help_heading = "Output")]
    pub(super) json_output: bool,
    /// Separate thousands (always on for people; --no-big-num turns it off)
    #[arg(short = 'B', long, help_heading = "Output")]
    pub(super) big_num: bool,
    /// Do not begin the lines of --summary with 'summary' in CSV
    #[arg(long, requires = "summary", help_heading = "Output")]
    pub(super) no_csv_summary: bool,
    /// Print no counts, only errors (with record)
    #[arg(long, help_heading = "Output")]
    pub(super) quiet: bool,
    /// Print details of the counters
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
    pub(super) verbose: u8,
    /// Command to run and count, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// Flags of perf stat that rec lacks, with the reason and an alternative.
pub(super) const PERFS_OWN: &[(&str, &str)] = &[
    ("-T", "name the events: -e task-clock,cycles,instructions,cpu/cycles-t/,cpu/tx-start/"),
    ("--transaction", "name the events: -e cycles,instructions,cpu/cycles-t/,cpu/tx-start/"),
    ("-g", "groups are braces: -e '{cycles,instructions}'"),
    ("--group", "groups are braces: -e '{cycles,instructions}'"),
    ("--control", "rec stat counts from its start to its end; see -D, -I and --timeout"),
    ("--cputype", "name the PMU of the cores: -e cpu_core/cycles/"),
    ("--hybrid-merge", "the kinds of cores have lines of their own; add them up from --json"),
    ("--iostat", "name the events of the PMU (see rec list pmu)"),
    ("--per-cache", "use --per-core or --per-die, or -A and add up the CPUs that share a cache"),
    ("--per-cluster", "use --per-core or --per-die, or -A and add up a cluster's CPUs"),
    ("--percore-show-thread", "-A has a line for each hardware thread, --per-core the sums"),
    ("--record-tpebs", "rec stat counts only; rec -e EVENT:p -W records latencies"),
    ("--smi-cost", "name the events: -e msr/aperf/,msr/smi/,cycles"),
    ("-b", "a BPF program's own counts need perf built for it; bpftool prog profile has them"),
    ("--bpf-prog", "a BPF program's own counts need perf built for it; see bpftool prog profile"),
    ("--bpf-counters", "rec opens counters of its own; leave it out"),
    ("--bpf-attr-map", "rec opens counters of its own; leave it out"),
];

impl StatFlags {
    pub(super) fn target_words(&self) -> TargetWords<'_> {
        TargetWords {
            pid: self.pid.as_deref(),
            tid: self.tid.as_deref(),
            uid: self.uid.as_deref(),
            on_cpus: self.all_cpus || self.cpu.is_some(),
        }
    }
}
