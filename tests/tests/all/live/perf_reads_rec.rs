//! perf reads what `rec` writes: without a warning, with the same counts as `rep`, and as the
//! self-describing stream that it is promised to be.

use std::path::Path;

use recrep_fixtures::TOUCH_PAGES;
use recrep_tests::agreement::{Extent, assert_agrees};
use recrep_tests::needs;
use recrep_tests::perf::{self, perf};
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::report::report;
use recrep_tests::run::run;
use serde_json::Value;

/// perf and rep say the same of a file that `rec` wrote, and as many samples as rec's last line.
#[track_caller]
fn assert_read_alike(file: &Path, extent: Extent<'_>, samples: u64) {
    let stats = assert_agrees(file, extent);
    assert_eq!(stats.records.get("SAMPLE"), Some(&samples), "samples by rec's last line");
}

/// `perf evlist -v`: one line an event.
#[track_caller]
fn evlist(file: &Path) -> Vec<String> {
    let outcome = run(perf().args(["evlist", "-v", "-i"]).arg(file)).expect(0);
    assert_eq!(outcome.stderr, "");
    outcome.text().lines().filter(|line| line.contains("sample_type:")).map(str::to_owned).collect()
}

#[track_caller]
fn assert_self_describing(events: &[String], fields: &[&str]) {
    for event in events {
        let (_, sample_type) = event.split_once("sample_type: ").unwrap();
        let sample_type: Vec<&str> = sample_type.split(',').next().unwrap().split('|').collect();
        for field in ["IDENTIFIER", "IP", "TID", "TIME"].iter().chain(fields) {
            assert!(sample_type.contains(field), "no {field} in {event}");
        }
        assert!(event.contains("sample_id_all: 1"), "{event}");
    }
}

#[test]
fn flat() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flat.data");
    let summary = record(&file, "-e cpu-clock", &workload("hot --ms 200 --threads 2 --forks 1"))
        .summary(&file);
    assert_read_alike(&file, Extent::Command, summary.samples);
    let events = evlist(&file);
    assert_eq!(events.len(), 1);
    assert_self_describing(&events, &["CPU", "PERIOD"]);
}

#[test]
fn callchains() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("chains.data");
    let summary = record(&file, "-e cpu-clock -g -F 2000", &workload("hot --ms 200 --children 1"))
        .summary(&file);
    assert_read_alike(&file, Extent::Command, summary.samples);
    assert_self_describing(&evlist(&file), &["CALLCHAIN"]);
}

#[test]
fn system_wide() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.data");
    let summary = record(&file, "-e cpu-clock -a -F 997", &workload("hot --ms 500")).summary(&file);
    assert_read_alike(&file, Extent::System(&["workload", "rec"]), summary.samples);
    assert_self_describing(&evlist(&file), &["CPU"]);
}

/// perf's own column of commands would end where the last name of some row's thread ends, that of
/// the row's first sample: here one that ends as `true`, though a later one stays the shell.
#[test]
fn names_of_threads_that_end_under_a_short_one_are_whole() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (shell, file) = (dir.path().join("a-long-command"), dir.path().join("renamed.data"));
    std::fs::copy("/bin/sh", &shell).unwrap();
    let shell = shell.to_str().unwrap();
    for second in ["exec true", ":"] {
        let script = format!("{shell} -c 'exec true'; {shell} -c '{second}'");
        let command = ["sh".to_owned(), "-c".to_owned(), script];
        let summary = record(&file, "-e page-faults -c 1", &command).summary(&file);
        assert_read_alike(&file, Extent::Command, summary.samples);
        let comms = &report(&file, "comm").events[0].table();
        assert!(comms.rows.contains_key(&["a-long-command".to_owned()][..]), "{comms:?}");
    }
}

#[test]
fn two_events() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("two.data");
    let summary = record(&file, "-e cpu-clock,page-faults", &workload("hot --ms 300 --threads 2"))
        .summary(&file);
    assert_read_alike(&file, Extent::Command, summary.samples);
    let events = evlist(&file);
    assert_eq!(events.len(), 2);
    assert_self_describing(&events, &[]);
}

/// The addresses are in the file, and each page is one sample.
#[test]
fn page_faults_are_exact() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("faults.data");
    let summary =
        record(&file, "-e page-faults -d -c 1", &workload("faults --pages 777")).summary(&file);
    assert_read_alike(&file, Extent::Command, summary.samples);
    assert_self_describing(&evlist(&file), &["ADDR"]);
    let table = report(&file, "symbol").events[0].table();
    assert_eq!(table.samples_where(|key| key[0].strip_prefix("[.] ") == Some(TOUCH_PAGES)), 777);
}

