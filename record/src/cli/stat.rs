//! The command line of `rec stat`: the options of perf stat, under the same names.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, CommandFactory as _, FromArgMatches as _, Parser};
use recrep_format::stat::{Aggregation, Format};

use super::{Refusal, given, one_of, refusal, selection, values, words};
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::messages::error::{Error, Result};
use crate::messages::{Messages, Verbosity};
use crate::plan::config::Delay;
use crate::stat::{self, Destination, Repeat, Settings};
use crate::tasks::{self, Target};

const AFTER: &str = "\
Examples:
  rec stat ./app                              Time, faults, cycles, instructions of a program
  rec stat -r 10 ./app                        Mean and spread of ten runs
  rec stat -e '{cycles,instructions}:u' ./app
  rec stat -a -I 1000 -e 'power/energy-pkg/'  The whole machine, a line for each second
  rec stat -a --per-socket -- sleep 10
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
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(super) struct StatFlags {
    /// Events to count, comma-separated; may be repeated [default: time, switches, faults, and
    /// cycles, instructions, branches where the CPU counts them]
    #[arg(short, long, value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events")]
    event: Vec<String>,
    /// Add events of the caches; twice and three times: more of them
    #[arg(short, long, action = ArgAction::Count, help_heading = "Events")]
    detailed: u8,
    /// Read names of this CPU's events from perf's tables in DIR (tools/perf/pmu-events/arch of the
    /// Linux source)
    #[arg(long, value_name = "DIR", help_heading = "Events")]
    event_tables: Option<PathBuf>,
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
    #[arg(short, long, conflicts_with_all = ["event", "detailed"], help_heading = "Events")]
    null: bool,

    /// Count all processes on all CPUs
    #[arg(short, long, help_heading = "Targets")]
    all_cpus: bool,
    /// Count all processes on these CPUs only, such as 0-3,8
    #[arg(short = 'C', long, value_name = "LIST", help_heading = "Targets")]
    cpu: Option<String>,
    /// Count existing processes
    #[arg(
        short, long, value_name = "PIDS", conflicts_with_all = ["tid", "uid", "all_cpus", "cpu"],
        help_heading = "Targets"
    )]
    pid: Option<String>,
    /// Count existing threads
    #[arg(
        short, long, value_name = "TIDS", conflicts_with_all = ["uid", "all_cpus", "cpu"],
        help_heading = "Targets"
    )]
    tid: Option<String>,
    /// Count all processes of a user
    #[arg(
        short, long, value_name = "USER", conflicts_with_all = ["all_cpus", "cpu"],
        help_heading = "Targets"
    )]
    uid: Option<String>,
    /// Do not count new threads and child processes
    #[arg(short = 'i', long, help_heading = "Targets")]
    no_inherit: bool,

    /// Run the command N times, and print mean and spread; 0: until Ctrl-C
    #[arg(short, long, value_name = "N", conflicts_with = "interval_print", help_heading = "Runs")]
    repeat: Option<u32>,
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
    #[arg(short = 'D', long, value_name = "MS", allow_hyphen_values = true, help_heading = "Runs")]
    delay: Option<String>,
    /// Stop after MS milliseconds
    #[arg(long, value_name = "MS", help_heading = "Runs")]
    timeout: Option<u32>,
    /// Print what was counted in each MS milliseconds
    #[arg(short = 'I', long, value_name = "MS", help_heading = "Runs")]
    interval_print: Option<u32>,
    /// Stop after N intervals
    #[arg(long, value_name = "N", requires = "interval_print", help_heading = "Runs")]
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
    #[arg(long, value_name = "N", conflicts_with = "output", help_heading = "Output")]
    log_fd: Option<i32>,
    /// Print lines of fields, separated by SEP
    #[arg(
        short = 'x',
        long,
        value_name = "SEP",
        conflicts_with = "json_output",
        help_heading = "Output"
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
    ("-M", "give the metric's events with -e, and compute it from --json"),
    ("--metrics", "give the metric's events with -e, and compute it from --json"),
    ("--metric-no-group", "rec stat has no -M; groups are those of -e"),
    ("--metric-no-merge", "rec stat has no -M; groups are those of -e"),
    ("--metric-no-threshold", "rec stat has no -M"),
    ("--metric-only", "the metrics alone are in the JSON (--json)"),
    ("--no-metric-only", "the metrics alone are in the JSON (--json)"),
    ("--per-cache", "use --per-core or --per-die, or -A and add up the CPUs that share a cache"),
    ("--per-cluster", "use --per-core or --per-die, or -A and add up a cluster's CPUs"),
    ("--percore-show-thread", "-A has a line for each hardware thread, --per-core the sums"),
    ("--record-tpebs", "rec stat counts only; rec -e EVENT:p -W records latencies"),
    ("--smi-cost", "name the events: -e msr/aperf/,msr/smi/,cycles"),
    ("--td-level", "name the events: -e '{slots,topdown-retiring,topdown-bad-spec}'"),
    ("--topdown", "name the events: -e '{slots,topdown-retiring,topdown-bad-spec}'"),
    ("-b", "a BPF program's own counts need perf built for it; bpftool prog profile has them"),
    ("--bpf-prog", "a BPF program's own counts need perf built for it; see bpftool prog profile"),
    ("--bpf-counters", "rec opens counters of its own; leave it out"),
    ("--bpf-attr-map", "rec opens counters of its own; leave it out"),
];

