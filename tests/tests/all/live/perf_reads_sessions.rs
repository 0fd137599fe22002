//! Recordings of every kind, read by perf without a warning, with the counts that `rep` has and
//! that rec's last line says: compressed, streamed, in pieces, out of rings that are overwritten,
//! and with all that a sample and the side-band can carry.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use recrep_tests::agreement::{Extent, assert_reads};
use recrep_tests::needs;
use recrep_tests::perf::{self, perf};
use recrep_tests::programs::{rec, workload};
use recrep_tests::record::{record, recording};
use recrep_tests::report::report;
use recrep_tests::run::{Outcome, Running, run, start, until};
use recrep_tests::tracing::with_tracefs;
use rustix::process::Signal;

/// The files of a directory, in the order of their names.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The samples of each line that sums a file up.
fn summaries(outcome: &Outcome) -> Vec<u64> {
    let lines = outcome.stderr.lines().filter_map(|line| line.strip_prefix("rec: recorded "));
    let count = |line: &str| line.split(' ').next().unwrap().replace(',', "");
    lines.map(|line| count(line).parse().unwrap()).collect()
}

/// perf and rep read each file of the directory, and count what rec's lines say.
#[track_caller]
fn assert_pieces(dir: &Path, outcome: &Outcome) -> Vec<u64> {
    let samples: Vec<_> =
        files(dir).iter().map(|file| assert_reads(file, Extent::Command)).collect();
    assert_eq!(samples, summaries(outcome), "{}", outcome.stderr);
    samples
}

/// Records the workload with these arguments, and checks what every recording must be. Returns the
/// file too.
#[track_caller]
fn assert_recording(args: &str, command: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let outcome = record(&dir.path().join("x.data"), args, &workload(command));
    let samples = assert_pieces(dir.path(), &outcome);
    // Software events need no counter of a PMU that they could have to share.
    assert!(!outcome.stderr.contains("% of the time"), "{args}: {}", outcome.stderr);
    assert!(samples.iter().sum::<u64>() > 0 || args.contains("-n"), "{args}: {}", outcome.stderr);
    let file = files(dir.path())[0].clone();
    (dir, file)
}

/// `perf evlist -v` of a file.
#[track_caller]
fn attrs(file: &Path) -> String {
    run(perf().args(["evlist", "-v", "-i"]).arg(file)).expect(0).text().to_owned()
}

#[test]
fn what_samples_carry() {
    if !needs::perf_events() {
        return;
    }
    for (args, has) in [
        ("-e cpu-clock:u -z", "IDENTIFIER"),
        ("-e cpu-clock:u --call-graph dwarf,4096 -F 500", "STACK_USER"),
        // Unpacks to hundreds of times its size.
        ("-e cpu-clock:u --call-graph dwarf,65528 -F 1000 -z -m 4M", "STACK_USER"),
        ("-e cpu-clock -d -I --user-regs=ip,sp", "ADDR"),
        ("-e cpu-clock:u -k CLOCK_MONOTONIC -W -R -P -T", "clockid: 1"),
        ("-e cpu-clock:u --phys-data --data-page-size --code-page-size", "CODE_PAGE_SIZE"),
        ("-e cpu-clock:u --per-thread", "inherit: 0"),
        ("-e {cpu-clock,page-faults}", "IDENTIFIER"),
        // perf 6.1 takes increments by id alone, so inherited counters are compared with the truth,
        // in counter_reads.
        ("-i -e {cpu-clock,page-faults}:S", "GROUP"),
        ("-i -e {cpu-clock,page-faults}:S --overwrite -m 4 -F 20000", "GROUP"),
    ] {
        let ms = if args.contains("65528") { 400 } else { 60 };
        let (_dir, file) = assert_recording(args, &format!("hot --ms {ms} --threads 2"));
        // A bit that is not set is not listed.
        let list = attrs(&file);
        let is_so =
            if has == "inherit: 0" { !list.contains(", inherit: 1") } else { list.contains(has) };
        assert!(is_so, "{args}: {list}");
    }
}

#[test]
fn what_the_side_band_carries() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let records = |file: &Path| report(file, "comm").records();
    let (_dir, file) = assert_recording("-e cpu-clock:u -s", "hot --ms 100 --threads 3 --forks 1");
    assert!(records(&file)["READ"] >= 3, "one for each thread: {:?}", records(&file));
    let (_dir, file) = assert_recording("-e cpu-clock:u -n", "hot --ms 50 --threads 2");
    assert!(!records(&file).contains_key("SAMPLE") && records(&file)["COMM"] > 0);
    let (_dir, file) = assert_recording(
        "-e cpu-clock:u --namespaces --all-cgroups --switch-events",
        "hot --ms 50 --forks 1",
    );
    for name in ["NAMESPACES", "CGROUP", "SWITCH"] {
        assert!(
            records(&file).keys().any(|key| key.starts_with(name)),
            "{name}: {:?}",
            records(&file)
        );
    }
    let (_dir, file) = assert_recording("-e cpu-clock:u --buildid-mmap", "hot --ms 50");
    let script = run(perf().args(["script", "--show-mmap-events", "-i"]).arg(&file)).expect(0);
    assert!(
        script.text().lines().any(|line| line.contains("/workload") && line.contains('<')),
        "{}",
        script.text()
    );
    let (_dir, file) = assert_recording("-e cpu-clock:u -B", "hot --ms 50");
    let list = run(perf().args(["report", "--header-only", "-i"]).arg(&file)).expect(0);
    assert!(
        list.text().contains("# missing features:") && list.text().contains(" BUILD_ID "),
        "{}",
        list.text()
    );
    assert_recording("-e cpu-clock:u --tail-synthesize", "hot --ms 50 --forks 1");
}

