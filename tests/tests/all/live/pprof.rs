//! `rep export --format pprof`: what pprof prints of the file, and what rep does, is what rep prints
//! of the recording. Profiles of other programs: what rep prints of them is what pprof prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::programs::{programs, rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::{Outcome, run};
use serde_json::Value;
use tempfile::TempDir;

use super::bundle::PROGRAM;
use crate::pprof_labels::{export, samples_of_tasks};

const GO_PROGRAM: &str = r#"
package main

import (
	"os"
	"runtime/pprof"
	"time"
)

type node struct{ left, right *node }

var kept []*node
var total int

func grow(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{grow(depth - 1), grow(depth - 1)}
}

func small(i int) int { return i*i%7 + 1 }

//go:noinline
func spin(until time.Time) {
	for time.Now().Before(until) {
		for i := 0; i < 10000; i++ {
			total += small(i)
		}
	}
}

func main() {
	cpu, _ := os.Create("cpu.pb.gz")
	pprof.StartCPUProfile(cpu)
	spin(time.Now().Add(time.Second))
	for i := 0; i < 10; i++ {
		kept = append(kept, grow(14))
	}
	pprof.StopCPUProfile()
	cpu.Close()
	heap, _ := os.Create("heap.pb.gz")
	pprof.Lookup("heap").WriteTo(heap, 0)
	heap.Close()
}
"#;

/// Returns a directory with the program, compiled.
fn compiled() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("a.cpp");
    fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-g", "-fno-omit-frame-pointer", "-o"]).arg(dir.path().join("app"));
    run(compiler.arg(&source)).expect(0);
    dir
}

fn command(dir: &TempDir) -> [String; 1] {
    [dir.path().join("app").to_str().unwrap().to_owned()]
}

fn answer(file: &Path, view: &str) -> Outcome {
    run(rep().args(view.split_whitespace()).arg(file)).expect(0)
}

/// Returns the JSON of a view; only the events, which have no paths of inputs.
fn events(file: &Path, view: &str) -> Value {
    let json: Value = serde_json::from_slice(&answer(file, view).stdout).unwrap();
    json["events"].clone()
}

/// Views whose answers a profile has as its recording does.
const VIEWS: [&str; 7] = [
    "--json --sort dso,symbol",
    "--json",
    "--json --children --sort dso,symbol",
    "--json --children --inline --sort comm,symbol",
    "--json --children --no-inline --sort comm,dso,symbol",
    "--json --sort dso_path,build_id",
    "--json --comm app --sort symoff,dso",
];

#[test]
fn a_profile_has_the_rows_of_its_recording() {
    if !needs::perf_events() || !needs::commands("g++") {
        return;
    }
    let dir = compiled();
    for (name, args) in [
        ("flat.data", "-e cpu-clock -F 1999"),
        ("chains.data", "-e cpu-clock,page-faults -F 1999 -g"),
        ("pointers.data", "-e cpu-clock -F 1999 --call-graph fp"),
        ("copied.data", "-e cpu-clock -F 499 --call-graph dwarf,4096"),
        ("fixed.data", "-e cpu-clock -c 300000 -g"),
    ] {
        let file = dir.path().join(name);
        record(&file, args, &command(&dir));
        let profile = export(&file, "");
        for view in
            VIEWS.into_iter().filter(|view| !view.contains("--children") || name != "flat.data")
        {
            let [recorded, exported] = [&file, &profile].map(|file| events(file, view));
            assert!(
                recorded[0]["rows"].as_array().is_some_and(|rows| !rows.is_empty()),
                "{name}: {view}"
            );
            assert_eq!(recorded, exported, "{name}: {view}");
        }
        for view in ["--format folded", "--format folded --inline"] {
            let [recorded, exported] =
                [&file, &profile].map(|file| answer(file, view).text().to_owned());
            assert_eq!(recorded, exported, "{name}: {view}");
        }
        // A profile of a profile is the same profile.
        let again = dir.path().join("again.pb.gz");
        run(rep().arg("export").arg("-o").arg(&again).arg(&profile)).expect(0);
        for view in
            VIEWS.into_iter().filter(|view| !view.contains("--children") || name != "flat.data")
        {
            assert_eq!(events(&profile, view), events(&again, view), "{name}: {view}");
        }
    }
}

