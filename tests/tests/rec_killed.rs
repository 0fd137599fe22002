//! Recordings that do not end in order. Killed at any moment, the file has what was written by then; asked to end, it has all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use recrep_tests::agreement::{Extent, assert_reads};
use recrep_tests::needs;
use recrep_tests::programs::workload;
use recrep_tests::record::recording;
use recrep_tests::report::{Report, report};
use recrep_tests::run::{Running, start};
use rustix::process::{Signal, kill_process_group};

/// Waits until the file is so long: 1000 bytes are a header with something behind it.
#[track_caller]
fn until_it_has(bytes: u64, file: &Path, rec: &Running) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::metadata(file).map_or(0, |found| found.len()) < bytes {
        assert!(Instant::now() < deadline, "{} does not grow: {}", file.display(), rec.said());
        sleep(Duration::from_millis(1));
    }
}

/// Kills a recording some milliseconds after its file was begun; gives what rep finds in it.
#[track_caller]
fn killed_after(ms: u64, args: &str, file: &Path) -> Report {
    let args = format!("-e cpu-clock -F 10000 -m 16 {args}");
    let rec = start(&mut recording(file, &args, &workload("hot --ms 60000 --threads 2 --forks 1")));
    until_it_has(1000, file, &rec);
    sleep(Duration::from_millis(ms));
    rec.signal(Signal::KILL);
    let group = rec.pid();
    assert_eq!(rec.finish().code(), 128 + 9);
    // The command is still in rec's process group.
    kill_process_group(group, Signal::KILL).unwrap();
    let report = report(file, "comm,dso");
    assert!(!report.input().complete, "{args}: complete, after {ms} ms");
    for warning in &report.warnings {
        // The kill may come in the middle of a write.
        assert!(["no-data-size", "truncated"].contains(&warning.code.as_str()), "{args}, {ms} ms: {warning:?}");
    }
    assert!(report.warnings.iter().any(|warning| warning.code == "no-data-size"), "{:?}", report.warnings);
    report
}

/// The whole samples of a file, by walking its records; perf reads none of them where the header was not completed.
fn samples_in(file: &[u8]) -> u64 {
    let word = |at: usize| file.get(at..at + 8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()));
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
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let mut state = 0x5eed_u64;
    let mut samples = Vec::new();
    for number in 0..20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let ms = (state >> 33) % 300;
        let args = ["", "-z", "-g", "-z -g"].into_iter().cycle().nth(number).unwrap();
        let file = dir.path().join(format!("{number}.data"));
        let report = killed_after(ms, args, &file);
        let found = report.records().get("SAMPLE").copied().unwrap_or(0);
        if !args.contains("-z") {
            assert_eq!(samples_in(&fs::read(&file).unwrap()), found, "{args}, {ms} ms");
        }
        let rounds = report.records().get("FINISHED_ROUND").copied().unwrap_or(0);
        // A quarter of a ring of 64 KiB has 200 samples, and comes every 20 ms where there is a CPU.
        assert!(rounds > 0 && found > 0 || ms < 200, "{args}, {ms} ms: {found} samples in {rounds} rounds");
        samples.push((ms, found));
    }
    assert!(samples.iter().filter(|(_, found)| *found > 500).count() >= 5, "{samples:?}");
}

#[test]
fn asked_to_end_the_file_is_complete() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    for (signal, args) in
        [(Signal::INT, "-z"), (Signal::TERM, "-z -g"), (Signal::HUP, ""), (Signal::HUP, "--overwrite")]
    {
        let args = format!("-e cpu-clock -F 5000 -m 16 {args}");
        let _ = fs::remove_file(&file);
        let rec = start(&mut recording(&file, &args, &workload("hot --ms 60000 --threads 2")));
        until_it_has(if args.contains("overwrite") { 400 } else { 4000 }, &file, &rec);
        sleep(Duration::from_millis(if args.contains("overwrite") { 700 } else { 100 }));
        rec.signal(signal);
        let outcome = rec.finish();
        assert_ne!(outcome.code(), 125, "{args}: {}", outcome.stderr);
        let samples = assert_reads(&file, Extent::Command);
        assert!(samples > 50 && samples == outcome.summary(&file).samples, "{args}: {}", outcome.stderr);
    }
}
