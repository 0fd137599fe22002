//! `rep` against `perf report`, on files that perf recorded here a moment ago: the same samples and
//! the same periods under every key.

use recrep_tests::agreement::{Extent, assert_agrees};
use recrep_tests::programs::workload;
use recrep_tests::{needs, perf};

/// A shell, its children and their libraries: comms that change at exec, mappings that come and go.
fn shell() -> Vec<String> {
    let script = "for i in 1 2 3 4 5; do ls -l /usr/bin /usr/lib >/dev/null; seq 40000 | sort -rn \
                  | md5sum; done";
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

#[test]
fn flat() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flat.data");
    perf::record(&file, "-e cpu-clock --sample-cpu", &shell());
    assert_agrees(&file, Extent::Command);
}

#[test]
fn threads_and_children() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("family.data");
    perf::record(
        &file,
        "-e cpu-clock --sample-cpu",
        &workload("hot --ms 200 --threads 2 --forks 1 --children 1"),
    );
    assert_agrees(&file, Extent::Command);
}

#[test]
fn callchains() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("chains.data");
    perf::record(&file, "-e cpu-clock -g --sample-cpu", &shell());
    assert_agrees(&file, Extent::Command);
}

#[test]
fn copied_stacks() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dwarf.data");
    perf::record(
        &file,
        "-e cpu-clock --call-graph dwarf -F 499 --sample-cpu",
        &workload("hot --ms 300 --threads 2"),
    );
    assert_agrees(&file, Extent::Command);
}

#[test]
fn system_wide() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.data");
    perf::record(&file, "-e cpu-clock -a -F 1999", &shell());
    assert_agrees(&file, Extent::System(&["sh", "ls", "seq", "sort", "md5sum", "perf"]));
}

#[test]
fn page_faults_with_addresses() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("faults.data");
    perf::record(&file, "-e page-faults -d -c 1 --sample-cpu", &workload("faults --pages 500"));
    assert_agrees(&file, Extent::Command);
}

#[test]
fn two_events() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("two.data");
    perf::record(&file, "-e cpu-clock,page-faults --sample-cpu", &shell());
    assert_agrees(&file, Extent::Command);
}
