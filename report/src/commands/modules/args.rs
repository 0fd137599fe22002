//! Command line of `rep modules`.

use std::ffi::OsString;

use clap::Parser;

use crate::cli;
use crate::cli::source_args::SourcesArgs;
use crate::cli::symbol_args::SymbolArgs;
use crate::commands::derived;
use crate::query::sort_key::SortKey;
use crate::query::{Format, Query};

/// Query of `rep modules`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModulesQuery {
    /// Histogram from which modules are counted.
    pub(super) report: Query,
    /// `true` if only modules with samples without a function are listed.
    pub(super) unresolved: bool,
}

/// Show for each module how many samples have a function name, where symbols were searched, and how to find more
#[derive(Debug, Parser)]
#[command(name = "rep modules", version, long_about = None)]
// These concern names, which the listing does not show.
#[command(mut_arg("full_source_path", |arg| arg.hide(true)), mut_arg("demangle", |arg| arg.hide(true)))]
#[command(mut_arg("no_demangle", |arg| arg.hide(true)), mut_arg("demangle_kernel", |arg| arg.hide(true)))]
struct ModulesArgs {
    #[command(flatten)]
    sources: SourcesArgs,

    #[command(flatten)]
    symbol_sources: SymbolArgs,

    /// Only modules that have samples whose function is unknown
    #[arg(short, long)]
    unresolved: bool,

    /// Print JSON, schema recrep-modules/1
    #[arg(long)]
    json: bool,
}

/// Parses a command line, whose first word is `rep modules`.
pub(crate) fn parse(words: Vec<OsString>) -> Result<ModulesQuery, clap::Error> {
    cli::parse(words, |args: ModulesArgs| {
        let sources = args.sources.sources();
        let columns = derived::columns(&[("dso", SortKey::Dso), ("symbol", SortKey::Symbol)]);
        let format = if args.json { Format::Json } else { Format::Text };
        let symbol_sources = args.symbol_sources.options()?;
        let report = Query { sources, columns, format, symbol_sources, ..Query::default() };
        Ok(ModulesQuery { report, unresolved: args.unresolved })
    })
}
