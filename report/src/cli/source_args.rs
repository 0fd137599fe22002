//! Input option of commands that read one file.

use std::path::PathBuf;

use clap::Args;

use crate::query::Source;

/// File to read.
#[derive(Clone, Debug, Args)]
pub struct SourceArgs {
    /// File to read, `-` for standard input [default: out.data, else perf.data]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// File to read
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    input: Option<PathBuf>,
}

impl SourceArgs {
    /// Returns the input to read.
    pub fn source(self) -> Source {
        Source::or_default(self.input.or(self.file))
    }
}
