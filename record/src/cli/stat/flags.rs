//! The flags as clap parses them, with perf stat's letters and meanings, and the settings that they
//! make; those of perf stat that rec lacks.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ArgGroup, ArgMatches, Parser};
use recrep_counts::{Aggregation, Format};

use crate::cli::values::{self, CpuList};
use crate::cli::{selection, words};
use crate::machine::Machine;
use crate::plan::config::Delay;
use crate::stat::metrics::MetricRequest;
use crate::stat::{Destination, Repeat, Settings};
use crate::tasks::{self, Target};

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
    event: Vec<String>,
    /// Add events of the caches; twice and three times: more of them
    #[arg(short, long, action = ArgAction::Count, help_heading = "Events")]
    detailed: u8,
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
    metrics: Vec<String>,
    /// Print ratios and metrics without the counts
    #[arg(long, help_heading = "Metrics")]
    metric_only: bool,
    /// Do not group the events of metrics
    #[arg(long, requires = "of_metrics", help_heading = "Metrics")]
    metric_no_group: bool,
    /// Count events for each metric anew, even if another one needs them too
    #[arg(long, requires = "of_metrics", help_heading = "Metrics")]
    metric_no_merge: bool,
    /// Do not tell values that are beyond their thresholds
    #[arg(long, requires = "of_metrics", help_heading = "Metrics")]
    metric_no_threshold: bool,
    /// Print the top-down metrics of the first level (-M TopdownL1 --metric-only)
    #[arg(long, help_heading = "Metrics")]
    topdown: bool,
    /// With --topdown, the level
    #[arg(
        long, value_name = "LEVEL", requires = "topdown", value_parser = values::number::<u32>,
        help_heading = "Metrics"
    )]
    td_level: Option<u32>,

    /// Count only what matches FILTER, of the preceding -e's tracepoints
    #[arg(long, value_name = "FILTER", action = ArgAction::Append, help_heading = "Events")]
    filter: Vec<String>,
    /// Do not count rec itself, of the preceding -e's tracepoints
    #[arg(long, action = ArgAction::Count, hide = true)]
    exclude_perf: u8,
    /// Count the preceding events in these cgroups only (with -a or -C): one name per event, or one
    /// for all
    #[arg(
        short = 'G', long, value_name = "NAMES", action = ArgAction::Append,
        conflicts_with = "for_each_cgroup", help_heading = "Events"
    )]
    cgroup: Vec<String>,
    /// Count all events in each of these cgroups (with -a or -C)
    #[arg(long, value_name = "NAMES", help_heading = "Events")]
    for_each_cgroup: Option<String>,
    /// Count in the kernel only, overriding event modifiers
    #[arg(long, conflicts_with = "all_user", help_heading = "Events")]
    all_kernel: bool,
    /// Count in user space only, overriding event modifiers
    #[arg(long, help_heading = "Events")]
    all_user: bool,
    /// Print values as they were counted, if a counter was on the PMU for a part of the time only
    #[arg(long, help_heading = "Events")]
    no_scale: bool,
    /// Count nothing: print the times only
    #[arg(short, long, conflicts_with_all = ["event", "detailed", "of_metrics"], help_heading = "Events")]
    null: bool,

    /// Count all processes on all CPUs
    #[arg(short, long, help_heading = "Targets")]
    all_cpus: bool,
    /// Count all processes on these CPUs only, such as 0-3,8
    #[arg(
        short = 'C', long, value_name = "LIST", value_parser = tasks::parse_cpus,
        help_heading = "Targets"
    )]
    cpu: Option<CpuList>,
    /// Count existing processes
    #[arg(
        short, long, value_name = "PIDS", conflicts_with_all = ["tid", "uid", "all_cpus", "cpu"],
        value_parser = values::processes, help_heading = "Targets"
    )]
    pid: Option<Target>,
    /// Count existing threads
    #[arg(
        short, long, value_name = "TIDS", conflicts_with_all = ["uid", "all_cpus", "cpu"],
        value_parser = values::threads, help_heading = "Targets"
    )]
    tid: Option<Target>,
    /// Count all processes of a user
    #[arg(
        short, long, value_name = "USER", conflicts_with_all = ["all_cpus", "cpu"],
        value_parser = values::user, help_heading = "Targets"
    )]
    uid: Option<Target>,
    /// Do not count new threads and child processes
    #[arg(short = 'i', long, help_heading = "Targets")]
    no_inherit: bool,

    /// Run the command N times, and print mean and spread; 0: until Ctrl-C
    #[arg(
        short, long, value_name = "N", conflicts_with = "interval_print", value_parser = repeat,
        help_heading = "Runs"
    )]
    repeat: Option<Repeat>,
    /// With -r, print the time of each run
    #[arg(long, requires = "repeat", help_heading = "Runs")]
    table: bool,
    /// Run this shell command before each run
    #[arg(long, value_name = "COMMAND", help_heading = "Runs")]
    pre: Option<String>,
    /// Run this shell command after each run
    #[arg(long, value_name = "COMMAND", help_heading = "Runs")]
    post: Option<String>,
    /// Write all cached data to disk (sync) before each run
    #[arg(short = 'S', long, help_heading = "Runs")]
    sync: bool,
    /// Start counting after MS milliseconds
    #[arg(
        short = 'D', long, value_name = "MS", allow_hyphen_values = true, value_parser = delay,
        help_heading = "Runs"
    )]
    delay: Option<Duration>,
    /// Stop after MS milliseconds
    #[arg(long, value_name = "MS", value_parser = values::milliseconds, help_heading = "Runs")]
    timeout: Option<Duration>,
    /// Print what was counted in each MS milliseconds
    #[arg(short = 'I', long, value_name = "MS", value_parser = interval, help_heading = "Runs")]
    interval_print: Option<Duration>,
    /// Stop after N intervals
    #[arg(
        long, value_name = "N", requires = "interval_print", value_parser = values::number::<u32>,
        help_heading = "Runs"
    )]
    interval_count: Option<u32>,
    /// Clear the screen before each interval
    #[arg(long, requires = "interval_print", help_heading = "Runs")]
    interval_clear: bool,
    /// With -I, print the sums too at the end
    #[arg(long, requires = "interval_print", help_heading = "Runs")]
    summary: bool,

    /// Print a line for each CPU
    #[arg(short = 'A', long, group = "by", help_heading = "Sums")]
    no_aggr: bool,
    /// Sum by core
    #[arg(long, group = "by", help_heading = "Sums")]
    per_core: bool,
    /// Sum by die
    #[arg(long, group = "by", help_heading = "Sums")]
    per_die: bool,
    /// Sum by NUMA node
    #[arg(long, group = "by", help_heading = "Sums")]
    per_node: bool,
    /// Sum by processor package
    #[arg(long, group = "by", help_heading = "Sums")]
    per_socket: bool,
    /// Print a line for each thread that exists at the start (with -p, -t or -u)
    #[arg(long, group = "by", help_heading = "Sums")]
    per_thread: bool,
    /// Do not add up the same event of several PMUs
    #[arg(long, help_heading = "Sums")]
    no_merge: bool,

    /// Print to FILE; with record: write the data file FILE [default: out.data]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Append to the file of -o
    #[arg(long, requires = "output", help_heading = "Output")]
    append: bool,
    /// Print to the open file descriptor N
    #[arg(
        long, value_name = "N", conflicts_with = "output", value_parser = values::number::<i32>,
        help_heading = "Output"
    )]
    log_fd: Option<i32>,
    /// Print lines of fields, separated by SEP
    #[arg(
        short = 'x', long, value_name = "SEP", conflicts_with = "json_output",
        value_parser = separator, help_heading = "Output"
    )]
    field_separator: Option<String>,
    /// Print JSON (recrep-stat/1): a document on one line; with -I one for each interval
    #[arg(short, long, visible_alias = "json", help_heading = "Output")]
    json_output: bool,
    /// Separate thousands (always on for people; --no-big-num turns it off)
    #[arg(short = 'B', long, help_heading = "Output")]
    big_num: bool,
    /// Do not begin the lines of --summary with 'summary' in CSV
    #[arg(long, requires = "summary", help_heading = "Output")]
    no_csv_summary: bool,
    /// Print no counts, only errors (with record)
    #[arg(long, help_heading = "Output")]
    quiet: bool,
    /// Print details of the counters
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
    verbose: u8,
    /// Command to run and count, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl StatFlags {
    /// Returns the settings; with `record`, counts go into a data file.
    pub(super) fn settings(
        self,
        matches: &ArgMatches,
        machine: Machine,
        record: bool,
        cmdline: Vec<String>,
    ) -> Result<Settings, String> {
        let metrics = self.metric_request()?;
        let sources = selection::sources(&machine, self.event_tables.as_deref())?;
        let (events, cgroups) = selection::read(matches, None, &sources)?;
        let each_cgroup = self.for_each_cgroup.iter().flat_map(|names| names.split(','));
        let each_cgroup: Vec<String> = each_cgroup.map(str::to_owned).collect();
        let target = self.target();
        let is_by_cgroup = !each_cgroup.is_empty() || cgroups.iter().any(Option::is_some);
        if target != Target::System && is_by_cgroup {
            return Err("cgroups can be counted only on whole CPUs; add -a or -C".to_owned());
        }
        self.refuse_combinations(&target, record)?;
        // Top-down metrics are many, and printed alone.
        let is_alone = self.topdown && !words::is_negated(matches, "metric_only");
        Ok(Settings {
            events,
            cgroups,
            each_cgroup,
            by: self.aggregation(),
            detail: self.detailed,
            metrics,
            sources,
            metric_only: self.metric_only || is_alone,
            null: self.null,
            unscaled: self.no_scale,
            no_merge: self.no_merge,
            no_inherit: self.no_inherit,
            only: values::restriction(self.all_kernel, self.all_user),
            repeat: self.repeat.unwrap_or_default(),
            table: self.table,
            sync: self.sync,
            delay: self.delay.filter(|delay| !delay.is_zero()),
            timeout: self.timeout,
            interval: self.interval_print,
            interval_count: self.interval_count,
            interval_clear: self.interval_clear,
            summary: self.summary,
            csv_summary: !self.no_csv_summary,
            format: self.format(!words::is_negated(matches, "big_num")),
            destination: self.destination(record),
            quiet: self.quiet,
            verbosity: values::verbosity(self.quiet, self.verbose),
            record: record.then(|| self.output.unwrap_or_else(|| "out.data".into())),
            cpus: self.cpu,
            pre: self.pre,
            post: self.post,
            target,
            command: self.command,
            cmdline,
            machine,
        })
    }

    fn target(&self) -> Target {
        let attached = self.pid.as_ref().or(self.tid.as_ref()).or(self.uid.as_ref());
        let is_on_cpus = self.all_cpus || self.cpu.is_some();
        attached.cloned().unwrap_or_else(|| values::target_without_tasks(is_on_cpus))
    }

    /// Refuses flags that do not go together.
    fn refuse_combinations(&self, target: &Target, record: bool) -> Result<(), String> {
        let has_command = !self.command.is_empty();
        if *target == Target::Command && !has_command {
            return Err("nothing to count: give a COMMAND, -a, -C, -p, -t or -u".to_owned());
        }
        if self.repeat.is_some() && !has_command {
            return Err("-r: there is no COMMAND to repeat".to_owned());
        }
        if self.per_thread && !target.is_attached() {
            return Err("--per-thread: the threads of existing processes are counted; add -p, -t \
                        or -u. Of a command: rec -n -s COMMAND, then rep -T"
                .to_owned());
        }
        if self.repeat.is_some() && (record || self.per_thread) {
            let with = if record { "record" } else { "--per-thread" };
            return Err(format!("-r: {with} is of a single run; leave -r out"));
        }
        if record && (self.log_fd.is_some() || self.append) {
            return Err("record: -o names the data file; --log-fd and --append are for the text, \
                        which goes to standard error"
                .to_owned());
        }
        if !self.cgroup.is_empty() && self.event_tables.is_some() && self.has_metrics() {
            return Err("-G: its names are for the events of -e, one by one; count metrics in \
                        cgroups with --for-each-cgroup"
                .to_owned());
        }
        Ok(())
    }

    fn has_metrics(&self) -> bool {
        !self.metrics.is_empty() || self.topdown
    }

    /// Returns the metrics that are asked for; without tables there are none.
    fn metric_request(&self) -> Result<MetricRequest, String> {
        let flag = if self.topdown { "--topdown" } else { "-M" };
        if self.has_metrics() && self.event_tables.is_none() {
            return Err(format!(
                "{flag}: the metrics of this CPU are in perf's tables, which rec does not have; \
                 give their folder with --event-tables DIR: tools/perf/pmu-events/arch of the \
                 source of Linux, or of perf alone (kernel.org/pub/linux/kernel/tools/perf)"
            ));
        }
        let names = self.metrics.iter().flat_map(|names| names.split(','));
        let names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err(
                "-M: a name is empty; give names of metrics or groups, comma-separated".to_owned()
            );
        }
        Ok(MetricRequest {
            names,
            topdown: self.topdown.then(|| self.td_level.unwrap_or(0)),
            no_group: self.metric_no_group,
            no_merge: self.metric_no_merge,
            no_threshold: self.metric_no_threshold,
        })
    }

    fn aggregation(&self) -> Aggregation {
        let kinds = [
            (self.no_aggr, Aggregation::Cpu),
            (self.per_core, Aggregation::Core),
            (self.per_die, Aggregation::Die),
            (self.per_node, Aggregation::Node),
            (self.per_socket, Aggregation::Socket),
            (self.per_thread, Aggregation::Thread),
        ];
        let asked = kinds.into_iter().find(|(is_asked, _)| *is_asked);
        asked.map_or(Aggregation::Whole, |(_, kind)| kind)
    }

    fn format(&self, big_numbers: bool) -> Format {
        match &self.field_separator {
            _ if self.json_output => Format::Json,
            Some(separator) => Format::Csv { separator: separator.clone() },
            None => Format::Text { big_numbers },
        }
    }

    fn destination(&self, record: bool) -> Destination {
        match (&self.output, self.log_fd) {
            (Some(path), _) if !record => {
                Destination::File { path: path.clone(), append: self.append }
            }
            (_, Some(descriptor)) => Destination::Descriptor(descriptor),
            _ => Destination::StandardError,
        }
    }
}

