//! The commands of `rep`: command line → query → output → exit status. A command is a module, and a
//! row in [`COMMANDS`].
//!
//! `report` is the default. Other commands have `run`, which answers a query and returns warnings.
//! Most queries are the options themselves; other commands have `query`, which makes a query of the
//! options or completes it.

mod export;
mod flame;
mod html;
mod manual;
mod page_code;
mod picture;
mod report;
mod title;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, Command, CommandFactory as _, ValueEnum as _};

use crate::analyses::{
    annotate, branches, c2c, critical_path, diff, mem, modules, syscalls, timeline, waits,
};
use crate::cli::outcome::stream;
use crate::cli::{CommandEntry, HelpPlace, Line, args, named};
use crate::input::map::keep_freed_memory;
use crate::listings::{bundle, dump, info, script, stat};
use crate::query::Demangle;
use dump::DumpQuery;
use info::{EvlistQuery, InfoQuery};

/// The commands, in the order of the help. A new one is a module and a row here.
pub(crate) static COMMANDS: &[CommandEntry] = &[
    CommandEntry {
        name: "report",
        shows: "histograms of samples (the default)",
        examples: &[
            "rep --no-children --limit 20   the 20 hottest functions of out.data or perf.data",
            "rep                            the same with all that they call, where callchains are",
            "rep -g caller --comm nginx     call trees of one program, from main on",
        ],
        place: HelpPlace::Line,
        definition: args::definition,
        run: report::main,
    },
    CommandEntry {
        name: "diff",
        shows: "what changed between two sides of recordings; gates",
        examples: &[
            "rep diff base.*.data -- new.*.data   runs recorded in turn, at least 3 of each",
            "rep diff base.*.data -- new.*.data --fail-if 'slower > 0'",
        ],
        place: HelpPlace::Line,
        definition: diff::DiffArgs::command,
        run: diff::main,
    },
    CommandEntry {
        name: "script",
        shows: "samples, in time order",
        examples: &["rep script -F comm,tid,time,ip,sym", "rep script --comm nginx --time 0%-10%"],
        place: HelpPlace::Line,
        definition: script::ScriptQuery::command,
        run: |line| stream(line.parse(script::query), script::run),
    },
    CommandEntry {
        name: "timeline",
        shows: "when threads ran: samples per time slice",
        examples: &["rep timeline --time-quantum 10ms"],
        place: HelpPlace::Name,
        definition: timeline::TimelineArgs::command,
        run: |line| stream(line.parse(timeline::query), timeline::run),
    },
    CommandEntry {
        name: "modules",
        shows: "where symbols were found, or why not",
        examples: &["rep modules --unresolved"],
        place: HelpPlace::Name,
        definition: modules::ModulesQuery::command,
        run: |line| stream(line.parse(modules::query), modules::run),
    },
    CommandEntry {
        name: "mem",
        shows: "cost of memory accesses",
        examples: &[
            "rep mem                     latencies by memory level",
            "rep mem -s symbol -t load   by function",
        ],
        place: HelpPlace::Name,
        definition: mem::MemArgs::command,
        run: |line| stream(line.parse(mem::query), mem::run),
    },
    CommandEntry {
        name: "c2c",
        shows: "contended cache lines",
        examples: &["rep c2c -c pid,iaddr"],
        place: HelpPlace::Name,
        definition: c2c::C2cQuery::command,
        run: |line| stream(line.parse(c2c::query), c2c::run),
    },
    CommandEntry {
        name: "branches",
        shows: "jumps, loops, and the code between branches",
        examples: &["rep branches --limit 20"],
        place: HelpPlace::Name,
        definition: branches::BranchesArgs::command,
        run: |line| stream(line.parse(branches::query), branches::run),
    },
    CommandEntry {
        name: "syscalls",
        shows: "system calls: counts, errors, latencies",
        examples: &[
            "rep syscalls --by thread    of a recording by rec trace, for each thread",
            "rep syscalls --by caller    which functions made the calls (rec trace -g)",
        ],
        place: HelpPlace::Name,
        definition: syscalls::SyscallsArgs::command,
        run: |line| stream(line.parse(syscalls::query), syscalls::run),
    },
    CommandEntry {
        name: "critical-path",
        shows: "what the run waited for, by thread or piece by piece",
        examples: &["rep critical-path --steps    of a recording by rec --waits"],
        place: HelpPlace::Name,
        definition: critical_path::CriticalPathArgs::command,
        run: |line| stream(line.parse(critical_path::query), critical_path::run),
    },
    CommandEntry {
        name: "waits",
        shows: "what threads waited for, where, and who ended it",
        examples: &[
            "rep waits --limit 20        of a recording by rec --waits",
            "rep waits --by thread       which threads waited, and who woke them",
        ],
        place: HelpPlace::Name,
        definition: waits::WaitsArgs::command,
        run: |line| stream(line.parse(waits::query), waits::run),
    },
    CommandEntry {
        name: "stat",
        shows: "counts of events, of perf stat record and rec stat record",
        examples: &["rep stat -A    for each CPU", "rep stat -x, --per-core"],
        place: HelpPlace::Name,
        definition: stat::StatArgs::command,
        run: |line| stream(line.parse(stat::query), stat::run),
    },
    CommandEntry {
        name: "flame",
        shows: "a flame graph as SVG",
        examples: &[
            "rep flame -o app.svg                       without -o: beside the recording",
            "rep flame -o change.svg --diff old.data new.data",
        ],
        place: HelpPlace::Name,
        definition: flame::FlameArgs::command,
        run: |line| stream(line.parse(flame::query), flame::run),
    },
    CommandEntry {
        name: "html",
        shows: "a page for any browser: flame graph, functions, callers, timeline",
        examples: &[
            "rep html -o app.html                           open it, send it; without -o: FILE.html",
            "rep html -o change.html --diff old.data new.data   what changed",
        ],
        place: HelpPlace::Name,
        definition: html::HtmlArgs::command,
        run: |line| stream(line.parse(html::query), html::run),
    },
    CommandEntry {
        name: "annotate",
        shows: "instructions of functions, with samples and source lines",
        examples: &[
            "rep annotate parse             instructions of all functions named parse",
            "rep annotate -i x.data --limit 3   of the 3 hottest functions",
        ],
        place: HelpPlace::Name,
        definition: annotate::AnnotateArgs::command,
        run: |line| stream(annotate::asked(line), annotate::run),
    },
    CommandEntry {
        name: "bundle",
        shows: "a recording with its names, in one file, for other machines",
        examples: &["rep bundle -o named.data"],
        place: HelpPlace::Name,
        definition: bundle::BundleQuery::command,
        run: |line| stream(line.parse(bundle::query), bundle::run),
    },
    CommandEntry {
        name: "export",
        shows: "profiles for pprof and other viewers, or to be kept: they need no recording",
        examples: &[
            "rep export -o profile.pb.gz         then: go tool pprof -http=: profile.pb.gz",
            "rep export -o base/ base.*.data     a file for each run, which rep reads, too",
            "rep export --format firefox -o app.json.gz app.data     for profiler.firefox.com",
        ],
        place: HelpPlace::Name,
        definition: export::ExportArgs::command,
        run: |line| stream(line.parse(export::query), export::run),
    },
    CommandEntry {
        name: "info",
        shows: "header, events and record counts of a file",
        examples: &["rep info --json out.data"],
        place: HelpPlace::Name,
        definition: InfoQuery::command,
        run: |line| stream(line.parse(Ok::<InfoQuery, _>), info::run),
    },
    CommandEntry {
        name: "evlist",
        shows: "events of a file",
        examples: &["rep evlist -v"],
        place: HelpPlace::Name,
        definition: EvlistQuery::command,
        run: |line| stream(line.parse(Ok::<EvlistQuery, _>), info::run_evlist),
    },
    CommandEntry {
        name: "dump",
        shows: "all records, raw and decoded",
        examples: &["rep dump --type MMAP2,COMM --no-raw"],
        place: HelpPlace::Name,
        definition: DumpQuery::command,
        run: |line| stream(line.parse(Ok::<DumpQuery, _>), dump::run),
    },
    CommandEntry {
        name: "help",
        shows: "help of a command, or of a topic: keys, fields",
        examples: &[],
        place: HelpPlace::Name,
        definition: || {
            let name = Arg::new("command").value_name("COMMAND").help("Command or topic");
            Command::new("help").arg(name)
        },
        // Its words are those of another command (`main`).
        run: report::main,
    },
    CommandEntry {
        name: "man",
        shows: "the manual page, as roff: rep man [COMMAND]",
        examples: &["rep man | man -l -"],
        place: HelpPlace::Nowhere,
        definition: manual::ManArgs::command,
        run: manual::man,
    },
    CommandEntry {
        name: "completions",
        shows: "completions for bash, zsh or fish: rep completions SHELL",
        examples: &[],
        place: HelpPlace::Nowhere,
        definition: manual::CompletionsArgs::command,
        run: manual::completions,
    },
];

