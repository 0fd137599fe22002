//! Runs `rep` on constructed streams and parses its output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::endian::Endian;
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

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Runs `rep` with these arguments and a file.
pub(crate) fn run(words: &[&str], file: &Path) -> Output {
    rep().args(words).arg(file).output().unwrap()
}

/// Runs `rep`, which must succeed, and returns its output.
pub(crate) fn text(words: &[&str], file: &Path) -> String {
    let output = run(words, file);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `rep --json`, which must succeed, and returns its output.
pub(crate) fn json(words: &[&str], file: &Path) -> Value {
    serde_json::from_str(&text(&[&["--json"], words].concat(), file)).unwrap()
}

/// Returns the rows of an event as (columns joined by `|`, samples, period).
pub(crate) fn rows(answer: &Value, event: usize) -> Vec<(String, u64, u64)> {
    let row = |row: &Value| {
        let columns: Vec<_> = row["key"].as_object().unwrap().values().map(|v| v.as_str().unwrap()).collect();
        (columns.join("|"), row["samples"].as_u64().unwrap(), row["period"].as_u64().unwrap())
    };
    answer["events"][event]["rows"].as_array().unwrap().iter().map(row).collect()
}

/// Returns a row to compare with.
pub(crate) fn row(columns: &str, samples: u64, period: u64) -> (String, u64, u64) {
    (columns.into(), samples, period)
}

/// Two events, two processes, side-band out of file order, several rounds: 2 + 2 × `samples` samples.
pub(crate) fn two_events(endian: Endian, samples: u64) -> Stream {
    let mut stream = Stream::new(endian)
        .event(Event::new("cycles:u"))
        .event(Event::new("faults"))
        .task(7, 7)
        .at(100)
        .comm("first")
        .map("/no/such/lib.so", 0x1000, 0x1000, 0x5000)
        .sample(SampleSpec::at(0x1010).period(10))
        .round();
    // This ring comes later in the file, but its first sample is earlier.
    stream = stream.task(7, 7).at(90).sample(SampleSpec::at(0x1010).period(5)).at(5000).comm("second").round();
    for i in 0..samples {
        let spec = SampleSpec::at(0x1000 + i % 16).period(1);
        stream = stream.of(0).on_cpu(1).task(7, 7).at(5001 + i).sample(spec);
        let spec = SampleSpec::at(0xdead_0000).period(3);
        stream = stream.of(1).on_cpu(0).task(8, 9).at(5001 + i).sample(spec);
    }
    stream.round()
}
