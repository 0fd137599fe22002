//! `rec` as the tests use it: one recording, and what its last line says.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::programs::rec;
use crate::run::{Outcome, cpu_times, run, start, until};

/// `rec -o FILE ARGS -- COMMAND`, `args` split at spaces.
pub fn recording(file: &Path, args: &str, command: &[String]) -> Command {
    let mut rec = rec();
    rec.arg("-o").arg(file).args(args.split_whitespace()).arg("--").args(command);
    rec
}

/// Runs it, successfully.
#[track_caller]
pub fn record(file: &Path, args: &str, command: &[String]) -> Outcome {
    run(&mut recording(file, args, command)).expect(0)
}

/// Records what runs already, until each thread of these processes has had so much CPU time: on a
/// busy machine that may take a while. The recorder has no command yet.
#[track_caller]
pub fn record_for(time: Duration, pids: &[&str], recorder: &mut Command) -> Outcome {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let started = dir.path().join("started");
    let recorder =
        start(recorder.args(["--", "sh", "-c", ": > \"$0\"; exec sleep 100"]).arg(&started));
    until(|| started.exists(), || format!("nothing is recorded: {}", recorder.said()));
    for pid in pids {
        let before = cpu_times(pid);
        let has_run = || {
            let now = cpu_times(pid);
            now.len() >= before.len() && now.iter().zip(&before).all(|(now, t)| *now >= *t + time)
        };
        until(has_run, || format!("process {pid} does not run: {}", recorder.said()));
    }
    recorder.signal(Signal::INT);
    recorder.finish().expect(128 + 15)
}

/// The last line on standard error.
#[derive(Debug, PartialEq, Eq)]
pub struct Summary {
    /// Samples written.
    pub samples: u64,
    /// Records that the kernel could not write, as LOST records tell.
    pub lost_events: u64,
    /// Samples among them, as the counters tell.
    pub lost_samples: u64,
}

impl Outcome {
    /// The summary on the last line, which must name the file too.
    #[track_caller]
    pub fn summary(&self, file: &Path) -> Summary {
        let line = self.last_line();
        let name = file.file_name().and_then(|name| name.to_str()).expect("the file has a name");
        assert!(line.contains(name), "the last line names the file: {line}");
        let number = |what: &str| {
            let (before, _) = line
                .split_once(what)
                .unwrap_or_else(|| panic!("no {what:?} in the last line: {line}"));
            let word = before
                .trim_end()
                .rsplit(|c: char| !c.is_ascii_digit() && c != ',')
                .next()
                .unwrap_or("");
            let digits: String = word.chars().filter(char::is_ascii_digit).collect();
            digits
                .parse()
                .unwrap_or_else(|_| panic!("no number before {what:?} in the last line: {line}"))
        };
        let samples = number(" sample");
        if line.contains("none lost") {
            return Summary { samples, lost_events: 0, lost_samples: 0 };
        }
        Summary {
            samples,
            lost_events: number(" lost event"),
            lost_samples: number(" lost sample"),
        }
    }
}
