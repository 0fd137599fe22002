//! Directories: those that recording threads leave, and those that somebody put files in.

use std::collections::BTreeMap;
use std::path::Path;

use recrep_fixtures::manifest::{DIRECTORIES, DirectoryCase, Fact, Number};
use recrep_fixtures::recorded;
use recrep_format::endian::Endian;
use recrep_tests::agreement::{Extent, assert_agrees, assert_untroubled};
use recrep_tests::programs::{rep, workload};
use recrep_tests::report::report;
use recrep_tests::run::run;
use recrep_tests::table::{Counts, Table};
use recrep_tests::{needs, perf};

/// Each fixture in both byte orders.
fn fixtures(act: impl Fn(&DirectoryCase, Endian, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    for case in DIRECTORIES {
        for endian in [Endian::Little, Endian::Big] {
            let path = dir.path().join(format!("{}.{endian:?}", case.name));
            case.directory(endian).write(&path).unwrap();
            act(case, endian, &path);
        }
    }
}

#[test]
fn all_files_are_one_profile() {
    fixtures(|case, endian, path| {
        let report = report(path, "comm,ip");
        assert_untroubled(&report, Extent::Foreign);
        let mut records = report.records();
        // rep counts the containers, as perf does; the manifest does not.
        records.remove("COMPRESSED");
        let counts = case.counts(endian).into_iter().map(|(kind, count)| (kind.to_string(), count));
        assert_eq!(records, counts.collect::<BTreeMap<_, _>>(), "{}", path.display());
        let bytes: usize = case.directory(endian).files.iter().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(report.input().bytes, bytes as u64, "{}", path.display());
    });
}

#[test]
fn samples_come_in_time_order_from_all_files() {
    fixtures(|case, endian, path| {
        for fact in case.made(endian).facts {
            let Fact::Numbers(Number::Tid, tids) = fact else { continue };
            let outcome = run(rep().args(["script", "-F", "tid"]).arg(path)).expect(0);
            let printed: Vec<u64> =
                outcome.text().lines().map(|line| line.trim().parse().unwrap()).collect();
            assert_eq!(printed, tids, "{}", path.display());
        }
    });
}

#[test]
fn a_comm_in_one_file_names_the_samples_in_another() {
    fixtures(|_, endian, path| {
        if !path.to_string_lossy().contains("idle") {
            return;
        }
        let rows = &report(path, "comm").tables()[0].rows;
        let comms: Vec<_> =
            rows.iter().map(|(key, counts)| (key[0].as_str(), counts.samples)).collect();
        assert_eq!(comms, [("another", 1), ("child", 2), ("fixture", 4)], "{endian:?}");
    });
}

#[test]
fn what_perf_left_is_perfs() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("threads");
    recorded::THREADS.directory().write(&path).unwrap();
    let (ours, stats) = (report(&path, "comm"), perf::stats(&path));
    assert_eq!(ours.records(), stats.records);
    assert_untroubled(&ours, Extent::Foreign);
    for sort in ["comm", "comm,dso", "cpu", "tid"] {
        assert_eq!(report(&path, sort).tables(), perf::tables(&path, sort), "{sort}");
    }
}

/// The rows of several files together.
fn merged(tables: impl IntoIterator<Item = Table>) -> BTreeMap<Vec<String>, Counts> {
    let mut all = Table::new("");
    for table in tables {
        for (key, counts) in table.rows {
            all.add(key, counts.samples, counts.period);
        }
    }
    all.rows
}

#[test]
fn a_directory_of_files_is_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    for file in recorded::ALL {
        if file.name != "two-events" {
            std::fs::write(dir.path().join(format!("{}.data", file.name)), file.bytes).unwrap();
        }
    }
    std::fs::write(dir.path().join("notes.txt"), "no perf.data").unwrap();
    let whole = report(dir.path(), "comm,dso");
    let names: Vec<&str> =
        ["callchains.data", "compressed.data", "flat.data", "pipe.data"].to_vec();
    assert_eq!(whole.inputs.len(), names.len());
    let each =
        names.iter().map(|name| report(&dir.path().join(name), "comm,dso").tables().remove(0));
    assert_eq!(merged(whole.tables()), merged(each));
    assert_eq!(whole.events.len(), 1, "one event by one name");
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn what_perf_records_here_is_perfs() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        for (name, args) in [("flat", ""), ("packed", "-z -g")] {
            let path = dir.path().join(name);
            let args = format!("--threads=cpu -e cpu-clock --sample-cpu {args}");
            perf::record(&path, &args, &workload("hot --ms 100 --threads 2 --forks 1"));
            assert!(path.join("data.0").is_file(), "perf made a directory");
            assert_agrees(&path, Extent::Command);
        }
    }
}
