//! Machines to plan for, from the text files beside this one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Returns the path of a file of the cases.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attrs").join(name)
}

/// A machine as a directory: `machine.json`, and below it what its sysfs and tracefs have.
pub(crate) fn machine(name: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(data(&format!("{name}.txt"))).unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(facts) = line.strip_prefix("machine ") {
            let mut facts: Value = serde_json::from_str(facts).unwrap();
            facts["sysfs"] = json!(dir.path().join("sys"));
            facts["tracefs"] = json!(dir.path().join("trace"));
            fs::write(dir.path().join("machine.json"), facts.to_string()).unwrap();
        } else {
            let (path, content) = line.split_once(": ").unwrap();
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{content}\n")).unwrap();
        }
    }
    dir
}
