//! Counters that are read with samples (`:S`) and inherited: each thread has its own values.

use std::path::{Path, PathBuf};

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{AttrFlags, Cpu, ReadFormat, SampleType, Tid};
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::record::{Body, Counter, IdIndex, IdIndexEntry};
use recrep_tests::needs;
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::report::report;
use recrep_tests::run::run;

/// A group of two inherited events, and its samples: thread, values of both.
fn group(samples: &[(u32, u64, u64)]) -> Stream {
    let event = |name: &str, id: u64| {
        let event = Event::new(name).sampling(SampleType::READ).ids(&[id]);
        event
            .reading(ReadFormat::GROUP | ReadFormat::ID)
            .with(|attr| attr.flags |= AttrFlags::INHERIT)
    };
    let mut stream =
        Stream::new(Endian::NATIVE).event(event("cycles", 7)).event(event("faults", 8));
    for &(tid, cycles, faults) in samples {
        let counter = |id: u64, value: u64| Counter { value, id: Some(id), lost: None };
        let spec =
            SampleSpec::at(0x40_0000).reads(&[counter(7, cycles), counter(8, faults)], [0, 0]);
        stream = stream.task(10, tid).sample(spec);
    }
    stream
}

fn file(dir: &Path, stream: &Stream) -> PathBuf {
    let path = dir.join("reads.data");
    std::fs::write(&path, stream.file()).unwrap();
    path
}

/// Returns samples and period of each event, in rows and in all.
fn totals(path: &Path) -> Vec<(u64, u64)> {
    report(path, "tid").events.iter().map(|event| (event.samples, event.period)).collect()
}

/// Returns the sum of the periods that `rep script` prints.
fn script_total(path: &Path, event: &str) -> u64 {
    let mut script = rep();
    let listed = run(script.args(["script", "-F", "period,event"]).arg(path)).expect(0);
    let text = String::from_utf8(listed.stdout).unwrap();
    let of_event = text.lines().filter(|line| line.contains(event));
    of_event.map(|line| line.split_whitespace().next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn values_of_threads_are_kept_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(
        dir.path(),
        &group(&[
            (10, 100, 1),
            (11, 90, 5),
            (10, 200, 1),
            (12, 95, 0),
            (11, 190, 6),
            (10, 310, 4),
            (12, 200, 0),
        ]),
    );
    assert_eq!(totals(&path), [(7, 310 + 190 + 200), (4, 4 + 6)]);
    assert_eq!((script_total(&path, "cycles"), script_total(&path, "faults")), (700, 10));
}

#[test]
fn a_tid_that_is_used_again_counts_from_0() {
    let dir = tempfile::tempdir().unwrap();
    let first = group(&[(10, 100, 1), (11, 90, 5)]).exit();
    let spec = |cycles, faults| {
        let counter = |id: u64, value: u64| Counter { value, id: Some(id), lost: None };
        SampleSpec::at(0x40_0000).reads(&[counter(7, cycles), counter(8, faults)], [0, 0])
    };
    // The new thread's first values are higher than the last ones of the old one.
    let again =
        first.at(5_000).task(10, 10).fork(10, 11).at(6_000).task(10, 11).sample(spec(120, 9));
    let path = file(dir.path(), &again);
    assert_eq!(totals(&path), [(3, 100 + 90 + 120), (3, 1 + 5 + 9)]);
    assert_eq!(script_total(&path, "cycles"), 310);
}

#[test]
fn values_that_go_back_are_left_out_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(
        dir.path(),
        &group(&[(10, 100, 9), (11, 90, 9), (10, 200, 9), (10, 50, 9), (10, 80, 10)]),
    );
    assert_eq!(totals(&path), [(4, 100 + 90 + 100 + 30), (3, 9 + 9 + 1)]);
    let warnings = report(&path, "tid").warnings;
    assert!(
        warnings.iter().any(|w| w.code == "counter-reset" && w.message.starts_with("1 ")),
        "{warnings:?}"
    );
    assert_eq!(script_total(&path, "cycles"), 320);
}

#[test]
fn values_of_a_cpu_are_of_all_threads() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), &group(&[(10, 100, 1), (11, 200, 2), (0, 290, 2), (10, 400, 2)]));
    // The idle task has another pid in a real file: `group` gives all threads one process.
    let idle = group(&[(10, 100, 1), (11, 200, 2)]).task(0, 0);
    let counter = |id: u64, value: u64| Counter { value, id: Some(id), lost: None };
    let spec = SampleSpec::at(0x40_0000).reads(&[counter(7, 290), counter(8, 2)], [0, 0]);
    let path_of_cpu = dir.path().join("cpu.data");
    std::fs::write(&path_of_cpu, idle.sample(spec).file()).unwrap();
    assert_eq!(totals(&path_of_cpu), [(3, 290), (2, 2)]);
    assert_eq!(totals(&path)[0].0, 4);
}