fn repeat(text: &str) -> Result<Repeat, String> {
    let times = values::number(text)?;
    Ok(if times == 0 { Repeat::Forever } else { Repeat::Times(times) })
}

fn delay(text: &str) -> Result<Duration, String> {
    match values::delay(text)? {
        Delay::None => Ok(Duration::ZERO),
        Delay::After(time) => Ok(time),
        Delay::Off | Delay::Ranges(_) => {
            Err("rec stat starts once, after a number of milliseconds".to_owned())
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = values::milliseconds(text)?;
    if interval.is_zero() {
        return Err(format!("'{text}' is no interval; give at least one millisecond"));
    }
    Ok(interval)
}

/// As perf, takes `\\t` for a tab.
fn separator(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the separator is empty".to_owned()),
        "\\t" => Ok("\t".to_owned()),
        _ => Ok(text.to_owned()),
    }
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
    ("--tpebs-mode", "rec stat counts only; rec -e EVENT:p -W records latencies"),
    ("--no-affinity", "rec stat does not move to the CPUs that it reads; leave it out"),
    ("--smi-cost", "name the events: -e msr/aperf/,msr/smi/,cycles"),
    ("-b", "a BPF program's own counts need perf built for it; bpftool prog profile has them"),
    ("--bpf-prog", "a BPF program's own counts need perf built for it; see bpftool prog profile"),
    ("--bpf-counters", "rec opens counters of its own; leave it out"),
    ("--bpf-attr-map", "rec opens counters of its own; leave it out"),
];
