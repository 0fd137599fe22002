//! Command line of `rep modules`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::query::ModulesQuery;
use crate::cli::symbol_args::SymbolArgs;
use crate::query::sort_key::SortKey;
use crate::query::{Column, Format, Query, Source};

/// Show for each module how many samples have a function name, where symbols were searched, and how to find more
#[derive(Debug, Parser)]
#[command(name = "rep modules", version, long_about = None)]
// These concern names, which the listing does not show.
#[command(mut_arg("full_source_path", |arg| arg.hide(true)), mut_arg("demangle", |arg| arg.hide(true)))]
#[command(mut_arg("no_demangle", |arg| arg.hide(true)), mut_arg("demangle_kernel", |arg| arg.hide(true)))]
struct ModulesArgs {
    /// Files to read, `-` for standard input [default: out.data, else perf.data]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// File to read (may be given several times)
    #[arg(short, long, value_name = "FILE")]
    input: Vec<PathBuf>,

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
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<ModulesQuery, clap::Error> {
    let args = ModulesArgs::try_parse_from(args)?;
    let paths: Vec<_> = args.input.into_iter().chain(args.files).collect();
    let source = |path: PathBuf| if path == Path::new("-") { Source::Stdin } else { Source::Path(path) };
    let sources =
        if paths.is_empty() { vec![Source::or_default(None)] } else { paths.into_iter().map(source).collect() };
    let column = |name: &str, key| Column { typed: name.into(), key };
    let columns = vec![column("dso", SortKey::Dso), column("symbol", SortKey::Symbol)];
    let format = if args.json { Format::Json } else { Format::Text };
    let wrong = |message: String| ModulesArgs::command().error(ErrorKind::InvalidValue, message);
    let symbol_sources = args.symbol_sources.options().map_err(wrong)?;
    let report = Query { sources, columns, format, symbol_sources, ..Query::default() };
    Ok(ModulesQuery { report, unresolved: args.unresolved })
}