#[test]
fn context_switches_are_all_in() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("switches.data");
    let outcome = record(&file, "-e context-switches -c 1", &workload("switches --count 1000"));
    let summary = outcome.summary(&file);
    assert_read_alike(&file, Extent::Command, summary.samples);
    // A sleep whose timer fires before the thread has left the CPU is no switch; being preempted is
    // one more.
    let sleeps: u64 = outcome.text().trim().parse().unwrap();
    assert!(
        sleeps > 0 && summary.samples >= sleeps,
        "{} switches, {sleeps} of them sleeps",
        summary.samples
    );
}

#[test]
fn times_off_the_cpu() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("off.data");
    let outcome = record(&file, "-e cpu-clock --off-cpu", &workload("switches --count 1000"));
    let summary = outcome.summary(&file);
    assert_read_alike(&file, Extent::Command, summary.samples);
    let events = evlist(&file);
    assert!(events[1].starts_with("context-switches: "), "{events:?}");
    assert_self_describing(&events, &["CPU", "CALLCHAIN"]);
    for version in perf::versions() {
        let mut script = perf::version(&version);
        let script = run(script
            .args(["script", "--show-switch-events", "-F", "tid,event", "-i"])
            .arg(&file))
        .expect(0);
        assert_eq!(perf::without_loss(&script.stderr, &perf::stats(&file).records), "");
        let lines = |what: &str| script.text().lines().filter(|line| line.contains(what)).count();
        let (outs, ins) = (lines("PERF_RECORD_SWITCH OUT"), lines("PERF_RECORD_SWITCH IN"));
        if (summary.lost_events, summary.lost_samples) == (0, 0) {
            assert_eq!(
                (lines(" context-switches:"), ins),
                (outs, outs),
                "the thread came back from each"
            );
        }
        let sleeps: usize = outcome.text().trim().parse().unwrap();
        assert!(sleeps > 0 && outs >= sleeps, "{outs} switches, {sleeps} of them sleeps");
    }
}

#[test]
fn the_header_tells_where_it_was_recorded() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("header.data");
    record(&file, "-e cpu-clock", &workload("hot --ms 50"));
    let outcome = run(perf().args(["report", "--header-only", "-i"]).arg(&file)).expect(0);
    assert_eq!(outcome.stderr, "");
    for line in [
        "# hostname : ",
        "# os release : ",
        "# arch : ",
        "# nrcpus online : ",
        "# cpudesc : ",
        "# cmdline : ",
        "# event : ",
    ] {
        assert!(
            outcome.text().lines().any(|text| text.starts_with(line) && text.len() > line.len()),
            "no {line:?}"
        );
    }
    let build_ids = run(perf().args(["buildid-list", "-i"]).arg(&file)).expect(0);
    assert!(
        build_ids.text().lines().any(|line| line.ends_with("/workload")),
        "{}",
        build_ids.text()
    );
}

#[test]
fn perf_reads_the_wall_clock_of_recordings() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, args, clock) in [("own.data", "", u64::from(u32::MAX)), ("mono.data", "-k mono", 1)]
    {
        let file = dir.path().join(name);
        let seconds = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        let before = seconds();
        record(&file, &format!("-e cpu-clock {args}"), &workload("hot --ms 50"));
        let after = seconds();
        let mut tool = perf();
        tool.args(["report", "--header-only", "-i"]).arg(&file);
        let header = run(&mut tool).expect(0);
        assert!(header.text().contains("# reference time: "), "{}", header.text());
        assert_eq!(header.stderr, "");
        let mut tool = perf();
        tool.args(["script", "-F", "tod,time", "-i"]).arg(&file);
        let script = run(&mut tool).expect(0);
        assert_eq!(script.stderr, "");
        assert!(!script.text().contains("unknown"), "{}", script.text());
        let answer = run(rep().args(["info", "--json"]).arg(&file)).expect(0);
        let info: Value = serde_json::from_slice(&answer.stdout).unwrap();
        let features = info["features"].as_array().unwrap();
        let data = features.iter().find(|feature| feature["name"] == "CLOCK_DATA").unwrap();
        assert_eq!(data["value"]["clockid"], clock);
        // Samples were taken while the recording ran, by the wall clock, too.
        let offset = data["value"]["wall_clock_ns"].as_f64().unwrap()
            - data["value"]["clockid_time_ns"].as_f64().unwrap();
        let times = info["time"].clone();
        let first = times["first_sample"].as_f64().or(times["first"].as_f64());
        let first = first.unwrap_or_else(|| panic!("{times}")) + offset;
        assert!((before - 0.5..after + 0.5).contains(&(first / 1e9)), "{before} {first} {after}");
    }
}