/// Everybody's tasks are written at the end, and again at the start of each piece.
#[test]
fn the_whole_machine() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    for (args, ms) in [
        ("-a -z -g", 300),
        ("-a --overwrite", 300),
        ("-a --tail-synthesize", 300),
        ("-a --switch-output=1s", 1300),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let words = workload(&format!("hot --ms {ms}"));
        let outcome =
            record(&dir.path().join("x.data"), &format!("-e cpu-clock -F 499 {args}"), &words);
        let files = files(dir.path());
        let samples: Vec<_> =
            files.iter().map(|file| assert_reads(file, Extent::System(&["workload"]))).collect();
        assert_eq!(samples, summaries(&outcome), "{args}: {}", outcome.stderr);
        let tables = files.iter().flat_map(|file| report(file, "comm").tables());
        assert!(
            tables.map(|table| table.samples_where(|key| key[0] == "workload")).sum::<u64>() > 0,
            "{args}"
        );
        assert!(samples.iter().sum::<u64>() > 100, "{args}: {samples:?}");
    }
}

#[test]
fn streams() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for args in ["", "-z -g", "--overwrite", "-e page-faults -s"] {
        let args = format!("-e cpu-clock {args}");
        let outcome = record(Path::new("-"), &args, &workload("hot --ms 100 --threads 2"));
        let file = dir.path().join("stream.data");
        fs::write(&file, &outcome.stdout).unwrap();
        let samples = assert_reads(&file, Extent::Command);
        assert_eq!([samples][..], summaries(&outcome), "{args}");
        // Through a pipe, too.
        let piped = |command: &str| {
            let mut shell = std::process::Command::new("sh");
            run(shell.args(["-c", &format!("cat \"$0\" | {command}")]).arg(&file)).expect(0)
        };
        let script = piped("PERF_CONFIG=/dev/null perf script -G -F comm -i -");
        assert_eq!(
            (script.text().lines().count() as u64, script.stderr.as_str()),
            (samples, ""),
            "{args}"
        );
    }
}

#[test]
fn pieces_by_size_and_time() {
    if !needs::perf_events() {
        return;
    }
    for (args, ms) in [
        ("--switch-output=20K -m 16", 250),
        ("--switch-output=3K -z -m 16", 250),
        ("--switch-output=1s", 1200),
        ("--timestamp-filename", 50),
    ] {
        let (dir, file) = assert_recording(
            &format!("-e cpu-clock:u -F 3000 {args}"),
            &format!("hot --ms {ms} --forks 1"),
        );
        let pieces = files(dir.path()).len();
        assert!(pieces >= 2 || args.contains("timestamp"), "{args}: {pieces}");
        let name = file.file_name().unwrap().to_str().unwrap().strip_prefix("x.data.20").unwrap();
        assert!(name.len() == 14 && name.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
    }
}

/// A file for each ring: perf of both versions and rep read all of them.
#[test]
fn directories_of_threads() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    for args in [
        "",
        "-z -g",
        "-e page-faults --overwrite -m 16",
        "--switch-output=1s",
        "--tail-synthesize -C 0,1",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let work = if args.contains("switch") {
            "hot --ms 1300 --threads 2"
        } else {
            "hot --ms 150 --threads 2 --forks 1"
        };
        let words = workload(work);
        let outcome = record(
            &dir.path().join("x.data"),
            &format!("--threads -a -e cpu-clock -F 499 {args}"),
            &words,
        );
        let directories = files(dir.path());
        let mut samples = Vec::new();
        for directory in &directories {
            assert!(directory.join("data.1").is_file(), "{}", directory.display());
            let counted = assert_reads(directory, Extent::System(&["workload"]));
            samples.push(counted);
            for perf in perf::versions() {
                let stats =
                    run(perf::version(&perf).args(["report", "--stats", "-i"]).arg(directory))
                        .expect(0);
                let stats = perf::parse_stats(&stats);
                assert_eq!(stats.records.get("SAMPLE"), Some(&counted), "{args}: {perf:?}");
                assert_eq!(
                    perf::without_loss(&stats.warnings, &stats.records),
                    "",
                    "{args}: {perf:?}"
                );
            }
        }
        assert_eq!(samples, summaries(&outcome), "{args}: {}", outcome.stderr);
        let tables = directories.iter().flat_map(|directory| report(directory, "comm").tables());
        assert!(
            tables.map(|table| table.samples_where(|key| key[0] == "workload")).sum::<u64>() > 0,
            "{args}"
        );
        assert_eq!(directories.len() > 1, args.contains("switch"), "{directories:?}");
    }
}

