//! What rec keeps of recorded programs: names after the program is gone, and nothing where nothing
//! is wanted.

use std::fs;
use std::path::Path;
use std::process::Command;

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

/// Names of Go's programs, which have a build ID of their own kind.
const GO: &str = "package main\n\
    import \"os\"\n\
    var sink int\n\
    //go:noinline\n\
    func spin(n int) { for i := 0; i < n; i++ { sink ^= i } }\n\
    func main() { if len(os.Args) == 1 { for i := 0; i < 400; i++ { spin(1000000) } } }\n";

#[test]
fn a_go_program_that_was_built_again_keeps_its_names() {
    if !needs::perf_events() || !needs::commands("go") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let build = |source: &str| {
        fs::write(at("prog.go"), source).unwrap();
        let mut go = Command::new("go");
        go.args(["build", "-o"]).arg(at("prog")).arg(at("prog.go"));
        go.env("HOME", home.path()).env("GOCACHE", at("cache"));
        run(go.env("GO111MODULE", "off").env("CGO_ENABLED", "0")).expect(0);
    };
    build(GO);
    let in_home = |command: &mut Command| {
        command.env("HOME", home.path()).env_remove("XDG_CACHE_HOME");
    };
    let mut recorder = rec();
    in_home(&mut recorder);
    recorder.args(["-e", "cpu-clock:u", "-o"]).arg(at("go.data")).arg("--").arg(at("prog"));
    run(&mut recorder).expect(0);
    // The function moves, so that the old one's addresses have other names.
    build(&GO.replace("spin", "whirl").replace("var sink", "func unused() {}\nvar sink"));
    let mut report = rep();
    in_home(&mut report);
    let report = run(report.args(["--format", "csv", "-s", "symbol"]).arg(at("go.data")));
    let rows = report.expect(0);
    assert!(rows.text().contains("main.spin") && !rows.text().contains("whirl"), "{}", rows.text());
}
