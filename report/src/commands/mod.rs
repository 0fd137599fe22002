//! The commands of `rep`: command line → query → output → exit status. `info` has `evlist` too; `tasks` is
//! `--tasks` and `--mmaps` of `rep report`; `derived` is shared by commands that summarize a histogram.
//!
//! `report` is the default. Other commands have `run` (query → output and warnings) and, except `tasks` and `info`,
//! `parse` (command line → query).

mod branches;
pub mod c2c;
mod derived;
mod dump;
mod info;
pub mod mem;
mod modules;
mod report;
pub mod script;
mod tasks;
mod timeline;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::{Error, ErrorKind};

use crate::cli::help::help;
use crate::cli::outcome::{refused, stream};
use crate::input::map::keep_freed_memory;
use info::{EvlistQuery, InfoQuery};

/// Runs the command that a command line names (`words`, the program first) and returns the exit status.
pub fn main(mut words: Vec<OsString>) -> ExitCode {
    keep_freed_memory();
    if words.get(1).is_some_and(|word| word == "help") {
        words = match help(&words) {
            Ok(words) => words,
            Err(message) => return refused(&Error::raw(ErrorKind::InvalidSubcommand, message + "\n")),
        };
    }
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    // clap takes the first word as the program's name in usage lines.
    let command_line = || {
        let rest = words.iter().skip(2).cloned();
        std::iter::once(format!("rep {command}").into()).chain(rest).collect::<Vec<_>>()
    };
    match &*command {
        "script" => stream(script::parse(command_line()), script::run),
        "info" => stream(InfoQuery::try_parse_from(command_line()), info::run),
        "modules" => stream(modules::parse(command_line()), modules::run),
        "evlist" => stream(EvlistQuery::try_parse_from(command_line()), info::run_evlist),
        "dump" => stream(dump::parse(command_line()), dump::run),
        "mem" => stream(mem::parse(command_line()), mem::run),
        "c2c" => stream(c2c::parse(command_line()), c2c::run),
        "branches" => stream(branches::parse(command_line()), branches::run),
        "timeline" => stream(timeline::parse(command_line()), timeline::run),
        _ => report::main(words),
    }
}
