//! The whole path, held against the truth: a workload that is known to spend three quarters of its
//! CPU time in one function and one quarter in another, recorded by `rec`, reported by `rep`.

use std::path::Path;

use recrep_fixtures::{HOT_CALLER, HOT_ONE_QUARTER, HOT_SHARE, HOT_THREE_QUARTERS};
use recrep_tests::programs::workload;
use recrep_tests::record::record;
use recrep_tests::report::report;
use recrep_tests::table::Table;
use recrep_tests::{needs, perf};

/// Records the workload and returns its histogram by comm and symbol.
#[track_caller]
fn recorded(file: &Path, args: &str, work: &str) -> Table {
    let summary = record(file, args, &workload(work)).summary(file);
    let report = report(file, "comm,symbol");
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    assert!(report.input().complete, "the file is complete");
    let [event] = &report.events[..] else {
        panic!("one event was asked for: {:?}", report.events)
    };
    assert_eq!(event.samples, summary.samples, "the last line's samples are the file's");
    event.table()
}

/// Returns the number of samples in each of the two functions, of the threads that `comm` takes.
fn hot(table: &Table, comm: impl Fn(&str) -> bool) -> (f64, f64) {
    let of = |name: &str| {
        let samples =
            table.samples_where(|key| comm(&key[0]) && key[1].strip_prefix("[.] ") == Some(name));
        f64::from(u32::try_from(samples).unwrap())
    };
    (of(HOT_THREE_QUARTERS), of(HOT_ONE_QUARTER))
}

#[track_caller]
fn assert_shares(table: &Table, comm: impl Fn(&str) -> bool, points: f64) {
    let (major, minor) = hot(table, comm);
    let share = major / (major + minor);
    assert!(major + minor >= 200.0, "too few samples to tell a share: {major} and {minor}");
    assert!(
        (share - HOT_SHARE).abs() <= points / 100.0,
        "{HOT_THREE_QUARTERS} has {share:.3} of {}",
        major + minor
    );
}

/// Nearly all samples are in the two functions; what is left is the start of the program and the
/// kernel.
#[track_caller]
fn assert_mostly_hot(table: &Table) {
    let (major, minor) = hot(table, |_| true);
    let all = f64::from(u32::try_from(table.samples()).unwrap());
    assert!(
        (major + minor) / all > 0.95,
        "only {} of {all} samples are in the hot functions",
        major + minor
    );
}

#[test]
fn a_single_thread() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let table = recorded(&dir.path().join("single.data"), "-e cpu-clock", "hot --ms 1000");
    assert_mostly_hot(&table);
    assert_shares(&table, |comm| comm == "workload", 3.0);
    // The default rate is 4000 Hz of CPU time, of which an undisturbed second has a thousand
    // milliseconds.
    assert!(table.samples() <= 4400, "{} samples in a second", table.samples());
}

#[test]
fn without_an_event_there_is_a_default_one() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let table = recorded(&dir.path().join("default.data"), "", "hot --ms 1000");
    assert_shares(&table, |comm| comm == "workload", 3.0);
}

#[test]
fn threads_are_in_under_their_names() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let table = recorded(
        &dir.path().join("threads.data"),
        "-e cpu-clock -F 10000",
        "hot --ms 300 --threads 3",
    );
    assert_mostly_hot(&table);
    assert_shares(&table, |_| true, 3.0);
    for comm in ["workload", "hot-1", "hot-2"] {
        // A thread's share of two CPUs is a matter of the scheduler, the split within it is not;
        // fewer samples, more noise.
        assert_shares(&table, |name| name == comm, 6.0);
    }
}

#[test]
fn forked_and_executed_children_are_in() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("children.data");
    let table = recorded(&file, "-e cpu-clock -F 10000", "hot --ms 300 --forks 1 --children 1");
    assert_mostly_hot(&table);
    assert_shares(&table, |_| true, 3.0);
    let by_pid = report(&file, "pid").events[0].table();
    let busy = by_pid.rows.values().filter(|counts| counts.samples >= 200).count();
    assert_eq!(busy, 3, "the parent, the forked child and the executed one: {by_pid:?}");
}

#[test]
fn callchains_name_the_caller() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("chains.data");
    let table = recorded(&file, "-e cpu-clock -g", "hot --ms 500");
    assert_mostly_hot(&table);
    let chains = perf::callchains(&file);
    let hot: Vec<_> = chains
        .iter()
        .filter(|chain| chain.first().is_some_and(|name| name == HOT_THREE_QUARTERS))
        .collect();
    let told =
        hot.iter().filter(|chain| chain.get(1).is_some_and(|name| name == HOT_CALLER)).count();
    assert!(hot.len() >= 100, "{} samples are too few", hot.len());
    assert!(told * 100 >= hot.len() * 98, "{told} of {} callchains name the caller", hot.len());
}
