//! The oracle's own answers hold together: what the harness reads from perf's tables is all that
//! perf counted.

use recrep_fixtures::{HOT_CALLER, HOT_THREE_QUARTERS, TOUCH_PAGES};
use recrep_tests::programs::workload;
use recrep_tests::{needs, perf};

#[test]
fn tables_add_up_to_the_statistics() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("two.data");
    perf::record(
        &file,
        "-e cpu-clock,page-faults -g --sample-cpu",
        &workload("hot --ms 300 --threads 2"),
    );
    let stats = perf::stats(&file);
    assert_eq!(stats.warnings, "");
    for sort in ["comm", "dso", "comm,dso,symbol", "tid", "cpu"] {
        let tables = perf::tables(&file, sort);
        assert_eq!(tables.len(), 2, "{tables:?}");
        for (table, (event, counts)) in tables.iter().zip(&stats.events) {
            assert_eq!((&table.event, table.samples()), (event, counts["SAMPLE"]), "by {sort}");
            assert!(table.rows.keys().all(|key| key.len() == sort.split(',').count()));
        }
    }
    let chains = perf::callchains(&file);
    assert_eq!(u64::try_from(chains.len()).unwrap(), stats.records["SAMPLE"]);
    let told = |chain: &&Vec<String>| {
        chain[..].starts_with(&[HOT_THREE_QUARTERS, HOT_CALLER].map(str::to_owned))
    };
    assert!(chains.iter().filter(told).count() > 200);
}

#[test]
fn the_workload_faults_as_often_as_asked() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("faults.data");
    perf::record(&file, "-e page-faults -c 1", &workload("faults --pages 321"));
    let table = &perf::tables(&file, "symbol")[0];
    assert_eq!(table.samples_where(|key| key[0].strip_prefix("[.] ") == Some(TOUCH_PAGES)), 321);
}
