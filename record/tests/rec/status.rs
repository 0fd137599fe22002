//! The status line on a terminal.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::common::{can_record_system, place, rec, run, said};

const CLEARED: &str = "\r\x1b[K";
const COLUMNS: u16 = 40;

/// A terminal of so many columns: what is written to it can be read, and the end that programs
/// have.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let end = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
    tcsetwinsize(&end, Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })
        .unwrap();
    (File::from(master), end)
}

/// Runs rec with the terminal as its standard error.
fn start(path: &Path, words: &[&str]) -> (Child, File) {
    let (master, end) = terminal();
    let mut rec = rec();
    rec.env("TERM", "xterm").arg("-o").arg(path).args(["-e", "cpu-clock"]).args(words);
    (rec.stdin(Stdio::null()).stderr(end).spawn().unwrap(), master)
}

/// All that is written until nobody can write any more; at each piece of it `seen` is called.
pub(crate) fn read(mut master: File, mut seen: impl FnMut(&str)) -> String {
    let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
    // The kernel says EIO where a file would end.
    while let Ok(count @ 1..) = master.read(&mut bytes) {
        all.extend(&bytes[..count]);
        seen(&String::from_utf8_lossy(&all));
    }
    String::from_utf8(all).unwrap()
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
    let (before, rest) = all.split_once("rec: 0:00:01, ").unwrap();
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
