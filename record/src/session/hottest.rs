//! The hottest functions, shown on the terminal when a recording ends: what `rep` prints of the
//! file, where it is beside rec. Whatever fails on the way, the recording has succeeded: then there
//! are no rows.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::messages::Messages;
use crate::output::Finished;
use crate::plan::config::Config;
use crate::tasks::Target;

/// Arguments before the file: ten functions, without callchains.
const ARGUMENTS: [&str; 8] = ["--no-children", "-g", "none", "-s", "symbol", "--limit", "10", "--"];

/// Maximum time to wait for the report.
const PATIENCE: Duration = Duration::from_secs(5);

/// Length of the largest file that is surely read in this time.
const MOST_BYTES: u64 = 256 << 20;

/// Shows the hottest functions of a completed file, if somebody sees them.
pub(super) fn show(config: &Config, finished: &Finished, samples: u64, messages: &Messages) {
    if let Some(file) = of_interest(config, finished, samples).filter(|_| messages.shows_status())
        && let Some(rep) = beside()
        && let Some(report) = report(&rep, file, PATIENCE)
    {
        messages.text(&rows(&report));
    }
}

/// Returns the file, if it has functions to show at the end of a command's recording. One of many
/// (`--switch-output`) is not the end.
fn of_interest<'a>(config: &Config, finished: &'a Finished, samples: u64) -> Option<&'a Path> {
    let is_of_command = config.target == Target::Command;
    let is_shown = is_of_command
        && samples > 0
        && config.view.is_empty()
        && config.output.switch.is_none()
        && finished.length <= MOST_BYTES;
    finished.path.as_deref().filter(|_| is_shown)
}

/// Returns the `rep` in rec's directory.
pub(super) fn beside() -> Option<PathBuf> {
    let rep = std::env::current_exe().ok()?.with_file_name("rep");
    rep.is_file().then_some(rep)
}

/// Returns what `rep` prints about the file, if it succeeds in time.
fn report(rep: &Path, file: &Path, patience: Duration) -> Option<String> {
    let mut command = Command::new(rep);
    command
        .args(ARGUMENTS)
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut output = child.stdout.take()?;
    let (done, end) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.read_to_end(&mut text);
        // Nobody listens any more when the time is over.
        let _ = done.send(read.map(|_| text));
    });
    let text = end.recv_timeout(patience);
    if text.is_err() {
        // It may have ended just now.
        let _ = child.kill();
    }
    let status = child.wait().ok()?;
    let text = text.ok()?.ok().filter(|_| status.success())?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the rows of the first event.
fn rows(report: &str) -> String {
    let no_comment = report.lines().filter(|line| !line.starts_with('#'));
    let rows = no_comment.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    rows.flat_map(|row| [row, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_no_file_at_the_end_is_not_shown() {
        let finished =
            |length, path: Option<&str>| Finished { length, path: path.map(PathBuf::from) };
        let shown = |line: &str, finished: &Finished, samples| {
            let words = ["rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
            of_interest(&crate::cli::parse(words).unwrap(), finished, samples).is_some()
        };
        let usual = finished(1000, Some("out.data"));
        assert!(shown("x", &usual, 1) && !shown("-a x", &usual, 1));
        assert!(!shown("x", &usual, 0), "there is nothing");
        assert!(!shown("-o - x", &finished(1000, None), 1), "the file is elsewhere");
        assert!(
            !shown("--switch-output x", &usual, 1) && !shown("--switch-output=1s x", &usual, 1)
        );
        assert!(
            !shown("x", &finished(MOST_BYTES + 1, Some("out.data")), 1),
            "it would take too long"
        );
    }

    #[test]
    fn only_rows_of_the_first_event_are_left() {
        let report = "#\n# Samples: 9\n# Overhead  Symbol\n#\n    60.00%  [.] a::b\n    40.00%  \
                      [k] c\n\n\n# Samples: 1\n   1%  d\n";
        assert_eq!(rows(report), "    60.00%  [.] a::b\n    40.00%  [k] c\n");
        assert_eq!(rows("# nothing\n"), "");
    }

    #[test]
    fn a_report_that_fails_or_hangs_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let outcome = |script: &str, patience| {
            let program = dir.path().join("rep");
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            report(&program, Path::new("x.data"), patience)
        };
        let long = Duration::from_secs(60);
        assert_eq!(
            outcome("echo \"$@\"", long).unwrap(),
            "--no-children -g none -s symbol --limit 10 -- x.data\n"
        );
        assert_eq!(outcome("echo row; exit 1", long), None);
        assert_eq!(outcome("echo row; exec sleep 600", Duration::from_millis(20)), None);
        assert_eq!(report(&dir.path().join("nothing"), Path::new("x.data"), long), None);
    }
}