/// Returns whether the command line, which begins with the program's name, is `rec stat`.
pub fn is_asked_for(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|word| word == "stat")
}

/// Counts, and returns the exit status.
pub fn run<K: Kernel>(args: &[OsString], kernel: &K) -> Result<u8> {
    match parse(args) {
        Ok(settings) => {
            let messages = Messages::stderr(settings.verbosity);
            stat::run(&settings, kernel, &messages)
        }
        Err(Refusal::Failed(error)) => Err(error),
        Err(refusal) => Ok(refusal.print()),
    }
}

/// Parses the command line, which begins with `rec stat`.
pub(crate) fn parse(args: &[OsString]) -> Result<Settings, Refusal> {
    let cmdline = args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = words::with_negations(StatFlags::command());
    let subcommands = ["record", "report"];
    let named = args.iter().take_while(|word| *word != "--");
    let named: Vec<&str> =
        named.filter_map(|word| subcommands.iter().find(|name| word == *name).copied()).collect();
    let own = args.iter().skip(1).cloned().collect();
    let (words, subcommand) = words::separated(own, &command, &named);
    let fail = |command: &mut clap::Command, why: String| {
        Refusal::Usage(command.error(ErrorKind::ValueValidation, why))
    };
    if subcommand == Some("report") {
        let why = "report: rec only counts; rep shows the file: rep stat [FILE]. To count a \
                   program that is called report: rec stat -- report";
        return Err(fail(&mut command, why.to_owned()));
    }
    let matches = command.try_get_matches_from_mut(words).map_err(|error| {
        let error = words::name_unsupported(error, &mut command, "perf stat", PERFS_OWN);
        let error = refusal::name_nearest(error, &mut command);
        if error.use_stderr() {
            let sentence = refusal::sentence_with(&error, "rec stat --help");
            return Refusal::Failed(Error::Usage(sentence));
        }
        Refusal::Usage(error)
    })?;
    let flags = StatFlags::from_arg_matches(&matches).map_err(Refusal::Usage)?;
    let machine = Machine::read().map_err(Refusal::Failed)?;
    let machine = if flags.event_tables.is_some() { machine.with_cpuid() } else { machine };
    let record = subcommand == Some("record");
    settings(flags, &matches, machine, record, cmdline)
        .map_err(|why| Refusal::Failed(Error::Usage(format!("{why} (see rec stat --help)"))))
}

