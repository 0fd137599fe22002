//! The command line of `rep script`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::fields::Fields;
use super::query::ScriptQuery;
use crate::query::Source;
use crate::symbol_args::SymbolArgs;

/// Prints samples as text, in time order
#[derive(Debug, Parser)]
#[command(name = "rep script", version, about, long_about = None)]
pub struct ScriptArgs {
    /// File to read, `-` for standard input [default: out.data, else perf.data]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The file to read
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    input: Option<PathBuf>,

    /// Columns: comm, pid, tid, cpu, time, event, period, addr, data_src, weight, ip, sym, symoff, dso, brstack, phys_addr, …
    #[arg(short = 'F', long, value_name = "FIELD[,FIELD…]")]
    fields: Option<String>,

    /// Times to the nanosecond
    #[arg(long)]
    ns: bool,

    #[command(flatten)]
    symbol_sources: SymbolArgs,

    /// At most N samples
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Reads a command line (with `rep script` first, as one word).
///
/// # Errors
/// What the user must be told.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<ScriptQuery, clap::Error> {
    let args = ScriptArgs::try_parse_from(args)?;
    let fields = args.fields.as_deref().map(Fields::parse).transpose();
    let fields = fields.map_err(|e| ScriptArgs::command().error(ErrorKind::InvalidValue, format!("--fields: {e}")))?;
    let source = Source::or_default(args.input.or(args.file));
    let symbol_sources = args.symbol_sources.options();
    Ok(ScriptQuery { source, symbol_sources, fields, nanoseconds: args.ns, limit: args.limit })
}

impl Source {
    /// A path as the command line has it; without one, `out.data`, else `perf.data`.
    #[must_use]
    pub fn or_default(path: Option<PathBuf>) -> Self {
        match path {
            Some(path) if path == Path::new("-") => Self::Stdin,
            Some(path) => Self::Path(path),
            None if Path::new("out.data").exists() => Self::Path("out.data".into()),
            None => Self::Path("perf.data".into()),
        }
    }
}