/// Returns the flat and the cumulative value of each function, as `go tool pprof -top` prints it.
fn top(profile: &Path, args: &str) -> BTreeMap<String, (u64, u64)> {
    let mut pprof = Command::new("go");
    pprof.args([
        "tool",
        "pprof",
        "-top",
        "-nodecount=1000000",
        "-nodefraction=0",
        "-edgefraction=0",
    ]);
    let outcome = run(pprof.args(args.split_whitespace()).arg(profile)).expect(0);
    let lines = outcome.text().lines().skip_while(|line| !line.trim_start().starts_with("flat "));
    let number = |word: &str| {
        let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_else(|_| panic!("{word}: {}", outcome.text()))
    };
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words[5..].join(" ");
        (name.trim_end_matches(" (inline)").to_owned(), (number(words[0]), number(words[3])))
    };
    lines.skip(1).map(row).collect()
}

/// Returns the self and the children value of each function of the event that has a name of its
/// own, as rep prints it.
fn functions(profile: &Path, args: &str, event: &str, value: &str) -> BTreeMap<String, (u64, u64)> {
    let events = events(profile, &format!("--json --children {args} --sort dso,symbol"));
    let all = events.as_array().unwrap().iter();
    let found = all.filter(|found| found["name"] == event).collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{event}: {events}");
    let (mut all, mut shared) = (BTreeMap::new(), BTreeSet::new());
    for row in found[0]["rows"].as_array().unwrap() {
        let name = row["key"]["symbol"].as_str().unwrap();
        // Without a function, pprof has a row for each module.
        if row["key"]["dso"] == "[unknown]" || name.contains("+0x") || name.starts_with("0x") {
            continue;
        }
        let name = name.trim_end_matches(" (inlined)").to_owned();
        let values = (row[value].as_u64().unwrap(), row["children"][value].as_u64().unwrap());
        if all.insert(name.clone(), values).is_some() {
            shared.insert(name);
        }
    }
    all.retain(|name, _| !shared.contains(name));
    all
}

#[track_caller]
fn assert_pprof_agrees(profile: &Path, event: &str, args: &str, of_rep: &str) {
    for (index, value, unit) in [("samples", "samples", ""), (event, "period", "-unit=ns")] {
        let theirs = top(profile, &format!("-sample_index={index} {unit} {args}"));
        let ours = functions(profile, of_rep, event, value);
        assert!(ours.len() > 4, "{ours:?}");
        for (name, values) in &ours {
            assert_eq!(theirs.get(name), Some(values), "{event} {value} {name}: {theirs:?}");
        }
    }
}

#[test]
fn pprof_prints_the_values_of_each_function() {
    if !needs::perf_events() || !needs::commands("g++ go") {
        return;
    }
    let dir = compiled();
    let file = dir.path().join("x.data");
    record(&file, "-e cpu-clock -F 1999 -g", &command(&dir));
    let profile = export(&file, "");
    assert_pprof_agrees(&profile, "cpu-clock", "-noinlines", "--no-inline");
    // Inlined functions are frames of their own in pprof, in rep rows of callers only.
    let all = top(&profile, "-sample_index=samples");
    let (inner, outer) = (all["inner"], all["lib::outer"]);
    assert!(inner.0 > 0 && inner.1 <= outer.1, "{all:?}");
    let ours = functions(&profile, "--no-inline", "cpu-clock", "samples")["lib::outer"];
    assert_eq!(inner.0 + outer.0, ours.0, "{all:?}");
    let without = export(&file, "--no-inline");
    assert_pprof_agrees(&without, "cpu-clock", "", "");
    assert!(!top(&without, "").contains_key("inner"));
    // Source lines, build IDs, the program, the command and the machine are there.
    let mut pprof = Command::new("go");
    let raw = run(pprof.args(["tool", "pprof", "-raw"]).arg(&profile)).expect(0);
    let raw = raw.text();
    for part in [
        "a.cpp:",
        "lib::outer",
        "_ZN3lib5outerEi",
        "comm:[app]",
        "PeriodType: cpu-clock nanoseconds",
    ] {
        assert!(raw.contains(part) || part.starts_with("_Z"), "{part}: {raw}");
    }
    let build_id = events(&file, "--json --dso app --sort build_id");
    let build_id = build_id[0]["rows"][0]["key"]["build_id"].as_str().unwrap();
    assert!(raw.lines().any(|line| line.contains("/app") && line.contains(build_id)), "{raw}");
    let comments =
        run(Command::new("go").args(["tool", "pprof", "-comments"]).arg(&profile)).expect(0);
    // pprof prints comments above each report: there is one.
    assert_eq!(comments.text().trim_end().lines().count(), 1, "{}", comments.text());
    assert!(comments.text().contains("rec "), "{}", comments.text());
}

