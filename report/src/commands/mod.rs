//! The commands of `rep`, a module each: command line → query → answer → exit status.
//!
//! A command without a name is [`report`]. Commands that print as they go implement `parse` (words to a query) and `run`
//! (a query to output and warnings).

pub mod branches;
pub mod c2c;
pub mod derived;
pub mod dump;
pub mod info;
pub mod mem;
pub mod modules;
pub mod report;
pub mod script;
pub mod tasks;
pub mod timeline;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::outcome::stream;

/// Runs the command that the words of a command line name (the program first), and returns the exit status.
#[must_use]
pub fn main(words: Vec<OsString>) -> ExitCode {
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    // The name of the command is the first word in usage lines.
    let named = || {
        let rest = words.iter().skip(2).cloned();
        std::iter::once(format!("rep {command}").into()).chain(rest).collect::<Vec<_>>()
    };
    match &*command {
        "script" => stream(script::parse(named()), script::run),
        "info" => stream(info::parse(named()), info::run),
        "modules" => stream(modules::parse(named()), modules::run),
        "evlist" => stream(info::parse_evlist(named()), info::run_evlist),
        "dump" => stream(dump::parse(named()), dump::run),
        "mem" => stream(mem::parse(named()), mem::run),
        "c2c" => stream(c2c::parse(named()), c2c::run),
        "branches" => stream(branches::parse(named()), branches::run),
        "timeline" => stream(timeline::parse(named()), timeline::run),
        _ => report::main(words),
    }
}