#[test]
fn filters_do_not_change_increments() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), &group(&[(10, 100, 1), (10, 200, 2)]).at(9_000_000_000));
    let counted = |args: &[&str]| {
        let answer = run(rep().args(args).args(["--json", "-s", "tid"]).arg(&path)).expect(0);
        let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
        [0, 1].map(|event| answer["events"][event]["period"].as_u64().unwrap())
    };
    assert_eq!(counted(&["--event", "faults"]), [0, 2], "an event that only other samples read");
    assert_eq!(counted(&["--event", "cycles"]), [200, 0]);
}

/// The times of a counter that ran for a quarter of the time that it was enabled, and its values.
fn multiplexed(ids: &[u64], index: Option<IdIndexEntry>) -> Stream {
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    let event =
        Event::new("cycles").sampling(SampleType::READ).ids(ids).reading(times | ReadFormat::ID);
    let mut stream = Stream::new(Endian::NATIVE).event(event);
    if let Some(entry) = index {
        let bytes = IdIndex::words_of(&[entry], Endian::NATIVE);
        let words = U64s::new(&bytes, Endian::NATIVE);
        stream = stream.record(0, Body::IdIndex(IdIndex { nr: 1, words }));
    }
    for (value, times) in [(100, [40, 10]), (100, [80, 10]), (150, [120, 30])] {
        let counter = Counter { value, id: Some(ids[0]), lost: None };
        stream = stream.task(10, 10).sample(SampleSpec::at(0x40_0000).reads(&[counter], times));
    }
    stream
}

#[test]
fn multiplexed_counts_are_scaled_and_marked() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), &multiplexed(&[7], None));
    // 100 in 10 of 40; nothing; 50 in 20 of 40.
    assert_eq!(totals(&path), [(2, 400 + 100)]);
    assert_eq!(script_total(&path, "cycles"), 500);
    let told = |path: &Path| -> Vec<(String, String)> {
        report(path, "tid")
            .warnings
            .into_iter()
            .map(|warning| (warning.code, warning.message))
            .collect()
    };
    let message = "cycles 25.0 %: was counted part of the time, as the PMU has too few counters; \
                   its counts are scaled to the whole time";
    assert_eq!(told(&path), [("multiplexed".to_owned(), message.to_owned())]);
    let script = run(rep().arg("script").arg(&path)).expect(0);
    assert!(script.stderr.contains("cycles 25.0 %"), "{}", script.stderr);
    // What counts for one thread on one CPU is enabled while the thread runs elsewhere.
    let entry = |cpu, tid| Some(IdIndexEntry { id: 7, idx: 0, cpu, tid, guest: None });
    let of_both = file(dir.path(), &multiplexed(&[7], entry(Cpu(1), Tid(10))));
    assert_eq!(totals(&of_both), [(2, 150)]);
    assert_eq!(told(&of_both), []);
    let of_cpu = file(dir.path(), &multiplexed(&[7, 8], entry(Cpu(1), Tid::ANY)));
    assert_eq!(totals(&of_cpu), [(2, 500)]);
    let unknown = file(dir.path(), &multiplexed(&[7, 8], None));
    assert_eq!(totals(&unknown), [(2, 150)]);
}

#[test]
fn read_records_tell_what_never_ran() {
    let dir = tempfile::tempdir().unwrap();
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    let event = |name: &str, id| Event::new(name).ids(&[id]).reading(times | ReadFormat::ID);
    let counter = |id| Counter { value: 0, id: Some(id), lost: None };
    let stream = Stream::new(Endian::NATIVE)
        .event(event("cycles:D", 7))
        .event(event("faults", 8))
        .event(event("cs", 9));
    let stream = stream.of(0).task(10, 10).sample(SampleSpec::at(0x40_0000));
    let stream = stream.read(counter(7), [1000, 0]).of(1).read(counter(8), [1000, 600]);
    let path = file(dir.path(), &stream.of(2).read(counter(9), [1000, 1000]));
    let told: Vec<(String, String)> = report(&path, "tid")
        .warnings
        .into_iter()
        .map(|warning| (warning.code, warning.message))
        .collect();
    let shared = "faults 60.0 %: was counted part of the time, as the PMU has too few counters; \
                  its counts are not scaled";
    let never =
        "cycles:D: was never on the PMU: a pinned counter in error state, or a PMU without room";
    let code = |code: &str, message: &str| (code.to_owned(), message.to_owned());
    assert_eq!(told, [code("multiplexed", shared), code("never-counted", never)]);
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn threads_of_a_recording_sum_to_the_truth() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("threads.data");
        for target in ["", "-a "] {
            let command = workload("hot --threads 6 --ms 200");
            record(&path, &format!("{target}-e cpu-clock:S"), &command);
            let event = &report(&path, "comm").events[0];
            let of_workload = event
                .rows
                .iter()
                .filter(|row| row.key["comm"].starts_with("hot-") || row.key["comm"] == "workload");
            let seconds = of_workload.map(|row| row.period).sum::<u64>() as f64 / 1e9;
            // Each of the six threads works for 0.2 s of CPU time.
            assert!((1.1..2.5).contains(&seconds), "{target}: {seconds} s");
            assert_eq!(script_total(&path, "cpu-clock"), event.period);
        }
    }
}
