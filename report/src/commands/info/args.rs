//! The command lines of `rep info` and `rep evlist`.

use std::ffi::OsString;

use clap::Parser;

use super::query::{EventDetail, EvlistQuery, InfoQuery};
use crate::cli::source_args::SourceArgs;
use crate::query::Format;

/// Tells what a file is: its container, its events, its header's features, what records it has
#[derive(Debug, Parser)]
#[command(name = "rep info", version, about, long_about = None)]
struct InfoArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// As JSON, schema recrep-info/1
    #[arg(long)]
    json: bool,
}

/// Lists the events of a file, as `perf evlist` does
#[derive(Debug, Parser)]
#[command(name = "rep evlist", version, about, long_about = None)]
struct EvlistArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// With every field of the attr that is not 0
    #[arg(short, long)]
    verbose: bool,

    /// With the frequency or the period
    #[arg(short = 'F', long, conflicts_with = "verbose")]
    freq: bool,

    /// Groups, each on one line
    #[arg(short, long, conflicts_with_all = ["verbose", "freq"])]
    group: bool,
}

/// Reads a command line (with `rep info` first, as one word).
///
/// # Errors
/// What the user must be told.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<InfoQuery, clap::Error> {
    let args = InfoArgs::try_parse_from(args)?;
    let format = if args.json { Format::Json } else { Format::Text };
    Ok(InfoQuery { source: args.source.source(), format })
}

/// Reads a command line (with `rep evlist` first, as one word).
///
/// # Errors
/// What the user must be told.
pub fn parse_evlist(args: impl IntoIterator<Item = OsString>) -> Result<EvlistQuery, clap::Error> {
    let args = EvlistArgs::try_parse_from(args)?;
    let detail = match (args.verbose, args.freq, args.group) {
        (true, _, _) => EventDetail::Attr,
        (_, true, _) => EventDetail::Rate,
        (_, _, true) => EventDetail::Group,
        _ => EventDetail::Name,
    };
    Ok(EvlistQuery { source: args.source.source(), detail })
}
