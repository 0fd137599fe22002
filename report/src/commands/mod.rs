//! The commands of `rep`: command line → query → output → exit status. A command is an [`Id`] with a
//! row in [`COMMANDS`], and an [`Entry`] here.
//!
//! `report` is the default. Other commands have `run`, which answers a query and returns warnings.
//! Most queries are the options themselves; other commands have `query`, which makes a query of the
//! options or completes it.

mod manual;
mod report;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, CommandFactory as _, ValueEnum as _};

use crate::analyses::{branches, c2c, mem, modules, timeline};
use crate::cli::help::{COMMANDS, Id, listed};
use crate::cli::outcome::stream;
use crate::cli::{args, parse};
use crate::input::map::keep_freed_memory;
use crate::listings::{bundle, dump, info, script};
use crate::query::Demangle;
use dump::DumpQuery;
use info::{EvlistQuery, InfoQuery};

/// What a command is.
struct Entry {
    /// Its options.
    definition: fn() -> clap::Command,
    run: fn(Vec<OsString>) -> ExitCode,
}

fn entry(id: Id) -> Entry {
    match id {
        Id::Report => Entry { definition: args::definition, run: report::main },
        Id::Script => Entry {
            definition: script::ScriptQuery::command,
            run: |words| stream(parse(words, script::query), script::run),
        },
        Id::Timeline => Entry {
            definition: timeline::TimelineArgs::command,
            run: |words| stream(parse(words, timeline::query), timeline::run),
        },
        Id::Modules => Entry {
            definition: modules::ModulesQuery::command,
            run: |words| stream(parse(words, modules::query), modules::run),
        },
        Id::Mem => Entry {
            definition: mem::MemArgs::command,
            run: |words| stream(parse(words, mem::query), mem::run),
        },
        Id::C2c => Entry {
            definition: c2c::C2cQuery::command,
            run: |words| stream(parse(words, c2c::query), c2c::run),
        },
        Id::Branches => Entry {
            definition: branches::BranchesArgs::command,
            run: |words| stream(parse(words, branches::query), branches::run),
        },
        Id::Bundle => Entry {
            definition: bundle::BundleQuery::command,
            run: |words| stream(parse(words, bundle::query), bundle::run),
        },
        Id::Info => Entry {
            definition: InfoQuery::command,
            run: |words| stream(parse(words, Ok::<InfoQuery, _>), info::run),
        },
        Id::Evlist => Entry {
            definition: EvlistQuery::command,
            run: |words| stream(parse(words, Ok::<EvlistQuery, _>), info::run_evlist),
        },
        Id::Dump => Entry {
            definition: DumpQuery::command,
            run: |words| stream(parse(words, Ok::<DumpQuery, _>), dump::run),
        },
        // Its words are those of another command (`main`).
        Id::Help => Entry {
            definition: || {
                let name = Arg::new("command").value_name("COMMAND").help("Command or topic");
                clap::Command::new("help").arg(name)
            },
            run: report::main,
        },
        Id::Man => {
            Entry { definition: manual::ManArgs::command, run: |words| manual::man(words, whole()) }
        }
        Id::Completions => Entry {
            definition: manual::CompletionsArgs::command,
            run: |words| manual::completions(words, whole()),
        },
    }
}

/// Returns the definition of the whole command line: the options of `rep report`, and the commands.
fn whole() -> clap::Command {
    let mut rep = args::definition();
    for listed in &COMMANDS {
        // Lists show one line of each command, pages all.
        let command = (entry(listed.id).definition)();
        let long = command.get_about().map_or_else(|| listed.shows.to_owned(), ToString::to_string);
        let command = command.name(listed.name).display_name(format!("rep-{}", listed.name));
        rep = rep.subcommand(command.about(listed.shows).long_about(long));
    }
    rep
}

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
    let word = words.get(1).and_then(|word| word.to_str());
    match word.and_then(listed).filter(|listed| listed.id != Id::Report) {
        Some(listed) => {
            // clap takes the first word as the program's name in usage lines.
            let rest = words.into_iter().skip(2);
            let name = format!("rep {}", listed.name).into();
            (entry(listed.id).run)(std::iter::once(name).chain(rest).collect())
        }
        None => report::main(words),
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
