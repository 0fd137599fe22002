//! Attaching to many threads where few files may be open: with a counter for each of them, by whole
//! CPUs, or to some of them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::Command;

use recrep_tests::agreement::{Extent, assert_reads};
use recrep_tests::programs::programs;
use recrep_tests::report::report;
use recrep_tests::run::{Outcome, Running, run, start, until, until_it_has};
use recrep_tests::{lock, needs};
use rustix::process::Signal;
use tempfile::TempDir;

/// Threads that only sleep.
const SLEEPERS: usize = 200;
/// Threads that work.
const BURNERS: usize = 3;
/// All threads, with the main one.
const THREADS: usize = SLEEPERS + BURNERS + 1;
/// A user who may not count whole CPUs, nor raise a limit.
const NOBODY: [&str; 4] = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
/// A user who may count whole CPUs, but not raise a limit.
const ROOT: [&str; 1] = ["--bounding-set=-sys_resource"];

/// A process with many threads, in a directory with the programs that everyone may write to.
struct Crowd {
    dir: TempDir,
    process: Running,
    whom: &'static [&'static str],
}

impl Crowd {
    fn start(whom: &'static [&'static str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        for program in [&programs().rec, &programs().workload] {
            fs::copy(program, dir.path().join(program.file_name().unwrap())).unwrap();
        }
        let mut command = Command::new("setpriv");
        command.args(whom).arg(dir.path().join("workload")).arg("crowd").args(
            format!("--threads {BURNERS} --pause 0 --sleepers {SLEEPERS} --ms 120000")
                .split_whitespace(),
        );
        let process = start(&mut command);
        let tasks = format!("/proc/{}/task", process.pid().as_raw_nonzero());
        until(
            || fs::read_dir(&tasks).map_or(0, Iterator::count) == THREADS,
            || "its threads do not start".to_owned(),
        );
        Self { dir, process, whom }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("x.data")
    }

    /// `rec -p`, where so many files may be open.
    fn rec(&self, files: usize, rest: &str) -> Command {
        let pid = self.process.pid().as_raw_nonzero();
        let script = format!(
            "ulimit -n {files} && exec ./rec -o x.data -e cpu-clock -F 500 -p {pid} {rest}"
        );
        let mut command = Command::new("setpriv");
        command.args(self.whom).args(["sh", "-c", &script]).current_dir(self.dir.path());
        command
    }

    /// Attaches for half a second.
    #[track_caller]
    fn attach(&self, files: usize) -> Outcome {
        run(&mut self.rec(files, "-- sleep 0.5")).expect(0)
    }

    fn end(self) {
        self.process.signal(Signal::KILL);
        self.process.finish();
    }

    /// The threads that work are in the file, and nobody else.
    #[track_caller]
    fn assert_recorded(&self, outcome: &Outcome) {
        let file = self.file();
        // perf reads no files of others.
        chown(&file, Some(0), Some(0)).unwrap();
        assert_eq!(assert_reads(&file, Extent::Command), outcome.summary(&file).samples);
        let table = report(&file, "comm").tables().remove(0);
        let of = |names: &[&str]| {
            table.samples_where(|key| {
                key.iter().all(|comm| names.iter().any(|n| comm.starts_with(n)))
            })
        };
        assert!(of(&["crowd-"]) > 20, "{table:?} {}", outcome.stderr);
        assert_eq!(
            of(&["crowd-", "sleeper", "workload"]),
            table.samples(),
            "{table:?} {}",
            outcome.stderr
        );
    }
}

fn cpus() -> usize {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let of = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        last.parse::<usize>().unwrap() - first.parse::<usize>().unwrap() + 1
    };
    online.trim().split(',').map(of).sum()
}

#[test]
fn one_event_takes_one_file_for_each_thread_and_cpu() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    for whom in [&ROOT[..], &NOBODY] {
        let cpus = lock::cpus();
        let crowd = Crowd::start(whom);
        let outcome = crowd.attach(THREADS * self::cpus() + 64);
        crowd.process.signal(Signal::KILL);
        drop(cpus);
        assert!(!outcome.stderr.contains("files may be open"), "{}", outcome.stderr);
        crowd.assert_recorded(&outcome);
        crowd.end();
    }
}

#[test]
fn where_files_are_too_few_whole_cpus_are_counted_for_the_process() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let _cpus = lock::cpus();
    let crowd = Crowd::start(&ROOT);
    let outcome = crowd.attach(150);
    assert!(outcome.stderr.contains("counting whole CPUs"), "{}", outcome.stderr);
    crowd.assert_recorded(&outcome);
    let records = report(&crowd.file(), "comm").records();
    assert!(records.get("COMM").is_some_and(|&comms| comms >= THREADS as u64), "{records:?}");
    // It ends with the process.
    fs::remove_file(crowd.file()).unwrap();
    let rec = start(&mut crowd.rec(150, ""));
    until_it_has(5000, &crowd.file(), &rec);
    crowd.process.signal(Signal::KILL);
    let outcome = rec.finish();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    crowd.end();
}

#[test]
fn who_may_not_count_whole_cpus_records_the_threads_that_run_most() {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if !needs::perf_events() || !needs::root() || !["1", "2"].contains(&paranoid.trim()) {
        return;
    }
    let cpus = lock::cpus();
    let crowd = Crowd::start(&NOBODY);
    let outcome = crowd.attach(64 + 20 * self::cpus());
    crowd.process.signal(Signal::KILL);
    drop(cpus);
    assert!(
        outcome.stderr.contains("recording the 20 threads that ran most"),
        "{}",
        outcome.stderr
    );
    crowd.assert_recorded(&outcome);
    crowd.end();
}
