//! Intel PT of programs that ran: each instruction was stepped over, and the steps are the log.
//!
//! A program of the test steps through five others: loops and recursion, indirect calls and jumps, signals, threads, forks. Their
//! threads take turns on one CPU.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_fixtures::trace::{PtCpuFile, Settings, Stepped, Timing};
use recrep_tests::forms::is_full;
use recrep_tests::needs;
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use tempfile::TempDir;

use super::{assert_equal, json, lines, samples, warnings, written};

/// Returns the stepper, compiled.
fn stepper() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("step.c"), dir.path().join("step"));
    std::fs::write(&source, include_str!("step.c")).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-pthread", "-Wl,--build-id", "-o"]).arg(&program).arg(&source);
    run(&mut gcc).expect(0);
    (dir, program)
}

/// Returns the log of stepping through a program.
fn stepped(stepper: &Path, kind: &str, steps: u64) -> Vec<u8> {
    let log = stepper.with_file_name("log");
    run(Command::new(stepper).arg(kind).arg(steps.to_string()).arg(&log)).expect(0);
    std::fs::read(&log).unwrap()
}

/// Returns the log of a program of several tasks in which at least two make steps: which one runs is
/// the kernel's choice, and on a busy machine it may be the first one for all of them.
fn stepped_by_turns(stepper: &Path, kind: &str, steps: u64) -> Vec<u8> {
    let mut bytes = stepped(stepper, kind, steps);
    for _ in 0..20 {
        let mut tasks = BTreeSet::new();
        let log = Stepped::from_log(&bytes, Settings::default(), |branch| {
            tasks.insert(branch.task);
        });
        if log.is_ok() && tasks.len() > 1 {
            break;
        }
        bytes = stepped(stepper, kind, steps);
    }
    bytes
}

#[test]
fn stepped_programs_decode_to_their_steps() {
    if !needs::commands("gcc") {
        return;
    }
    let (_dir, stepper) = &stepper();
    let steps = if is_full() { 120_000 } else { 3_000 };
    let base = Settings { timing: Timing::Mtc, ..Settings::default() };
    let variants = [
        base,
        Settings { timing: Timing::Cyc, has_long_outcomes: true, psb_every: 300, ..base },
        Settings { compresses_returns: false, defers_targets: true, ..base },
    ];
    for kind in ["loops", "indirect", "signals", "threads", "forks"] {
        let has_tasks = ["threads", "forks"].contains(&kind);
        let bytes = match has_tasks {
            true => stepped_by_turns(stepper, kind, steps),
            false => stepped(stepper, kind, steps),
        };
        for settings in &variants[..if is_full() { 3 } else { 1 }] {
            let (mut log, mut tasks) = (Vec::new(), BTreeSet::new());
            let stepped = &Stepped::from_log(&bytes, *settings, |branch| {
                let [pid, tid] = branch.task;
                log.push(format!("{pid}/{tid} {:x} => {:x}", branch.from, branch.to));
                tasks.insert(branch.task);
            });
            let stepped = stepped.as_ref().unwrap();
            log.sort();
            assert!(stepped.instructions > steps * 9 / 10, "{kind}: {}", stepped.instructions);
            assert_eq!(tasks.len() > 1, has_tasks, "{kind}: {tasks:?}");
            let file = PtCpuFile { settings: *settings, stepped };
            let (_dir, file) = &written(&file.stream());
            let args = ["script", "--itrace=b", "-F", "pid,tid,ip,addr"];
            assert_equal(&lines(rep().args(args).arg(file)), &log);
            if needs::commands("perf") {
                for perf in versions() {
                    assert_equal(&lines(version(&perf).args(args).arg("-i").arg(file)), &log);
                }
            }
            let counted = json(&["--itrace=i1i", "-s", "tid"], file);
            assert_eq!(samples(&counted)["instructions"], stepped.instructions, "{kind}");
            assert_eq!(warnings(&counted, "trace-gaps"), [""; 0]);
        }
    }
}
