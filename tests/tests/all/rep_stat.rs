//! `rep stat` and `rep -T`: the counts that `perf stat report` and `perf report -T` print, of what
//! perf recorded, and of streams of which the whole answer is known.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{AttrFlags, Cpu, EventType, ReadFormat, StatRoundKind};
use recrep_format::endian::Endian;
use recrep_format::record::{Body, Counter, Stat, StatRound};
use recrep_tests::needs;
use recrep_tests::perf::perf;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::{Value, json};

const EVENTS: &str = "task-clock,page-faults,context-switches";

/// Records with `perf stat record`.
fn counted(dir: &Path, flags: &[&str], command: &[&str]) -> PathBuf {
    let file = dir.join("counted.data");
    let mut recording = perf();
    recording.args(["stat", "record", "-o"]).arg(&file).args(["-e", EVENTS]).args(flags);
    run(recording.arg("--").args(command)).expect(0);
    file
}

/// The words of each line of counts: place, CPUs, value, unit and event, without separators of
/// thousands, and without what comes behind `#`.
fn lines(text: &str) -> Vec<Vec<String>> {
    let of_counts = text.lines().filter(|line| EVENTS.split(',').any(|event| line.contains(event)));
    let of_counts = of_counts.filter(|line| !line.contains("stats for"));
    let words = |line: &str| {
        let counted = line.split(" # ").next().unwrap();
        let words = counted.split_whitespace().map(|word| word.replace(',', ""));
        words.filter(|word| !word.starts_with('(')).collect::<Vec<String>>()
    };
    let mut lines: Vec<Vec<String>> = of_counts.map(words).collect();
    lines.sort();
    lines
}

fn ours(file: &Path, flags: &[&str]) -> String {
    run(rep().arg("stat").args(flags).arg(file)).expect(0).text().to_owned()
}

/// Counts of two threads and two CPUs, of which one event was multiplexed.
fn known(endian: Endian) -> Stream {
    let fault = Event::new("faults:u").counting(EventType::SOFTWARE, 2).ids(&[20]);
    let mut stream = Stream::new(endian)
        .event(Event::new("cycles:u").ids(&[10]))
        .event(fault)
        .thread_map(&[(7, "left"), (8, "right")])
        .cpu_map(&[0, 1])
        .stat_config(&[[0, 1], [1, 0], [2, 1]]);
    for (id, cpu, thread, value, running) in [
        (10, 0, 0, 100, 50),
        (10, 1, 0, 200, 100),
        (10, 0, 1, 0, 0),
        (20, 0, 0, 3, 100),
        (20, 1, 0, 0, 100),
        (20, 0, 1, 4, 100),
    ] {
        let (cpu, enabled) = (Cpu(cpu), 100);
        stream = stream.record(0, Body::Stat(Stat { id, cpu, thread, value, enabled, running }));
    }
    let (kind, time) = (StatRoundKind::FINAL, 2_000_000_000);
    stream.record(0, Body::StatRound(StatRound { kind, time }))
}

/// Place, value and share of the time of each count.
fn counts(file: &Path, flags: &[&str], place: &str) -> Vec<(Value, Value, Value)> {
    let answer: Value = serde_json::from_str(&ours(file, &[flags, &["--json"]].concat())).unwrap();
    let counts = answer["counts"].as_array().unwrap().iter();
    counts
        .map(|count| {
            (count[place].clone(), count["value"].clone(), count["percent_running"].clone())
        })
        .collect()
}

#[test]
fn known_counts_in_both_byte_orders_and_in_pipes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("known.data");
    let row = |place: Value, value: Value, percent: f64| (place, value, json!(percent));
    for endian in [Endian::Little, Endian::Big] {
        for bytes in [known(endian).file(), known(endian).pipe()] {
            fs::write(&file, bytes).unwrap();
            let whole = [row(Value::Null, json!(400.0), 50.0), row(Value::Null, json!(7.0), 100.0)];
            assert_eq!(counts(&file, &[], "cpu"), whole);
            let expected = [
                row(json!(0), json!(200.0), 25.0),
                row(json!(1), json!(200.0), 100.0),
                row(json!(0), json!(7.0), 100.0),
                row(json!(1), json!(0.0), 100.0),
            ];
            assert_eq!(counts(&file, &["-A"], "cpu"), expected);
            let expected = [
                row(json!("left"), json!(400.0), 75.0),
                row(json!("right"), Value::Null, 0.0),
                row(json!("left"), json!(3.0), 100.0),
                row(json!("right"), json!(4.0), 100.0),
            ];
            assert_eq!(counts(&file, &["--per-thread"], "comm"), expected);
            let text = ours(&file, &[]);
            assert!(text.contains("(50.00%)") && text.contains("2.000000000 seconds"), "{text}");
            let csv = ours(&file, &["-x;"]);
            assert_eq!(csv.lines().next(), Some("400;;cycles:u;150;50.00;;"));
            // Without samples, a report shows them.
            let plain = run(rep().arg(&file)).expect(0);
            assert!(plain.stderr.contains("rep stat") && plain.text() == text, "{plain:?}");
            let answer = run(rep().arg("--json").arg(&file)).expect(0);
            let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
            let expected = json!({ "value": 400, "enabled_ns": 300, "running_ns": 150 });
            assert_eq!(answer["events"][0]["count"], expected);
        }
    }
    let none = Stream::new(Endian::NATIVE).event(Event::new("cycles:u"));
    fs::write(&file, none.file()).unwrap();
    assert_eq!(run(rep().arg(&file)).code(), 1);
    let refused = run(rep().arg("stat").arg(&file)).expect(1);
    assert!(refused.stderr.contains("has no counts"), "{}", refused.stderr);
}

