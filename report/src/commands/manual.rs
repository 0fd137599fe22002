//! `rep help`, `rep man` and `rep completions`: texts about the command line, generated from its
//! definition.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Command, Parser};
use recrep_console::manual::{self, SHELLS, Section};

use crate::cli::outcome::{end, output, refused, written};
use crate::cli::{CommandEntry, Line, Refusal, args, help, lacking};
use crate::listings::script::field_names;
use crate::query::{Availability, SortKey};

/// Returns the words that `rep help` (`line`, the program first) means, or answers it.
pub(super) fn help(line: &Line) -> Result<Vec<OsString>, ExitCode> {
    let Line { words, commands } = line;
    let named: Vec<_> = words.iter().skip(2).map(|word| word.to_string_lossy()).collect();
    let named: Vec<&str> = named.iter().map(|word| &**word).collect();
    let text = match named[..] {
        ["keys"] => keys(),
        ["fields"] => format!("Fields of rep script, for -F: {}\n", field_names()),
        _ => {
            let command = lacking::named(&named, commands)
                .map_err(|message| refused(&Refusal::Usage(message)))?;
            let command = command.map(OsString::from);
            return Ok(words
                .iter()
                .take(1)
                .cloned()
                .chain(command)
                .chain(["--help".into()])
                .collect());
        }
    };
    Err(refused(&Refusal::Text(text)))
}

/// Returns the lists of sort keys, a line for each.
fn keys() -> String {
    let lists = [
        ("Sort keys, for -s and -F:", Availability::Always),
        ("Only with --off-cpu, --wall or --critical-path:", Availability::OfTime),
        ("Only with -b:", Availability::OfBranches),
    ];
    let mut text = String::new();
    for (what, availability) in lists {
        text.push_str(&format!("{what}\n"));
        for (names, meaning) in SortKey::meanings(availability) {
            text.push_str(&key_line(&names.join(", "), meaning.trim_end_matches('.')));
        }
        text.push('\n');
    }
    text.push_str("Fields of tracepoints:\n");
    text.push_str(&key_line(
        "[EVENT.]FIELD[/raw]",
        "One field, /raw: without the kernel's print format",
    ));
    text.push_str(&key_line("trace_fields", "All fields"));
    text
}

/// Returns the line of a sort key.
fn key_line(names: &str, meaning: &str) -> String {
    format!("  {names:<34}  {meaning}\n")
}

/// Print the manual page of rep, or of one of its commands, for man(1): rep man | man -l -
#[derive(Debug, Parser)]
#[command(name = "rep man", version, long_about = None)]
pub(super) struct ManArgs {
    /// Command of rep
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Print completions of the command line, for the shell to load
#[derive(Debug, Parser)]
#[command(name = "rep completions", version, long_about = None)]
#[command(after_help = "bash: source <(rep completions bash)\nzsh: rep completions zsh \
                  >DIRECTORY_IN_FPATH/_rep\n\
                  fish: rep completions fish >~/.config/fish/completions/rep.fish")]
pub(super) struct CompletionsArgs {
    /// Shell that loads them
    #[arg(
        value_name = "SHELL",
        value_parser = clap::builder::PossibleValuesParser::new(SHELLS)
    )]
    shell: String,
}

/// Returns the definition of the whole command line: the options of `rep report`, and the commands.
fn definition(commands: &[CommandEntry]) -> Command {
    let mut rep = args::definition();
    for entry in commands {
        // Lists show one line of each command, pages all.
        let command = (entry.definition)();
        let long = command.get_about().map_or_else(|| entry.shows.to_owned(), ToString::to_string);
        let command = command.name(entry.name).display_name(format!("rep-{}", entry.name));
        rep = rep.subcommand(command.about(entry.shows).long_about(long));
    }
    rep
}

/// Prints a manual page: of the whole command line, or of a command in it.
pub(super) fn man(line: &Line) -> ExitCode {
    let commands = line.commands;
    let page = line.parse(|ManArgs { command }| match command {
        None => Ok(definition(commands)),
        Some(name) => {
            lacking::named(&[&name], commands)?;
            let found = definition(commands).find_subcommand(&name).cloned();
            found.ok_or_else(|| {
                format!("'{name}' has no page of its own; it is in the page of rep: rep man")
            })
        }
    });
    let page = match page {
        Ok(asked) => asked.query,
        Err(refusal) => return refused(&refusal),
    };
    let name = page.get_display_name().unwrap_or_else(|| page.get_name()).replacen('-', " ", 1);
    let examples = help::examples(commands, &name);
    let sections = (!examples.is_empty()).then_some(Section::Examples(&examples));
    let text = manual::page(page, sections.as_slice());
    let mut out = output(true);
    written(text.and_then(|text| out.write_all(&text)).and(end(out)))
}

/// Prints completions of the whole command line.
pub(super) fn completions(line: &Line) -> ExitCode {
    let completions = line.parse(|CompletionsArgs { shell }| {
        manual::completions(&shell, definition(line.commands), "rep")
            .ok_or_else(|| format!("unknown shell '{shell}'"))
    });
    let text = match completions {
        Ok(asked) => asked.query,
        Err(refusal) => return refused(&refusal),
    };
    let mut out = output(true);
    written(out.write_all(&text).and(end(out)))
}
