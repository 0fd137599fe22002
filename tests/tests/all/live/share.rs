//! `rep bundle --share`: the rows of the recording, and none of what its program was given.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_format::read::File;
use recrep_format::record::Body;
use recrep_tests::needs;
use recrep_tests::perf::perf;
use recrep_tests::programs::rep;
use recrep_tests::record::recording;
use recrep_tests::run::{Outcome, run};
use serde_json::Value;
use tempfile::TempDir;

use super::bundle::{EmptyRoot, PROGRAM};
use crate::private::nothing_private;

const DIRECTORY: &str = "anns-secret-project";
const ARGUMENT: &str = "--token=hunter2";
const HOST: &str = "anns-machine";

/// What must be nowhere in a shared recording, besides what it says itself.
const SECRETS: [&str; 6] = [DIRECTORY, "hunter2", HOST, "/usr/lib", "anns-user", "anns-token"];

const SCRIPT: &str = r"
function spin(n) { let sum = 0; for (let i = 0; i < n; i++) sum += Math.sqrt(i % 7); return sum; }
let all = 0;
for (let i = 0; i < 60; i++) all += spin(1e6);
console.log(all > 0);
";

/// Records a command on a machine with a private name.
#[track_caller]
fn record(file: &Path, args: &str, command: &[String]) {
    let recording = recording(file, args, command);
    let mut named = Command::new("unshare");
    named.args(["--uts", "sh", "-c", &format!("hostname {HOST}; exec \"$0\" \"$@\"")]);
    // V8 may leave a log where it runs.
    named.current_dir(file.parent().unwrap());
    named.envs([("USER", "anns-user"), ("ANNS_KEY", "anns-token")]);
    run(named.arg(recording.get_program()).args(recording.get_args())).expect(0);
}

/// Records copies of stacks that reach the program's environment. The kernel copies up to the first
/// page that it would have to wait for, and where pages begin is chance: perf's copies end there, too.
#[track_caller]
fn record_environment(file: &Path, args: &str, command: &[String]) {
    for _ in 0..20 {
        record(file, args, command);
        let recorded = fs::read(file).unwrap();
        if recorded.windows(10).any(|bytes| bytes == b"anns-token") {
            return;
        }
    }
    panic!("the copies of stacks do not reach the environment");
}

fn share(file: &Path) -> (Outcome, PathBuf) {
    let shared = file.with_extension("shared");
    let outcome = run(rep().args(["bundle", "--share", "-o"]).arg(&shared).arg(file)).expect(0);
    (outcome, shared)
}

/// Rows of all events by their keys, but those of addresses without a file, which are replaced.
fn rows(report: &[u8]) -> BTreeMap<String, Value> {
    let report: Value = serde_json::from_slice(report).unwrap();
    let mut all = BTreeMap::new();
    for event in report["events"].as_array().unwrap() {
        let is_named = |row: &&Value| {
            let is_address = |name: &str| name.starts_with("0x");
            row["key"]["dso"] != "[unknown]"
                && !row["key"]["symbol"].as_str().is_some_and(is_address)
        };
        for row in event["rows"].as_array().unwrap().iter().filter(is_named) {
            let values = serde_json::json!([row["samples"], row["period"], row["children"]]);
            all.insert(format!("{} {}", event["name"], row["key"]), values);
        }
    }
    all
}

