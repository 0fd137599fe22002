//! Translation of perf's spelling of flags for clap: optional values (`-z5`, `-I?`), negations
//! (`--no-FLAG`, and `--FLAG` for a flag named `--no-FLAG`); and errors of clap in perf's spelling.
//!
//! All of it is read from the definition of the flags.

use std::error::Error as _;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};
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
    command = usage::with_negative_values(command).mut_args(|arg| {
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

/// Refuses to turn off flags that are always on: their ids, each with the message.
pub(super) fn refuse_negated(
    matches: &ArgMatches,
    always: &[(&str, &'static str)],
) -> Result<(), String> {
    match always.iter().find(|(id, _)| is_negated(matches, id)) {
        Some((_, why)) => Err((*why).to_owned()),
        None => Ok(()),
    }
}

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

/// Adds the reason and an alternative to the error about a flag of the command `of` of perf that
/// the same command of rec lacks; `flags` has all of these.
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

/// Puts the name of the flag, as users spell it, before what the parser of its value says.
pub(super) fn name_flag(error: clap::Error, command: &mut Command) -> clap::Error {
    let (ErrorKind::ValueValidation, Some(ContextValue::String(arg)), Some(why)) =
        (error.kind(), error.get(ContextKind::InvalidArg), error.source())
    else {
        return error;
    };
    let name = arg.split([' ', '[', '=']).next().unwrap_or(arg);
    let long = name.strip_prefix("--");
    let short = command
        .get_arguments()
        .find(|arg| arg.get_long().is_some() && arg.get_long() == long)
        .and_then(Arg::get_short)
        .map(|letter| format!("-{letter}"));
    let message = format!("{}: {why}", short.as_deref().unwrap_or(name));
    command.error(ErrorKind::ValueValidation, message)
}

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
