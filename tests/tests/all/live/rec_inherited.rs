//! What a command finds itself to be under rec: signals, descriptors, limits, priorities, as
//! without rec; and processes that rec attaches to stay as they are. What rec registers in the
//! kernel goes with it, even if it is killed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use recrep_fixtures::CALLED;
use recrep_tests::programs::{programs, rec};
use recrep_tests::run::{Outcome, run, start, until};
use recrep_tests::tracing::with_tracefs;
use recrep_tests::{lock, needs};
use rustix::process::{Signal, kill_process_group};

/// What a process says of itself that does not differ from one process to the next. Of signals, the
/// first 28: the C library has two above them for itself, which posix_spawn(3) leaves ignored or
/// not, as it happens.
const SELF: &str = "sed -nE \
                    '/^(SigBlk|SigIgn|SigCgt|Umask|NoNewPrivs|Seccomp|Cap|Cpus_allowed|Groups|Uid|Gid)/{s/^(Sig[A-Za-z]+:.)[0-9a-f]{9}/\\1/;p}' /proc/self/status; cat /proc/self/limits /proc/self/oom_score_adj /proc/self/timerslack_ns /proc/self/coredump_filter /proc/self/personality /proc/self/cgroup; for fd in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$fd ] && echo open $fd; done; nice; pwd; env | grep -v ^_= | sort; cut -d' ' -f 18,19,40,41 /proc/self/stat; exit 3";

/// Runs a command after the shell has prepared itself, by a program that prepares more if `WITH`
/// says so; alone, or recorded.
fn prepared(preparation: &str, recorder: Option<&Command>, command: &[&str]) -> Outcome {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{preparation}; exec $WITH \"$0\" \"$@\"")]);
    if let Some(recorder) = recorder {
        shell.arg(recorder.get_program()).args(recorder.get_args()).arg("--");
    }
    run(shell.args(command))
}

#[test]
fn a_command_is_what_it_is_alone() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = rec();
    recorder.args(["-q", "-e", "cpu-clock", "-o"]).arg(dir.path().join("x.data"));
    let preparations = [
        ":",
        "trap '' INT PIPE HUP TERM CHLD USR1 USR2 QUIT XFSZ",
        "umask 077; ulimit -S -n 100; ulimit -c 0; cd /; export SOME=thing",
        "exec <&-",
        "exec 7</dev/null 9>/dev/null",
        "WITH='env --block-signal=INT,TERM,CHLD,USR1,USR2,PIPE,XFSZ,QUIT'",
        "WITH='nice -n 3'",
        "WITH='taskset -c 0'",
        "WITH='prlimit --core=0 --stack=1000000:2000000 --memlock=65536'",
    ];
    for preparation in preparations {
        let [alone, recorded] = [None, Some(&recorder)]
            .map(|recorder| prepared(preparation, recorder, &["sh", "-c", SELF]).expect(3));
        assert_eq!(recorded.text(), alone.text(), "{preparation}");
        assert!(
            alone.text().contains("SigBlk") && alone.text().contains("Max open files"),
            "{}",
            alone.text()
        );
    }
    // More counters than files may be open: rec raises its own limit.
    recorder.args([
        "-e",
        "faults,cs,migrations,task-clock,dummy,minor-faults,major-faults,cgroup-switches",
    ]);
    let few = "ulimit -S -n 30";
    let [alone, recorded] = [None, Some(&recorder)]
        .map(|recorder| prepared(few, recorder, &["sh", "-c", SELF]).expect(3));
    assert_eq!(recorded.text(), alone.text());
    // Priorities are rec's own.
    if needs::root() {
        for priority in ["--nice=-10", "-r 1", "--threads", "--affinity=cpu", "-F max -m 8"] {
            let mut recorder = rec();
            recorder
                .args(["-q", "-e", "cpu-clock"])
                .args(priority.split(' '))
                .arg("-o")
                .arg(dir.path().join("y.data"));
            let [alone, recorded] = [None, Some(&recorder)]
                .map(|recorder| prepared(":", recorder, &["sh", "-c", SELF]).expect(3));
            assert_eq!(recorded.text(), alone.text(), "{priority}");
        }
    }
}

