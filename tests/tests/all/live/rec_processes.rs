//! Very many short processes, very many threads, and processes in namespaces of their own.
//!
//! Short processes come a thousand at a time: once, or with `RECREP_FULL=1` ten times.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use recrep_tests::agreement::{Extent, assert_reads};
use recrep_tests::forms::is_full;
use recrep_tests::programs::{programs, rec, workload};
use recrep_tests::record::record;
use recrep_tests::report::report;
use recrep_tests::run::{run, start};
use recrep_tests::table::Table;
use recrep_tests::{lock, needs};
use rustix::process::Signal;

/// Number of short processes in one recording.
const PROCESSES: u64 = 1_000;

/// Copies of the workload under names of their own: what has such a comm is of that file.
fn copies(dir: &Path) -> Vec<String> {
    let copy = |number| {
        let name = format!("short-{number}");
        fs::copy(&programs().workload, dir.join(&name)).unwrap();
        name
    };
    (0..4).map(copy).collect()
}

/// Returns whether a process may run this besides its own file: the kernel, the loader, libraries
/// that every program has.
fn is_shared(dso: &str) -> bool {
    ["[kernel", "[vdso]", "[vsyscall]", "ld-", "ld.", "libc", "libm", "libgcc"]
        .iter()
        .any(|start| dso.starts_with(start))
}

/// Samples of short processes, and how many of these are in no file, or another process's.
fn wrong(table: &Table) -> (u64, u64) {
    let of_short = |key: &[String]| key.first().is_some_and(|comm| comm.starts_with("short-"));
    let is_right = |key: &[String]| matches!(key, [comm, dso] if comm == dso || is_shared(dso));
    let all = table.samples_where(of_short);
    (all, all - table.samples_where(|key| of_short(key) && is_right(key)))
}

#[test]
fn short_processes_have_their_names_and_maps() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let names = copies(dir.path());
    let runs: Vec<String> =
        names.iter().map(|name| format!("./{name} hot --rounds 3 & ")).collect();
    let script = format!(
        "i=0; while [ $i -lt {} ]; do {} wait; i=$((i+1)); done",
        PROCESSES / 4,
        runs.concat()
    );
    let shell =
        ["sh".to_owned(), "-c".to_owned(), format!("cd {}; {script}", dir.path().display())];
    let (mut all, mut astray) = (0, 0);
    for _ in 0..if is_full() { 10 } else { 1 } {
        // On a busy machine rec may come too late, now and then: then names and maps are missing.
        let is_whole = |_| {
            let summary = record(&file, "-a -e cpu-clock -F 10000", &shell).summary(&file);
            (summary.lost_events, summary.lost_samples) == (0, 0)
        };
        assert!((0..5).any(is_whole), "something is always lost");
        let report = report(&file, "comm,dso");
        let records = report.records();
        assert!(records.get("FORK").is_some_and(|&forks| forks >= PROCESSES), "{records:?}");
        let table = report.tables().remove(0);
        let (of_short, wrong) = wrong(&table);
        (all, astray) = (all + of_short, astray + wrong);
        // Whoever runs the workload's code is called so: no sample kept the name from before the
        // exec.
        let code = |key: &[String]| matches!(key, [_, dso] if names.contains(dso));
        let misnamed = table.samples_where(|key| code(key) && key.first() != key.last());
        assert!(misnamed * 1000 <= table.samples_where(code), "{misnamed}: {table:?}");
        assert!(
            of_short > PROCESSES && wrong * 1000 <= of_short,
            "{wrong} of {of_short}: {table:?}"
        );
    }
    eprintln!("{astray} of {all} samples of short processes are not where they belong");
}

