//! The input of a command that reads one file.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::query::Source;

/// Which file to read.
#[derive(Clone, Debug, Args)]
pub struct SourceArgs {
    /// File to read, `-` for standard input [default: out.data, else perf.data]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The file to read
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    input: Option<PathBuf>,
}

impl SourceArgs {
    /// The input that is meant.
    #[must_use]
    pub fn source(self) -> Source {
        Source::or_default(self.input.or(self.file))
    }
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
