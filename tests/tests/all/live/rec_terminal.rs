//! Job control and the keys of a terminal under rec: they do to a command what they do without it,
//! and to rec no more than end the recording.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use recrep_tests::lock::{Cpus, cpus};
use recrep_tests::needs;
use recrep_tests::programs::{programs, rec};
use recrep_tests::report::report;
use recrep_tests::run::{Outcome, Running, run, start, until};
use rustix::process::{Signal, kill_process_group};

/// A program that catches signals, says so in a file, and ends some time after the first, with
/// status 6.
const CATCHES: &str = "for s in INT QUIT HUP TERM; do trap \"echo caught $s >>log\" $s; done; : \
                       >ready; until [ -s log ]; do sleep 0.02; done; sleep 0.3; echo end >>log; \
                       exit 6";

/// A program that runs until a signal ends it.
const WAITS: &str = ": >ready; exec sleep 60";

const CTRL_C: &[u8] = b"\x03";
const CTRL_BACKSLASH: &[u8] = b"\x1c";

/// A recording of a shell's script on a terminal of its own.
struct Terminal<'d> {
    dir: &'d Path,
    keys: File,
    recorder: Running,
    _cpus: std::rc::Rc<Cpus>,
}

impl<'d> Terminal<'d> {
    fn start(dir: &'d Path, script: &str) -> Self {
        let cpus = cpus();
        let keys = dir.join("keys");
        let file = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &keys, file, rustix::fs::Mode::RWXU, 0).unwrap();
        fs::write(dir.join("script"), script).unwrap();
        // exec: a shell that waits for rec would end at the key, with a status of its own.
        let line = format!(
            "ulimit -c 0; exec {} -e cpu-clock -o x.data -- sh script",
            programs().rec.display()
        );
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec script -qec \"$0\" /dev/null <keys", &line])
            .current_dir(dir)
            .env("TERM", "xterm");
        let recorder = start(&mut command);
        // Opened when the other side is.
        let keys = File::options().write(true).open(keys).unwrap();
        Self { dir, keys, recorder, _cpus: cpus }
    }

    fn press(&mut self, key: &[u8]) {
        self.keys.write_all(key).unwrap();
    }

    fn until_ready(&self) {
        until(
            || self.dir.join("ready").exists(),
            || format!("it is not ready: {}", self.recorder.said()),
        );
    }

    fn finish(self) -> Outcome {
        let outcome = self.recorder.finish();
        let _ = fs::remove_file(self.dir.join("keys"));
        let _ = fs::remove_file(self.dir.join("ready"));
        outcome
    }
}

/// Returns whether these tests can be run here.
fn can_be_tested() -> bool {
    needs::perf_events() && needs::commands("script")
}

#[track_caller]
fn assert_complete(dir: &Path) {
    let report = report(&dir.join("x.data"), "comm");
    assert!(report.input().complete && report.warnings.is_empty(), "{report:?}");
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    if !can_be_tested() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (key, signal) in [(CTRL_C, "INT"), (CTRL_BACKSLASH, "QUIT")] {
        let mut terminal = Terminal::start(dir.path(), CATCHES);
        terminal.until_ready();
        terminal.press(key);
        let outcome = terminal.finish().expect(6);
        // rec sends no signal of its own, and waits for what the program does then.
        assert_eq!(
            fs::read_to_string(dir.path().join("log")).unwrap(),
            format!("caught {signal}\nend\n")
        );
        assert!(outcome.text().contains("rec: recorded "), "{}", outcome.text());
        assert_complete(dir.path());
        fs::remove_file(dir.path().join("log")).unwrap();
    }
}

#[test]
fn a_command_that_the_terminal_ends_has_that_status() {
    if !can_be_tested() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (key, signal) in [(CTRL_C, 2), (CTRL_BACKSLASH, 3)] {
        let mut terminal = Terminal::start(dir.path(), WAITS);
        terminal.until_ready();
        terminal.press(key);
        terminal.finish().expect(128 + signal);
        assert_complete(dir.path());
    }
}

