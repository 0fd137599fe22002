//! The command line: perf record's letters, read by clap into a [`Config`].
//!
//! A flag that perf record has and rec has not is refused by name; nothing is accepted and ignored.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, Parser};

use crate::config::{Aux, BuildIds, Config, Delay, Output, RingSize, Rings, Sample, SideBand};
use crate::event;
use crate::messages::Verbosity;
use crate::sampling::{Callchain, Rate};
use crate::target::{self, Target};

/// Record what programs do, into a perf.data file.
#[derive(Debug, Parser)]
#[command(
    name = "rec",
    version,
    args_override_self = true,
    override_usage = "rec [OPTIONS] [--] COMMAND [ARGS]...\n       rec [OPTIONS] -a | -C LIST | -p PIDS | -t TIDS [[--] COMMAND [ARGS]...]",
    after_help = "The file is read by rep, and by perf report. Exit status: the command's own; 125 rec failed, \
                  126 the command cannot be executed, 127 it was not found; 2 usage."
)]
struct Flags {
    /// The file to write; one that exists becomes FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "out.data")]
    output: PathBuf,
    /// The events to sample, separated by commas; may be repeated [default: cycles:P, or cpu-clock]
    #[arg(short, long, value_name = "EVENTS", action = ArgAction::Append)]
    event: Vec<String>,
    /// Samples per second, or 'max' [default: 4000]
    #[arg(short = 'F', long, value_name = "HZ", conflicts_with = "count")]
    freq: Option<String>,
    /// One sample every N events
    #[arg(short, long, value_name = "N")]
    count: Option<String>,
    /// Record callchains, by frame pointers
    #[arg(short = 'g')]
    graph: bool,
    /// Record callchains; how they are found: fp
    #[arg(long, value_name = "fp")]
    call_graph: Option<String>,
    /// Record the addresses of the data that samples touched
    #[arg(short, long)]
    data: bool,
    /// Record everything on all CPUs
    #[arg(short, long, conflicts_with_all = ["pid", "tid"])]
    all_cpus: bool,
    /// Record on these CPUs only, such as 0-3,8; without -p, -t everything on them
    #[arg(short = 'C', long, value_name = "LIST")]
    cpu: Option<String>,
    /// Record processes that run already
    #[arg(short, long, value_name = "PIDS", conflicts_with = "tid")]
    pid: Option<String>,
    /// Record threads that run already
    #[arg(short, long, value_name = "TIDS")]
    tid: Option<String>,
    /// The size of each CPU's ring: pages, or bytes with K, M or G; a power of two [default: 512K]
    #[arg(short, long, value_name = "SIZE")]
    mmap_pages: Option<String>,
    /// Say nothing but errors and losses
    #[arg(short, long)]
    quiet: bool,
    /// Say how the recording is planned
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// The command to run, and what it is given
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A command line that was not taken: a mistake, or a wish for help or the version.
#[derive(Debug)]
pub struct Refusal(clap::Error);

impl Refusal {
    /// Prints it where it belongs and gives the exit status.
    #[must_use]
    pub fn print(&self) -> u8 {
        // Nothing can be said about an output that does not take what is said.
        let _ = self.0.print();
        u8::try_from(self.0.exit_code()).unwrap_or(2)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads the command line, the program's name first.
///
/// # Errors
/// What cannot be taken, and requests for help and version.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Config, Refusal> {
    let args: Vec<OsString> = args.into_iter().collect();
    let cmdline = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let flags = Flags::try_parse_from(args).map_err(|e| Refusal(name_perfs_own(e)))?;
    config(flags, cmdline).map_err(|e| usage(&e))
}

fn usage(message: &str) -> Refusal {
    Refusal(Flags::command().error(ErrorKind::ValueValidation, message))
}

/// Says of a flag that perf record has that rec has not.
fn name_perfs_own(error: clap::Error) -> clap::Error {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return error;
    };
    let name = flag.split('=').next().unwrap_or(flag);
    if !PERFS_OWN.contains(&name) {
        return error;
    }
    let message = format!("{name} is a flag of perf record that rec does not have");
    Flags::command().error(ErrorKind::UnknownArgument, message)
}

/// The flags of perf record 6.12 that rec has not.
const PERFS_OWN: &[&str] = &[
    "-b",
    "-D",
    "-G",
    "-i",
    "-I",
    "-j",
    "-k",
    "-n",
    "-N",
    "-B",
    "-P",
    "-r",
    "-R",
    "-s",
    "-S",
    "-T",
    "-u",
    "-W",
    "-z",
    "--affinity",
    "--aio",
    "--all-cgroups",
    "--all-kernel",
    "--all-user",
    "--aux-sample",
    "--branch-any",
    "--branch-filter",
    "--buildid-all",
    "--buildid-mmap",
    "--cgroup",
    "--clockid",
    "--code-page-size",
    "--compression-level",
    "--control",
    "--data-page-size",
    "--debuginfod",
    "--delay",
    "--dry-run",
    "--exclude-perf",
    "--filter",
    "--intr-regs",
    "--kcore",
    "--kernel-callchains",
    "--max-size",
    "--mmap-flush",
    "--namespaces",
    "--no-bpf-event",
    "--no-buffering",
    "--no-buildid",
    "--no-buildid-cache",
    "--no-inherit",
    "--no-samples",
    "--num-thread-synthesize",
    "--off-cpu",
    "--overwrite",
    "--per-thread",
    "--period",
    "--pfm-events",
    "--phys-data",
    "--proc-map-timeout",
    "--raw-samples",
    "--realtime",
    "--running-time",
    "--sample-cpu",
    "--sample-identifier",
    "--setup-filter",
    "--snapshot",
    "--stat",
    "--strict-freq",
    "--switch-events",
    "--switch-max-files",
    "--switch-output",
    "--switch-output-event",
    "--synth",
    "--tail-synthesize",
    "--threads",
    "--timestamp",
    "--timestamp-boundary",
    "--timestamp-filename",
    "--transaction",
    "--uid",
    "--user-callchains",
    "--user-regs",
    "--vmlinux",
    "--weight",
];

fn config(flags: Flags, cmdline: Vec<String>) -> Result<Config, String> {
    let mut events = Vec::new();
    for list in &flags.event {
        events.extend(event::parse_list(list).map_err(|e| e.to_string())?);
    }
    if flags.output.as_os_str() == "-" {
        return Err("-o -: rec does not write to standard output (pipe mode); name a file".to_owned());
    }
    let target = target(&flags)?;
    if target == Target::Command && flags.command.is_empty() {
        return Err("nothing to record: give a command, -a, -C, -p or -t".to_owned());
    }
    Ok(Config {
        events,
        rate: rate(&flags)?,
        strict_freq: false,
        sample: Sample { callchain: callchain(&flags)?, data: flags.data, ..Sample::default() },
        side_band: SideBand::default(),
        only: None,
        target,
        cpus: flags.cpu.as_deref().map(target::parse_cpus).transpose().map_err(|e| format!("-C: {e}"))?,
        per_thread: false,
        no_inherit: false,
        exclude_self: false,
        delay: Delay::None,
        control: None,
        rings: Rings { data: flags.mmap_pages.as_deref().map(ring_size).transpose()?, ..Rings::default() },
        aux: Aux::default(),
        output: Output {
            path: flags.output,
            compression: None,
            max_size: None,
            switch: None,
            max_files: None,
            timestamp_name: false,
        },
        build_ids: BuildIds::default(),
        clock: None,
        dry_run: false,
        json: false,
        verbosity: match (flags.quiet, flags.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        },
        command: flags.command,
        cmdline,
    })
}

fn target(flags: &Flags) -> Result<Target, String> {
    Ok(match (&flags.pid, &flags.tid) {
        (Some(pids), _) => Target::Processes(target::parse_ids(pids).map_err(|e| format!("-p: {e}"))?),
        (None, Some(tids)) => Target::Threads(target::parse_ids(tids).map_err(|e| format!("-t: {e}"))?),
        (None, None) if flags.all_cpus || flags.cpu.is_some() => Target::System,
        (None, None) => Target::Command,
    })
}

fn rate(flags: &Flags) -> Result<Rate, String> {
    let positive = |text: &str| text.parse::<u64>().ok().filter(|n| *n > 0 && *n < 1 << 63);
    match (flags.freq.as_deref(), flags.count.as_deref()) {
        (Some("max"), _) => Ok(Rate::Max),
        (Some(text), _) => positive(text)
            .map(Rate::Hz)
            .ok_or_else(|| format!("-F: '{text}' is not a number of samples per second, or 'max'")),
        (None, Some(text)) => {
            positive(text).map(Rate::Period).ok_or_else(|| format!("-c: '{text}' is not a number of events"))
        }
        (None, None) => Ok(Rate::Default),
    }
}

fn callchain(flags: &Flags) -> Result<Option<Callchain>, String> {
    match flags.call_graph.as_deref() {
        None => Ok(flags.graph.then_some(Callchain::Fp)),
        Some("fp") => Ok(Some(Callchain::Fp)),
        Some(mode) => Err(match mode.split(',').next() {
            Some("dwarf" | "lbr") => {
                format!("--call-graph {mode} is a way of perf record that rec does not have; it has fp")
            }
            _ => format!("--call-graph: '{mode}' is no way to find callchains; there is fp"),
        }),
    }
}

fn ring_size(text: &str) -> Result<RingSize, String> {
    let wrong = || format!("-m: '{text}' is not a number of pages, nor one of bytes with K, M or G");
    if text.contains(',') {
        return Err(format!("-m {text}: the part after the comma is for AUX rings, which rec does not have"));
    }
    let (digits, unit) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'B') => (text.len() - 1, Some(0)),
        Some(b'K') => (text.len() - 1, Some(10)),
        Some(b'M') => (text.len() - 1, Some(20)),
        Some(b'G') => (text.len() - 1, Some(30)),
        _ => (text.len(), None),
    };
    let number = text.get(..digits).and_then(|d| d.parse::<u64>().ok()).filter(|n| *n > 0).ok_or_else(wrong)?;
    match unit {
        None => Ok(RingSize::Pages(number)),
        Some(shift) => number.checked_mul(1 << shift).map(RingSize::Bytes).ok_or_else(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Config {
        parse(["rec"].into_iter().chain(line.split_whitespace()).map(OsString::from)).unwrap()
    }

    fn refused(line: &str) -> String {
        let refusal = parse(["rec"].into_iter().chain(line.split_whitespace()).map(OsString::from)).unwrap_err();
        assert_eq!(refusal.0.exit_code(), 2, "{line}");
        refusal.to_string()
    }

    #[test]
    fn the_flags_are_internally_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn attached_and_separate_values() {
        for line in ["-F 999 -- x", "-F999 x", "--freq 999 x", "--freq=999 x", "-F 1 -F 999 x"] {
            assert_eq!(parsed(line).rate, Rate::Hz(999), "{line}");
        }
        assert_eq!(parsed("-F max x").rate, Rate::Max);
        assert_eq!(parsed("-c 1 x").rate, Rate::Period(1));
        assert_eq!(parsed("-c1 x").rate, Rate::Period(1));
        assert_eq!(parsed("-m 2 x").rings.data, Some(RingSize::Pages(2)));
        assert_eq!(parsed("-m1M x").rings.data, Some(RingSize::Bytes(1 << 20)));
        assert_eq!(parsed("-ag").target, Target::System);
        assert_eq!(parsed("-ag").sample.callchain, Some(Callchain::Fp));
        assert_eq!(parsed("--call-graph fp x").sample.callchain, Some(Callchain::Fp));
        assert!(parsed("-d x").sample.data);
    }

    #[test]
    fn events_add_up() {
        let names = |line| parsed(line).events.into_iter().map(|e| e.name).collect::<Vec<_>>();
        assert_eq!(names("-e cs,faults x"), ["cs", "faults"]);
        assert_eq!(names("-e cs -e faults x"), ["cs", "faults"]);
        assert!(names("x").is_empty());
    }

    #[test]
    fn the_command_keeps_its_own_flags() {
        assert_eq!(parsed("-F 99 ls -la -F").command, ["ls", "-la", "-F"]);
        assert_eq!(parsed("-- ls -- -g").command, ["ls", "--", "-g"]);
        assert_eq!(parsed("ls -g").sample.callchain, None);
    }

    #[test]
    fn targets() {
        assert_eq!(parsed("-p 1,2").target, Target::Processes(vec![1, 2]));
        assert_eq!(parsed("-t 7 -C 0").target, Target::Threads(vec![7]));
        assert_eq!(parsed("-C 0-1").target, Target::System);
        assert_eq!(parsed("-C 0-1").cpus, Some(vec![0, 1]));
        assert!(refused("").contains("nothing to record"));
        assert!(refused("-a -p 1").contains("cannot be used with"));
        assert!(refused("-p x").contains("'x' in 'x' is not a number"));
    }

    #[test]
    fn perfs_own_flags_are_named() {
        for flag in ["-b", "-z", "--switch-output", "--max-size=1G", "-gb", "-k"] {
            let message = refused(&format!("{flag} x"));
            let name = if flag == "-gb" { "-b" } else { flag.split('=').next().unwrap() };
            assert!(message.contains(&format!("{name} is a flag of perf record")), "{flag}: {message}");
        }
        assert!(refused("--nonsense x").contains("--nonsense"));
        assert!(refused("--call-graph dwarf x").contains("does not have"));
        assert!(refused("-m 8,8 x").contains("AUX"));
        assert!(refused("-o - x").contains("pipe mode"));
    }

    #[test]
    fn impossible_values() {
        for line in ["-F 0 x", "-F fast x", "-c 0 x", "-m 0 x", "-m big x", "-F 1 -c 1 x", "-e nope x", "-c -1 x"] {
            refused(line);
        }
    }
}