/// A signal that dumps core is passed on as any other, and leaves what it leaves without rec.
#[test]
fn a_command_that_dumps_core_does_so_as_alone() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = rec();
    recorder.args(["-q", "-e", "cpu-clock", "-o"]).arg(dir.path().join("x.data"));
    let cores = [None, Some(&recorder)].map(|recorder| {
        let place = tempfile::tempdir().unwrap();
        let preparation = format!("ulimit -c unlimited; cd {}", place.path().display());
        prepared(&preparation, recorder, &["sh", "-c", "kill -SEGV $$"]).expect(128 + 11);
        fs::read_dir(place.path()).unwrap().count()
    });
    assert_eq!(cores[0], cores[1]);
}

/// rec opens files of the recorded program for reading only, so that it can be built again
/// meanwhile.
#[test]
fn a_program_can_be_written_while_it_is_recorded() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let app = dir.path().join("app");
    fs::copy("/bin/sleep", &app).unwrap();
    // In place, when it has run, and executed anew at once.
    let script = "./app 0.1 && cp /bin/true app && ./app && cp /bin/sleep app && ./app 0.1 && : \
                  >ready && sleep 60";
    let cpus = lock::cpus();
    let mut command = rec();
    let recorder = start(
        command
            .args(["-e", "cpu-clock", "-o", "x.data", "--", "sh", "-c", script])
            .current_dir(dir.path()),
    );
    until(|| dir.path().join("ready").exists(), || recorder.said());
    let pid = recorder.pid().as_raw_nonzero().to_string();
    let mut writable = Vec::new();
    for open in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", open.file_name().display()))
            .unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or_default();
        let is_regular = fs::metadata(open.path()).is_ok_and(|file| file.is_file());
        // The lowest digit has the access mode.
        if is_regular && !flags.trim().ends_with('0') {
            writable.push(fs::read_link(open.path()).unwrap());
        }
    }
    recorder.signal(Signal::TERM);
    recorder.finish();
    drop(cpus);
    let of_program = |file: &PathBuf| file.to_string_lossy().contains("/app");
    assert!(
        writable.contains(&dir.path().join("x.data")) && !writable.iter().any(of_program),
        "{writable:?}"
    );
}

/// The parent of the command is a thread of rec's, which must not end before the command.
#[test]
fn a_command_that_ends_with_its_parent_lives() {
    if !needs::perf_events() || !needs::commands("setpriv") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..5 {
        let mut command = rec();
        command.args(["-q", "-e", "cpu-clock", "-o"]).arg(dir.path().join("x.data"));
        run(command.args(["--", "setpriv", "--pdeathsig", "TERM", "sleep", "0.1"])).expect(0);
    }
}

/// Returns the state of a process, as proc(5) has it.
fn state(pid: &str) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").map_or_else(String::new, |(_, rest)| rest.chars().take(1).collect())
}

#[test]
fn a_stopped_process_stays_stopped() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpus = lock::cpus();
    let target = start(Command::new("sleep").arg("60"));
    let pid = target.pid().as_raw_nonzero().to_string();
    target.signal(Signal::STOP);
    until(|| state(&pid) == "T", || format!("it is {}", state(&pid)));
    for event in ["cpu-clock", "mem:0x10000/8:w", "{cs,faults}:S"] {
        let mut command = rec();
        command
            .args(["-q", "-e", event, "-p", &pid, "-o"])
            .arg(dir.path().join("x.data"))
            .args(["--", "sleep", "0.1"]);
        run(&mut command).expect(0);
        assert_eq!(state(&pid), "T", "{event}");
    }
    target.signal(Signal::KILL);
    target.finish();
    drop(cpus);
}

/// Returns the children of a process.
fn children(pid: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.collect::<String>().split_whitespace().map(str::to_owned).collect()
}

/// Returns the process that traces another; `0` if none does.
fn tracer(pid: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap_or("0").trim().to_owned()
}

