//! Ends of `rec`: with the command's own status, or with its own and a sentence that says what was
//! tried and why it failed.

use std::path::Path;
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::programs::{rec, workload};
use recrep_tests::record::recording;
use recrep_tests::report::report;
use recrep_tests::run::{Outcome, run};

/// Runs `rec` in a directory of its own; the arguments are split at spaces.
#[track_caller]
fn rec_in(dir: &Path, args: &str) -> Outcome {
    run(rec().args(args.split_whitespace()).current_dir(dir))
}

/// `rec ARGS` must end with `code`, having said on few lines of standard error all of `says`, and
/// leave no file.
#[track_caller]
fn assert_fails(code: i32, args: &str, says: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    assert_fails_in(dir.path(), code, args, says);
    assert!(!dir.path().join("out.data").exists(), "a failed recording leaves no file");
}

#[track_caller]
fn assert_fails_in(dir: &Path, code: i32, args: &str, says: &[&str]) {
    let outcome = rec_in(dir, args).expect(code);
    for word in says {
        assert!(outcome.stderr.contains(word), "{word:?} in: {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    assert!(outcome.stderr.lines().count() <= 12, "a clear sentence: {}", outcome.stderr);
    assert_eq!(outcome.text(), "", "errors go to standard error");
}

#[test]
fn usage_errors_are_2() {
    assert_fails(2, "", &["COMMAND"]);
    assert_fails(2, "-e cpu-clock", &["COMMAND"]);
    assert_fails(2, "--no-such-flag -- true", &["--no-such-flag"]);
    assert_fails(2, "-e no-such-event -- true", &["no-such-event"]);
    assert_fails(2, "-e cpu-clock:x -- true", &["cpu-clock:x"]);
    assert_fails(2, "-e cpu-clock -F never -- true", &["never"]);
    assert_fails(2, "-e cpu-clock -m nothing -- true", &["nothing"]);
    assert_fails(2, "-p many -- true", &["many"]);
}

#[test]
fn a_command_that_is_not_there_is_127() {
    if needs::perf_events() {
        assert_fails(
            127,
            "-e cpu-clock -- no-such-command-anywhere",
            &["no-such-command-anywhere"],
        );
        assert_fails(127, "-e cpu-clock -- ./no/such/file", &["./no/such/file"]);
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_126() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("text"), "not a program").unwrap();
    assert_fails_in(dir.path(), 126, "-e cpu-clock -- ./text", &["./text"]);
    assert_fails_in(dir.path(), 126, "-e cpu-clock -- /", &["/"]);
    assert!(!dir.path().join("out.data").exists());
}

/// `args` are the workload's; the status is passed on, and the file is as good as after a success.
#[track_caller]
fn assert_passes_on(code: i32, args: &str) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.data");
    let outcome = run(&mut recording(&file, "-e cpu-clock", &workload(args))).expect(code);
    outcome.summary(&file);
    let report = report(&file, "comm");
    assert!(report.input().complete && report.warnings.is_empty(), "{report:?}");
}

#[test]
fn the_commands_own_status_is_passed_on() {
    if needs::perf_events() {
        assert_passes_on(0, "end --status 0");
        assert_passes_on(1, "end --status 1");
        assert_passes_on(77, "end --status 77");
        assert_passes_on(125, "end --status 125");
    }
}

#[test]
fn a_signal_that_killed_the_command_is_128_more() {
    if needs::perf_events() {
        assert_passes_on(128 + 15, "end --signal 15");
        assert_passes_on(128 + 9, "end --signal 9");
        assert_passes_on(128 + 6, "end --signal 6");
    }
}

#[test]
fn a_process_that_is_gone_is_125() {
    if needs::perf_events() {
        let mut gone = Command::new("true").spawn().unwrap();
        let pid = gone.id();
        gone.wait().unwrap();
        assert_fails(125, &format!("-e cpu-clock -p {pid}"), &[&pid.to_string()]);
    }
}

#[test]
fn an_output_that_cannot_be_made_is_125_and_nothing_is_run() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    assert_fails_in(dir.path(), 125, "-o no/such/dir/x.data -- touch ran", &["no/such/dir/x.data"]);
    std::fs::create_dir(dir.path().join("taken")).unwrap();
    std::fs::write(dir.path().join("taken/file"), "kept").unwrap();
    assert_fails_in(dir.path(), 125, "-o taken -- touch ran", &["taken"]);
    assert!(!dir.path().join("ran").exists(), "the command ran although nothing could be recorded");
    assert_eq!(std::fs::read_to_string(dir.path().join("taken/file")).unwrap(), "kept");
}

#[test]
fn help_and_version_are_answers() {
    let dir = tempfile::tempdir().unwrap();
    for flag in ["--help", "--version"] {
        let outcome = rec_in(dir.path(), flag).expect(0);
        assert!(outcome.text().contains("rec") && outcome.stderr.is_empty(), "{outcome:?}");
    }
}