fn settings(
    flags: StatFlags,
    matches: &ArgMatches,
    machine: Machine,
    record: bool,
    cmdline: Vec<String>,
) -> Result<Settings, String> {
    let (events, mut cgroups) =
        selection::read(matches, None, flags.event_tables.as_deref(), &machine)?;
    let target = target(&flags)?;
    let each_cgroup: Vec<String> = flags
        .for_each_cgroup
        .iter()
        .flat_map(|names| names.split(',').map(str::to_owned))
        .collect();
    let is_by_cgroup = !each_cgroup.is_empty() || cgroups.iter().any(Option::is_some);
    if target != Target::System && is_by_cgroup {
        return Err("cgroups can be counted only on whole CPUs; add -a or -C".to_owned());
    }
    if target == Target::Command && flags.command.is_empty() {
        return Err("nothing to count: give a COMMAND, -a, -C, -p, -t or -u".to_owned());
    }
    if flags.repeat.is_some() && flags.command.is_empty() {
        return Err("-r: there is no COMMAND to repeat".to_owned());
    }
    if flags.per_thread && !target.is_attached() {
        return Err("--per-thread: the threads of existing processes are counted; add -p, -t or \
                    -u. Of a command: rec -n -s COMMAND, then rep -T"
            .to_owned());
    }
    if flags.repeat.is_some() && (record || flags.per_thread) {
        let with = if record { "record" } else { "--per-thread" };
        return Err(format!("-r: {with} is of a single run; leave -r out"));
    }
    if record && (flags.log_fd.is_some() || flags.append) {
        return Err(
            "record: -o names the data file; --log-fd and --append are for the text, which \
                    goes to standard error"
                .to_owned(),
        );
    }
    if let Some(ms) = flags.interval_print.filter(|ms| *ms == 0) {
        return Err(format!("-I: '{ms}' is no interval; give at least one millisecond"));
    }
    cgroups.resize(events.len(), None);
    let ms = |ms: u32| Duration::from_millis(ms.into());
    Ok(Settings {
        cgroups,
        each_cgroup,
        by: aggregation(&flags),
        detail: flags.detailed,
        null: flags.null,
        unscaled: flags.no_scale,
        no_merge: flags.no_merge,
        cpus: given(&flags.cpu, tasks::parse_cpus).map_err(|why| format!("-C: {why}"))?,
        no_inherit: flags.no_inherit,
        only: one_of(flags.all_kernel, flags.all_user),
        repeat: match flags.repeat {
            None => Repeat::Times(1),
            Some(0) => Repeat::Forever,
            Some(times) => Repeat::Times(times),
        },
        table: flags.table,
        pre: flags.pre.clone(),
        post: flags.post.clone(),
        sync: flags.sync,
        delay: delay(flags.delay.as_deref())?,
        timeout: flags.timeout.map(ms),
        interval: flags.interval_print.map(ms),
        interval_count: flags.interval_count,
        interval_clear: flags.interval_clear,
        summary: flags.summary,
        csv_summary: !flags.no_csv_summary,
        format: match &flags.field_separator {
            _ if flags.json_output => Format::Json,
            // As perf: a tab can be written so.
            Some(separator) if separator == "\\t" => Format::Csv { separator: "\t".to_owned() },
            Some(separator) if !separator.is_empty() => {
                Format::Csv { separator: separator.clone() }
            }
            Some(_) => return Err("-x: the separator is empty".to_owned()),
            None => Format::Text { big_numbers: !words::is_negated(matches, "big_num") },
        },
        destination: match (&flags.output, flags.log_fd) {
            (Some(path), _) if !record => {
                Destination::File { path: path.clone(), append: flags.append }
            }
            (_, Some(fd)) => Destination::Descriptor(fd),
            _ => Destination::StandardError,
        },
        record: record.then(|| flags.output.clone().unwrap_or_else(|| "out.data".into())),
        quiet: flags.quiet,
        verbosity: match (flags.quiet, flags.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        },
        events,
        target,
        command: flags.command,
        cmdline,
        machine,
    })
}

fn target(flags: &StatFlags) -> Result<Target, String> {
    Ok(if let Some(pids) = &flags.pid {
        Target::Processes(tasks::parse_pids(pids).map_err(|why| format!("-p: {why}"))?)
    } else if let Some(tids) = &flags.tid {
        Target::Threads(tasks::parse_ids(tids).map_err(|why| format!("-t: {why}"))?)
    } else if let Some(user) = &flags.uid {
        Target::User(tasks::parse_user(user).map_err(|why| format!("-u: {why}"))?)
    } else if flags.all_cpus || flags.cpu.is_some() {
        Target::System
    } else {
        Target::Command
    })
}

fn aggregation(flags: &StatFlags) -> Aggregation {
    let kinds = [
        (flags.no_aggr, Aggregation::Cpu),
        (flags.per_core, Aggregation::Core),
        (flags.per_die, Aggregation::Die),
        (flags.per_node, Aggregation::Node),
        (flags.per_socket, Aggregation::Socket),
        (flags.per_thread, Aggregation::Thread),
    ];
    let asked = kinds.into_iter().find(|(asked, _)| *asked);
    asked.map_or(Aggregation::Whole, |(_, kind)| kind)
}

