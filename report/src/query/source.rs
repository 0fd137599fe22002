//! The inputs named on the command line.

use std::path::{Path, PathBuf};

/// An input as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file, or a directory of `perf record --threads`.
    Path(PathBuf),
}

impl Source {
    /// Returns the input that `path` names (`-` is standard input); without a path, `out.data` if it exists, else
    /// `perf.data`.
    pub fn or_default(path: Option<PathBuf>) -> Self {
        match path {
            Some(path) if path == Path::new("-") => Self::Stdin,
            Some(path) => Self::Path(path),
            None if Path::new("out.data").exists() => Self::Path("out.data".into()),
            None => Self::Path("perf.data".into()),
        }
    }
}
