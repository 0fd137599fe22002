//! The command line: the options of perf record, under the same names, read by clap into a
//! `Config`.
//!
//! ```text
//!  words as typed ── words ──▶ words for clap ── clap ──▶ Flags ── flags/*, selection ──▶ Config
//! ```
//!
//! `rec mem`, `rec c2c` and `rec trace` (`tools`) are the same with a few flags more or less, and
//! choose the events.
//!
//! A flag of perf record that rec lacks is refused by name, with an alternative; nothing is
//! accepted and ignored. `record/docs/options.md` lists all flags.

mod flags;
mod help;
pub mod list;
pub mod manual;
mod refusal;
mod selection;
pub mod stat;
mod tools;
mod values;
mod words;

use std::ffi::OsString;
use std::io::Write as _;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::machine::Machine;
use crate::messages::error::Error;
use crate::messages::{Messages, Verbosity};
use crate::plan::config::Config;
use flags::{Flags, PERFS_OWN};
use tools::Tool;

/// A command line that is no recording: a mistake, or a request for help, the version or a list.
#[derive(Debug)]
pub enum Refusal {
    /// A mistake, or a request for help or the version.
    Usage(clap::Error),
    /// A list that was asked for, or the short help.
    List(String),
    /// A machine that cannot do what is asked for.
    Failed(Error),
}

impl Refusal {
    /// Prints the error to standard error, or the help to standard output, and returns the exit
    /// status.
    pub fn print(&self) -> u8 {
        // If the output cannot be written, there is no place left to report that.
        let _ = match self {
            Self::Usage(error) if error.use_stderr() => {
                Messages::stderr(Verbosity::Normal).error(refusal::sentence(error));
                Ok(())
            }
            Self::Usage(error) => error.print(),
            Self::List(list) => std::io::stdout().lock().write_all(list.as_bytes()),
            Self::Failed(error) => {
                Messages::stderr(Verbosity::Normal).error(error);
                Ok(())
            }
        };
        self.exit_status()
    }

    fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::List(_) => 0,
            Self::Failed(error) => error.exit_status(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(error) if error.use_stderr() => f.write_str(&refusal::sentence(error)),
            Self::Usage(error) => error.fmt(f),
            Self::List(list) => list.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// Parses the command line, which begins with the program's name.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Config, Refusal> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let cmdline = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let tool = Tool::of(&args);
    if tool.is_some() {
        args.remove(1);
    }
    // After a `--`, and after commands, which have rules of their own, any word is the command.
    let may_be_of_others = tool.is_none() && !args.iter().any(|word| word == "--");
    let mut command = words::with_negations(tool.map_or_else(Flags::command, Tool::command));
    let (args, subcommand) =
        words::separated(args, &command, tool.map_or(&[], |_| &["record", "report"]));
    if let (Some(tool), Some("report")) = (tool, subcommand) {
        return Err(Refusal::Usage(
            command.error(ErrorKind::InvalidSubcommand, tool.has_no_reports()),
        ));
    }
    let before_command =
        args.iter().skip(1).take_while(|word| word.as_encoded_bytes().starts_with(b"-"));
    let is_whole = before_command.clone().any(|word| word.as_encoded_bytes().starts_with(b"--h"));
    let typed = args.clone();
    let matches = command.try_get_matches_from_mut(args).map_err(|error| {
        if let Some(advice) = refusal::value_of_g(&typed, None) {
            return Refusal::Usage(command.error(ErrorKind::UnknownArgument, advice));
        }
        if error.kind() == ErrorKind::DisplayHelp && tool.is_none() && !is_whole {
            return Refusal::List(help::SHORT.to_owned());
        }
        let error = words::name_flag(error, &mut command);
        let error = words::name_unsupported(error, &mut command, "perf record", PERFS_OWN);
        Refusal::Usage(refusal::name_nearest(error, &mut command))
    })?;
    let mut flags = Flags::from_arg_matches(&matches).map_err(Refusal::Usage)?;
    let mut wrong = |e: Error| match e {
        Error::Usage(why) => Refusal::Usage(command.error(ErrorKind::ValueValidation, why)),
        other => Refusal::Failed(other),
    };
    let first = flags.command.first().filter(|_| may_be_of_others);
    let advice = refusal::command_of_others(first.map(OsString::as_os_str));
    let command_word = flags.command.first().map(OsString::as_os_str);
    if let Some(advice) = advice.or_else(|| refusal::value_of_g(&typed, command_word)) {
        return Err(wrong(Error::Usage(advice)));
    }
    let machine = match &flags.general.machine {
        Some(path) => Machine::from_file(path),
        None if flags.events.event_tables.is_some() => Machine::read().map(Machine::with_cpuid),
        None => Machine::read(),
    };
    let machine = machine.map_err(&mut wrong)?;
    let (mut lists, mut notes, mut view) = (None, Vec::new(), "");
    if let Some(tool) = tool {
        if let Some(list) = tool.listing(&flags, &machine).map_err(&mut wrong)? {
            return Err(Refusal::List(list));
        }
        let chosen = tool.choose(&mut flags, &matches, &machine).map_err(&mut wrong)?;
        (lists, notes, view) = (Some(chosen.lists), chosen.notes, chosen.view);
    }
    let config = flags.config(&matches, lists, &machine, cmdline);
    let config = config.map_err(|why| wrong(Error::Usage(why)))?;
    Ok(Config { notes, view, ..config })
}

#[cfg(test)]
mod tests;
