//! Sentences of `rep` on input that it cannot answer for: a clear one and status 1, or 2 where the
//! question is wrong. What it says of damaged files is in `damage.rs`.

use std::path::Path;

use recrep_tests::programs::rep;
use recrep_tests::run::run;

/// `rep ARGS` in a directory must end with `code` and say all of `says` on standard error.
#[track_caller]
fn assert_fails(dir: &Path, code: i32, args: &[&str], says: &[&str]) {
    let outcome = run(rep().args(args).current_dir(dir)).expect(code);
    for word in says {
        assert!(outcome.stderr.contains(word), "{word:?} in: {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    assert!(outcome.stderr.lines().count() <= 12, "a clear sentence: {}", outcome.stderr);
    assert_eq!(outcome.text(), "", "errors go to standard error");
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

#[test]
fn help_and_version_are_answers() {
    let dir = tempfile::tempdir().unwrap();
    for flag in ["--help", "--version"] {
        let outcome = run(rep().arg(flag).current_dir(dir.path())).expect(0);
        assert!(outcome.text().contains("rep") && outcome.stderr.is_empty(), "{outcome:?}");
    }
}
