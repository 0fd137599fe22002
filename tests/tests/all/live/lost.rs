//! Loss is told, where the kernel could not write: as LOST records where it happened, as
//! LOST_SAMPLES of each event at the end, on `rec`'s last line, and by `rep`, as perf counts it.
//!
//! Losing is made certain by stopping `rec` while the workload runs on: two pages of ring are full
//! in milliseconds.

use std::time::Duration;

use recrep_tests::programs::workload;
use recrep_tests::record::{record, recording};
use recrep_tests::report::report;
use recrep_tests::run::{start, until, until_it_has};
use recrep_tests::{needs, perf};
use rustix::process::Signal;

#[test]
fn lost_records_and_lost_samples_are_accounted_for() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lost.data");
    let rec = start(&mut recording(
        &file,
        "-e cpu-clock -m 2 -F 50000 -g",
        &workload("hot --ms 800 --threads 2"),
    ));
    until_it_has(16 * 1024, &file, &rec);
    rec.signal(Signal::STOP);
    let before = rec.childs_cpu_time();
    until(
        || rec.childs_cpu_time() > before + Duration::from_millis(100),
        || format!("the workload does not run on: {}", rec.said()),
    );
    rec.signal(Signal::CONT);
    let outcome = rec.finish().expect(0);
    let summary = outcome.summary(&file);
    assert!(
        summary.samples > 0 && summary.lost_events > 0 && summary.lost_samples > 0,
        "{summary:?}"
    );

    let stats = perf::stats(&file);
    assert!(stats.records["LOST"] > 0 && stats.records["LOST_SAMPLES"] > 0, "{stats:?}");
    assert_eq!(stats.records["SAMPLE"], summary.samples);
    let lost_samples: u64 =
        stats.events.iter().filter_map(|(_, counts)| counts.get("LOST_SAMPLES")).sum();
    assert_eq!(lost_samples, summary.lost_samples, "lost samples by perf");
    assert_eq!(perf::lost_events(&file), summary.lost_events, "lost events by perf");

    let report = report(&file, "comm,dso");
    assert_eq!(report.records(), stats.records);
    assert_eq!(
        (report.input().lost_events, report.input().lost_samples),
        (summary.lost_events, summary.lost_samples)
    );
    assert_eq!(report.events[0].lost_samples, summary.lost_samples);
    assert!(report.input().complete);
}

/// On a machine that is busy otherwise rec may come too late, now and then.
#[test]
fn nothing_is_lost_at_the_default_ring_size() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("whole.data");
    let command = workload("hot --ms 1000 --threads 2");
    let mut all = Vec::new();
    let is_whole = |_| {
        let summary = record(&file, "-e cpu-clock -F 10000 -g", &command).summary(&file);
        let stats = perf::stats(&file);
        assert_eq!(perf::without_loss(&stats.warnings, &stats.records), "");
        assert_eq!(stats.records.contains_key("LOST"), summary.lost_events > 0, "{stats:?}");
        let is_whole = (summary.lost_events, summary.lost_samples) == (0, 0);
        all.push(summary);
        is_whole
    };
    assert!((0..5).any(is_whole), "{all:?}");
}
