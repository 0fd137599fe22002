//! Options that name the inputs.

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
    pub fn source(&self) -> Source {
        Source::or_default(self.input.as_ref().or(self.file.as_ref()).cloned())
    }
}

/// Files to read.
#[derive(Clone, Debug, Args)]
pub struct SourcesArgs {
    /// Files to read, `-` for standard input [default: out.data, else perf.data]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// File to read (may be given several times)
    #[arg(short, long, value_name = "FILE")]
    input: Vec<PathBuf>,
}

impl SourcesArgs {
    /// Returns the inputs to read.
    pub fn sources(self) -> Vec<Source> {
        let named = self.input.into_iter().chain(self.files).map(|path| Source::or_default(Some(path)));
        let named: Vec<_> = named.collect();
        if named.is_empty() { vec![Source::or_default(None)] } else { named }
    }
}
