//! `rec man` and `rec completions`: the manual page and the shells' completions, generated from the
//! definition of the command line.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _, Parser};
use recrep_console::manual::{self, SHELLS, Section};

use super::flags::Flags;
use super::list::ListFlags;
use super::stat::StatFlags;
use super::tools::Tool;
use super::{Refusal, help};
use crate::messages::error::{Error, Result};

/// Print the manual page of rec, or of one of its commands, for man(1): rec man | man -l -
#[derive(Debug, Parser)]
#[command(
    name = "rec man",
    bin_name = "rec man",
    after_help = "To record a program named man: rec -- man"
)]
struct ManArgs {
    /// Command of rec
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Print completions of the command line, for the shell to load
#[derive(Debug, Parser)]
#[command(name = "rec completions", bin_name = "rec completions")]
#[command(after_help = "bash: source <(rec completions bash)\nzsh: rec completions zsh \
                  >DIRECTORY_IN_FPATH/_rec\n\
                  fish: rec completions fish >~/.config/fish/completions/rec.fish")]
struct CompletionsArgs {
    /// Shell that loads them
    #[arg(
        value_name = "SHELL",
        value_parser = clap::builder::PossibleValuesParser::new(SHELLS)
    )]
    shell: String,
}

/// Returns whether the command line, which begins with the program's name, is `rec man` or
/// `rec completions`.
pub fn is_asked_for(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|word| word == "man" || word == "completions")
}

/// Prints the page or the completions, and returns the exit status.
pub fn run(args: &[OsString]) -> Result<u8> {
    let words = args.iter().skip(1);
    let text = if args.get(1).is_some_and(|word| word == "man") {
        ManArgs::try_parse_from(words).and_then(|ManArgs { command }| page(command.as_deref()))
    } else {
        CompletionsArgs::try_parse_from(words)
            .and_then(|CompletionsArgs { shell }| completions(&shell))
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => return Ok(Refusal::Usage(error).print()),
    };
    match io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::unwritable("cannot print the text", error))
        }
        _ => Ok(0),
    }
}

/// Returns the definition of the whole command line: the options, and the commands.
fn definition() -> Command {
    let commands = [
        ("list", ListFlags::command()),
        ("stat", StatFlags::command()),
        ("mem", Tool::Mem.command()),
        ("c2c", Tool::C2c.command()),
        ("trace", Tool::Trace.command()),
        ("man", ManArgs::command()),
        ("completions", CompletionsArgs::command()),
    ];
    let mut rec = Flags::command().disable_help_subcommand(true);
    for (name, command) in commands {
        let display = format!("rec-{name}");
        rec = rec.subcommand(
            command.name(name).display_name(display).version(env!("CARGO_PKG_VERSION")),
        );
    }
    rec
}

fn completions(shell: &str) -> std::result::Result<Vec<u8>, clap::Error> {
    manual::completions(shell, definition(), "rec").ok_or_else(|| {
        let why = format!("unknown shell '{shell}'");
        CompletionsArgs::command().error(ErrorKind::InvalidValue, why)
    })
}

/// Returns the manual page of a command, or of rec.
fn page(name: Option<&str>) -> std::result::Result<Vec<u8>, clap::Error> {
    let rec = definition();
    let command = match name {
        None => rec,
        Some(name) => rec.find_subcommand(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = rec.get_subcommands().map(Command::get_name).collect();
            let why = format!(
                "rec has no command '{name}', only {}; to record man: rec -- man",
                names.join(", ")
            );
            ManArgs::command().error(ErrorKind::InvalidValue, why)
        })?,
    };
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let paragraphs = after.split("\n\n").filter(|paragraph| !paragraph.is_empty());
    let sections: Vec<_> = paragraphs
        .map(|paragraph| match paragraph.strip_prefix(help::EXAMPLES) {
            Some(examples) => Section::Examples(examples),
            None => Section::Notes(paragraph),
        })
        .collect();
    Ok(manual::page(command, &sections)?)
}
