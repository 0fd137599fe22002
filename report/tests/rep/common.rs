//! A directory with files, and `rep`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Returns the command under test.
pub(crate) fn rep() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rep"));
    command.stdin(Stdio::null());
    command
}

/// A directory with files, deleted at the end of a test.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// Returns the rows of an event as (columns joined by `|`, samples, period).
pub(crate) fn rows(answer: &Value, event: usize) -> Vec<(String, u64, u64)> {
    let row = |row: &Value| {
        let columns: Vec<_> = row["key"].as_object().unwrap().values().map(|v| v.as_str().unwrap()).collect();
        (columns.join("|"), row["samples"].as_u64().unwrap(), row["period"].as_u64().unwrap())
    };
    answer["events"][event]["rows"].as_array().unwrap().iter().map(row).collect()
}