#[test]
fn a_traced_process_stays_traced() {
    if !needs::perf_events() || !needs::commands("strace") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpus = lock::cpus();
    // It ends if the test fails and its directory is gone.
    let script = ": >ready; until [ -e go ] || [ ! -e ready ]; do :; done; exit 3";
    let mut strace = Command::new("strace");
    let tracing = start(
        strace.args(["-o", "trace", "-e", "none", "sh", "-c", script]).current_dir(dir.path()),
    );
    let by = tracing.pid().as_raw_nonzero().to_string();
    // Before, strace tries out what the system can do with children of its own.
    until(|| dir.path().join("ready").exists(), || "strace runs nothing".to_owned());
    let traced = || children(&by).into_iter().find(|child| tracer(child) == by);
    until(|| traced().is_some(), || "strace traces nothing".to_owned());
    let pid = traced().unwrap();
    for event in ["cpu-clock", "mem:0x10000/8:w", "{cs,faults}:S"] {
        let mut command = rec();
        command
            .args(["-q", "-e", event, "-p", &pid, "-o"])
            .arg(dir.path().join("x.data"))
            .args(["--", "sleep", "0.1"]);
        run(&mut command).expect(0);
        assert_eq!(tracer(&pid), by, "{event}");
    }
    fs::write(dir.path().join("go"), "").unwrap();
    tracing.finish().expect(3);
    drop(cpus);
    let trace = fs::read_to_string(dir.path().join("trace")).unwrap();
    assert!(trace.contains("exited with 3") && !trace.contains("---"), "no signal came: {trace}");
    // A command that traces, and rec being traced.
    let mut command = rec();
    command.args([
        "-q",
        "-e",
        "cpu-clock",
        "-o",
        "x.data",
        "strace",
        "-o",
        "trace",
        "sh",
        "-c",
        "exit 4",
    ]);
    run(command.current_dir(dir.path())).expect(4);
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "trace"]).arg(&programs().rec).args([
        "-q",
        "-e",
        "cpu-clock",
        "-o",
        "x.data",
    ]);
    run(command.args(["sh", "-c", "exit 5"]).current_dir(dir.path())).expect(5);
}

#[test]
fn a_process_that_ended_but_has_a_parent_that_does_not_ask_is_left_so() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpus = lock::cpus();
    let parent = start(Command::new("sh").args(["-c", "true & exec sleep 60"]));
    let pid = parent.pid().as_raw_nonzero().to_string();
    let zombie = || children(&pid).into_iter().find(|child| state(child) == "Z");
    until(|| zombie().is_some(), || "there is no zombie".to_owned());
    let zombie = zombie().unwrap();
    let mut command = rec();
    let refused =
        run(command.args(["-e", "cpu-clock", "-p", &zombie, "-o"]).arg(dir.path().join("x.data")))
            .expect(125);
    assert!(refused.stderr.contains("has ended already"), "{}", refused.stderr);
    assert_eq!(state(&zombie), "Z");
    parent.signal(Signal::KILL);
    parent.finish();
    drop(cpus);
}

/// Returns the number of probes that a process has registered.
fn probes(pid: &str) -> usize {
    let mut list = Command::new("cat");
    let all = run(&mut with_tracefs(list.arg("/sys/kernel/tracing/uprobe_events"))).expect(0);
    all.text().lines().filter(|line| line.contains(&format!("_{pid}_"))).count()
}

#[test]
fn a_probe_goes_with_rec_even_if_it_is_killed() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let event = format!("uprobe/path={},func={CALLED}/", programs().workload.display());
    for signal in [Signal::KILL, Signal::TERM] {
        let cpus = lock::cpus();
        let mut command = rec();
        let recorder = start(
            command
                .args(["-q", "-e", &event, "-o"])
                .arg(dir.path().join("x.data"))
                .args(["--", "sleep", "60"]),
        );
        let group = recorder.pid();
        let pid = group.as_raw_nonzero().to_string();
        until(|| probes(&pid) == 1, || "the probe is not registered".to_owned());
        recorder.signal(signal);
        recorder.finish();
        // The command lives on if rec is killed.
        let _ = kill_process_group(group, Signal::KILL);
        until(|| probes(&pid) == 0, || format!("the probe is left over after {signal:?}"));
        drop(cpus);
    }
}

#[test]
fn probes_are_for_root_and_say_so() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let copy = dir.path().join("rec");
    fs::copy(&programs().rec, &copy).unwrap();
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&copy);
    nobody
        .args(["-e", "uprobe/path=/bin/true,offset=0x1000/", "-o", "x.data", "true"])
        .current_dir(dir.path());
    let refused = run(&mut nobody).expect(125);
    assert!(refused.stderr.contains("CAP_SYS_ADMIN"), "{}", refused.stderr);
}
