//! Helpers for commands that are computed from a histogram (`mem`, `c2c`, `branches`, `timeline`):
//! common options, the histogram, and the answer as text or JSON.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::{FilterArgs, SourcesArgs, SymbolArgs};
use crate::engine::gather::gather;
use crate::exports::sheet::{Analysis, write_csv, write_json};
use crate::input::retry_if_changed;
use crate::profile::Profile;
use crate::query::{Column, Mode, Needs, Query, Warning};
use crate::samples::Session;
use crate::terminal::parts::CANNOT_WRITE;

/// Options that all these commands share.
#[derive(Clone, Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    sources: SourcesArgs,

    /// Print text on standard output (default); an error with --json
    #[arg(long, conflicts_with = "json")]
    stdio: bool,

    /// Same as --format json
    #[arg(long)]
    pub json: bool,

    /// Print at most N entries of each table
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    #[command(flatten)]
    filters: FilterArgs,

    #[command(flatten)]
    symbols: SymbolArgs,
}

impl ViewArgs {
    /// Returns the output format; `--json` takes precedence over `--format`.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Returns whether `--format bolt` was given.
    pub(crate) fn is_bolt(&self) -> bool {
        self.format == Format::Bolt
    }

    /// Returns whether functions are named.
    pub(crate) fn names_functions(&self) -> bool {
        self.filters.names_functions()
    }

    /// Adds a file before the others.
    pub(crate) fn read_first(&mut self, path: PathBuf) {
        self.sources.read_first(path);
    }

    /// Builds a query from these options.
    pub(crate) fn query(self, mode: Mode) -> Result<Query, String> {
        Ok(Query {
            sources: self.sources.sources(),
            mode,
            needs: self.format().needs(),
            limit: self.limit,
            filters: self.filters.filters(false),
            symbol_sources: self.symbols.options(true)?,
            ..Query::default()
        })
    }
}

/// Output format of an analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
    Csv,
    /// A profile for BOLT, of `rep branches` alone.
    #[value(skip)]
    Bolt,
}

/// Query of an analysis, and the format of its answer.
#[derive(Clone, Debug)]
pub(crate) struct ViewQuery {
    pub(crate) query: Query,
    pub(crate) format: Format,
}

impl Format {
    pub(crate) fn needs(self) -> Needs {
        let is_text = self == Self::Text;
        Needs { companions: !is_text, marks: is_text, ..Needs::default() }
    }
}

/// Computes the histogram by these columns, without limits on rows; starts again if an input
/// changed meanwhile. Also returns what `of` makes of the session of each input, in their order.
pub(crate) fn profile<T: Send>(
    query: &Query,
    columns: Vec<Column>,
    of: impl Fn(&Session<'_>) -> T + Sync,
) -> anyhow::Result<(Profile, Query, Vec<T>)> {
    let query = Query { columns, limit: None, percent_limit: None, ..query.clone() };
    retry_if_changed(&query.sources, || gather(&query, &of))
}

/// Prints an analysis in a format. Returns the warnings.
pub(crate) fn print<A: Analysis>(
    format: Format,
    inputs: &impl Serialize,
    analysis: &A,
    warnings: &[Warning],
    out: &mut dyn Write,
) -> anyhow::Result<Vec<Warning>> {
    let printed = match format {
        Format::Json => write_json(analysis, inputs, warnings, out),
        // A table without rows would look like an answer.
        _ if warnings.iter().any(Warning::is_failure) => Ok(()),
        Format::Csv => write_csv(analysis, out),
        Format::Text | Format::Bolt => analysis.print(out),
    };
    printed.context(CANNOT_WRITE)?;
    Ok(warnings.to_vec())
}