/// Joins `--demangle` with its value where they are two words: the option may have none, and then a
/// file follows.
fn with_joined_style(words: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    for word in words {
        let is_style = word.to_str().is_some_and(|word| Demangle::from_str(word, false).is_ok());
        match joined.last_mut() {
            Some(before) if is_style && before == "--demangle" => {
                before.push("=");
                before.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// Runs the command that a command line names (`words`, the program first) and returns the exit
/// status.
pub fn main(mut words: Vec<OsString>) -> ExitCode {
    keep_freed_memory();
    if words.get(1).is_some_and(|word| word == "help") {
        words = match manual::help(&Line { words, commands: COMMANDS }) {
            Ok(words) => words,
            Err(status) => return status,
        };
    }
    let words = with_joined_style(words);
    let word = words.get(1).and_then(|word| word.to_str());
    let found = word.and_then(|word| named(COMMANDS, word));
    match found.filter(|entry| entry.name != "report") {
        Some(entry) => {
            // clap takes the first word as the program's name in usage lines.
            let name = format!("rep {}", entry.name).into();
            let words = std::iter::once(name).chain(words.into_iter().skip(2)).collect();
            (entry.run)(&Line { words, commands: COMMANDS })
        }
        None => report::main(&Line { words, commands: COMMANDS }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_demangle_may_be_a_word_of_its_own() {
        let joined = |line: &str| {
            with_joined_style(line.split(' ').map(Into::into).collect()).join(" ".as_ref())
        };
        assert_eq!(joined("rep --demangle full x"), "rep --demangle=full x");
        assert_eq!(joined("rep --demangle x full"), "rep --demangle x full");
        assert_eq!(joined("rep script --demangle=no no"), "rep script --demangle=no no");
    }
}
