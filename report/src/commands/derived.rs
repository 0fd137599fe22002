//! Views that are made of a histogram: what their command lines have in common, and what they make of it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory, Parser, ValueEnum};

use crate::cli::filter_args::FilterArgs;
use crate::cli::symbol_args::SymbolArgs;
use crate::input::several::settled;
use crate::pipeline::report;
use crate::pipeline::session::Session;
use crate::query::sort_key::{Mode, SortKey};
use crate::query::{Column, Format, Query, Source};
use crate::table::profile::Profile;

/// What every view takes.
#[derive(Clone, Debug, Args)]
pub struct ViewArgs {
    /// Files to read, `-` for standard input [default: out.data, else perf.data]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// A file to read (may be given several times)
    #[arg(short, long, value_name = "FILE", action = ArgAction::Append)]
    input: Vec<PathBuf>,

    /// Text on standard output (what rep prints anyway)
    #[arg(long, conflicts_with = "json")]
    stdio: bool,

    /// The same as --format json
    #[arg(long)]
    pub json: bool,

    /// At most N of what is listed
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    #[command(flatten)]
    filters: FilterArgs,

    #[command(flatten)]
    symbol_sources: SymbolArgs,
}

/// The form of the answer, of views that have two.
#[derive(Clone, Debug, Args)]
pub struct FormArgs {
    /// The form of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Text,
    Json,
}

impl FormArgs {
    /// What it means.
    #[must_use]
    pub fn format(&self, args: &ViewArgs) -> Format {
        if args.json || matches!(self.format, Form::Json) { Format::Json } else { Format::Text }
    }
}

impl ViewArgs {
    /// What they mean.
    ///
    /// # Errors
    /// What the user must be told of them.
    pub fn query(self, mode: Mode, format: Format) -> Result<Query, String> {
        let paths: Vec<_> = self.input.into_iter().chain(self.files).collect();
        let sources = match paths.is_empty() {
            true => vec![Source::or_default(None)],
            false => paths.into_iter().map(|path| Source::or_default(Some(path))).collect(),
        };
        let (filters, symbol_sources) = (self.filters.compiled()?, self.symbol_sources.options()?);
        Ok(Query { sources, mode, format, limit: self.limit, filters, symbol_sources, ..Query::default() })
    }
}

/// Reads the command line of a view, its name first as one word, and gives what `compile` makes of it.
///
/// # Errors
/// What the user must be told.
pub fn parse<A: Parser + CommandFactory, Q>(
    words: Vec<OsString>,
    compile: impl FnOnce(A) -> Result<Q, String>,
) -> Result<Q, clap::Error> {
    let args = A::try_parse_from(words)?;
    compile(args).map_err(|message| A::command().error(ErrorKind::InvalidValue, message))
}

/// Columns under their own names.
#[must_use]
pub fn columns(keys: &[(&str, SortKey)]) -> Vec<Column> {
    keys.iter().map(|(typed, key)| Column { typed: (*typed).into(), key: *key }).collect()
}

/// The histogram by these columns, whole.
///
/// # Errors
/// As [`report::run`].
pub fn profile(query: &Query, columns: &[Column]) -> anyhow::Result<(Profile, Query)> {
    settled(&query.sources, || profile_with(query, columns.to_vec(), &mut |_| {}))
}

/// The same, and shows `also` each input's session.
///
/// # Errors
/// As [`report::run_with`].
pub fn profile_with(
    query: &Query,
    columns: Vec<Column>,
    also: &mut dyn FnMut(&Session<'_>),
) -> anyhow::Result<(Profile, Query)> {
    let query = Query { columns, limit: None, percent_limit: None, ..query.clone() };
    Ok((report::run_with(&query, also)?, query))
}

/// Writes a value as JSON on one line.
///
/// # Errors
/// The output cannot be written.
pub fn json(value: &impl serde::Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// How many percent, to two decimals.
#[must_use]
pub fn percent(part: u64, whole: u64) -> f64 {
    (crate::count::metrics::share(part, whole) * 100.0).round() / 100.0
}
