//! Usage errors in one sentence, and words that are commands of other programs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use clap::error::ErrorKind;
use clap::{Arg, Command};
use recrep_console::nearest::nearest;
use recrep_console::usage;

/// Returns what is wrong, without clap's prefix, tips and usage.
pub(super) fn sentence(error: &clap::Error) -> String {
    sentence_with(error, "rec --help")
}

/// The same, with the place to look at.
pub(super) fn sentence_with(error: &clap::Error, help: &str) -> String {
    let reason = usage::reason(error);
    let lines = reason.lines().take_while(|line| !line.is_empty()).map(str::trim);
    let sentence = lines.collect::<Vec<_>>().join(" ");
    // What says where to look needs no other place.
    if sentence.contains("(see rec ") { sentence } else { format!("{sentence} (see {help})") }
}

/// Replaces the error about an unknown option by one that suggests an option that help shows, or
/// its negation.
pub(super) fn name_nearest(error: clap::Error, command: &mut Command) -> clap::Error {
    let Some(name) = usage::unknown_option(&error).map(str::to_owned) else { return error };
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
    let shown: Vec<String> = shown.map(|long| format!("--{long}")).collect();
    let positive = name.strip_prefix("--no-").map(|rest| format!("--{rest}"));
    // What all have in common makes none more similar.
    let near = match positive {
        _ if !name.starts_with("--") => None,
        Some(positive) if !shown.contains(&name) => nearest_option(&name, &shown).or_else(|| {
            nearest_option(&positive, &shown).map(|near| near.replacen("--", "--no-", 1))
        }),
        _ => nearest_option(&name, &shown),
    };
    let near = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
    command.error(ErrorKind::UnknownArgument, format!("there is no option '{name}'{near}"))
}

fn nearest_option(name: &str, shown: &[String]) -> Option<String> {
    let near = nearest(
        name.trim_start_matches('-'),
        shown.iter().map(|shown| shown.trim_start_matches('-')),
    )?;
    Some(format!("--{near}"))
}

/// Commands of perf and rep, with what does the same here.
const OTHERS: &[(&str, &str)] = &[
    ("help", "the help is: rec --help"),
    ("record", "rec records without a command word: rec [OPTIONS] COMMAND"),
    ("report", "that is rep: rep out.data"),
    ("script", "that is rep script: rep script out.data"),
    ("annotate", "that is a matter of reports: rep --sort srcline out.data"),
    ("info", "that is rep info: rep info out.data"),
    ("evlist", "that is rep evlist: rep evlist out.data"),
    ("dump", "that is rep dump: rep dump out.data"),
    ("modules", "that is rep modules: rep modules out.data"),
    ("branches", "that is rep branches: rep branches out.data"),
    ("timeline", "that is rep timeline: rep timeline out.data"),
    ("syscalls", "that is rep syscalls: rec trace COMMAND, then rep syscalls"),
    ("diff", "that is a matter of reports: see rep --help"),
    ("top", "rec has no live view: rec -a -g -- sleep 5, then rep"),
    ("trace", "the command comes first: rec trace [OPTIONS] COMMAND, then rep syscalls"),
    ("sched", "switches are recorded by --off-cpu: rec --off-cpu COMMAND, then rep --off-cpu"),
];

/// Returns advice on a command that is none of this machine's programs, but a command of perf or
/// rep.
pub(super) fn command_of_others(command: Option<&OsStr>) -> Option<String> {
    let word = command?;
    let (name, advice) = OTHERS.iter().find(|(name, _)| *name == word)?;
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let is_program = std::env::split_paths(&dirs)
        .any(|dir| dir.join(OsStr::from_bytes(word.as_bytes())).is_file());
    (!is_program).then(|| format!("there is no program '{name}' in PATH; {advice}"))
}
