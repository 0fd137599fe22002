//! Traces of processors, decoded: recordings made here, against perf.

mod bts;
mod code;
mod cycles;
mod damage;
mod pt;
mod side_events;
mod spe;
mod steps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_fixtures::build::Stream;
use recrep_tests::programs::rep;
use recrep_tests::report::answered;
use recrep_tests::run::run;
use serde_json::Value;
use tempfile::TempDir;

/// Writes a recording into a directory, which is deleted at the end of a test.
fn written(stream: &Stream) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    std::fs::write(&file, stream.file()).unwrap();
    (dir, file)
}

/// Returns the lines of a listing, without padding, in an order of their own.
fn lines(command: &mut Command) -> Vec<String> {
    let outcome = run(command).expect(0);
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = outcome.text().lines().map(squeezed).collect();
    lines.retain(|line| !line.is_empty());
    lines.sort();
    lines
}

/// Returns the packets in a dump of rep or of perf: offset, bytes, and what they are.
fn packets(dump: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    dump.lines().filter_map(|line| {
        let line = line.trim_start_matches(['.', ' ']);
        let (at, rest) = line.split_once([':', ' '])?;
        let is_packet = at.len() == 8 && at.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_packet.then(|| (at, rest.split_whitespace().collect()))
    })
}

/// Fails with the first lines that differ.
#[track_caller]
fn assert_equal(ours: &[String], perfs: &[String]) {
    let mut counts: BTreeMap<&String, i64> = BTreeMap::new();
    ours.iter().for_each(|line| *counts.entry(line).or_default() += 1);
    perfs.iter().for_each(|line| *counts.entry(line).or_default() -= 1);
    let differing: Vec<_> = counts.iter().filter(|(_, count)| **count != 0).take(10).collect();
    let lens = (ours.len(), perfs.len());
    assert!(
        differing.is_empty(),
        "{lens:?} lines; 1: rep's alone, -1: perf's alone: {differing:#?}"
    );
}

/// Returns what rep says in JSON.
fn json(args: &[&str], file: &Path) -> Value {
    let outcome = answered(run(rep().args(args).arg("--json").arg(file)));
    serde_json::from_slice(&outcome.stdout).unwrap()
}

/// Returns the samples of each event that has any.
fn samples(answer: &Value) -> BTreeMap<String, u64> {
    let events = answer["events"].as_array().unwrap().iter();
    let counted = events.map(|event| {
        (event["name"].as_str().unwrap().to_owned(), event["samples"].as_u64().unwrap())
    });
    counted.filter(|(_, samples)| *samples > 0).collect()
}

/// Returns the messages of warnings with this code.
fn warnings(answer: &Value, code: &str) -> Vec<String> {
    let all = answer["warnings"].as_array().unwrap().iter();
    let found = all.filter(|warning| warning["code"] == code);
    found.map(|warning| warning["message"].as_str().unwrap().to_owned()).collect()
}