fn delay(text: Option<&str>) -> Result<Option<Duration>, String> {
    match text.map_or(Ok(Delay::None), values::delay)? {
        Delay::None => Ok(None),
        Delay::After(time) => Ok(Some(time)),
        Delay::Off | Delay::Ranges(_) => {
            Err("-D: rec stat starts once, after a number of milliseconds".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Settings, String> {
        let words = ["rec", "stat"].into_iter().chain(line.split_whitespace());
        let words: Vec<OsString> = words.map(OsString::from).collect();
        parse(&words).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn flags_have_perfs_letters() {
        let settings = parsed("-e cpu-clock -r 3 -x, -- ./app -a").unwrap();
        assert_eq!(settings.repeat, Repeat::Times(3));
        assert_eq!(settings.command, ["./app", "-a"]);
        assert_eq!(settings.format, Format::Csv { separator: ",".to_owned() });
        let settings = parsed("-aA -I 100 --interval-count=2 --no-big-num").unwrap();
        assert_eq!((settings.target, settings.by), (Target::System, Aggregation::Cpu));
        assert_eq!(settings.interval, Some(Duration::from_millis(100)));
        assert_eq!(settings.format, Format::Text { big_numbers: false });
        assert_eq!(parsed("-ddd x").unwrap().detail, 3);
        assert!(parsed("--no-scale x").unwrap().unscaled && !parsed("--scale x").unwrap().unscaled);
    }

    const TABLE: &str = include_str!("../../docs/options.md");

    /// The long names of perf stat 6.12, in the order of its help, and what others have.
    const PERF: &str = "all-cpus no-aggr big-num cpu delay detailed event cgroup interval-print \
                        no-inherit json-output metrics null output pid repeat sync tid transaction \
                        verbose field-separator all-kernel all-user append control cputype filter \
                        for-each-cgroup hybrid-merge interval-clear interval-count iostat log-fd \
                        metric-no-group metric-no-merge metric-no-threshold metric-only \
                        no-csv-summary no-merge per-cache per-cluster per-core per-die per-node \
                        per-socket per-thread percore-show-thread post pre quiet record-tpebs scale \
                        smi-cost summary table td-level timeout topdown group bpf-prog \
                        bpf-counters bpf-attr-map";

    #[test]
    fn every_option_of_perf_stat_has_its_row_that_is_true() {
        let (_, table) = TABLE.split_once("# The options of perf stat").unwrap();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let names = |row: &[&'static str]| -> Vec<&'static str> {
            row[0].split(", ").map(|name| name.trim_matches('`')).collect()
        };
        let told: Vec<&str> =
            rows.iter().map(|row| names(row).last().unwrap().trim_start_matches('-')).collect();
        assert_eq!(told, PERF.split_whitespace().collect::<Vec<_>>());
        let mut command = words::with_negations(StatFlags::command());
        let help = command.render_long_help().to_string();
        for row in &rows {
            let [_, answer, why, tried] = row[..] else { panic!("{row:?}") };
            let tried = tried.trim_matches('`');
            let attached = ["-p", "-t"].iter().any(|flag| tried.starts_with(flag));
            let result = parsed(&format!("{tried}{}", if attached { "" } else { " x" }));
            let names = names(row);
            assert!(
                names
                    .iter()
                    .any(|name| tried.contains(name.trim_start_matches("--"))
                        || tried.contains(name)),
                "{tried}"
            );
            match (answer, result) {
                ("not", Err(said)) => {
                    assert!(said.contains("is a flag of perf stat that rec stat does not have: "));
                    assert!(why.len() > 30, "{tried}: what instead?");
                }
                // A filter is for tracepoints, of which not every machine has some.
                ("different", Err(said)) if tried.contains("--filter") => {
                    assert!(said.contains("tracepoint"), "{said}");
                }
                ("same" | "different", Ok(_)) => {
                    assert!(answer == "same" || why.len() > 30, "{tried}: why different?");
                    if let [letter, long] = names[..] {
                        assert!(help.contains(&format!("{letter}, {long}")), "{letter} {long}");
                    }
                }
                (answer, result) => panic!("{tried}: {answer}, but {:?}", result.map(|_| ())),
            }
        }
        for arg in StatFlags::command().get_arguments().filter_map(clap::Arg::get_long) {
            let arg = arg.trim_start_matches("no-");
            assert!(table.contains(arg) || TABLE.contains(arg), "{arg} is not told of");
        }
    }

    #[test]
    fn record_is_a_word_before_the_command() {
        let path = |line: &str| parsed(line).unwrap().record;
        assert_eq!(path("record -o x ./app"), Some("x".into()));
        assert_eq!(path("-e faults record ./app"), Some("out.data".into()));
        assert_eq!(path("./app record"), None);
        assert_eq!(path("-- record"), None);
        assert!(parsed("report").unwrap_err().contains("rep stat"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (line, part) in [
            ("", "give a COMMAND"),
            ("-e cpu-clock", "give a COMMAND"),
            ("-p 1 -r 2", "no COMMAND to repeat"),
            ("--per-thread ./app", "rec -n -s"),
            ("--for-each-cgroup a ./app", "-a or -C"),
            ("-I 0 x", "one millisecond"),
            ("-x, -j x", "cannot be used with"),
            ("record -r 2 x", "single run"),
            ("-e nothing x", "nothing"),
            ("-D -1 x", "starts once"),
            ("--topdown x", "is a flag of perf stat that rec stat does not have"),
            ("--no-such x", "there is no option '--no-such'"),
        ] {
            let error = parsed(line).map(|_| ()).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
