//! Damaged files: answered as far as they go, with a warning that names the byte; never a crash.

use std::collections::BTreeSet;
use std::path::Path;

use recrep_tests::damage::{HEADER, Patient};
use recrep_tests::programs::{rep, workload};
use recrep_tests::report::{Report, answered, report};
use recrep_tests::run::run;
use recrep_tests::{needs, perf};

/// The sort keys of these tests: none that needs symbols, which have nothing to do with damage and
/// take time.
const SORT: &str = "comm,dso";

/// A small recording by `rec`'s reference, with several kinds of records.
fn patient(dir: &Path) -> Option<Patient> {
    if !needs::perf_events() {
        return None;
    }
    let file = dir.join("whole.data");
    perf::record(&file, "-e page-faults -c 1 -g", &workload("faults --pages 100"));
    Some(Patient::new(&file))
}

/// The answer, or None for "cannot answer"; anything else is a failure.
#[track_caller]
fn examined(file: &Path, what: &str) -> Option<Report> {
    let outcome = run(rep().args(["--json", "--sort", SORT]).arg(file));
    assert!(!outcome.stderr.contains("panicked"), "{what}: {}", outcome.stderr);
    match outcome.code() {
        // Without samples there is a table without rows.
        0 | 1 if !outcome.stdout.is_empty() => {
            let outcome = answered(outcome);
            Some(
                serde_json::from_slice(&outcome.stdout)
                    .unwrap_or_else(|error| panic!("{what}: {error}")),
            )
        }
        1 => {
            assert!(!outcome.stderr.trim().is_empty(), "{what}: status 1 without a word");
            None
        }
        code => panic!("{what}: exit status {code}: {}", outcome.stderr),
    }
}

#[test]
fn a_file_cut_anywhere_is_answered_as_far_as_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let Some(patient) = patient(dir.path()) else {
        return;
    };
    let length = patient.bytes.len();
    let data = patient.data();
    let mut lengths: BTreeSet<usize> =
        (0..=HEADER).chain((0..200).map(|part| part * length / 200)).collect();
    lengths.extend([
        data.start - 1,
        data.start,
        data.start + 1,
        data.end - 1,
        data.end,
        data.end + 1,
        length - 1,
    ]);
    let mut answered = 0;
    for cut in lengths {
        let what = format!("cut at {cut} of {length}");
        let Some(report) = examined(patient.cut(cut), &what) else {
            assert!(cut <= data.start, "{what}: records that are there are not answered for");
            continue;
        };
        answered += 1;
        assert!(!report.warnings.is_empty(), "{what}: no warning");
        let whole = patient.records().windows(2).filter(|pair| pair[1] <= cut).count()
            + usize::from(data.end <= cut);
        let counted: u64 = report.input().records.values().sum();
        assert_eq!(counted, whole as u64, "{what}: records that are whole");
        if cut < data.end {
            // What follows the data is missed at its own place.
            let named = |offset: u64| (data.start as u64..=cut as u64).contains(&offset);
            let told = report.warnings.iter().any(|warning| warning.offset.is_some_and(named));
            assert!(told, "{what}: no warning names the byte: {:?}", report.warnings);
            assert!(!report.input().complete, "{what}: called complete");
        }
    }
    assert!(answered >= 150, "only {answered} cuts were answered");
}

#[test]
fn any_damaged_header_byte_is_survived() {
    let dir = tempfile::tempdir().unwrap();
    let Some(patient) = patient(dir.path()) else {
        return;
    };
    for offset in 0..HEADER {
        for value in [0x00, 0xff, patient.bytes[offset] ^ 0x01] {
            examined(patient.patched(offset, &[value]), &format!("byte {offset} is {value:#x}"));
        }
    }
}

#[test]
fn the_file_of_a_killed_recorder_is_answered_whole() {
    let dir = tempfile::tempdir().unwrap();
    let Some(patient) = patient(dir.path()) else {
        return;
    };
    let whole = report(&dir.path().join("whole.data"), SORT);
    let killed = examined(patient.killed(), "killed").expect("answered");
    assert_eq!(killed.records(), whole.records());
    assert!(!killed.input().complete && !killed.warnings.is_empty(), "{killed:?}");
    assert!(whole.input().complete && whole.warnings.is_empty(), "{:?}", whole.warnings);
}

#[test]
fn a_record_of_size_zero_ends_the_data_there() {
    let dir = tempfile::tempdir().unwrap();
    let Some(patient) = patient(dir.path()) else {
        return;
    };
    let records = patient.records();
    let broken = records.len() / 2;
    let report =
        examined(patient.patched(records[broken] + 6, &[0, 0]), "size 0").expect("answered");
    let counted: u64 = report.input().records.values().sum();
    assert_eq!(counted, broken as u64, "the records before it");
    let at = records[broken] as u64;
    let named = |offset: u64| (at..at + 8).contains(&offset);
    assert!(
        report.warnings.iter().any(|warning| warning.offset.is_some_and(named)),
        "{at}: {:?}",
        report.warnings
    );
    assert!(
        report
            .warnings
            .iter()
            .all(|warning| !warning.code.is_empty() && !warning.message.is_empty())
    );
    // On a terminal the warning is on standard error, and the answer is still an answer.
    let text = run(rep().args(["--sort", SORT]).arg(dir.path().join("whole.damaged"))).expect(0);
    assert!(
        text.stderr.contains(&at.to_string()) || text.stderr.contains(&format!("{at:#x}")),
        "{}",
        text.stderr
    );
}

#[test]
fn an_unknown_record_type_is_skipped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let Some(patient) = patient(dir.path()) else {
        return;
    };
    let whole = report(&dir.path().join("whole.data"), SORT);
    let records = patient.records();
    let last_sample =
        records.iter().rev().find(|&&at| patient.bytes[at..at + 4] == 9u32.to_ne_bytes()).unwrap();
    let report = examined(patient.patched(*last_sample, &4242u32.to_ne_bytes()), "type 4242")
        .expect("answered");
    assert_eq!(report.input().records.get("UNKNOWN_4242"), Some(&1));
    assert_eq!(report.input().records["SAMPLE"], whole.input().records["SAMPLE"] - 1);
}
