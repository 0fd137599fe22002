//! Command line of `rep c2c`.

use clap::{Parser, ValueEnum};

use crate::analyses::derived::ViewArgs;
use crate::query::{Mode, Query};

/// Show contended cache lines, and which code and threads access them
#[derive(Debug, Parser)]
#[command(name = "rep c2c", version, long_about = None)]
#[command(args_override_self = true)]
#[command(mut_arg("comms", |arg| arg.short(None)), mut_arg("dsos", |arg| arg.short(None)))]
pub struct C2cQuery {
    /// List cache lines with these loads, most loads first
    #[arg(short, long, value_enum, default_value = "tot")]
    pub(super) display: Display,

    /// Also show cache lines that have no loads of the kind chosen with -d
    #[arg(long)]
    pub(super) show_all: bool,

    /// Group the accesses to each offset of a cache line by these fields, not by function
    #[arg(short, long, value_enum, value_delimiter = ',', value_name = "FIELD[,FIELD…]")]
    pub(super) coalesce: Vec<Detail>,

    /// Show the nodes and CPUs that accessed each offset
    #[arg(short = 'N', long)]
    pub(super) node_info: bool,

    /// Treat pairs of adjacent lines, which some processors prefetch together, as one line (128
    /// bytes)
    #[arg(long)]
    double_cl: bool,

    /// Show only the number of accesses of each kind
    #[arg(long)]
    pub(super) stats: bool,

    /// No effect; perf has it: names are always shown in full
    #[arg(long)]
    full_symbols: bool,

    /// No effect; perf has it: source lines are never shown
    #[arg(long)]
    no_source: bool,

    #[command(flatten)]
    pub(super) view: ViewArgs,

    #[arg(skip)]
    pub(super) query: Query,
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
    /// Returns the names in JSON and of the sort key.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Pid => ("process", "process"),
            Self::Tid => ("thread", "tid"),
            Self::Iaddr => ("code", "ip"),
            Self::Dso => ("module", "dso"),
            Self::Function => ("symbol", "symbol"),
        }
    }
}

/// Completes the query.
pub fn query(mut asked: C2cQuery) -> Result<C2cQuery, String> {
    asked.query =
        Query { double_lines: asked.double_cl, ..asked.view.clone().query(Mode::Memory)? };
    if asked.coalesce.is_empty() || asked.coalesce.contains(&Detail::Iaddr) {
        asked.coalesce.push(Detail::Function);
    }
    Ok(asked)
}
