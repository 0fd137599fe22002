//! The command line of `rep c2c`.

use std::ffi::OsString;

use clap::{Parser, ValueEnum};

use crate::commands::derived;
use crate::commands::derived::{FormArgs, ViewArgs};
use crate::query::Query;
use crate::query::sort_key::{Mode, SortKey};

/// What was asked of `rep c2c`.
#[derive(Clone, Debug)]
pub struct C2cQuery {
    pub(super) query: Query,
    pub(super) display: Display,
    pub(super) detail: Vec<Detail>,
    pub(super) nodes: bool,
    pub(super) stats: bool,
    pub(super) all: bool,
}

/// Tells which cache lines cores take from each other, and who touches which parts of them
#[derive(Debug, Parser)]
#[command(name = "rep c2c", version, about, long_about = None)]
#[command(args_override_self = true)]
#[command(mut_arg("comms", |arg| arg.short(None)), mut_arg("dsos", |arg| arg.short(None)))]
struct C2cArgs {
    #[command(flatten)]
    view: ViewArgs,

    #[command(flatten)]
    form: FormArgs,

    /// What makes a line worth listing, and the most of it first
    #[arg(short, long, value_enum, default_value = "tot")]
    display: Display,

    /// Lines that have nothing of what -d says, too
    #[arg(long)]
    show_all: bool,

    /// Tell the accesses of an offset apart by these, instead of by function
    #[arg(short, long, value_enum, value_delimiter = ',', value_name = "FIELD[,FIELD…]")]
    coalesce: Vec<Detail>,

    /// Show the nodes and CPUs that touched each offset
    #[arg(short = 'N', long)]
    node_info: bool,

    /// Take pairs of lines that processors fetch together (128 bytes) for one
    #[arg(long)]
    double_cl: bool,

    /// Only how many accesses there were of each kind
    #[arg(long)]
    stats: bool,

    /// Whole names of functions (what rep prints anyway)
    #[arg(long)]
    full_symbols: bool,

    /// No source lines (what rep does anyway)
    #[arg(long)]
    no_source: bool,
}

/// What lines are listed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Display {
    /// Loads of lines that another core had changed
    Tot,
    /// The same, of cores of this node
    Lcl,
    /// The same, of cores of other nodes
    Rmt,
    /// Loads from the caches of peers
    Peer,
}

/// What tells accesses of one offset apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Detail {
    /// The process
    Pid,
    /// The thread
    Tid,
    /// The address of the code, and its function
    Iaddr,
    /// The module of the code
    Dso,
    /// The function
    #[value(skip)]
    Function,
}

impl Detail {
    /// The sort key of it.
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

/// Reads a command line (with `rep c2c` first, as one word).
///
/// # Errors
/// What the user must be told.
pub fn parse(words: Vec<OsString>) -> Result<C2cQuery, clap::Error> {
    derived::parse(words, |args: C2cArgs| {
        let format = args.form.format(&args.view);
        let mut query = args.view.query(Mode::Memory, format)?;
        query.double_lines = args.double_cl;
        let mut detail = args.coalesce;
        if detail.is_empty() || detail.contains(&Detail::Iaddr) {
            detail.push(Detail::Function);
        }
        let (display, nodes, stats, all) = (args.display, args.node_info, args.stats, args.show_all);
        Ok(C2cQuery { query, display, detail, nodes, stats, all })
    })
}
