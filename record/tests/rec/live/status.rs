//! The status line on a terminal.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::{COLUMNS, can_record_system, place, read, rec, run, said, terminal};

const CLEARED: &str = "\r\x1b[K";

/// Runs rec with the terminal as its standard error.
fn start(path: &Path, words: &[&str]) -> (Child, File) {
    let (master, end) = terminal();
    let mut rec = rec();
    rec.env("TERM", "xterm").arg("-o").arg(path).args(["-e", "cpu-clock"]).args(words);
    (rec.stdin(Stdio::null()).stderr(end).spawn().unwrap(), master)
}

fn interrupt(rec: &Child) {
    let pid = rustix::process::Pid::from_child(rec);
    // It may have ended by now.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
}

#[test]
fn one_line_that_is_written_over_and_is_gone_at_the_end() {
    if !can_record_system() {
        return;
    }
    let (_dir, path) = place();
    let (mut rec, master) = start(&path, &["-a"]);
    let all = read(master, |all| {
        if all.matches("rec: 0:00:0").count() >= 2 {
            interrupt(&rec);
        }
    });
    rec.wait().unwrap();
    let (before, rest) = all.split_once("rec: 0:00:0").unwrap();
    assert!(before.ends_with(CLEARED), "{all:?}");
    let (lines, last) = rest.rsplit_once(CLEARED).unwrap();
    assert!(!lines.contains('\n'), "{all:?}");
    for line in lines.split(CLEARED).skip(1) {
        assert!(
            line.starts_with("rec: 0:00:0") && line.len() == usize::from(COLUMNS) - 1,
            "cut: {all:?}"
        );
    }
    // The kernel may have throttled the sampling, which is told before.
    let told: Vec<&str> = last.lines().collect();
    assert!(told.iter().all(|line| line.starts_with("rec: ")) && last.ends_with('\n'), "{all:?}");
    assert!(told.last().is_some_and(|line| line.starts_with("rec: recorded ")), "{all:?}");
}

#[test]
fn no_line_where_it_is_not_wanted_or_would_be_among_a_command_s() {
    if !can_record_system() {
        return;
    }
    // The first line would come after a second. They run at once.
    let started = [&["-a", "-q", "--", "sleep", "1.3"][..], &["--", "sleep", "1.3"]].map(|words| {
        let (dir, path) = place();
        (start(&path, words), words, dir)
    });
    let (_dir, path) = place();
    let output = run(&path, &["-a", "-e", "cpu-clock", "--", "sleep", "1.3"]);
    assert!(!said(&output).contains('\r'), "{}", said(&output));
    for ((mut rec, master), words, _dir) in started {
        let all = read(master, |_| ());
        assert!(rec.wait().unwrap().success(), "{all:?}");
        assert!(!all.contains(CLEARED), "{words:?}: {all:?}");
    }
}
