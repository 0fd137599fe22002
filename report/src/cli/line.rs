//! A command line, and the commands that it can name.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Command;

/// A command line, whose first word is the command's name (`rep mem`).
pub(crate) struct Line {
    pub(crate) words: Vec<OsString>,
    /// All commands, for the help and for advice.
    pub(crate) commands: &'static [CommandEntry],
}

/// A command of `rep`: how it is found, listed and run.
#[derive(Clone, Copy)]
pub(crate) struct CommandEntry {
    pub(crate) name: &'static str,
    /// What it shows, for its line in lists.
    pub(crate) shows: &'static str,
    /// Lines of examples.
    pub(crate) examples: &'static [&'static str],
    /// How much `-h` says of it.
    pub(crate) place: HelpPlace,
    /// Its options.
    pub(crate) definition: fn() -> Command,
    pub(crate) run: fn(&Line) -> ExitCode,
}

/// HelpPlace of a command in `-h`; `--help` lists all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelpPlace {
    /// A line of its own.
    Line,
    /// Its name, in the line of the others.
    Name,
    Nowhere,
}

/// Returns the command with this name.
pub(crate) fn named(
    commands: &'static [CommandEntry],
    name: &str,
) -> Option<&'static CommandEntry> {
    commands.iter().find(|command| command.name == name)
}