/// Compiles the program in a directory with a private name.
fn compiled() -> (TempDir, [String; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join(DIRECTORY);
    fs::create_dir(&inside).unwrap();
    let source = inside.join("a.cpp");
    fs::write(&source, PROGRAM).unwrap();
    let app = inside.join("app");
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-g", "-fno-omit-frame-pointer", "-o"]);
    run(compiler.arg(&app).arg(&source)).expect(0);
    (dir, [app.to_str().unwrap().to_owned(), ARGUMENT.to_owned()])
}

#[test]
fn a_shared_recording_has_the_rows_and_nothing_private() {
    if !needs::perf_events() || !needs::root() || !needs::commands("g++ unshare hostname") {
        return;
    }
    let (dir, command) = compiled();
    let elsewhere = EmptyRoot::new();
    for (name, args) in [
        ("unwound.data", "-e cpu-clock -F 1999 -g"),
        ("pointers.data", "-e cpu-clock,page-faults -d -F 1999 --call-graph fp"),
        (
            "anns-machine.data",
            "-e cpu-clock -F 499 --call-graph dwarf,32768 --no-compression-level",
        ),
        ("compressed.data", "-e cpu-clock -c 300000 -g -z"),
    ] {
        let file = dir.path().join(name);
        let has_environment = name == "anns-machine.data";
        match has_environment {
            true => record_environment(&file, args, &command),
            false => record(&file, args, &command),
        }
        let (outcome, shared) = share(&file);
        assert!(outcome.text().contains("taken out: the host's name, the command line"), "{args}");
        let is_of_pointers = name == "pointers.data";
        for view in [
            "-s comm,dso,symbol",
            "--children --no-inline -g none -s dso,symbol",
            "--inline -s comm,cpu,tid,symbol,dso",
        ] {
            let mut here = rep();
            here.args(view.split(' ')).args(is_of_pointers.then_some("--no-check-callchains"));
            let expected = run(here.arg("--json").arg(&file)).expect(0);
            let view = format!("{view} --json");
            let view = match is_of_pointers {
                true => format!("{view} --no-check-callchains"),
                false => view,
            };
            let found = elsewhere.rep(&view, &shared).expect(0);
            assert_eq!(rows(&found.stdout), rows(&expected.stdout), "{args}: {view}");
        }
        nothing_at_its_place(&file, &shared);
        // What is made of the others is made alike.
        if has_environment {
            nothing_private(&file, &SECRETS, "outer");
        }
        let outcome = run(perf().args(["report", "--stdio", "-i"]).arg(&shared));
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    }
}

#[test]
fn code_of_a_jit_keeps_its_names_and_loses_its_directories() {
    if !needs::perf_events() || !needs::root() || !needs::commands("node unshare hostname") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join(DIRECTORY);
    fs::create_dir(&inside).unwrap();
    let script = inside.join("app.js");
    fs::write(&script, SCRIPT).unwrap();
    let file = dir.path().join("jit.data");
    let script = script.to_str().unwrap();
    let command = ["node", "--perf-basic-prof", script, ARGUMENT].map(str::to_owned);
    record(&file, "-e cpu-clock:u -F 1999 -g", &command);
    let (_, shared) = share(&file);
    let of = |file: &Path| {
        let report = run(rep().args(["--json", "-s", "symbol"]).arg(file)).expect(0);
        let rows = rows(&report.stdout);
        let spin = rows.iter().filter(|(key, _)| key.contains("spin"));
        spin.map(|(_, values)| values[0].as_u64().unwrap()).sum::<u64>()
    };
    let (before, after) = (of(&file), of(&shared));
    assert!(before > 100, "{before} samples in the script's function");
    assert_eq!(before, after);
    nothing_private(&file, &SECRETS, "spin");
    nothing_at_its_place(&file, &shared);
}

/// Holds that nothing of a process is mapped where it was; the kernel may be where it is by default.
#[track_caller]
fn nothing_at_its_place(recorded: &Path, shared: &Path) {
    let mapped = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        let file = File::parse(&bytes).unwrap();
        let mut all = BTreeSet::new();
        let mut sampled = 0;
        for raw in file.records().map_while(Result::ok) {
            match file.attrs.decode(&raw).unwrap().body {
                Body::Mmap2(map) => drop(all.insert(map.addr)),
                Body::Mmap(map) => drop(all.insert(map.addr)),
                Body::Sample(_) => sampled += 1,
                _ => {}
            }
        }
        (all, sampled)
    };
    let ((before, _), (after, sampled)) = (mapped(recorded), mapped(shared));
    assert!(sampled > 0 && !after.is_empty());
    let same: Vec<_> = before.intersection(&after).filter(|at| *at >> 63 == 0).collect();
    assert!(same.is_empty(), "{same:x?}");
}