#[test]
fn the_time_of_a_profile_is_that_of_its_first_sample() {
    if !needs::perf_events() || !needs::commands("go") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let seconds = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let before = seconds();
    record(&file, "-e cpu-clock", &workload("hot --ms 50"));
    let after = seconds();
    std::thread::sleep(std::time::Duration::from_millis(1200));
    let profile = export(&file, "");
    let info: Value = serde_json::from_slice(&answer(&profile, "info --json").stdout).unwrap();
    let clock = info["features"].as_array().unwrap();
    let clock = clock.iter().find(|feature| feature["name"] == "CLOCK_DATA").unwrap();
    let wall = clock["value"]["wall_clock_ns"].as_f64().unwrap() / 1e9;
    assert!((before - 0.5..after + 0.5).contains(&wall), "{before} {wall} {after}");
}

#[test]
fn labels_are_those_that_are_asked_for() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    record(&file, "-a -e cpu-clock", &workload("hot --ms 200 --threads 2 --forks 1"));
    let profile = export(&file, "--labels comm,pid,tid,cpu");
    for view in ["--json --sort cpu", "--json --sort comm,cpu"] {
        assert_eq!(events(&file, view), events(&profile, view), "{view}");
    }
    for key in ["pid", "tid"] {
        assert_eq!(samples_of_tasks(&file, key), samples_of_tasks(&profile, key), "{key}");
    }
    // Functions of others may have names only as long as their processes live.
    let own = dir.path().join("own.data");
    record(&own, "-e cpu-clock", &workload("hot --ms 200 --threads 2 --forks 1"));
    for (labels, view) in
        [("comm", "--json --sort comm,dso,symbol"), ("none", "--json --sort dso,symbol")]
    {
        let profile = export(&own, &format!("--labels {labels}"));
        assert_eq!(events(&own, view), events(&profile, view), "{labels}");
    }
    let refused = run(rep().args(["export", "--labels", "comm,nope", "x.data"])).expect(2);
    assert!(refused.stderr.contains("nope"), "{}", refused.stderr);
}

#[test]
fn the_bytes_depend_on_the_recording_alone() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    record(&file, "-e cpu-clock,page-faults -F 4000 -g", &workload("hot --ms 300 --threads 3"));
    let bytes = |threads: &str| {
        let mut rep = rep();
        rep.env("RAYON_NUM_THREADS", threads).args(["export", "--labels", "comm,tid"]).arg(&file);
        run(&mut rep).expect(0).stdout
    };
    let one = bytes("1");
    assert!(one.starts_with(&[0x1f, 0x8b]));
    for threads in ["2", "7"] {
        assert!(one == bytes(threads), "{threads} threads");
    }
}

#[test]
fn runs_stay_apart_in_a_directory() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let files = ["1.data", "2.data"].map(|name| dir.path().join(name));
    for file in &files {
        record(file, "-e cpu-clock", &workload("hot --ms 100"));
    }
    let refused = run(rep().arg("export").args(&files).arg("-o").arg(dir.path().join("x.pb.gz")));
    assert!(refused.expect(1).stderr.contains("name a directory"));
    let runs = dir.path().join("runs/");
    run(rep().arg("export").args(&files).arg("-o").arg(runs.join(""))).expect(0);
    let names: BTreeSet<_> = fs::read_dir(&runs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["1.pb.gz", "2.pb.gz"].map(str::to_owned).into());
    // What else is there is no input.
    fs::write(runs.join("notes.txt"), "not a profile, but long enough to be looked at").unwrap();
    let json = |args: &[&Path]| -> Value {
        let outcome = run(rep().args(["--json", "--sort", "dso,symbol"]).args(args)).expect(0);
        serde_json::from_slice(&outcome.stdout).unwrap()
    };
    let (exported, recorded) = (json(&[&runs]), json(&[&files[0], &files[1]]));
    assert_eq!(exported["events"], recorded["events"]);
    // Functions of a profile are those of a recording.
    let mixed = json(&[&runs.join("1.pb.gz"), &files[1]]);
    assert_eq!(mixed["events"], recorded["events"]);
    for (number, input) in exported["inputs"].as_array().unwrap().iter().enumerate() {
        assert_eq!(input["records"]["SAMPLE"], recorded["inputs"][number]["records"]["SAMPLE"]);
    }
}