/// Signals a running recording some times, each time when there is something new to write, and
/// waits until it is written.
#[track_caller]
fn signalled(args: &str, dir: &Path) -> Outcome {
    let rec: Running =
        start(&mut recording(&dir.join("x.data"), args, &workload("hot --ms 500 --threads 2")));
    for _ in 0..2 {
        let before = rec.childs_cpu_time();
        let has_run = || rec.childs_cpu_time() > before + Duration::from_millis(100);
        until(has_run, || format!("{args}: nothing runs: {}", rec.said()));
        let written = || -> (usize, u64) {
            (files(dir).len(), files(dir).iter().map(|file| length(file)).sum())
        };
        let before = written();
        rec.signal(Signal::USR2);
        until(|| written() != before, || format!("{args}: nothing is written: {}", rec.said()));
    }
    rec.finish().expect(0)
}

/// Returns the length of a file; 0 where it has got another name by now.
fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.len())
}

#[test]
fn pieces_by_signal() {
    if !needs::perf_events() {
        return;
    }
    for args in [
        "--switch-output",
        "--switch-output -z",
        "--overwrite --switch-output -m 4",
        "--overwrite -m 4",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let outcome = signalled(&format!("-e cpu-clock:u {args}"), dir.path());
        let samples = assert_pieces(dir.path(), &outcome);
        let pieces = if args.contains("switch") { 3 } else { 1 };
        assert_eq!(samples.len(), pieces, "{args}: {}", outcome.stderr);
        assert!(samples.iter().all(|&samples| samples >= 5), "{args}: {samples:?}");
    }
}

/// Records by a flight recorder; returns whether all samples are from the second half of the
/// command's time. On a busy machine it may have had most of its time on a CPU in the first half.
#[track_caller]
fn has_the_end(args: &str) -> bool {
    let args = format!("-e cpu-clock:u --overwrite -m 4 -F 5000 {args}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let command =
        ["taskset", "-c", "0"].map(str::to_owned).into_iter().chain(workload("hot --ms 600"));
    let outcome = record(&file, &args, &command.collect::<Vec<_>>());
    assert_pieces(dir.path(), &outcome);
    let show = ["script", "--show-task-events", "-F", "comm,time", "-i"];
    let script = run(perf().args(show).arg(&file)).expect(0);
    let time = |line: &str| line.trim().split(':').next()?.trim().parse::<f64>().ok();
    // taskset itself may have begun on another CPU, whose ring it did not fill.
    let lines = || script.text().lines().filter_map(|line| line.trim().strip_prefix("workload"));
    let of = |event: &str| lines().find(|line| line.contains(event)).and_then(time).unwrap();
    let (exec, exit) = (of("PERF_RECORD_COMM exec: workload"), of("PERF_RECORD_EXIT"));
    let times: Vec<f64> =
        lines().filter(|line| !line.contains("PERF_RECORD")).filter_map(time).collect();
    let (first, last, middle) = (times[0], times[times.len() - 1], (exec + exit) / 2.0);
    let table = report(&file, "dso").events[0].table();
    assert!(table.samples_where(|key| key[0] == "workload") * 2 > table.samples(), "{table:?}");
    // Of 3000 samples a ring holds a tenth.
    assert!(last > first && times.len() < 1000, "{args}: {} samples", times.len());
    println!("{args}: {first} to {last} of {exec} to {exit}");
    first > middle
}

/// The file has what is in the rings at the end: the last samples, not the first; with the mappings
/// that they need.
#[test]
fn a_flight_recorder_has_the_end() {
    if !needs::perf_events() {
        return;
    }
    for args in ["", "-z", "-e page-faults"] {
        assert!((0..5).any(|_| has_the_end(args)), "{args}");
    }
}

#[test]
fn tracepoints_with_named_fields() {
    if !needs::tracefs() {
        return;
    }
    for args in ["-z", "--switch-output=1s", "--overwrite", "-a"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.data");
        let mut command = rec();
        command
            .arg("-o")
            .arg(&file)
            .args(["-e", "sched:sched_switch"])
            .args(args.split_whitespace());
        let outcome =
            run(&mut with_tracefs(command.arg("--").args(workload("switches --count 300"))))
                .expect(0);
        let files = files(dir.path());
        for file in &files {
            let extent = if args == "-a" { Extent::System(&["workload"]) } else { Extent::Command };
            assert_reads(file, extent);
            let script =
                run(perf().args(["script", "-F", "trace:event,trace", "-i"]).arg(file)).expect(0);
            let named = |line: &&str| line.contains("prev_comm=") && line.contains(" next_prio=");
            let samples = script.text().lines().filter(|line| line.contains("sched:sched_switch:"));
            let named = samples.filter(named).count() as u64;
            assert_eq!(named, report(file, "comm").records()["SAMPLE"], "{args}");
        }
        assert_eq!(files.len(), summaries(&outcome).len());
    }
}
