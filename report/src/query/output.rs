//! Output: its contents and its format.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people.
    #[default]
    Text,
    /// JSON with the schema `recrep-report/1`.
    Json,
    /// One line per distinct callchain.
    Folded,
    /// Comma-separated values, one line per row of each event.
    Csv,
    /// A profile for BOLT, which only `rep branches` has.
    Bolt,
}

/// Something to print instead of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspection {
    Stats,
    Tasks,
    /// Tasks with their mappings.
    Mmaps,
    /// All records.
    Records,
    /// The file's header.
    Header,
}