/// Threads are born while it is attached to: those that were there, and those that came, are all in
/// the file.
#[test]
fn five_hundred_threads() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let words = workload("crowd --threads 500 --ms 60000");
    for late in [true, false] {
        let cpus = lock::cpus();
        let target = start(Command::new(words.first().unwrap()).args(words.iter().skip(1)));
        let pid = target.pid().as_raw_nonzero().to_string();
        let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        let enough = if late { 20 } else { 501 };
        let deadline = Instant::now() + Duration::from_secs(60);
        while threads() < enough && Instant::now() < deadline {
            sleep(Duration::from_micros(200));
        }
        let begun = Instant::now();
        let mut command = rec();
        let rec = start(
            command
                .args(["-e", "cpu-clock", "-F", "4000", "-m", "4096", "-p", &pid, "-o"])
                .arg(&file),
        );
        while fs::metadata(&file).map_or(0, |found| found.len()) < 5000 && Instant::now() < deadline
        {
            sleep(Duration::from_millis(1));
        }
        eprintln!(
            "{:?} until 5000 bytes of a process with {} threads were there",
            begun.elapsed(),
            threads()
        );
        // A thread has its name, and a COMM, from its first turn on, for which it waits long on a
        // busy machine.
        let unnamed = || {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            tasks
                .filter(|task| {
                    fs::read_to_string(task.path().join("comm"))
                        .is_ok_and(|name| name == "workload\n")
                })
                .count()
        };
        while (threads() < 501 || unnamed() > 1) && Instant::now() < deadline {
            sleep(Duration::from_millis(10));
        }
        sleep(Duration::from_secs(1));
        rec.signal(Signal::INT);
        let outcome = rec.finish();
        target.signal(Signal::KILL);
        target.finish();
        drop(cpus);
        assert!(outcome.code() == 0 || outcome.code() == 130, "{}", outcome.stderr);
        let summary = outcome.summary(&file);
        assert_eq!(assert_reads(&file, Extent::Command), summary.samples);
        // 500 threads that spin starve rec. What the kernel could not write meanwhile, FORK and
        // COMM too, it counts. Of threads that are born while counters are switched on, it misses
        // some for a moment, for perf as well.
        let untold = summary.lost_events.max(summary.lost_samples) + if late { 100 } else { 0 };
        let records = report(&file, "comm").records();
        // Each was there, with its COMM, or came, with its FORK; on the way, both.
        let told = records.get("COMM").unwrap_or(&0) + records.get("FORK").unwrap_or(&0);
        assert!((500_u64.saturating_sub(untold)..=1100).contains(&told), "{summary:?} {records:?}");
        let script =
            run(recrep_tests::perf::perf().args(["script", "--show-task-events", "-i"]).arg(&file))
                .expect(0);
        let named: HashSet<&str> =
            script.text().split_whitespace().filter(|word| word.starts_with("crowd-")).collect();
        let missing = (1..=500_u64)
            .filter(|number| !named.contains(format!("crowd-{number}").as_str()))
            .collect::<Vec<_>>();
        assert!(missing.len() as u64 <= untold, "no word of the threads {missing:?}: {summary:?}");
        let sampled = report(&file, "tid").tables().remove(0).rows.len();
        eprintln!("{sampled} threads have samples; {summary:?}");
        // On a busy machine not each of them has its turn in this time; but many more than were
        // there at first.
        assert!(!late || sampled >= 100, "{sampled} of 501 threads have samples");
        let comms = report(&file, "comm").tables().remove(0);
        let strange = comms.samples_where(|key| {
            !key.iter().all(|comm| comm == "workload" || comm.starts_with("crowd-"))
        });
        assert!(strange == 0 || untold > 0, "{summary:?} {comms:?}");
        fs::remove_file(&file).unwrap();
    }
}

/// A shell command in user, pid and mount namespaces of its own.
fn contained(script: &str) -> Vec<String> {
    let words = [
        "unshare",
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount",
        "--mount-proc",
        "sh",
        "-c",
    ];
    words.into_iter().chain([script]).map(str::to_owned).collect()
}

/// None where this machine does not let us.
fn container() -> Option<(tempfile::TempDir, PathBuf)> {
    if !needs::perf_events() {
        return None;
    }
    let words = contained("true");
    if run(Command::new(words.first()?).args(words.iter().skip(1))).code() != 0 {
        eprintln!("skipped: needs user namespaces");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    Some((dir, file))
}

#[track_caller]
fn assert_hot(file: &Path) {
    assert!(assert_reads(file, Extent::Command) > 5);
    let table = report(file, "comm,dso").tables().remove(0);
    let hot = table.samples_where(|key| key == ["workload", "workload"]);
    assert!(hot * 10 >= table.samples() * 8, "{table:?}");
}

#[test]
fn a_container_seen_from_outside() {
    let Some((_dir, file)) = container() else { return };
    let words = contained(&workload("hot --ms 300 --forks 1").join(" "));
    let outcome = record(&file, "-e cpu-clock --namespaces", &words);
    assert_hot(&file);
    let records = report(&file, "comm").records();
    assert!(
        records.get("NAMESPACES").is_some_and(|&some| some > 0),
        "{records:?} {}",
        outcome.stderr
    );
}

#[test]
fn a_recording_from_inside() {
    let Some((_dir, file)) = container() else { return };
    let command = workload("hot --ms 300 --forks 1").join(" ");
    let script =
        format!("{} -o {} -e cpu-clock:u -- {command}", programs().rec.display(), file.display());
    let words = contained(&script);
    let record = |words: &[String]| {
        let _cpus = lock::cpus();
        run(Command::new(words.first().unwrap()).args(words.iter().skip(1)))
    };
    let outcome = record(&words).expect(0);
    assert_hot(&file);
    assert!(outcome.summary(&file).samples > 5);
    // Attached to, by the pid that it has there.
    let script = format!(
        "{} & {} -o {} -e cpu-clock:u -p $! sleep 0.5; kill $!",
        workload("hot --ms 60000").join(" "),
        programs().rec.display(),
        file.display()
    );
    record(&contained(&script));
    assert_hot(&file);
}
