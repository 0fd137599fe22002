//! `rep bundle --share` of fixtures and of real files: what does not depend on addresses is as in
//! the recording.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use recrep_fixtures::manifest::cases;
use recrep_tests::forms::forms;
use recrep_tests::needs;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::{Value, json};

/// Samples, period and callers' sums of the rows of each event.
fn rows(file: &Path, keys: &str) -> BTreeMap<String, Value> {
    let mut rep = rep();
    let outcome = run(rep.args(["--json", "--no-check-callchains", "-s", keys]).arg(file));
    let Ok(report) = serde_json::from_slice::<Value>(&outcome.stdout) else {
        return BTreeMap::new();
    };
    let mut all = BTreeMap::new();
    for event in report["events"].as_array().unwrap() {
        for row in event["rows"].as_array().unwrap() {
            let values = json!([row["samples"], row["period"]]);
            all.insert(format!("{} {}", event["name"], row["key"]), values);
        }
    }
    all
}

/// Returns whether a file can be shared, and holds that its rows stay.
#[track_caller]
fn keeps_its_rows(file: &Path, name: &str) -> bool {
    let shared = file.with_extension("shared");
    let shared = std::env::temp_dir().join(shared.file_name().unwrap());
    let outcome = run(rep().args(["bundle", "--share", "-o"]).arg(&shared).arg(file));
    if outcome.code() != 0 {
        // Directories, profiles, and files of no event.
        assert!([1, 2].contains(&outcome.code()), "{name}: {}", outcome.stderr);
        return false;
    }
    let keys = "comm,tid,cpu,dso,cpumode,weight,time";
    assert_eq!(rows(&shared, keys), rows(file, keys), "{name}");
    fs::remove_file(&shared).unwrap();
    true
}

#[test]
fn fixtures_keep_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for case in cases() {
        let Some(form) = forms(&case, |form| !form.container.is_pipe()).pop() else { continue };
        let file = dir.path().join(format!("{}.data", case.name));
        fs::write(&file, case.bytes(form)).unwrap();
        files += usize::from(keeps_its_rows(&file, case.name));
    }
    assert!(files > 20, "{files} fixtures are recordings");
}

#[test]
fn real_recordings_keep_their_rows() {
    let Some(corpus) = needs::corpus() else { return };
    let mut files = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        // Two of a kind are enough of the long ones.
        if path.is_file() && path.metadata().unwrap().len() < 4 << 20 {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            files += usize::from(keeps_its_rows(&path, &name));
        }
    }
    assert!(files > 10, "{files} files of the corpus are recordings");
}