#[test]
fn values_of_threads_are_scaled_once_for_all_cpus() {
    let format = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING | ReadFormat::ID;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("reads.data");
    let counter = |id, value| Counter { value, id: Some(id), lost: None };
    let stream = Stream::new(Endian::NATIVE)
        .event(Event::new("cycles:u").ids(&[10, 11]).reading(format))
        .task(7, 7)
        .comm("half")
        .sample(SampleSpec::at(0x1000))
        // It ran on both CPUs, one half of its time on each.
        .read(counter(10, 60), [100, 50])
        .read(counter(11, 40), [100, 50])
        .task(7, 8)
        // Its counter was on the PMU for a quarter of the time.
        .read(counter(10, 5), [100, 25]);
    fs::write(&file, stream.file()).unwrap();
    let text = run(rep().args(["-T"]).arg(&file)).expect(0);
    let rows: Vec<Vec<&str>> = text
        .text()
        .lines()
        .skip_while(|line| !line.contains("  PID "))
        .map(|line| line.split_whitespace().collect())
        .take_while(|words: &Vec<&str>| !words.is_empty())
        .collect();
    assert_eq!(rows[1..], [["7", "7", "100"], ["7", "8", "20"]]);
}

#[test]
fn missing_counts_of_threads_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    for (flags, says) in [
        (AttrFlags::empty(), "record with -s"),
        (AttrFlags::INHERIT_STAT, "of one alone, see rec stat"),
    ] {
        let event = Event::new("cycles").with(|attr| attr.flags |= flags);
        let stream = Stream::new(Endian::NATIVE).event(event);
        fs::write(&file, stream.sample(SampleSpec::at(0x40_0000)).file()).unwrap();
        let told = run(rep().arg("-T").arg(&file)).expect(0);
        assert!(told.stderr.contains(says), "{}", told.stderr);
    }
}

