//! Needs of a test: what the machine must have.
//!
//! A need that is not met prints why and lets the test return early; where `CI=true` it fails
//! instead, so that a machine that cannot run the tests never looks like one that passes them. That
//! perf events may be used is found out by asking perf, not `rec`: a broken `rec` must not skip its
//! own tests.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::campaign::originals;
use crate::perf::{perf, recorder};
use crate::programs::workspace;
use crate::run::{probe, run};
use crate::tracing::with_tracefs;

/// perf, and the right to use it here: what nearly every test of this package needs.
#[track_caller]
pub fn perf_events() -> bool {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    met(FOUND.get_or_init(probe_perf_events))
}

/// These commands, separated by spaces. Some (go, openssl) have a `version` for a `--version`.
#[track_caller]
pub fn commands(names: &str) -> bool {
    let missing = names.split(' ').find(|name| !runs(name));
    met(&missing.map_or(Ok(()), |name| Err(format!("needs {name}"))))
}

/// Returns whether a command says its version.
fn runs(name: &str) -> bool {
    ["--version", "version"].iter().any(|version| {
        Command::new(name).arg(version).output().is_ok_and(|output| output.status.success())
    })
}

/// Node, Chromium or its shell without windows, and what the tests of pages import (`npm ci` in
/// `tests/page`): where these modules are missing, in CI too, the test says that it did not run.
#[track_caller]
pub fn browser() -> bool {
    if !workspace().join("tests/page/node_modules").is_dir() {
        skipped("needs the modules of tests/page: npm ci --prefix tests/page");
        return false;
    }
    let shell = runs("chromium-headless-shell");
    commands(if shell { "node" } else { "node chromium" })
}

/// A Python that has DuckDB, which `.ci/run` installs into `target/python`: where there is none, in CI
/// too, the test says that it did not run.
#[track_caller]
pub fn duckdb() -> Option<PathBuf> {
    let own = workspace().join("target/python/bin/python3");
    let has = |python: &PathBuf| {
        let output = Command::new(python).args(["-c", "import duckdb"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let found = [own, PathBuf::from("python3")].into_iter().find(has);
    if found.is_none() {
        skipped(
            "needs the Python package duckdb: python3 -m venv target/python; \
                 target/python/bin/pip install duckdb",
        );
    }
    found
}

/// This file, of a package of Debian's.
#[track_caller]
pub fn file(path: &Path, package: &str) -> bool {
    let why = || format!("needs {} (Debian: {package})", path.display());
    met(&path.is_file().then_some(()).ok_or_else(why))
}

/// mandoc, which knows no `--version`.
#[track_caller]
pub fn mandoc() -> bool {
    let runs = Command::new("mandoc").arg("/dev/null").output().is_ok();
    met(&runs.then_some(()).ok_or("needs mandoc".to_owned()))
}

/// Root, and `setpriv` to become somebody else.
#[track_caller]
pub fn root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    met(&is_root.then_some(()).ok_or("needs root".to_owned())) && commands("setpriv")
}

/// Root, and tracefs in a mount namespace: what tracepoints need.
#[track_caller]
pub fn tracefs() -> bool {
    if !perf_events() || !root() {
        return false;
    }
    let mut look = Command::new("test");
    look.args(["-e", "/sys/kernel/tracing/events/sched/sched_switch/id"]);
    let found = run(&mut with_tracefs(&look));
    let why = format!("needs tracefs, to be mounted in a mount namespace: {}", found.stderr.trim());
    met(&(found.code() == 0).then_some(()).ok_or(why))
}

/// The folder of real recordings, which are not part of the project: where `RECREP_CORPUS` names
/// none, the test says that it did not run, in CI too; where it names one, that must have
/// recordings.
#[track_caller]
pub fn corpus() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("RECREP_CORPUS").map(PathBuf::from) else {
        skipped("RECREP_CORPUS names no folder of recordings");
        return None;
    };
    let files = originals(&folder)
        .unwrap_or_else(|error| panic!("RECREP_CORPUS={}: {error}", folder.display()));
    assert!(
        !files.is_empty(),
        "RECREP_CORPUS={}: there is no perf.data file in it",
        folder.display()
    );
    Some(folder)
}

#[track_caller]
fn met(found: &Result<(), String>) -> bool {
    let Err(why) = found else { return true };
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "cannot be tested on this machine: {why}"
    );
    skipped(why);
    false
}

/// Says that the test does not run, past the harness, which keeps what is printed by tests that
/// pass.
fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Where nobody listens there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

fn probe_perf_events() -> Result<(), String> {
    if perf().arg("--version").output().is_err() {
        return Err(
            "needs perf (Debian: linux-perf); another one than perf in PATH is named by PERF"
                .to_owned(),
        );
    }
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let output = probe(
        recorder().args(["-e", "cpu-clock", "-o"]).arg(dir.path().join("probe.data")).arg("true"),
    );
    if output.code() == 0 {
        return Ok(());
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .unwrap_or_else(|_| "not there".to_owned());
    Err(format!(
        "perf_event_open is refused (kernel.perf_event_paranoid is {}; 2 lets users profile their \
         own programs; containers may forbid it by seccomp): {}",
        paranoid.trim(),
        output.stderr.trim()
    ))
}