#[test]
fn a_second_ctrl_c_asks_the_command_to_end() {
    if !can_be_tested() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let mut terminal = Terminal::start(dir.path(), "trap '' INT; : >ready; exec sleep 60");
    terminal.until_ready();
    terminal.press(CTRL_C);
    until(
        || terminal.recorder.printed().contains("still running; press Ctrl-C again"),
        || "rec does not say that it waits".to_owned(),
    );
    assert_complete(dir.path());
    terminal.press(CTRL_C);
    terminal.finish().expect(128 + 15);
    assert!(begun.elapsed() < Duration::from_secs(50));
}

#[test]
fn the_command_is_in_the_foreground_of_the_terminal() {
    if !can_be_tested() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // Group, terminal, foreground group; terminals; the first line that is typed.
    let script = "cut -d' ' -f 5,7,8 /proc/self/stat >told; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : \
                  </dev/tty || exit 1; : >ready; read line; echo \"read $line\" >>told; exit 6";
    let mut terminal = Terminal::start(dir.path(), script);
    terminal.until_ready();
    terminal.press(b"hello\n");
    terminal.finish().expect(6);
    let told = fs::read_to_string(dir.path().join("told")).unwrap();
    let words: Vec<&str> = told.split_whitespace().collect();
    let [group, tty, foreground, "read", "hello"] = words[..] else { panic!("{told}") };
    assert!(group == foreground && tty != "0", "{told}");
}

/// Returns the states of a process and its children, as proc(5) has them.
fn states(recorder: &Running) -> String {
    let pid = recorder.pid().as_raw_nonzero().to_string();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .collect::<String>();
    let state = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?')
    };
    [pid.as_str()].into_iter().chain(children.split_whitespace()).map(state).collect()
}

#[test]
fn ctrl_z_stops_rec_and_the_command_and_both_go_on() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = rec();
    command.args(["-e", "cpu-clock", "-o", "x.data", "--", "sh", "-c"]).current_dir(dir.path());
    let recorder =
        start(command.arg(": >ready; until [ -e go ] || [ ! -e ready ]; do :; done; exit 6"));
    until(|| dir.path().join("ready").exists(), || recorder.said());
    // What a terminal sends to the foreground group at Ctrl-Z, and a shell at `fg`.
    kill_process_group(recorder.pid(), Signal::TSTP).unwrap();
    until(|| states(&recorder) == "TT", || format!("they are {}", states(&recorder)));
    kill_process_group(recorder.pid(), Signal::CONT).unwrap();
    until(|| !states(&recorder).contains('T'), || format!("they are {}", states(&recorder)));
    fs::write(dir.path().join("go"), "").unwrap();
    recorder.finish().expect(6);
    assert_complete(dir.path());
}

#[test]
fn a_signal_to_rec_alone_asks_the_command_to_end() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = rec();
        command
            .args(["-e", "cpu-clock", "-o", "x.data", "--", "sh", "-c", CATCHES])
            .current_dir(dir.path());
        let recorder = start(&mut command);
        until(|| dir.path().join("ready").exists(), || recorder.said());
        recorder.signal(signal);
        recorder.finish().expect(6);
        assert_eq!(
            fs::read_to_string(dir.path().join("log")).unwrap(),
            "caught TERM\nend\n",
            "{signal:?}"
        );
        assert_complete(dir.path());
        fs::remove_file(dir.path().join("ready")).unwrap();
        fs::remove_file(dir.path().join("log")).unwrap();
    }
}

#[test]
fn the_command_reads_all_of_standard_input() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let line = "seq 100000 | \"$0\" -q -e cpu-clock -o x.data -- sh -c 'read first; echo \"first \
                $first\"; tail -n 1'";
    let outcome =
        run(command.args(["-c", line]).arg(&programs().rec).current_dir(dir.path())).expect(0);
    assert_eq!(outcome.text(), "first 1\n100000\n");
}