#[test]
fn damaged_counts_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("damaged.data");
    let whole = known(Endian::Little);
    let stat = |id, thread| {
        let (cpu, value, enabled, running) = (Cpu(0), 1, 1, 1);
        Body::Stat(Stat { id, cpu, thread, value, enabled, running })
    };
    for (stream, code) in [
        (whole.clone().record(0, stat(99, 0)), "1 count has an id"),
        (whole.clone().record(0, stat(10, 9)), "1 count is of a thread"),
        (whole.clone().record(0, stat(10, 0)), "the record that ends the counting is missing"),
    ] {
        fs::write(&file, stream.file()).unwrap();
        let outcome = run(rep().arg("stat").arg(&file)).expect(0);
        assert!(outcome.stderr.contains(code), "{code}: {outcome:?}");
    }
    // Whatever is cut off or overwritten, it ends with an answer or an error.
    let bytes = whole.file();
    for cut in (0..bytes.len()).step_by(7) {
        fs::write(&file, &bytes[..cut]).unwrap();
        let outcome = run(rep().arg("stat").arg(&file));
        assert!([0, 1].contains(&outcome.code()), "{cut}: {outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{cut}: {outcome:?}");
    }
    for at in (0..bytes.len()).step_by(5) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        fs::write(&file, &damaged).unwrap();
        let outcome = run(rep().arg("stat").arg(&file));
        assert!([0, 1].contains(&outcome.code()), "{at}: {outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{at}: {outcome:?}");
    }
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn counts_are_those_of_perf_stat_report() {
        if !needs::perf_events() || !needs::root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let sleep = ["sleep", "0.25"];
        let own = std::process::id().to_string();
        for (recorded, command, shown) in [
            (&[][..], &["ls", "/usr"][..], &[&[][..]][..]),
            (
                &["-a"],
                &sleep,
                &[
                    &[],
                    &["-A"],
                    &["--per-core"],
                    &["--per-socket"],
                    &["--per-node"],
                    &["--per-die"],
                ],
            ),
            (&["-a", "-A"], &sleep, &[&[], &["--per-core"]]),
            (&["-a", "--per-core"], &sleep, &[&[], &["-A"]]),
            (&["-a", "-I", "100"], &sleep, &[&[], &["-A"]]),
            (&["-I", "100"], &sleep, &[&[]]),
            (&["--per-thread", "-p", &own], &sleep, &[&[]]),
        ] {
            let file = counted(dir.path(), recorded, command);
            for flags in shown {
                let outcome =
                    run(perf().args(["stat", "report", "-i"]).arg(&file).args(*flags)).expect(0);
                let theirs = lines(&[outcome.text(), &outcome.stderr].concat());
                let said = ours(&file, flags);
                assert!(theirs.len() >= 3, "{recorded:?} {flags:?}: {outcome:?}");
                assert_eq!(lines(&said), theirs, "{recorded:?} {flags:?}: {said}");
                let elapsed = |text: &str| {
                    let line = text.lines().find(|line| line.contains("seconds time elapsed"));
                    line.map(|line| line.trim().to_owned())
                };
                assert_eq!(elapsed(&said), elapsed(&[outcome.text(), &outcome.stderr].concat()));
            }
        }
        // Through a pipe.
        let file = dir.path().join("piped.data");
        let line = "\"$0\" stat record -o - -e page-faults true 2>/dev/null >\"$1\"";
        let recorder = perf().get_program().to_owned();
        run(Command::new("sh").args(["-c", line]).arg(recorder).arg(&file)).expect(0);
        let outcome = run(perf().args(["stat", "report", "-i"]).arg(&file)).expect(0);
        assert_eq!(lines(&ours(&file, &[])), lines(&[outcome.text(), &outcome.stderr].concat()));
    }

    #[test]
    fn ratios_are_those_of_perf_stat_report() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = counted(dir.path(), &[], &["ls", "/usr"]);
        let outcome = run(perf().args(["stat", "report", "-i"]).arg(&file)).expect(0);
        let ratios = |text: &str| {
            let lines =
                text.lines().filter_map(|line| line.split_once(" # ").map(|(_, ratio)| ratio));
            lines.map(|ratio| ratio.trim().to_owned()).collect::<Vec<_>>()
        };
        let theirs = ratios(&[outcome.text(), &outcome.stderr].concat());
        assert_eq!(ratios(&ours(&file, &[])), theirs);
        assert_eq!(theirs.len(), 3);
    }

    #[test]
    fn threads_are_those_of_perf_report() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("threads.data");
        // Each child is a thread that exits.
        let script = "for turn in 1 2 3; do ls /usr >/dev/null; done";
        let table = |text: &str| {
            let after = text.lines().skip_while(|line| !line.contains("  PID "));
            let rows =
                after.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
            let rows = rows.take_while(|words| !words.is_empty());
            let mut rows: Vec<Vec<String>> = rows.collect();
            rows.sort();
            rows
        };
        // The kernel does not write the counts of every thread that exits: of none, now and then.
        let recorded = || {
            let mut recording = perf();
            recording.args(["record", "-s", "-q", "-e", "task-clock,page-faults", "-o"]).arg(&file);
            run(recording.args(["--", "sh", "-c", script])).expect(0);
            let outcome = run(perf().args(["report", "-T", "--stdio", "-i"]).arg(&file)).expect(0);
            Some(table(outcome.text())).filter(|rows| rows.len() >= 2)
        };
        let theirs = (0..10).find_map(|_| recorded()).expect("perf shows threads");
        let text = run(rep().arg("-T").arg(&file)).expect(0);
        assert_eq!(table(text.text()), theirs);
        let answer = run(rep().args(["-T", "--json"]).arg(&file)).expect(0);
        let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
        let threads = answer["threads"].as_array().unwrap();
        assert_eq!(threads.len(), theirs.len() - 1);
        let sum = |event: &str| {
            let counts = threads.iter().flat_map(|thread| thread["counts"].as_array().unwrap());
            let of_event = counts.filter(|count| count["event"] == event);
            of_event.map(|count| count["value"].as_u64().unwrap()).sum::<u64>()
        };
        for event in answer["events"].as_array().unwrap() {
            assert_eq!(event["count"]["value"], sum(event["name"].as_str().unwrap()));
        }
        assert_eq!(lines(&ours(&file, &[])).len(), 2 * threads.len());
        let without = run(rep().args(["-T", "--format", "folded"]).arg(&file)).expect(2);
        assert!(without.stderr.contains("-T"), "{}", without.stderr);
    }
}
