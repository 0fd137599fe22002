//! Command lines of `rep info` and `rep evlist`.

use std::ffi::OsString;

use clap::Parser;

use crate::cli::source_args::SourceArgs;
use crate::query::{Format, Source};

/// Query of `rep info`.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoQuery {
    /// Input file.
    pub source: Source,
    /// Output format.
    pub format: Format,
}

/// Details that `rep evlist` prints of each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventDetail {
    /// Name.
    Name,
    /// Name, and frequency or period.
    Rate,
    /// Name and attr.
    Attr,
    /// Names of all events of a group, on one line.
    Group,
}

/// Query of `rep evlist`.
#[derive(Clone, Debug, PartialEq)]
pub struct EvlistQuery {
    /// Input file.
    pub source: Source,
    /// Details to print.
    pub detail: EventDetail,
}

/// Show the layout, events, header features and record counts of a file
#[derive(Debug, Parser)]
#[command(name = "rep info", version, long_about = None)]
struct InfoArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// Print JSON, schema recrep-info/1
    #[arg(long)]
    json: bool,
}

/// List the events of a file, like `perf evlist`
#[derive(Debug, Parser)]
#[command(name = "rep evlist", version, long_about = None)]
struct EvlistArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// Show all non-zero fields of the attrs
    #[arg(short, long)]
    verbose: bool,

    /// Show the sampling frequency or period
    #[arg(short = 'F', long, conflicts_with = "verbose")]
    freq: bool,

    /// Show each group of events on one line
    #[arg(short, long, conflicts_with_all = ["verbose", "freq"])]
    group: bool,
}

/// Parses a command line, whose first word is `rep info`.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<InfoQuery, clap::Error> {
    let args = InfoArgs::try_parse_from(args)?;
    let format = if args.json { Format::Json } else { Format::Text };
    Ok(InfoQuery { source: args.source.source(), format })
}

/// Parses a command line, whose first word is `rep evlist`.
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
