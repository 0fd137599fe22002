//! `rep modules`: for each module the number of samples with a function, the places searched for symbols, the reason
//! why symbols are missing, and what would help.
//!
//! ```text
//!   report (by dso, symbol) ─► Profile::module_uses ─► Listing ─► text, JSON
//!   Session of each input ───► StackSummary ─────────────┘
//! ```

mod listing;
mod stacks;

use std::ffi::OsString;
use std::io::Write;

use anyhow::Context as _;
use clap::Parser;

use crate::cli;
use crate::cli::source_args::SourcesArgs;
use crate::commands::derived;
use crate::query::sort_key::SortKey;
use crate::query::warning::Warning;
use crate::query::{Format, Query, SymbolOptions};
use crate::view::{CANNOT_WRITE, write_json};
use listing::Listing;
use stacks::StackSummary;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModulesQuery {
    /// Histogram from which modules are counted.
    report: Query,
    /// `true` if only modules with samples without a function are listed.
    unresolved: bool,
}

/// Show for each module how many samples have a function name, where symbols were searched, and how to find more
#[derive(Debug, Parser)]
#[command(name = "rep modules", version, long_about = None)]
// These concern names, which the listing does not show.
#[command(mut_arg("source_paths", |arg| arg.hide(true)), mut_arg("demangle", |arg| arg.hide(true)))]
#[command(mut_arg("mangled", |arg| arg.hide(true)), mut_arg("demangle_kernel", |arg| arg.hide(true)))]
struct ModulesArgs {
    #[command(flatten)]
    sources: SourcesArgs,

    #[command(flatten)]
    symbol_sources: SymbolOptions,

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
        let symbol_sources = args.symbol_sources.with_environment()?;
        let report = Query { sources, columns, format, symbol_sources, ..Query::default() };
        Ok(ModulesQuery { report, unresolved: args.unresolved })
    })
}

/// Lists the modules, and returns warnings.
pub(crate) fn run(query: &ModulesQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let (profile, _, stacks) = derived::profile_with(&query.report, &query.report.columns, StackSummary::of)?;
    let stacks = stacks.into_iter().fold(StackSummary::default(), StackSummary::and);
    let listing = Listing::of(&profile, stacks, query.unresolved);
    match query.report.format {
        Format::Json => write_json(&listing, out),
        _ => listing.print(out),
    }
    .context(CANNOT_WRITE)?;
    Ok(profile.warnings)
}
