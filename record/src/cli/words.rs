//! Translation of perf's spelling of flags for clap: optional values (`-z5`, `-I?`), negations
//! (`--no-FLAG`, and `--FLAG` for a flag named `--no-FLAG`), and the flags of perf record that rec
//! lacks.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};
use recrep_console::usage;

/// Adds the negation of each flag. The last of a flag and its negations on the command line counts.
pub(super) fn with_negations(mut command: Command) -> Command {
    let flags: Vec<(String, String)> = command
        .get_arguments()
        .filter(|arg| is_flag(arg))
        .filter_map(|arg| Some((arg.get_id().to_string(), arg.get_long()?.to_owned())))
        .collect();
    // All at once: `mut_arg` would put each behind all others, and help shows arguments and
    // headings in their order.
    command = command.mut_args(|arg| {
        let other = negated(arg.get_id().as_str());
        if is_flag(&arg) { arg.overrides_with(other) } else { arg }
    });
    for (id, long) in flags {
        let negation =
            Arg::new(negated(&id)).hide(true).action(ArgAction::SetTrue).overrides_with(&id);
        let negation = match long.strip_prefix("no-") {
            Some(positive) => negation.long(positive.to_owned()).alias(format!("no-{long}")),
            None => negation.long(format!("no-{long}")),
        };
        command = command.arg(negation);
    }
    command.build();
    command
}

fn is_flag(arg: &Arg) -> bool {
    arg.get_long().is_some() && !matches!(arg.get_id().as_str(), "help" | "version")
}

fn negated(id: &str) -> String {
    format!("not {id}")
}

/// Returns whether the flag `id` was negated last.
pub(super) fn is_negated(matches: &ArgMatches, id: &str) -> bool {
    matches.get_flag(&negated(id))
}

/// Flags that are always on, with the message for an attempt to turn them off.
pub(super) const ALWAYS: &[(&str, &str)] = &[
    (
        "timestamp",
        "--no-timestamp: samples of rec always have their time; without it records cannot be \
         sorted",
    ),
    ("sample_cpu", "--no-sample-cpu: samples of rec always have their CPU"),
    (
        "sample_identifier",
        "--no-sample-identifier: samples of rec always have their counter's identifier",
    ),
    (
        "timestamp_boundary",
        "--no-timestamp-boundary: files of rec always have the times of the first and the last \
         sample",
    ),
    (
        "no_buildid_cache",
        "--buildid-cache: rec has no build-ID cache; perf buildid-cache adds files to that of perf",
    ),
    (
        "buildid_all",
        "--no-buildid-all: rec cannot limit build IDs to files with samples, without reading its \
         file again; use -B",
    ),
];

/// Inserts `=` before a value attached to a short flag with an optional value: `-z5`, `-gI?`. Words
/// after the flags belong to the command and stay as they are.
///
/// Removes the first of these subcommands before or among the flags, and returns it too. As perf
/// does, takes beginnings of at least three letters for it.
pub(super) fn separated<'a>(
    args: Vec<OsString>,
    command: &Command,
    subcommands: &[&'a str],
) -> (Vec<OsString>, Option<&'a str>) {
    let mut found = None;
    let mut out = Vec::with_capacity(args.len());
    let mut rest = args.into_iter();
    out.extend(rest.next());
    while let Some(word) = rest.next() {
        let bytes = word.as_bytes();
        if found.is_none() && bytes.len() > 2 {
            found = subcommands.iter().find(|name| name.as_bytes().starts_with(bytes)).copied();
            if found.is_some() {
                continue;
            }
        }
        if !bytes.starts_with(b"-") || bytes == b"-" || bytes == b"--" {
            out.push(word);
            break;
        }
        let needs_next = match bytes.strip_prefix(b"--") {
            Some(long) => long_needs_next(long, command),
            None => {
                let (changed, needs_next) = short(bytes, command);
                out.push(changed);
                out.extend(needs_next.then(|| rest.next()).flatten());
                continue;
            }
        };
        out.push(word);
        out.extend(needs_next.then(|| rest.next()).flatten());
    }
    out.extend(rest);
    (out, found)
}

