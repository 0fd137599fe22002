//! Options of `rep report` and those that several commands share; exit statuses. Options become a `Query`.

pub mod args;
pub mod help;
pub mod outcome;

use std::error::Error as _;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{Error, ErrorKind};
use clap::{Args, Parser, ValueEnum as _};

use crate::query::{Format, Source, UsageError};

/// Parses a command line, whose first word is the command's name (`rep mem`), and compiles it.
///
/// # Errors
/// Returns an error if the command line is wrong, asks for help or the version, or `compile` fails.
pub fn parse<A: Parser, Q>(
    words: impl IntoIterator<Item = OsString>,
    compile: impl FnOnce(A) -> Result<Q, String>,
) -> Result<Q, Error> {
    let wrong = |message: String| A::command().error(ErrorKind::InvalidValue, message);
    let args = A::try_parse_from(words).map_err(|error| {
        // The message of this one says all, so clap puts nothing in front of it.
        let own = error.source().and_then(|source| source.downcast_ref::<UsageError>());
        own.map(|UsageError(message)| wrong(message.clone())).unwrap_or(error)
    })?;
    compile(args).map_err(wrong)
}

/// Returns the message of the first fault that was found as an error.
pub fn refuse<const N: usize>(faults: [(bool, &str); N]) -> Result<(), String> {
    match faults.iter().find(|(is_found, _)| *is_found) {
        Some((_, message)) => Err((*message).into()),
        None => Ok(()),
    }
}

/// Checks the values of options that several commands have.
pub fn check(percent_limit: Option<f64>, separator: Option<&str>) -> Result<(), String> {
    refuse([
        (percent_limit.is_some_and(|p| !(0.0..=100.0).contains(&p)), "--percent-limit takes a number from 0 to 100"),
        (separator == Some(""), "--field-separator takes at least one character"),
    ])
}

/// Returns a parser that takes these names of output formats.
pub fn formats<const N: usize>(names: [&'static str; N]) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(names).map(|name| Format::from_str(&name, false).unwrap_or_default())
}

/// File to read.
#[derive(Clone, Debug, Args)]
pub struct SourceArgs {
    /// File to read, `-` for standard input [default: out.data, else perf.data]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// File to read
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    input: Option<PathBuf>,
}

impl SourceArgs {
    pub(crate) fn source(&self) -> Source {
        Source::or_default(self.input.as_ref().or(self.file.as_ref()).cloned())
    }
}

/// Files to read.
#[derive(Clone, Debug, Args)]
pub struct SourcesArgs {
    /// Files to read, `-` for standard input [default: out.data, else perf.data]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// File to read (may be given several times)
    #[arg(short, long, value_name = "FILE")]
    input: Vec<PathBuf>,
}

impl SourcesArgs {
    pub(crate) fn sources(&self) -> Vec<Source> {
        let named = self.input.iter().chain(&self.files).map(|path| Source::or_default(Some(path.clone())));
        let named: Vec<_> = named.collect();
        if named.is_empty() { vec![Source::or_default(None)] } else { named }
    }
}
