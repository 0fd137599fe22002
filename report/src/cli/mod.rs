//! Options of `rep report` and those that several commands share; exit statuses. Options become a
//! [`Query`](crate::query::Query).

pub mod args;
pub mod call_args;
pub mod filter_args;
pub mod help;
pub mod outcome;
pub mod source_args;

use std::ffi::OsString;

use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{Error, ErrorKind};

use crate::query::Format;

/// Parses a command line, whose first word is the command's name (`rep mem`), and compiles it.
///
/// # Errors
/// Returns an error if the command line is wrong, asks for help or the version, or `compile` fails.
pub fn parse<A: Parser, Q>(
    words: impl IntoIterator<Item = OsString>,
    compile: impl FnOnce(A) -> Result<Q, String>,
) -> Result<Q, Error> {
    compile(A::try_parse_from(words)?).map_err(|message| A::command().error(ErrorKind::InvalidValue, message))
}

/// Returns a parser that takes these names of output formats.
pub fn formats<const N: usize>(names: [&'static str; N]) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(names).map(|name| match &*name {
        "json" => Format::Json,
        "folded" => Format::Folded,
        "csv" => Format::Csv,
        _ => Format::Text,
    })
}