#[test]
fn what_a_profile_has_too_little_for_is_said() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    record(&file, "-e cpu-clock", &workload("hot --ms 50"));
    let profile = export(&file, "");
    for view in [
        "script",
        "dump",
        "--tasks",
        "--mmaps",
        "-b",
        "--mem-mode",
        "mem",
        "c2c",
        "branches",
        "timeline",
        "--off-cpu",
        "--sort time",
        "--time 0%-50%",
        "bundle -o y.data",
    ] {
        let mut rep = rep();
        rep.current_dir(dir.path()).args(view.split_whitespace()).arg(&profile);
        let outcome = run(&mut rep).expect(1);
        assert!(outcome.stderr.contains("is a pprof profile"), "{view}: {}", outcome.stderr);
        assert_eq!(outcome.text(), "", "{view}");
    }
    answer(&profile, "modules");
    assert!(answer(&profile, "info").text().contains("pprof profile"));
    // Unpacked, and from standard input, it is the same.
    let plain = dir.path().join("x.pb");
    fs::write(&plain, run(Command::new("gzip").arg("-dc").arg(&profile)).expect(0).stdout).unwrap();
    assert_eq!(events(&plain, "--json"), events(&profile, "--json"));
    let pipe = format!("cat {} | {} --json -", profile.display(), programs().rep.display());
    let piped = run(Command::new("sh").args(["-c", &pipe])).expect(0);
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(piped["events"], events(&profile, "--json"));
    // A cut one has no names: it is no answer.
    let bytes = fs::read(&plain).unwrap();
    let cut = dir.path().join("cut.pb");
    fs::write(&cut, &bytes[..bytes.len() - 9]).unwrap();
    let outcome = run(rep().arg(&cut)).expect(1);
    assert!(outcome.stderr.contains("damaged or cut at byte"), "{}", outcome.stderr);
}

#[test]
fn profiles_of_go_are_read_as_pprof_reads_them() {
    if !needs::commands("go") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("main.go"), GO_PROGRAM).unwrap();
    let mut go = Command::new("go");
    go.current_dir(dir.path()).env("GOCACHE", dir.path().join("cache")).env("GOFLAGS", "-mod=mod");
    run(go.args(["build", "-o", "app", "main.go"])).expect(0);
    run(Command::new(dir.path().join("app")).current_dir(dir.path())).expect(0);
    assert_pprof_agrees(&dir.path().join("cpu.pb.gz"), "cpu", "", "");
    let heap = dir.path().join("heap.pb.gz");
    let names: Vec<Value> = events(&heap, "--json")
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["name"].clone())
        .collect();
    assert_eq!(names, ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]);
    let theirs = top(&heap, "-sample_index=alloc_space -unit=B");
    let ours = functions(&heap, "", "alloc_space", "period");
    for (name, values) in &ours {
        assert_eq!(theirs.get(name), Some(values), "{name}: {theirs:?}");
    }
    assert!(ours.contains_key("main.grow"), "{ours:?}");
}

#[test]
fn a_baseline_of_profiles_is_one_of_recordings() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let runs = |side: &str| [1, 2, 3].map(|run| dir.path().join(format!("{side}{run}.data")));
    let (base, new) = (runs("a"), runs("b"));
    for file in base.iter().zip(&new).flat_map(|(base, new)| [base, new]) {
        record(file, "-e cpu-clock", &workload("hot --ms 60"));
    }
    let kept = dir.path().join("base");
    fs::create_dir(&kept).unwrap();
    run(rep().arg("export").args(&base).arg("-o").arg(&kept)).expect(0);
    let diff = |base: &[PathBuf]| run(rep().arg("diff").args(base).arg("--").args(&new)).expect(0);
    let [of_profiles, of_recordings] = [diff(&[kept]), diff(&base)];
    assert!(of_recordings.text().contains("recorded in turn"), "{}", of_recordings.text());
    assert_eq!(of_profiles.text(), of_recordings.text());
}
