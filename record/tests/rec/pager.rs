//! The pager of `rec list`.

use std::process::Stdio;

use rustix::termios::{Winsize, tcsetwinsize};

use super::common::{read, rec, terminal};

/// Runs `rec list` on a terminal with so many rows, in front of which `sed` marks each line that a
/// pager shows.
fn listed(rows: u16, words: &[&str]) -> String {
    let (master, end) = terminal();
    tcsetwinsize(&end, Winsize { ws_row: rows, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut list = rec();
    list.arg("list")
        .args(words)
        .env("TERM", "xterm")
        .env("PAGER", "sed 's/^/| /'")
        .env_remove("REC_PAGER");
    let mut child = list.stdin(Stdio::null()).stdout(end).spawn().unwrap();
    // The other end is closed with the command.
    drop(list);
    let text = read(master, |_| {});
    assert!(child.wait().unwrap().success());
    text
}

#[test]
fn a_list_that_does_not_fit_is_shown_in_a_pager() {
    let paged = listed(5, &["sw"]);
    assert!(
        paged.lines().count() > 5 && paged.lines().all(|line| line.starts_with("| ")),
        "{paged}"
    );
    for (rows, words) in [(100, &["sw"][..]), (5, &["sw", "--no-pager"]), (5, &["sw", "--json"])] {
        let text = listed(rows, words);
        assert!(text.contains("page-faults") && !text.contains("| "), "{words:?}: {text}");
    }
    // Where there is no terminal, there is no pager.
    let out = rec().args(["list", "sw"]).env("PAGER", "false").output().unwrap();
    assert!(String::from_utf8(out.stdout).unwrap().starts_with("Software\n"));
}
