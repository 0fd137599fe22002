//! What rec keeps of recorded programs: names after the program is gone, and nothing where nothing
//! is wanted.

use std::fs;
use std::path::Path;

use recrep_tests::needs;
use recrep_tests::programs::{rec, rep, workload};
use recrep_tests::run::run;

/// Records a copy of the workload, and returns the functions that rep shows before and after the
/// program is replaced.
fn before_and_after(home: &Path, options: &[&str]) -> [String; 2] {
    let (app, data) = (home.join("app"), home.join("app.data"));
    let mut command = workload("hot --ms 300 --threads 1");
    fs::copy(&command[0], &app).unwrap();
    command[0] = app.to_str().unwrap().to_owned();
    let mut recorder = rec();
    recorder
        .env("HOME", home)
        .env_remove("XDG_CACHE_HOME")
        .args(["-e", "cpu-clock:u", "-o"])
        .arg(&data);
    run(recorder.args(options).arg("--").args(&command)).expect(0);
    let functions = || {
        let mut report = rep();
        report.env("HOME", home).env_remove("XDG_CACHE_HOME").env_remove("PERF_BUILDID_DIR");
        run(report.args(["--format", "csv", "-s", "dso,symbol", "-i"]).arg(&data))
            .expect(0)
            .text()
            .to_owned()
    };
    let before = functions();
    fs::remove_file(&app).unwrap();
    fs::write(&app, "#!/bin/sh\n").unwrap();
    [before, functions()]
}

#[test]
fn a_program_that_was_replaced_keeps_its_names() {
    if !needs::perf_events() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let [before, after] = before_and_after(home.path(), &[]);
    assert_eq!(before, after);
    let mut modules = rep();
    modules
        .env("HOME", home.path())
        .env_remove("XDG_CACHE_HOME")
        .arg("modules")
        .arg(home.path().join("app.data"));
    let told = run(&mut modules).expect(0);
    assert!(told.text().contains("(kept by rec)"), "{}", told.text());
}

#[test]
fn nothing_is_kept_if_nothing_is_wanted() {
    if !needs::perf_events() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let [before, after] = before_and_after(home.path(), &["--no-keep"]);
    assert!(before != after && !home.path().join(".cache").exists(), "{after}");
}
