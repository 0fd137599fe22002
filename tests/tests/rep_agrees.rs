//! `rep` against `perf report`, on files that perf recorded here a moment ago: the same samples and the same periods
//! under every key.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use recrep_tests::programs::workload;
use recrep_tests::report::report;
use recrep_tests::table::assert_same;
use recrep_tests::{needs, perf};

/// Holds all that rep says of the file against perf.
#[track_caller]
fn assert_agrees(file: &Path) {
    let stats = perf::stats(file);
    let sorts = ["comm", "dso", "comm,dso", "comm,dso,symbol", "symbol", "cpu"];
    for sort in sorts {
        let ours = report(file, sort);
        assert_eq!(ours.records(), stats.records, "records");
        assert!(ours.input().complete && ours.warnings.is_empty(), "{:?}", ours.warnings);
        assert_same(sort, &ours.tables(), &perf::tables(file, sort));
    }
}

/// A shell, its children and their libraries: comms that change at exec, mappings that come and go.
fn shell() -> Vec<String> {
    let script = "i=0; while [ $i -lt 20 ]; do ls -l /usr/bin /usr/lib >/dev/null; sort /proc/kallsyms | tail -n 1; i=$((i+1)); done";
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

#[test]
fn flat() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flat.data");
    perf::record(&file, "-e cpu-clock --sample-cpu", &shell());
    assert_agrees(&file);
}

#[test]
fn threads_and_children() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("family.data");
    perf::record(&file, "-e cpu-clock --sample-cpu", &workload("hot --ms 500 --threads 2 --forks 1 --children 1"));
    assert_agrees(&file);
}

#[test]
fn callchains() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("chains.data");
    perf::record(&file, "-e cpu-clock -g --sample-cpu", &shell());
    assert_agrees(&file);
}

#[test]
fn system_wide() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.data");
    perf::record(&file, "-e cpu-clock -a -F 1999", &shell());
    assert_agrees(&file);
}

#[test]
fn page_faults_with_addresses() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("faults.data");
    perf::record(&file, "-e page-faults -d -c 1 --sample-cpu", &workload("faults --pages 500"));
    assert_agrees(&file);
}

#[test]
fn two_events() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("two.data");
    perf::record(&file, "-e cpu-clock,page-faults --sample-cpu", &shell());
    assert_agrees(&file);
}
