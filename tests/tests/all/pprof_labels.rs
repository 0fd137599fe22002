//! Labels of `rep export --format pprof`: tasks whose numbers stand for several threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{SampleType, context};
use recrep_format::endian::Endian;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::Value;

/// Writes a profile beside a recording, and returns its path.
pub(crate) fn export(recording: &Path, args: &str) -> PathBuf {
    let profile = recording.with_extension("pb.gz");
    let mut rep = rep();
    rep.arg("export").args(args.split_whitespace()).arg("-o").arg(&profile).arg(recording);
    run(&mut rep).expect(0);
    profile
}

/// Returns the samples of each number of a column of tasks, `pid` or `tid`: a profile has no others'
/// names.
pub(crate) fn samples_of_tasks(file: &Path, key: &str) -> BTreeMap<String, u64> {
    let outcome = run(rep().args(["--json", "--sort", key]).arg(file)).expect(0);
    let report: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let mut all = BTreeMap::new();
    for row in report["events"][0]["rows"].as_array().unwrap() {
        let text = row["key"][key].as_str().unwrap();
        let number = text.split(':').next().unwrap().to_owned();
        *all.entry(number).or_default() += row["samples"].as_u64().unwrap();
    }
    all
}

/// A thread that is ending has -1 for its own number, or for both; profiles of several machines have
/// one number for several threads.
#[test]
fn a_threads_number_can_stand_for_threads_of_several_processes() {
    let (code, bits) = (0x10_0000u64, SampleType::CALLCHAIN);
    let mut stream =
        Stream::new(Endian::NATIVE).event(Event::new("cpu-clock").sampling(bits)).at(10);
    for (pid, tid) in [(7, 7), (u32::MAX, u32::MAX), (7, u32::MAX), (8, u32::MAX), (9, 7), (7, 9)] {
        let sample = SampleSpec::at(code).period(1).callchain(&[context::USER, code]);
        stream = stream.task(pid, tid).sample(sample);
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    std::fs::write(&file, stream.file()).unwrap();
    let profile = export(&file, "--format pprof --labels pid,tid");
    assert_eq!(samples_of_tasks(&file, "pid"), samples_of_tasks(&profile, "pid"));
    assert_eq!(samples_of_tasks(&file, "tid"), samples_of_tasks(&profile, "tid"));
    assert_eq!(samples_of_tasks(&profile, "pid")["7"], 3);
}
