//! Options of `rep report` and those that several commands share; exit statuses. Options become a
//! `Query`.

pub mod args;
mod chain_args;
mod filter_args;
mod gate_args;
pub(crate) mod help;
pub(crate) mod lacking;
mod line;
mod mode_args;
pub(crate) mod outcome;
mod output_args;
mod refusal;
mod style_args;
mod symbol_args;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Args, Parser, ValueHint};
use recrep_console::usage;

pub(crate) use filter_args::{FilterArgs, SampleFilterArgs, TaskFilterArgs};
pub(crate) use gate_args::{GateArgs, Gates};
pub(crate) use line::{CommandEntry, HelpPlace, Line, named};
pub(crate) use mode_args::{ModeArgs, TimesArgs};
pub(crate) use output_args::{output_parser, tables_parser};
pub(crate) use refusal::Refusal;
pub(crate) use style_args::HeaderArgs;
pub(crate) use symbol_args::SymbolArgs;

use crate::query::Source;

/// What a command line asks for.
#[derive(Clone, Debug)]
pub struct Asked<Q> {
    /// Query of the command.
    pub query: Q,
    /// `true` if the output must not go to a pager.
    pub no_pager: bool,
    /// `true` if no input was named, so that the user is told which one is read.
    pub is_default_input: bool,
}

impl Line {
    /// Parses the line and compiles it.
    ///
    /// # Errors
    /// Returns an error if the line is wrong, asks for help or the version, or `compile` fails.
    pub(crate) fn parse<A: Parser, Q>(
        &self,
        compile: impl FnOnce(A) -> Result<Q, String>,
    ) -> Result<Asked<Q>, Refusal> {
        let mut command = usage::with_negative_values(A::command());
        let matches = command
            .try_get_matches_from_mut(&self.words)
            .map_err(|error| Refusal::of(&error, &mut command, self))?;
        let args = A::from_arg_matches(&matches)
            .map_err(|error| Refusal::of(&error, &mut command, self))?;
        for file in paths(&matches, &["file", "files"]) {
            lacking::check_word(file, self.commands).map_err(Refusal::Usage)?;
        }
        Ok(Asked {
            query: compile(args).map_err(Refusal::Usage)?,
            no_pager: matches.try_get_one("no_pager").ok().flatten().copied().unwrap_or(false),
            is_default_input: paths(&matches, &["file", "files", "input"]).next().is_none(),
        })
    }
}

/// Parses and compiles a line like `Line::parse`, knowing of no other commands.
///
/// # Errors
/// Returns the errors of `Line::parse`.
pub fn parse<A: Parser, Q>(
    words: impl IntoIterator<Item = OsString>,
    compile: impl FnOnce(A) -> Result<Q, String>,
) -> Result<Asked<Q>, Refusal> {
    Line { words: words.into_iter().collect(), commands: &[] }.parse(compile)
}

/// Returns the paths that are the values of these arguments.
fn paths<'m>(matches: &'m ArgMatches, ids: &'m [&str]) -> impl Iterator<Item = &'m PathBuf> {
    ids.iter().filter_map(|id| matches.try_get_many::<PathBuf>(id).ok().flatten()).flatten()
}

/// Returns the message of the first fault that was found as an error.
pub(crate) fn refuse<const N: usize>(faults: [(bool, &str); N]) -> Result<(), String> {
    match faults.iter().find(|(is_found, _)| *is_found) {
        Some((_, message)) => Err((*message).into()),
        None => Ok(()),
    }
}

/// Checks the values of options that several commands have.
pub(crate) fn check(percent_limit: Option<f64>, separator: Option<&str>) -> Result<(), String> {
    if let Some(percent) = percent_limit.filter(|percent| !(0.0..=100.0).contains(percent)) {
        return Err(format!("--percent-limit takes a number from 0 to 100, not `{percent}`"));
    }
    refuse([(separator == Some(""), "--field-separator takes at least one character")])
}

/// File to read.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArgs {
    /// File to read, `-` for standard input [default: out.data or perf.data, the newer one]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// File to read
    #[arg(
        short, long, value_name = "FILE", conflicts_with = "file", value_hint = ValueHint::FilePath
    )]
    input: Option<PathBuf>,

    #[command(flatten)]
    pager: PagerArgs,
}

/// Option of the pager, which the commands share. [`parse`] reads it.
#[derive(Clone, Debug, Args)]
pub(crate) struct PagerArgs {
    /// Do not show long output on a terminal in a pager ($REP_PAGER, else $PAGER, else less -FRX)
    #[arg(long, help_heading = "Output")]
    no_pager: bool,
}

impl SourceArgs {
    pub(crate) fn source(&self) -> Source {
        Source::or_default(self.input.as_ref().or(self.file.as_ref()).cloned())
    }
}

/// Files to read.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourcesArgs {
    /// Files to read, `-` for standard input [default: out.data or perf.data, the newer one]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// File to read (may be given several times)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    input: Vec<PathBuf>,

    #[command(flatten)]
    pager: PagerArgs,
}

impl SourcesArgs {
    /// Adds a file before the others.
    pub(crate) fn read_first(&mut self, path: PathBuf) {
        self.files.insert(0, path);
    }

    pub(crate) fn sources(&self) -> Vec<Source> {
        let named =
            self.input.iter().chain(&self.files).map(|path| Source::or_default(Some(path.clone())));
        let named: Vec<_> = named.collect();
        if named.is_empty() { vec![Source::or_default(None)] } else { named }
    }
}
