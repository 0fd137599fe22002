//! Running a program with a short time limit, and what it took: time and memory.
//!
//! The peak of the resident memory is the kernel's own figure for that process (`ru_maxrss` of
//! `wait4`). It begins at what the process that starts it has, so whoever measures must be small
//! himself.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use wait4::Wait4;

use crate::run::{ends_within, read_back};

/// Result of a run, and what it took.
#[derive(Debug)]
pub struct Measured {
    /// Exit status; the kill if it took too long.
    pub status: ExitStatus,
    /// `true` if it took too long.
    pub timed_out: bool,
    /// From start to end.
    pub wall: Duration,
    /// The most resident memory, in bytes.
    pub peak: u64,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
}

impl Measured {
    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

/// Runs `command` with empty standard input, for at most `limit`.
#[track_caller]
pub fn measure(command: &mut Command, limit: Duration) -> Measured {
    let [stdout, stderr] =
        [(); 2].map(|()| tempfile::tempfile().expect("a temporary file can be made"));
    let copy = |file: &File| file.try_clone().expect("a descriptor can be copied");
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(copy(&stdout))
        .stderr(copy(&stderr))
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let timed_out = !ends_within(&child, limit);
    if timed_out {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let used = child.wait4().expect("a child can be waited for");
    let (stdout, stderr) =
        (read_back(&stdout), String::from_utf8_lossy(&read_back(&stderr)).into_owned());
    Measured {
        status: used.status,
        timed_out,
        wall: begin.elapsed(),
        peak: used.rusage.maxrss,
        stdout,
        stderr,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Measured {
        measure(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn memory_time_and_words_are_measured() {
        let small = shell("echo out; echo err >&2; exit 3", Duration::from_secs(60));
        assert_eq!((small.status.code(), small.timed_out, small.signal()), (Some(3), false, None));
        assert_eq!((small.stdout.as_slice(), small.stderr.as_str()), (&b"out\n"[..], "err\n"));
        // dd has a buffer of what it is told to copy at once.
        let dd = |size: &str| {
            shell(
                &format!("exec dd if=/dev/zero of=/dev/null count=1 bs={size}"),
                Duration::from_secs(60),
            )
        };
        let (little, much) = (dd("1M").peak, dd("100M").peak);
        assert!((95 << 20..110 << 20).contains(&(much - little)), "{little} {much}");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let long = shell("sleep 1000; true", Duration::from_millis(100));
        assert!(long.timed_out && long.signal() == Some(9), "{long:?}");
        assert!((Duration::from_millis(100)..Duration::from_secs(60)).contains(&long.wall));
    }
}
