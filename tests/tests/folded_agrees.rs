//! `rep --format folded` against `perf script` and the well-known collapse library, line by line.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::run;
use recrep_tests::{needs, perf};

/// Lines by their stacks. Linkage-table entries are one: perf before 6.3 names them by their position among the relocations, or not
/// at all (see [`recrep_tests::table`]); so what has no function in its module, `[ls]`, is one with them.
fn lines(text: &str) -> BTreeMap<String, u64> {
    let is_nameless = |frame: &str| frame.starts_with('[') && frame.ends_with(']') && frame != "[unknown]";
    let linked = |frame: &str| frame.ends_with("@plt") || frame == ".plt" || is_nameless(frame);
    let plain = |stack: &str| -> String {
        let frames = stack.split(';').map(|frame| if linked(frame) { "@plt" } else { frame });
        frames.collect::<Vec<_>>().join(";")
    };
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        *lines.entry(plain(stack)).or_default() += count.parse::<u64>().unwrap();
    }
    lines
}

fn ours(file: &Path) -> BTreeMap<String, u64> {
    let outcome = run(rep().args(["--format", "folded"]).arg(file)).expect(0);
    assert!(outcome.text().lines().is_sorted_by_key(|line| line.rsplit_once(' ').unwrap().0), "lines are in order");
    lines(outcome.text())
}

fn collapsed(file: &Path) -> BTreeMap<String, u64> {
    let script = run(perf::perf().args(["script", "--no-inline", "-i"]).arg(file)).expect(0);
    let mut options = Options::default();
    options.nthreads = 1;
    let mut folded = Vec::new();
    Folder::from(options).collapse(&*script.stdout, &mut folded).unwrap();
    lines(std::str::from_utf8(&folded).unwrap())
}

#[track_caller]
fn assert_agrees(file: &Path) {
    let (ours, theirs) = (ours(file), collapsed(file));
    assert!(theirs.len() > 5, "{} lines are too few to compare", theirs.len());
    for (stack, count) in &theirs {
        assert_eq!(ours.get(stack), Some(count), "{stack}");
    }
    for stack in ours.keys() {
        assert!(theirs.contains_key(stack), "only rep has {stack}");
    }
}

#[test]
fn callchains_recorded_by_perf() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let script = "for i in 1 2 3 4 5; do ls -l /usr/bin /usr/lib >/dev/null; seq 40000 | sort -rn | md5sum; done";
    perf::record(&file, "-e cpu-clock -g", &["sh", "-c", script].map(str::to_owned));
    assert_agrees(&file);
}

#[test]
fn callchains_recorded_by_rec() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rec.data");
    record(&file, "-e cpu-clock -g", &workload("hot --ms 800 --threads 2 --forks 1 --children 1"));
    assert_agrees(&file);
}

/// A line's number is its samples where that is asked for, and its leaf is the sampled function where there is no chain.
#[test]
fn samples_without_callchains() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flat.data");
    record(&file, "-e cpu-clock", &workload("hot --ms 300"));
    let outcome = run(rep().args(["--format", "folded", "-n"]).arg(&file)).expect(0);
    let samples: u64 = lines(outcome.text()).values().sum();
    assert_eq!(samples, recrep_tests::report::report(&file, "comm").events[0].samples);
    let hot = format!("workload;{} ", recrep_fixtures::HOT_THREE_QUARTERS);
    assert!(outcome.text().contains(&hot), "{hot}: {}", outcome.text());
}
