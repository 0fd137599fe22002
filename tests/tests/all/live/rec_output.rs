//! The file that `rec` leaves: complete whatever ended the recording, private, and never at the
//! cost of the one before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use recrep_tests::programs::{rec, rep, workload};
use recrep_tests::record::{record, recording};
use recrep_tests::report::report;
use recrep_tests::run::{has_thread, run, start, until, until_it_has};
use recrep_tests::{lock, needs, perf};
use rustix::process::Signal;

/// A file with samples, ended in order, that perf reads as it reads its own.
#[track_caller]
fn assert_complete(file: &Path, samples: u64) {
    assert!(samples > 0);
    let stats = perf::stats(file);
    let report = report(file, "comm");
    assert_eq!(
        (perf::without_loss(&stats.warnings, &stats.records), stats.records.get("SAMPLE")),
        ("", Some(&samples))
    );
    assert!(report.input().complete && report.warnings.is_empty(), "{report:?}");
    let build_ids = run(perf::perf().args(["buildid-list", "-i"]).arg(file)).expect(0);
    assert!(
        build_ids.text().lines().any(|line| line.ends_with("/workload")),
        "{}",
        build_ids.text()
    );
}

/// A recording that would go on for a minute, ended by a signal to `rec`.
#[track_caller]
fn assert_ended_by(signal: Signal) {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ended.data");
    let cpus = lock::cpus();
    let begun = Instant::now();
    let rec =
        start(&mut recording(&file, "-e cpu-clock -F 10000 -m 8", &workload("hot --ms 60000")));
    until_it_has(16 * 1024, &file, &rec);
    rec.signal(signal);
    let outcome = rec.finish();
    drop(cpus);
    assert!(begun.elapsed() < Duration::from_secs(50), "the recording went on after the signal");
    assert_ne!(outcome.code(), 125, "{}", outcome.stderr);
    assert_complete(&file, outcome.summary(&file).samples);
}

#[test]
fn sigint_ends_in_a_complete_file() {
    assert_ended_by(Signal::INT);
}

#[test]
fn sigterm_ends_in_a_complete_file() {
    assert_ended_by(Signal::TERM);
}

#[test]
fn an_attached_process_is_recorded_and_lives_on() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("attached.data");
    let cpus = lock::cpus();
    let words = workload("hot --ms 60000 --threads 2");
    let target = start(Command::new(&words[0]).args(&words[1..]));
    let pid = target.pid().as_raw_nonzero().to_string();
    until(|| has_thread(&pid, "hot-1"), || "the workload starts no second thread".to_owned());
    let mut command = rec();
    command.args(["-e", "cpu-clock", "-F", "10000", "-m", "8", "-p", &pid, "-o"]).arg(&file);
    let rec = start(&mut command);
    // Long enough for both threads to have had a CPU, however few there are.
    until_it_has(256 * 1024, &file, &rec);
    rec.signal(Signal::INT);
    let outcome = rec.finish();
    rustix::process::test_kill_process(target.pid()).expect("the target lives on");
    target.signal(Signal::KILL);
    target.finish();
    drop(cpus);
    assert_complete(&file, outcome.summary(&file).samples);
    // Threads that were there before the recording keep their names.
    let table = report(&file, "comm").events[0].table();
    let comms: Vec<_> = table.rows.keys().map(|key| key[0].as_str()).collect();
    assert_eq!(comms, ["hot-1", "workload"]);
}

#[test]
fn a_command_bounds_an_attached_recording() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bounded.data");
    let cpus = lock::cpus();
    let words = workload("hot --ms 60000");
    let target = start(Command::new(&words[0]).args(&words[1..]));
    let pid = target.pid().as_raw_nonzero().to_string();
    let outcome =
        record(&file, &format!("-e cpu-clock -p {pid}"), &["sleep", "0.5"].map(str::to_owned));
    target.signal(Signal::KILL);
    target.finish();
    drop(cpus);
    assert_complete(&file, outcome.summary(&file).samples);
}

#[test]
fn the_file_before_is_kept_as_old_and_both_are_private() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, old) = (dir.path().join("out.data"), dir.path().join("out.data.old"));
    let words = workload("hot --ms 50");
    let one = || {
        run(rec().args(["-e", "cpu-clock", "--"]).args(&words).current_dir(dir.path())).expect(0)
    };
    one();
    let first = fs::read(&file).unwrap();
    assert!(!old.exists());
    one();
    assert_eq!(fs::read(&old).unwrap(), first);
    assert_ne!(fs::read(&file).unwrap(), first);
    for file in [&file, &old] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Without a name, rep reads what rec without a name has written.
    let named = run(rep().args(["--json", "out.data"]).current_dir(dir.path())).expect(0);
    let unnamed = run(rep().arg("--json").current_dir(dir.path())).expect(0);
    assert_eq!(named.stdout, unnamed.stdout);
}

#[test]
fn a_failure_keeps_the_file_before() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.data");
    fs::write(&file, "precious").unwrap();
    let outcome =
        run(rec().args(["-e", "cpu-clock", "--", "./no-such-command"]).current_dir(dir.path()));
    assert_eq!(outcome.code(), 127);
    let kept = [&file, &dir.path().join("out.data.old")].map(fs::read_to_string);
    assert!(
        kept.into_iter().any(|text| text.is_ok_and(|text| text == "precious")),
        "the file before is lost"
    );
}

#[test]
fn quiet_says_nothing_of_a_success() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let outcome =
        record(&dir.path().join("quiet.data"), "-q -e cpu-clock", &workload("hot --ms 50"));
    assert_eq!(outcome.stderr, "");
}
