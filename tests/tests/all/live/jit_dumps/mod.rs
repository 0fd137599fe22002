//! Jitdumps: callchains through code that only their rules lead out of, and names after they are
//! gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use recrep_tests::needs;
use recrep_tests::programs::{rec, rep};
use recrep_tests::record::{record, record_for, recording};
use recrep_tests::run::{cpu_times, run, start, until};
use rustix::process::Signal;

/// Compiles the program; `None` where it cannot be recorded.
fn program(dir: &Path) -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") || !needs::perf_events() || !needs::commands("gcc") {
        println!("skipped: needs x86-64, gcc and perf events");
        return None;
    }
    let program = dir.join("jit");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/live/jit_dumps/jit.c");
    let flags = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o"];
    run(Command::new("gcc").args(flags).arg(&program).arg(&source)).expect(0);
    Some(program)
}

fn command(program: &Path, milliseconds: &str) -> Vec<String> {
    let dump = program.with_file_name("jit-1.dump");
    let dump = dump.to_str().unwrap().to_owned();
    vec![program.to_str().unwrap().to_owned(), dump, milliseconds.to_owned()]
}

/// Asserts that nearly all samples of the code have all its callers, and that none has another one.
#[track_caller]
fn assert_callers(file: &Path) {
    let folded = run(rep().args(["--format", "folded", "-i"]).arg(file)).expect(0);
    let (mut all, mut whole) = (0.0, 0.0);
    for line in folded.text().lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let Some((callers, _)) = stack.split_once("jit_inner") else { continue };
        let weight: f64 = weight.parse().unwrap();
        all += weight;
        if callers.ends_with("main;run;jit_outer;") {
            whole += weight;
        } else {
            let is_open = callers.contains("[callers unknown]") || callers.ends_with("jit;");
            assert!(is_open && !callers.contains("run;"), "{stack}");
        }
    }
    assert!(all > 0.0 && whole / all > 0.95, "{whole} of {all}: {}", folded.text());
}

#[test]
fn rec_uses_the_rules_while_it_records() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = program(dir.path()) else { return };
    for clock in ["", "-k mono"] {
        let file = dir.path().join("g.data");
        record(&file, &format!("-g -e cpu-clock:u {clock}"), &command(&program, "500"));
        assert_callers(&file);
    }
}

#[test]
fn rep_uses_the_rules_for_copied_stacks() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = program(dir.path()) else { return };
    let file = dir.path().join("dwarf.data");
    record(&file, "--call-graph dwarf,4096 -e cpu-clock:u", &command(&program, "500"));
    assert_callers(&file);
}

/// The dump is mapped before the recording begins.
#[test]
fn the_rules_of_a_process_that_runs_already_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = program(dir.path()) else { return };
    let (file, words) = (dir.path().join("p.data"), command(&program, "100000"));
    let process = start(Command::new(&words[0]).args(&words[1..]));
    let pid = process.pid().as_raw_nonzero().to_string();
    until(|| cpu_times(&pid).iter().any(|time| !time.is_zero()), || process.said());
    let mut recorder = rec();
    recorder.args(["-g", "-e", "cpu-clock:u", "-p", &pid, "-o"]).arg(&file);
    record_for(Duration::from_millis(400), &[&pid], &mut recorder);
    process.signal(Signal::KILL);
    process.finish();
    assert_callers(&file);
}

/// Deletes a dump, and puts one in its place in which the code has another name.
fn replace(dump: &Path) {
    let mut bytes = fs::read(dump).unwrap();
    let places = bytes.windows(9).enumerate().filter(|(_, name)| name == b"jit_inner");
    for place in places.map(|(place, _)| place).collect::<Vec<_>>() {
        bytes[place..place + 9].copy_from_slice(b"something");
    }
    fs::remove_file(dump).unwrap();
    fs::write(dump, bytes).unwrap();
}

#[test]
fn names_are_right_or_absent_after_the_dump_was_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = program(dir.path()) else { return };
    for (keeps, options) in [(true, "-e cpu-clock:u"), (false, "-e cpu-clock:u --no-keep")] {
        let file = dir.path().join("kept.data");
        let mut recorder = recording(&file, options, &command(&program, "200"));
        run(recorder.env("XDG_CACHE_HOME", dir.path().join("cache"))).expect(0);
        // Recorded times are times of the day to a tenth of a second.
        std::thread::sleep(Duration::from_millis(300));
        replace(&program.with_file_name("jit-1.dump"));
        let mut report = rep();
        report.env("XDG_CACHE_HOME", dir.path().join("cache")).args(["--format", "csv", "-i"]);
        let rows = run(report.arg(&file)).expect(0);
        assert_eq!(rows.text().contains("jit_inner"), keeps, "{}", rows.text());
        assert!(!rows.text().contains("something"), "{}", rows.text());
    }
}
