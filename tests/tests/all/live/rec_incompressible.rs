//! Data that does not compress, recorded with `-z`: each COMPRESSED record can be unpacked when it
//! arrives, by every version of perf.

use std::fs;
use std::path::Path;

use recrep_tests::agreement::{Extent, assert_untroubled};
use recrep_tests::needs;
use recrep_tests::perf::{parse_stats, version, versions, without_loss};
use recrep_tests::programs::workload;
use recrep_tests::record::record;
use recrep_tests::report::report;
use recrep_tests::run::run;

/// Bytes of the stack in a sample.
const STACK: u64 = 65528;

/// perf and rep read the file without a warning, but of loss, and count the same samples.
#[track_caller]
fn assert_unpacks(file: &Path, samples: u64) {
    let ours = report(file, "comm");
    assert_untroubled(&ours, Extent::Command);
    assert_eq!(ours.records()["SAMPLE"], samples, "samples by rep");
    for name in versions() {
        let said =
            run(version(&name).args(["script", "-G", "-F", "comm", "-i"]).arg(file)).expect(0);
        assert_eq!(without_loss(&said.stderr, &ours.records()), "", "{name:?}");
        assert_eq!(said.text().lines().count() as u64, samples, "samples by {name:?}");
    }
}

#[test]
fn stacks_of_random_bytes() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    for args in ["", "-m 1M", "--overwrite -m 4M", "--threads"] {
        let args = format!("-e cpu-clock:u -F 500 -z --call-graph dwarf,{STACK} {args}");
        let summary = record(&file, &args, &workload("hot --ms 200 --noise")).summary(&file);
        assert!(summary.samples > 10, "{args}: {summary:?}");
        let length_of = |path: &Path| fs::metadata(path).unwrap().len();
        let length: u64 = match fs::read_dir(&file) {
            Ok(files) => files.map(|file| length_of(&file.unwrap().path())).sum(),
            Err(_) => length_of(&file),
        };
        assert!(
            length > summary.samples * STACK * 8 / 10,
            "{args}: the stacks compress to {length} bytes: {summary:?}"
        );
        assert_unpacks(&file, summary.samples);
        for name in versions() {
            let stats = parse_stats(
                &run(version(&name).args(["report", "--stats", "-i"]).arg(&file)).expect(0),
            );
            assert_eq!(stats.records["SAMPLE"], summary.samples, "{args}: {name:?}");
        }
    }
}

#[test]
fn a_stream_of_random_bytes() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stream.data");
    let args = format!("-e cpu-clock:u -F 500 -z --call-graph dwarf,{STACK}");
    let outcome = record(Path::new("-"), &args, &workload("hot --ms 200 --noise"));
    fs::write(&file, &outcome.stdout).unwrap();
    assert_unpacks(&file, outcome.summary(Path::new("-")).samples);
}