fn long_needs_next(long: &[u8], command: &Command) -> bool {
    if long.contains(&b'=') {
        return false;
    }
    let arg = command
        .get_arguments()
        .find(|arg| arg.get_long().is_some_and(|name| name.as_bytes() == long))
        .or_else(|| {
            command
                .get_arguments()
                .find(|arg| arg.get_long().is_some_and(|name| name.as_bytes().starts_with(long)))
        });
    arg.is_some_and(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
}

/// Rewrites a word of short flags. Also returns whether the next word is the value of the last
/// flag.
fn short(word: &[u8], command: &Command) -> (OsString, bool) {
    for (at, letter) in word.iter().enumerate().skip(1) {
        let Some(arg) =
            command.get_arguments().find(|arg| arg.get_short() == Some(char::from(*letter)))
        else {
            break;
        };
        let (flags, value) = word.split_at_checked(at + 1).unwrap_or((word, &[]));
        if arg.is_require_equals_set() {
            let glued = !value.is_empty() && !value.starts_with(b"=");
            let parts = if glued { [flags, b"=", value].concat() } else { word.to_vec() };
            return (OsString::from_vec(parts), false);
        }
        if arg.get_action().takes_values() {
            return (OsString::from_vec(word.to_vec()), value.is_empty());
        }
    }
    (OsString::from_vec(word.to_vec()), false)
}

/// Adds the reason and an alternative to the error about a flag of perf record that rec lacks.
pub(super) fn name_perfs_own(error: clap::Error, command: &mut Command) -> clap::Error {
    name_unsupported(error, command, "perf record", PERFS_OWN)
}

/// The same of a command of perf, whose flags that are lacking are in `flags`.
pub(super) fn name_unsupported(
    error: clap::Error,
    command: &mut Command,
    of: &str,
    flags: &[(&str, &str)],
) -> clap::Error {
    let unknown = usage::unknown_option(&error);
    match flags.iter().find(|(own, _)| Some(*own) == unknown) {
        None => error,
        Some((name, why)) => {
            let ours = of.replace("perf record", "rec").replace("perf", "rec");
            let message = format!("{name} is a flag of {of} that {ours} does not have: {why}");
            command.error(ErrorKind::InvalidValue, message)
        }
    }
}

/// Flags of perf record 6.12 that rec lacks, with the reason and an alternative.
pub(super) const PERFS_OWN: &[(&str, &str)] = &[
    (
        "--kcore",
        "rep needs no copy of the kernel's memory; keep the vmlinux of that build ID for reports \
         elsewhere",
    ),
    (
        "--vmlinux",
        "it serves symbols in address filters of AUX events; use addresses (filter 0xADDR/0xLEN)",
    ),
    (
        "--pfm-events",
        "rec does not use libpfm; use the PMU's name of the event (see rec list) or its raw code \
         (rNNN)",
    ),
    (
        "--debuginfod",
        "rec fetches nothing from the network; give --debuginfod to rep, which resolves symbols",
    ),
    (
        "--setup-filter",
        "it pins perf's BPF filter programs; rec filters in the kernel with --filter on \
         tracepoints",
    ),
    (
        "--aio",
        "rec always writes in a thread of its own; --queue-size says how much may wait for it, \
         --threads spreads the work",
    ),
    (
        "--switch-output-event",
        "rec starts a new file at a signal, a size or an interval only; use --switch-output",
    ),
    (
        "--num-thread-synthesize",
        "rec reads /proc in one thread, in a fraction of perf's time; leave the flag out",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn separate(line: &str) -> String {
        let command = with_negations(crate::cli::flags::Flags::command());
        let words =
            ["rec"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
        let words = separated(words, &command, &[]).0;
        words.iter().skip(1).map(|w| w.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn values_that_may_be_left_out() {
        for (given, read) in [
            ("-z5 x", "-z=5 x"),
            ("-gz5 x", "-gz=5 x"),
            ("-z x", "-z x"),
            ("-z=5 x", "-z=5 x"),
            ("-I? x", "-I=? x"),
            ("-gIax,bx -- -z5", "-gI=ax,bx -- -z5"),
            ("-e z5 -z5", "-e z5 -z=5"),
            ("-ez5 -z5", "-ez5 -z=5"),
            ("--event -z5 -z5", "--event -z5 -z=5"),
            ("--even -z5 -z5", "--even -z5 -z=5"),
            ("--switch-output -z5", "--switch-output -z=5"),
            ("--event=x -z5", "--event=x -z=5"),
            ("-D -1 -z5", "-D -1 -z=5"),
            ("-g ls -z5", "-g ls -z5"),
            ("-o - -z5", "-o - -z=5"),
            ("-Se0x1000 x", "-S=e0x1000 x"),
        ] {
            assert_eq!(separate(given), read, "{given}");
        }
    }
}
