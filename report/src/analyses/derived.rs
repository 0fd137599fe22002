//! Helpers for commands that are computed from a histogram (`mem`, `c2c`, `branches`, `timeline`):
//! common options, the histogram, and the answer as text or JSON.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use crate::cli::{self, FilterArgs, SourcesArgs, SymbolArgs};
use crate::engine::gather::gather;
use crate::exports::outputs::{self, Output};
use crate::exports::sheet::{Analysis, Analyzed};
use crate::input::retry_if_changed;
use crate::profile::Profile;
use crate::query::{Column, Mode, Query, Warning};
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
    #[arg(long, default_value = "text", value_parser = cli::tables_parser())]
    format: &'static Output,

    #[command(flatten)]
    filters: FilterArgs,

    #[command(flatten)]
    symbols: SymbolArgs,
}

impl ViewArgs {
    /// Returns the output; `--json` takes precedence over `--format`.
    pub(crate) fn output(&self) -> &'static Output {
        output(self.json, self.format)
    }

    /// Returns whether the output prints the paths of `rep branches`.
    pub(crate) fn is_of_paths(&self) -> bool {
        self.format.paths.is_some()
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
            needs: self.output().table_needs(),
            limit: self.limit,
            filters: self.filters.filters(false),
            symbol_sources: self.symbols.options(true)?,
            ..Query::default()
        })
    }
}

/// Query of an analysis, and the output of its answer.
#[derive(Clone, Debug)]
pub(crate) struct ViewQuery {
    pub(crate) query: Query,
    pub(crate) output: &'static Output,
}

/// Returns the output that `--json` and `--format` mean.
pub(crate) fn output(json: bool, format: &'static Output) -> &'static Output {
    if json { outputs::named("json") } else { format }
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

/// Prints an analysis. Returns the warnings.
pub(crate) fn print<A: Analysis>(
    output: &Output,
    inputs: &impl Serialize,
    analysis: &A,
    warnings: &[Warning],
    out: &mut dyn Write,
) -> anyhow::Result<Vec<Warning>> {
    // Tables without rows would look like an answer; JSON has the warnings.
    let is_answer = output.has_warnings || !warnings.iter().any(Warning::is_failure);
    if let Some(printer) = output.tables.filter(|_| is_answer) {
        (printer.write)(&Analyzed { inputs, analysis, warnings }, out).context(CANNOT_WRITE)?;
    }
    Ok(warnings.to_vec())
}
