//! What a command finds itself to be under rec: signals, descriptors, limits, priorities, as without rec; and processes
//! that rec attaches to stay as they are. What rec registers in the kernel goes with it, even if it is killed.

use std::fs;
use std::process::Command;

use recrep_fixtures::CALLED;
use recrep_tests::programs::{programs, rec};
use recrep_tests::run::{Outcome, run, start, until};
use recrep_tests::tracing::with_tracefs;
use recrep_tests::{lock, needs};
use rustix::process::{Signal, kill_process_group};

/// What a process says of itself that does not differ from one process to the next. Of signals, the first 28: the C
/// library has two above them for itself, which posix_spawn(3) leaves ignored or not, as it happens.
const SELF: &str = "sed -nE '/^(SigBlk|SigIgn|SigCgt|Umask|NoNewPrivs|Seccomp|Cap|Cpus_allowed|Groups|Uid|Gid)/{s/^(Sig[A-Za-z]+:.)[0-9a-f]{9}/\\1/;p}' /proc/self/status; \
     cat /proc/self/limits /proc/self/oom_score_adj /proc/self/timerslack_ns /proc/self/coredump_filter \
     /proc/self/personality /proc/self/cgroup; for fd in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$fd ] && echo open $fd; done; \
     nice; pwd; env | grep -v ^_= | sort; cut -d' ' -f 18,19,40,41 /proc/self/stat; exit 3";

/// Runs a command after the shell has prepared itself; alone, or recorded.
fn prepared(preparation: &str, recorder: Option<&Command>, command: &[&str]) -> Outcome {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{preparation}; exec \"$0\" \"$@\"")]);
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
    ];
    for preparation in preparations {
        let [alone, recorded] =
            [None, Some(&recorder)].map(|recorder| prepared(preparation, recorder, &["sh", "-c", SELF]).expect(3));
        assert_eq!(recorded.text(), alone.text(), "{preparation}");
        assert!(alone.text().contains("SigBlk") && alone.text().contains("Max open files"), "{}", alone.text());
    }
    // More counters than files may be open: rec raises its own limit.
    recorder.args(["-e", "faults,cs,migrations,task-clock,dummy,minor-faults,major-faults,cgroup-switches"]);
    let few = "ulimit -S -n 30";
    let [alone, recorded] =
        [None, Some(&recorder)].map(|recorder| prepared(few, recorder, &["sh", "-c", SELF]).expect(3));
    assert_eq!(recorded.text(), alone.text());
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
        command.args(["-q", "-e", event, "-p", &pid, "-o"]).arg(dir.path().join("x.data")).args(["--", "sleep", "0.1"]);
        run(&mut command).expect(0);
        assert_eq!(state(&pid), "T", "{event}");
    }
    target.signal(Signal::KILL);
    target.finish();
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
        let recorder =
            start(command.args(["-q", "-e", &event, "-o"]).arg(dir.path().join("x.data")).args(["--", "sleep", "60"]));
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
    nobody.args(["-e", "uprobe/path=/bin/true,offset=0x1000/", "-o", "x.data", "true"]).current_dir(dir.path());
    let refused = run(&mut nobody).expect(125);
    assert!(refused.stderr.contains("CAP_SYS_ADMIN"), "{}", refused.stderr);
}
