//! Usage errors in one sentence, and words that are commands of other programs.

use std::ffi::{OsStr, OsString};

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
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(names, _)| names.contains(&name.as_str())) {
        let message = format!("there is no option '{name}'; {instead}");
        return command.error(ErrorKind::UnknownArgument, message);
    }
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

/// Options of other recorders, with what does the same here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["--duration", "--time", "--timeout", "--seconds", "--length"],
        "what ends after a time is the command: rec [OPTIONS] -- sleep 10, or rec -p PID -- sleep 10",
    ),
    (&["--rate", "--hz", "--hertz", "--sample-rate"], "-F HZ sets the rate"),
    (&["--svg", "--flamegraph", "--flame"], "rep flame draws a flame graph of the recording"),
    (&["--format", "--json", "--text"], "rec writes perf.data; rep prints reports of it"),
    (&["--native", "--stacks", "--callgraph"], "-g records callchains"),
    (&["--system-wide", "--system"], "-a records all CPUs"),
];

/// Values of `--call-graph`.
const CALLCHAINS: [&str; 5] = ["fp", "dwarf", "lbr", "unwind", "no"];

/// Returns advice on a word behind `-g` that is none of this machine's programs, but a value of
/// `--call-graph`: `-g fp ./app`, `-gfp ./app`.
pub(super) fn value_of_g(words: &[OsString], command: Option<&OsStr>) -> Option<String> {
    let bare = |word: &str| word.split(',').next().unwrap_or_default().to_owned();
    let is_mode = |word: &str| CALLCHAINS.contains(&bare(word).as_str());
    let joined = |word: &OsString| {
        let value = word.to_str()?.strip_prefix("-g")?;
        let value = value.trim_start_matches('=');
        is_mode(value).then(|| value.to_owned())
    };
    let place = command.and_then(|command| words.iter().position(|word| word == command));
    let before = words.get(..place.unwrap_or(words.len())).unwrap_or_default();
    let follows = before.last().and_then(|word| word.to_str()).is_some_and(|word| {
        word == "-g" || word.starts_with('-') && !word.starts_with("--") && word.ends_with('g')
    });
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let value = match command.and_then(OsStr::to_str).filter(|_| follows) {
        Some(word) if is_mode(word) || is_number(word) => {
            let is_program = is_program(OsStr::new(word));
            (!is_program).then(|| word.to_owned())
        }
        _ => before.iter().find_map(joined),
    }?;
    let mode = if is_number(&value) { format!("unwind,{value}") } else { value.clone() };
    Some(format!("-g has no value '{value}'; with one it is: --call-graph {mode}"))
}

fn nearest_option(name: &str, shown: &[String]) -> Option<String> {
    let near = nearest(
        name.trim_start_matches('-'),
        shown.iter().map(|shown| shown.trim_start_matches('-')),
    )?;
    Some(format!("--{near}"))
}

/// Returns whether a directory in PATH has a file of this name.
fn is_program(name: &OsStr) -> bool {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&dirs).any(|dir| dir.join(name).is_file())
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
    (!is_program(word)).then(|| format!("there is no program '{name}' in PATH; {advice}"))
}
