//! Tests of `rep` alone: files made by the library, real recordings, and programs that are compiled
//! here. Modules get what is here by `use super::*`: a directory with files, commands that are run,
//! and what `rep` answers.

pub(crate) mod calls;
mod cli;
mod options;
mod symbols;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{
    BranchEntry, BranchFlags, BranchSampleType, EventType, SampleType, SwEvent, context,
};
use recrep_format::endian::Endian;
use recrep_format::record::Body;
use recrep_tests::needs;
use recrep_tests::programs::{programs, rep};
use recrep_tests::report::answered;
use serde_json::Value;
use tempfile::TempDir;

/// All branches of user code.
const BRANCHES: BranchSampleType = BranchSampleType::USER.union(BranchSampleType::ANY);

fn branch(from: u64, to: u64, flags: u64) -> BranchEntry {
    BranchEntry { from, to, flags: BranchFlags(flags) }
}

/// Runs a command, which must succeed, and returns what it prints.
#[track_caller]
fn run(command: &mut Command) -> String {
    String::from_utf8(recrep_tests::run::run(command).expect(0).stdout).unwrap()
}

/// Runs `rep` with `--json`, and returns what it prints. It must fail exactly where it says that
/// nothing was found.
#[track_caller]
fn run_json(command: &mut Command) -> String {
    String::from_utf8(answered(recrep_tests::run::run(command)).stdout).unwrap()
}

/// Runs a command with these words and paths, as [`run`] does.
#[track_caller]
fn tool(words: &str, paths: &[&Path]) -> String {
    let mut words = words.split_whitespace();
    run(Command::new(words.next().unwrap()).args(words).args(paths))
}

/// Returns the message of a command that must have failed without a result.
#[track_caller]
fn refusal(output: Output) -> String {
    assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()));
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the JSON that is in this text.
fn parsed(text: impl AsRef<[u8]>) -> Value {
    serde_json::from_slice(text.as_ref()).unwrap()
}

/// Returns the items of a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Returns the codes of the warnings.
fn codes(answer: &Value) -> Vec<&str> {
    list(&answer["warnings"]).iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

/// A directory with files, deleted at the end of a test.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Returns the rows of an event as (columns joined by `|`, samples, period).
fn rows(answer: &Value, event: usize) -> Vec<(String, u64, u64)> {
    let row = |row: &Value| {
        let columns: Vec<_> =
            row["key"].as_object().unwrap().values().map(|v| v.as_str().unwrap()).collect();
        (columns.join("|"), row["samples"].as_u64().unwrap(), row["period"].as_u64().unwrap())
    };
    list(&answer["events"][event]["rows"]).iter().map(row).collect()
}
