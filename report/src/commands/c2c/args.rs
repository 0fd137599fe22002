//! Command line of `rep c2c`.

use std::ffi::OsString;

use clap::{Parser, ValueEnum};

use crate::cli;
use crate::commands::derived::ViewArgs;
use crate::query::mode::Mode;
use crate::query::sort_key::SortKey;
use crate::query::{Format, Query};

/// Query of `rep c2c`.
#[derive(Clone, Debug)]
pub struct C2cQuery {
    pub(super) query: Query,
    pub(super) display: Display,
    pub(super) detail: Vec<Detail>,
    pub(super) nodes: bool,
    pub(super) stats: bool,
    pub(super) all: bool,
}

/// Show contended cache lines, and which code and threads access them
#[derive(Debug, Parser)]
#[command(name = "rep c2c", version, long_about = None)]
#[command(args_override_self = true)]
#[command(mut_arg("comms", |arg| arg.short(None)), mut_arg("dsos", |arg| arg.short(None)))]
struct C2cArgs {
    #[command(flatten)]
    view: ViewArgs,

    /// Output format
    #[arg(long, value_parser = cli::formats(["text", "json"]), default_value = "text")]
    format: Format,

    /// List cache lines with these loads, most loads first
    #[arg(short, long, value_enum, default_value = "tot")]
    display: Display,

    /// Also show cache lines that have no loads of the kind chosen with -d
    #[arg(long)]
    show_all: bool,

    /// Group the accesses to each offset of a cache line by these fields, not by function
    #[arg(short, long, value_enum, value_delimiter = ',', value_name = "FIELD[,FIELD…]")]
    coalesce: Vec<Detail>,

    /// Show the nodes and CPUs that accessed each offset
    #[arg(short = 'N', long)]
    node_info: bool,

    /// Treat pairs of adjacent lines, which some processors prefetch together, as one line (128 bytes)
    #[arg(long)]
    double_cl: bool,

    /// Show only the number of accesses of each kind
    #[arg(long)]
    stats: bool,

    /// No effect; perf has it: names are always shown in full
    #[arg(long)]
    full_symbols: bool,

    /// No effect; perf has it: source lines are never shown
    #[arg(long)]
    no_source: bool,
}

/// Loads for which a cache line is listed, and by which lines are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Display {
    /// All HITM loads (another core had modified the line)
    Tot,
    /// HITM loads from other cores of the same node
    Lcl,
    /// HITM loads from cores of other nodes
    Rmt,
    /// Loads from other cores' caches
    Peer,
}

/// Field by which the accesses of one offset are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Detail {
    /// Process
    Pid,
    /// Thread
    Tid,
    /// Code address, with its function
    Iaddr,
    /// Module of the code
    Dso,
    /// Function
    #[value(skip)]
    Function,
}

impl Detail {
    /// Returns the JSON name and the sort key.
    pub(super) fn key(self) -> (&'static str, SortKey) {
        match self {
            Self::Pid => ("process", SortKey::Process),
            Self::Tid => ("thread", SortKey::Tid),
            Self::Iaddr => ("code", SortKey::Ip),
            Self::Dso => ("module", SortKey::Dso),
            Self::Function => ("symbol", SortKey::Symbol),
        }
    }
}

/// Parses a command line, whose first word is `rep c2c`.
pub fn parse(words: Vec<OsString>) -> Result<C2cQuery, clap::Error> {
    cli::parse(words, |args: C2cArgs| {
        let mut query = args.view.query(Mode::Memory, args.format)?;
        query.double_lines = args.double_cl;
        let mut detail = args.coalesce;
        if detail.is_empty() || detail.contains(&Detail::Iaddr) {
            detail.push(Detail::Function);
        }
        let (display, nodes, stats, all) = (args.display, args.node_info, args.stats, args.show_all);
        Ok(C2cQuery { query, display, detail, nodes, stats, all })
    })
}
