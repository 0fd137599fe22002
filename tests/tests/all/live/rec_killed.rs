//! Recordings that do not end in order. Killed at any moment, the file has what was written by
//! then; asked to end, it has all.

use std::fs;
use std::path::Path;
use std::time::Duration;

use recrep_tests::agreement::{Extent, assert_reads};
use recrep_tests::programs::workload;
use recrep_tests::record::recording;
use recrep_tests::report::{Report, report};
use recrep_tests::run::{start, until, until_it_has};
use recrep_tests::{lock, needs};
use rustix::process::{Signal, kill_process_group};

/// Kills a recording when its file has so many bytes; gives what rep finds in it.
#[track_caller]
fn killed_at(bytes: u64, args: &str, file: &Path) -> Report {
    // What is packed grows slowly. Of what is not, all rings could be full by the first round at
    // such a rate.
    let rate = if args.contains("-z") { 40_000 } else { 10_000 };
    let args = format!("-e cpu-clock -F {rate} -m 16 {args}");
    let cpus = lock::cpus();
    let rec = start(&mut recording(file, &args, &workload("hot --ms 60000 --threads 2 --forks 1")));
    until_it_has(bytes, file, &rec);
    rec.signal(Signal::KILL);
    let group = rec.pid();
    assert_eq!(rec.finish().code(), 128 + 9);
    // The command is still in rec's process group.
    kill_process_group(group, Signal::KILL).unwrap();
    drop(cpus);
    let report = report(file, "comm,dso");
    assert!(!report.input().complete, "{args}: complete, at {bytes} bytes");
    for warning in &report.warnings {
        // The kill may come in the middle of a write.
        assert!(
            ["no-data-size", "truncated"].contains(&warning.code.as_str()),
            "{args}, {bytes} bytes: {warning:?}"
        );
    }
    assert!(
        report.warnings.iter().any(|warning| warning.code == "no-data-size"),
        "{:?}",
        report.warnings
    );
    report
}

/// The whole samples of a file, by walking its records; perf reads none of them where the header
/// was not completed.
fn samples_in(file: &[u8]) -> u64 {
    let word =
        |at: usize| file.get(at..at + 8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()));
    // perf_file_header: the data's offset follows magic, two sizes and the section of the attrs.
    let (mut at, mut samples) = (usize::try_from(word(40).unwrap()).unwrap(), 0);
    while let Some(header) = word(at) {
        let size = usize::try_from(header >> 48).unwrap();
        assert!(size >= 8, "a record of {size} bytes at {at}");
        at += size;
        samples += u64::from(header & 0xffff_ffff == 9 && at <= file.len());
    }
    samples
}

#[test]
fn killed_at_any_moment_what_was_written_is_read() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut state = 0x5eed_u64;
    let mut samples = Vec::new();
    for number in 0..20 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // From a header with something behind it to many rounds.
        let bytes = 1000 + (state >> 33) % 200_000;
        let args = ["", "-z", "-g", "-z -g"].into_iter().cycle().nth(number).unwrap();
        let file = dir.path().join(format!("{number}.data"));
        let report = killed_at(bytes, args, &file);
        let found = report.records().get("SAMPLE").copied().unwrap_or(0);
        if !args.contains("-z") {
            assert_eq!(samples_in(&fs::read(&file).unwrap()), found, "{args}, {bytes} bytes");
        }
        let rounds = report.records().get("FINISHED_ROUND").copied().unwrap_or(0);
        // What stands before the samples is less than 20,000 bytes; what comes then are rounds of
        // them.
        assert!(
            rounds > 0 && found > 0 || bytes < 20_000,
            "{args}, {bytes} bytes: {found} samples in {rounds} rounds"
        );
        samples.push((bytes, found));
    }
    assert!(samples.iter().filter(|(_, found)| *found > 500).count() >= 5, "{samples:?}");
}

#[test]
fn asked_to_end_the_file_is_complete() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let signals = [
        (Signal::INT, "-z"),
        (Signal::TERM, "-z -g"),
        (Signal::HUP, ""),
        (Signal::HUP, "--overwrite"),
    ];
    for (signal, args) in
        signals.into_iter().filter(|(signal, _)| *signal != Signal::HUP || !ignores_hangups())
    {
        let args = format!("-e cpu-clock -F 5000 -m 16 {args}");
        let _ = fs::remove_file(&file);
        let rec = start(&mut recording(&file, &args, &workload("hot --ms 60000 --threads 2")));
        until(
            || rec.childs_cpu_time() > Duration::from_millis(200),
            || format!("nothing runs: {}", rec.said()),
        );
        rec.signal(signal);
        let outcome = rec.finish();
        assert_ne!(outcome.code(), 125, "{args}: {}", outcome.stderr);
        let samples = assert_reads(&file, Extent::Command);
        assert!(
            samples > 50 && samples == outcome.summary(&file).samples,
            "{args}: {}",
            outcome.stderr
        );
    }
}

/// Returns whether these tests are run by nohup(1): what they start ignores SIGHUP too then.
fn ignores_hangups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1
}
