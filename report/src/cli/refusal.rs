//! Command lines that are not answered: wrong ones, and requests for help or the version.

use std::error::Error as _;
use std::fmt;

use clap::Command;
use clap::error::ErrorKind;
use recrep_console::usage;

use super::line::Line;
use super::{help, lacking};
use crate::query::UsageError;

/// A command line that is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is wrong, for this reason.
    Usage(String),
    /// It asks for this text: help or the version.
    Text(String),
}

impl Refusal {
    /// Returns the refusal that an error of clap means.
    pub(super) fn of(error: &clap::Error, command: &mut Command, line: &Line) -> Self {
        match error.kind() {
            ErrorKind::DisplayHelp => {
                let is_long = line.words.iter().any(|word| word == "--help");
                Self::Text(help::text(std::mem::take(command), is_long, line.commands))
            }
            ErrorKind::DisplayVersion => Self::Text(error.render().to_string()),
            _ => Self::Usage(message(error, command.get_name())),
        }
    }

    /// Returns the exit status.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Text(_) => 0,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Text(text) => f.write_str(text),
        }
    }
}

/// Returns the command that writes what `--format` does not print.
fn other_format(error: &clap::Error) -> Option<String> {
    let name = usage::invalid_value(error).filter(|(option, _)| *option == "--format")?.1;
    let line = match name {
        "html" => "rep html FILE",
        "svg" | "flame" | "flamegraph" => "rep flame FILE",
        "pprof" | "proto" => "rep export -o profile.pb.gz FILE",
        _ => return None,
    };
    Some(format!("--format has no `{name}`; another command writes it: {line}"))
}

/// Returns what is wrong, and what the user may have meant.
fn message(error: &clap::Error, command: &str) -> String {
    // These messages say all.
    if let Some(UsageError(own)) =
        error.source().and_then(|source| source.downcast_ref::<UsageError>())
    {
        return own.clone();
    }
    let unknown = usage::unknown_option(error);
    if let Some(why) = unknown.and_then(|option| lacking::option(command, option)) {
        return why;
    }
    if let Some(why) = usage::number_reason(error).or_else(|| other_format(error)) {
        return why;
    }
    let text = usage::reason(error);
    // The advice to put `--` in front is of no use: words that begin with a dash are hardly ever
    // files.
    let lines = text.lines().filter(|line| !line.is_empty() && !line.contains("to pass '"));
    let lines: Vec<&str> = lines.map(str::trim_end).collect();
    format!("{}\n  options: '{command} -h', all: '{command} --help'", lines.join("\n"))
}
