//! Running a program with a time limit.
//!
//! What it prints goes to files rather than pipes: a grandchild that lives on with a copy of the
//! descriptor cannot keep a test waiting. Each program leads a process group of its own, so that
//! the limit ends all of it.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use crate::lock::{Cpus, cpus};

/// Nothing here takes half as long on the slowest machine that is thought of; it is there to end
/// what hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits, a minute at most.
#[track_caller]
pub fn until(is_so: impl Fn() -> bool, otherwise: impl Fn() -> String) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{}", otherwise());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the file has so many bytes.
#[track_caller]
pub fn until_it_has(bytes: u64, file: &Path, recorder: &Running) {
    let is_written = || fs::metadata(file).map_or(0, |found| found.len()) >= bytes;
    until(is_written, || {
        format!("{} does not grow to {bytes} bytes: {}", file.display(), recorder.said())
    });
}

/// The folders of a process's threads, as long as it is there.
fn tasks(pid: &str) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten()
}

/// Returns whether a process has a thread of this name.
pub fn has_thread(pid: &str, name: &str) -> bool {
    tasks(pid).any(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    })
}

/// Returns the CPU time so far of each thread of a process.
pub fn cpu_times(pid: &str) -> Vec<Duration> {
    let of_task = |task: DirEntry| {
        let schedstat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        schedstat.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    tasks(pid).filter_map(of_task).collect()
}

/// Result of a program, and what it said.
#[derive(Debug)]
pub struct Outcome {
    /// The command line, for messages.
    pub command: String,
    /// Exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
}

impl Outcome {
    /// The exit status as a shell has it: 128 + N after signal N.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// This, if the exit status is `code`; otherwise the test fails with what the program said.
    #[track_caller]
    pub fn expect(self, code: i32) -> Outcome {
        let (got, output) = (self.code(), String::from_utf8_lossy(&self.stdout));
        let Outcome { command, stderr, .. } = &self;
        assert_eq!(got, code, "exit status of {command}\nstdout: {output}\nstderr: {stderr}");
        self
    }

    /// Standard output as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("the output is UTF-8")
    }

    /// The last line on standard error.
    pub fn last_line(&self) -> &str {
        self.stderr.lines().last().unwrap_or("")
    }
}

/// A program that runs, and the lock of the CPUs if it records.
#[derive(Debug)]
pub struct Running {
    command: String,
    child: Child,
    _cpus: Option<Rc<Cpus>>,
    stdout: File,
    stderr: File,
}

/// Returns whether a command records or counts: `rec` or `perf record`, itself or by a shell.
fn records(command: &Command) -> bool {
    let is_recorder = |word: &OsStr| Path::new(word).ends_with("rec") || word == "record";
    let only_prints = ["man", "completions", "list", "--help"];
    let prints = |word: &OsStr| only_prints.iter().any(|name| word == *name);
    std::iter::once(command.get_program()).chain(command.get_args()).any(is_recorder)
        && !command.get_args().any(prints)
}

/// Starts a program with empty standard input. One that records is started by live tests only.
#[track_caller]
pub fn start(command: &mut Command) -> Running {
    if records(command) {
        assert_live(command);
    }
    start_of_any_test(command)
}

/// Fails in a test that is not live, as its name says. With one test thread, or on a thread of its
/// own, a test cannot be told by its thread's name.
#[track_caller]
fn assert_live(command: &Command) {
    let thread = thread::current();
    let test = thread.name().filter(|name| *name != "main").unwrap_or("live::");
    assert!(test.contains("live::"), "{test} records, but is in no module `live`: {command:?}");
}

#[track_caller]
fn start_of_any_test(command: &mut Command) -> Running {
    let text = format!("{command:?}");
    let cpus = records(command).then(cpus);
    let [stdout, stderr] =
        [(); 2].map(|()| tempfile::tempfile().expect("a temporary file can be made"));
    command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().expect("a descriptor can be copied"))
        .stderr(stderr.try_clone().expect("a descriptor can be copied"))
        .process_group(0);
    let child = spawned(command).unwrap_or_else(|error| panic!("cannot run {text}: {error}"));
    Running { command: text, child, _cpus: cpus, stdout, stderr }
}

/// Spawns a child. A program that a test has just written is busy as long as a child that another
/// test forked meanwhile has not yet closed the descriptor.
fn spawned(command: &mut Command) -> io::Result<Child> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < until =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// Runs a program to its end.
#[track_caller]
pub fn run(command: &mut Command) -> Outcome {
    start(command).finish()
}

/// Runs a recording that shows whether tests can record here: any test may ask for that.
#[track_caller]
pub(crate) fn probe(command: &mut Command) -> Outcome {
    start_of_any_test(command).finish()
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The CPU time so far of the children that any of its threads has, and of their threads; zero
    /// as long as there are none.
    pub fn childs_cpu_time(&self) -> Duration {
        let pid = self.pid().as_raw_nonzero().to_string();
        let children = tasks(&pid)
            .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
            .collect::<String>();
        children.split_whitespace().flat_map(cpu_times).sum()
    }

    /// Sends a signal to it alone.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal)
            .unwrap_or_else(|error| panic!("cannot signal {}: {error}", self.command));
    }

    /// Waits for its end.
    #[track_caller]
    pub fn finish(mut self) -> Outcome {
        let timed_out = !ends_within(&self.child, LIMIT);
        if timed_out {
            let _ = kill_process_group(self.pid(), Signal::KILL);
        }
        let status = self.child.wait().expect("a child can be waited for");
        let stderr = self.said();
        assert!(!timed_out, "{} did not end in {LIMIT:?}; stderr: {stderr}", self.command);
        Outcome { command: self.command, status, stdout: read_back(&self.stdout), stderr }
    }

    /// Returns what it has printed on standard output so far.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&read_back(&self.stdout)).into_owned()
    }

    /// Returns what it has said on standard error so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&read_back(&self.stderr)).into_owned()
    }
}

/// Waits for the end of a child; whether it came in time. There are very many short ones: each is
/// noticed at once.
pub(crate) fn ends_within(child: &Child, limit: Duration) -> bool {
    let end =
        pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("a child has a descriptor");
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a short time");
        match poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("cannot wait for a child: {error}"),
        }
    }
}

/// The whole file, whatever offset the program is at: it shares ours.
pub(crate) fn read_back(file: &File) -> Vec<u8> {
    let length = file.metadata().expect("a temporary file can be asked").len();
    let mut bytes = vec![0; usize::try_from(length).expect("an output fits in memory")];
    file.read_exact_at(&mut bytes, 0).expect("a temporary file can be read");
    bytes
}
