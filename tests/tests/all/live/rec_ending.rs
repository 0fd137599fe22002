//! What `rec` says at the end beside its last line: the hottest functions on a terminal, why there
//! are no samples.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use recrep_tests::lock::cpus;
use recrep_tests::needs;
use recrep_tests::programs::programs;
use recrep_tests::record::recording;
use recrep_tests::run::{Outcome, run};

/// Burns CPU time, and ends with status 3.
const BUSY: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 3";

/// Runs the `rec` of a directory on a terminal.
fn on_a_terminal(dir: &Path, flags: &str) -> Outcome {
    let _cpus = cpus();
    let line = format!("./rec -e cpu-clock {flags} -- sh -c '{BUSY}'");
    run(Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .current_dir(dir))
}

#[test]
fn a_terminal_shows_the_hottest_functions() {
    if !needs::perf_events() || !needs::commands("script") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::copy(&programs().rec, dir.path().join("rec")).unwrap();
    let rows = |flags: &str| {
        let outcome = on_a_terminal(dir.path(), flags).expect(3);
        let text = outcome.text().replace('\r', "");
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.starts_with("   ")).map(|at| lines.len() - at);
        (text.clone(), at)
    };
    assert_eq!(rows("").1, None, "there is no rep");
    let rep = dir.path().join("rep");
    let script = "#!/bin/sh\necho '# Overhead'\necho\necho \"    50.00%  [.] $*\"\necho\necho '   \
                   10.00%  [.] other'\n";
    fs::write(&rep, script).unwrap();
    fs::set_permissions(&rep, PermissionsExt::from_mode(0o755)).unwrap();
    let (text, at) = rows("");
    assert_eq!(at, Some(2), "one row, before the last line: {text}");
    assert!(text.contains(
        "    50.00%  [.] --no-children -g none -s symbol --limit 10 -- out.data\nrec: recorded "
    ));
    for flags in ["-q", "--switch-output"] {
        let (text, at) = rows(flags);
        assert_eq!(at, None, "{flags}: {text}");
    }
    fs::write(&rep, "#!/bin/sh\necho '    50.00%  [.] x'\nexit 1\n").unwrap();
    let (text, at) = rows("");
    assert!(
        at.is_none() && text.contains("rec: recorded "),
        "a rep that fails says nothing: {text}"
    );
}

#[test]
fn without_a_terminal_there_are_no_rows() {
    if needs::perf_events() {
        let dir = tempfile::tempdir().unwrap();
        let busy = ["sh", "-c", BUSY].map(str::to_owned);
        let outcome =
            run(&mut recording(&dir.path().join("x.data"), "-e cpu-clock", &busy)).expect(3);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
}

#[test]
fn no_samples_have_a_reason() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    for (args, says) in [
        ("-e cpu-clock -D -1", "events were never enabled (-D -1)"),
        ("-e cpu-clock -D 600000", "the end came before the time of -D was over"),
        ("-e cpu-clock:h", "cpu-clock:h is of neither user space nor the kernel"),
        ("-e cpu-clock -c 600000000000", "the end came before one was due"),
        ("-e page-faults -c 1000000000", "page-faults occurred "),
    ] {
        let outcome = run(&mut recording(&file, args, &["true".to_owned()])).expect(0);
        let lines: Vec<&str> = outcome.stderr.lines().rev().take(2).collect();
        let [last, before] = lines[..] else { panic!("{args}: {outcome:?}") };
        assert!(last.starts_with("rec: recorded 0 samples"), "{args}: {last}");
        assert!(
            before.starts_with("rec: no samples: ") && before.contains(says),
            "{args}: {before}"
        );
    }
    for args in ["-e cpu-clock -n", "-e cpu-clock -D -1 -q"] {
        let outcome = run(&mut recording(&file, args, &["true".to_owned()])).expect(0);
        assert!(!outcome.stderr.contains("no samples: "), "{args}: {}", outcome.stderr);
    }
}
