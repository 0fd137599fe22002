//! `rep export`: what files of all formats have of a recording, as their readers see it.

mod firefox;
mod limits;
mod otlp;
mod perfetto;
mod totals;

use std::path::{Path, PathBuf};

use recrep_tests::programs::rep;
use recrep_tests::run::{Outcome, run};

/// Writes the map of a JIT for a process that does not exist, and returns that: `number` is the test's.
pub(crate) fn jit_map(number: u32, text: &[u8]) -> (u32, PathBuf) {
    /// More than all processes.
    const PIDS: u32 = 10_000_000;
    let pid = std::process::id() + number * PIDS;
    let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    std::fs::write(&map, text).unwrap();
    (pid, map)
}

/// Exports a recording.
fn export(recording: &Path, format: &str, out: &Path) -> Outcome {
    run(rep().args(["export", "--format", format, "-o"]).arg(out).arg(recording))
}
