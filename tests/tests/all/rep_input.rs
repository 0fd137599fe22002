//! Sentences of `rep` on input that it cannot answer for: a clear one and status 1, or 2 where the question is wrong.
//! What it says of damaged files is in `damage.rs`.

use std::path::Path;

use recrep_tests::needs;
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::{Outcome, run};

/// `rep ARGS` in a directory must end with `code` and say all of `says` on standard error.
#[track_caller]
fn assert_fails(dir: &Path, code: i32, args: &[&str], says: &[&str]) -> Outcome {
    let outcome = run(rep().args(args).current_dir(dir)).expect(code);
    for word in says {
        assert!(outcome.stderr.contains(word), "{word:?} in: {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    assert!(outcome.stderr.lines().count() <= 12, "a clear sentence: {}", outcome.stderr);
    assert_eq!(outcome.text(), "", "errors go to standard error");
    outcome
}

#[test]
fn input_that_cannot_be_answered_is_1() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("empty.data"), "").unwrap();
    std::fs::write(dir.join("text.data"), "#!/bin/sh\necho this is not a profile\n".repeat(100)).unwrap();
    std::fs::write(dir.join("short.data"), "PERFILE2").unwrap();
    std::fs::create_dir(dir.join("folder")).unwrap();
    for name in ["empty.data", "text.data", "short.data", "folder", "missing.data"] {
        assert_fails(dir, 1, &[name], &[name]);
        assert_fails(dir, 1, &["--json", name], &[name]);
        assert_fails(dir, 1, &["-i", name], &[name]);
    }
    let outcome = assert_fails(dir, 1, &["missing.data"], &["missing.data"]);
    assert!(outcome.stderr.to_lowercase().contains("no such file"), "{}", outcome.stderr);
}

#[test]
fn without_a_file_both_names_are_tried() {
    let dir = tempfile::tempdir().unwrap();
    assert_fails(dir.path(), 1, &[], &["out.data", "perf.data"]);
}

#[test]
fn usage_errors_are_2() {
    let dir = tempfile::tempdir().unwrap();
    assert_fails(dir.path(), 2, &["--no-such-flag"], &["--no-such-flag"]);
    assert_fails(dir.path(), 2, &["--sort", "no_such_key", "x.data"], &["no_such_key"]);
    assert_fails(dir.path(), 2, &["--format", "no_such_format", "x.data"], &["no_such_format"]);
}

/// A reader that has seen enough is not an error.
#[test]
fn a_closed_pipe_is_success() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.data");
    record(&file, "-e page-faults -c 1", &workload("faults --pages 10"));
    let script = "\"$0\" --json \"$1\" | true; echo ${PIPESTATUS[0]}";
    let mut bash = std::process::Command::new("bash");
    let outcome = run(bash.args(["-c", script]).arg(rep().get_program()).arg(&file)).expect(0);
    assert_eq!((outcome.text(), outcome.stderr.as_str()), ("0\n", ""));
}

#[test]
fn help_and_version_are_answers() {
    let dir = tempfile::tempdir().unwrap();
    for flag in ["--help", "--version"] {
        let outcome = run(rep().arg(flag).current_dir(dir.path())).expect(0);
        assert!(outcome.text().contains("rep") && outcome.stderr.is_empty(), "{outcome:?}");
    }
}
