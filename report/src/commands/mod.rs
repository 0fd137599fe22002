//! The commands of `rep`: command line → query → output → exit status. The module `info` also has
//! the command `evlist`; `tasks` has the options `--tasks` and `--mmaps` of `rep report`; `derived`
//! is shared by commands that summarize a histogram.
//!
//! `report` is the default. Other commands have `run`, which answers a query and returns warnings.
//! Most queries are the options themselves; other commands have `query`, which makes a query of the
//! options or completes it.

mod branches;
mod bundle;
pub mod c2c;
mod derived;
mod dump;
mod info;
mod manual;
pub mod mem;
mod modules;
mod report;
pub mod script;
mod tasks;
mod timeline;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::ValueEnum as _;

use crate::cli::outcome::stream;
use crate::cli::parse;
use crate::input::map::keep_freed_memory;
use crate::query::Demangle;
use dump::DumpQuery;
use info::{EvlistQuery, InfoQuery};

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
        words = match manual::help(&words) {
            Ok(words) => words,
            Err(status) => return status,
        };
    }
    let words = with_joined_style(words);
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    // clap takes the first word as the program's name in usage lines.
    let command_line = || {
        let rest = words.iter().skip(2).cloned();
        std::iter::once(format!("rep {command}").into()).chain(rest).collect::<Vec<_>>()
    };
    match &*command {
        "script" => stream(parse(command_line(), script::query), script::run),
        "info" => stream(parse(command_line(), Ok::<InfoQuery, _>), info::run),
        "modules" => stream(parse(command_line(), modules::query), modules::run),
        "evlist" => stream(parse(command_line(), Ok::<EvlistQuery, _>), info::run_evlist),
        "dump" => stream(parse(command_line(), Ok::<DumpQuery, _>), dump::run),
        "mem" => stream(parse(command_line(), mem::query), mem::run),
        "c2c" => stream(parse(command_line(), c2c::query), c2c::run),
        "bundle" => stream(parse(command_line(), bundle::query), bundle::run),
        "branches" => stream(parse(command_line(), branches::query), branches::run),
        "timeline" => stream(parse(command_line(), timeline::query), timeline::run),
        "man" => manual::man(command_line()),
        "completions" => manual::completions(command_line()),
        _ => report::main(words),
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
