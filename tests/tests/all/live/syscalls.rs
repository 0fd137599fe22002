//! `rec trace` and `rep syscalls`: the calls and errors that strace counts, the times of perf trace,
//! callers, and calls that have not returned.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::perf::perf;
use recrep_tests::programs::{rec, rep, workspace};
use recrep_tests::run::{run, start, until};
use recrep_tests::tracing::with_tracefs;
use rustix::process::Signal;
use serde_json::Value;

/// Calls and errors, by name.
type Counts = BTreeMap<String, (u64, u64)>;

/// Writes to /dev/null, opens files that are not there, in two threads; is interrupted while it
/// sleeps.
const CALLS: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static void nothing(int signal) { (void)signal; }
__attribute__((noinline)) int write_some(int fd) {
    int sum = 0;
    for (int turn = 0; turn < 50; turn++) sum += write(fd, "x", 1);
    return sum;
}
__attribute__((noinline)) int open_missing(void) {
    int sum = 0;
    for (int turn = 0; turn < 7; turn++) sum += open("/no/such/file", O_RDONLY);
    return sum;
}
static void *thread(void *argument) { open_missing(); return argument; }
int main(void) {
    int fd = open("/dev/null", O_WRONLY);
    write_some(fd);
    open_missing();
    close(-1);
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
    pthread_join(other, 0);
    signal(SIGALRM, nothing);
    struct itimerval soon = { { 0, 0 }, { 0, 20000 } };
    setitimer(ITIMER_REAL, &soon, 0);
    struct timespec long_time = { 30, 0 };
    nanosleep(&long_time, 0);
    struct timespec short_time = { 0, 3000000 };
    for (int turn = 0; turn < 10; turn++) nanosleep(&short_time, 0);
    return 0;
}
"#;

fn compiled(dir: &Path, text: &str) -> PathBuf {
    let (source, program) = (dir.join("calls.c"), dir.join("calls"));
    fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    run(cc.args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(&source)).expect(0);
    program
}

/// Records a command with `rec trace`.
fn traced(dir: &Path, flags: &[&str], command: &[&str]) -> PathBuf {
    let file = dir.join("traced.data");
    let mut recording = rec();
    recording.arg("trace").args(flags).arg("-o").arg(&file).arg("--").args(command);
    let outcome = run(&mut with_tracefs(&recording)).expect(0);
    let next = format!("; view: rep syscalls {}", file.display());
    assert!(outcome.last_line().ends_with(&next), "{}", outcome.stderr);
    file
}

fn answer(file: &Path, flags: &[&str]) -> Value {
    let outcome = run(rep().arg("syscalls").arg(file).arg("--json").args(flags)).expect(0);
    serde_json::from_slice(&outcome.stdout).unwrap()
}

/// All rows of all groups.
fn rows(answer: &Value) -> impl Iterator<Item = &Value> {
    let groups = answer["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rows"].as_array().unwrap())
}

fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_else(|| panic!("{field}: {row}"))
}

fn counts(answer: &Value) -> Counts {
    let mut counts = Counts::new();
    for row in rows(answer).filter(|row| number(row, "calls") > 0) {
        let of_name = counts.entry(row["key"]["syscall"].as_str().unwrap().to_owned()).or_default();
        of_name.0 += number(row, "calls");
        of_name.1 += number(row, "failed");
    }
    counts
}

/// What strace counts of a command and its threads.
fn straced(dir: &Path, command: &[&str]) -> Counts {
    let file = dir.join("strace");
    run(Command::new("strace").args(["-f", "-c", "-o"]).arg(&file).args(command)).expect(0);
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().skip(2).take_while(|line| !line.starts_with('-'));
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let errors = if words.len() == 6 { words[4].parse().unwrap() } else { 0 };
        (words.last().unwrap().to_string(), (words[3].parse().unwrap(), errors))
    };
    lines.map(of_line).collect()
}

#[test]
fn calls_and_errors_are_those_of_strace() {
    if !needs::tracefs() || !needs::commands("strace cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path(), CALLS);
    let lines =
        [vec![program.to_str().unwrap()], vec!["ls", "/usr", "/"], vec!["cat", "/etc/passwd"]];
    for command in lines {
        let (ours, theirs) = (
            counts(&answer(&traced(dir.path(), &[], &command), &[])),
            straced(dir.path(), &command),
        );
        let mut differ: Vec<_> = ours.keys().chain(theirs.keys()).collect();
        differ.retain(|name| ours.get(*name) != theirs.get(*name));
        // Whether a thread finds a lock free is chance; all else is not.
        differ.retain(|name| *name != "futex");
        let shown: Vec<_> =
            differ.iter().map(|name| (name, ours.get(*name), theirs.get(*name))).collect();
        assert!(shown.is_empty(), "{command:?}: rep, strace: {shown:?}");
        assert!(ours.values().map(|(calls, _)| calls).sum::<u64>() > 20, "{ours:?}");
        assert_eq!(ours["execve"], (1, 0));
    }
}

#[test]
fn times_are_those_of_perf_trace() {
    if !needs::tracefs() || !needs::commands("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path(), CALLS);
    let file = traced(dir.path(), &[], &[program.to_str().unwrap()]);
    let mut perfs = perf();
    perfs.args(["trace", "-s", "-i"]).arg(&file);
    let said = run(&mut with_tracefs(&perfs)).expect(0);
    let said = [said.text(), &said.stderr].concat();
    // name, calls, errors, total, min, avg, max, stddev: for each thread.
    let mut compared = 0;
    let all = answer(&file, &["--per-thread"]);
    let mut totals = BTreeMap::<String, (u64, f64)>::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [name, calls, _, total, _, _, _, _] = words[..]
            && let (Ok(calls), Ok(total)) = (calls.parse::<u64>(), total.parse::<f64>())
        {
            let of_name = totals.entry(name.to_owned()).or_default();
            (of_name.0, of_name.1) = (of_name.0 + calls, of_name.1 + total);
        }
    }
    for (name, (calls, _)) in counts(&all) {
        let ours: u64 = rows(&all)
            .filter(|row| row["key"]["syscall"] == name.as_str())
            .map(|row| number(row, "total_ns"))
            .sum();
        assert!(calls > 0, "{name}");
        let Some((of_perf, milliseconds)) = totals.get(&name) else { continue };
        // perf counts the return of a new thread as a call of no length.
        if *of_perf != calls {
            continue;
        }
        let (ours, theirs) = (ours as f64 / 1e6, *milliseconds);
        assert!((ours - theirs).abs() <= theirs * 0.02 + 0.001, "{name}: {ours} ms, perf {theirs}");
        compared += 1;
    }
    assert!(compared >= 10, "{compared} of {said}");
}

#[test]
fn sums_of_threads_and_callers_are_the_totals() {
    if !needs::tracefs() || !needs::commands("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path(), CALLS);
    let file = traced(dir.path(), &["-g"], &[program.to_str().unwrap()]);
    let whole = answer(&file, &[]);
    assert_eq!(whole["groups"].as_array().unwrap().len(), 1);
    let sum = |answer: &Value, field: &str| rows(answer).map(|row| number(row, field)).sum::<u64>();
    for flags in [&["--per-thread"][..], &["--by", "process"], &["--by", "thread,caller"]] {
        let parts = answer(&file, flags);
        assert_eq!(counts(&parts), counts(&whole), "{flags:?}");
        for field in ["calls", "failed", "total_ns", "untimed", "unfinished"] {
            assert_eq!(sum(&parts, field), sum(&whole, field), "{flags:?}: {field}");
        }
    }
    assert_eq!(answer(&file, &["--per-thread"])["groups"].as_array().unwrap().len(), 2);
    let of_threads = |threads: &str| {
        let mut command = rep();
        command.args(["syscalls", "--by", "process,thread,caller"]).arg(&file);
        run(command.env("RAYON_NUM_THREADS", threads)).expect(0).stdout
    };
    assert!(of_threads("1") == of_threads("2") && of_threads("1") == of_threads("7"));
    let by_caller = answer(&file, &["--by", "caller"]);
    let calls_of = |caller: &str, syscall: &str| {
        let of_both =
            |row: &&Value| row["key"]["caller"] == caller && row["key"]["syscall"] == syscall;
        rows(&by_caller).filter(of_both).map(|row| number(row, "calls")).sum::<u64>()
    };
    // The functions of the C library in between are left out.
    assert_eq!((calls_of("write_some", "write"), calls_of("open_missing", "openat")), (50, 14));
    let errors = rows(&whole).find(|row| row["key"]["syscall"] == "openat").unwrap();
    let missing = errors["errors"].as_array().unwrap();
    assert!(missing.iter().any(|error| error["name"] == "ENOENT" && number(error, "calls") >= 14));
    let text = run(rep().arg("syscalls").arg(&file)).expect(0);
    assert!(text.text().contains("ENOENT(2):"), "{}", text.text());
}

/// Copies of stacks of all of them fit into the smallest ring there is.
#[test]
fn a_burst_of_calls_is_recorded_whole() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=800"];
    let counted = counts(&answer(&traced(dir.path(), &["-g"], &command), &[]));
    assert!(counted["read"].0 >= 800 && counted["write"].0 >= 800, "{counted:?}");
}

#[test]
fn filters_select_calls() {
    if !needs::tracefs() || !needs::commands("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path(), CALLS);
    let file = traced(dir.path(), &[], &[program.to_str().unwrap()]);
    let threads = answer(&file, &["--per-thread"]);
    for group in threads["groups"].as_array().unwrap() {
        let tid = group["thread"].as_str().unwrap().split(':').next().unwrap();
        let own = answer(&file, &["--tid", tid]);
        assert_eq!(own["groups"][0]["rows"], group["rows"], "{tid}");
    }
    let halves: u64 = ["0%-50%", "50%-100%"]
        .iter()
        .flat_map(|times| {
            let half = answer(&file, &["--time", times]);
            rows(&half).map(|row| number(row, "calls")).collect::<Vec<_>>()
        })
        .sum();
    let all: u64 = rows(&threads).map(|row| number(row, "calls")).sum();
    // What is at the limit itself counts in both.
    assert!((all..=all + 2).contains(&halves), "{halves} of {all}");
    let none = run(rep().args(["syscalls", "--comm", "nobody"]).arg(&file)).expect(1);
    assert!(none.stderr.contains("nobody"), "{}", none.stderr);
    let chains = run(rep().args(["syscalls", "--by", "caller"]).arg(&file)).expect(1);
    assert!(chains.stderr.contains("rec trace -g"), "{}", chains.stderr);
}

#[test]
fn calls_that_have_not_returned_are_told() {
    if !needs::tracefs() || !needs::commands("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // Its thread waits for ever; the recording ends before.
    let program = compiled(
        dir.path(),
        "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
         static void *thread(void *argument) { pause(); return argument; }\n\
         int main(int count, char **names) { pthread_t other;\n\
         pthread_create(&other, 0, thread, 0); usleep(50000);\n\
         fclose(fopen(names[count - 1], \"w\")); sleep(60); return 0; }",
    );
    let (file, mark) = (dir.path().join("open.data"), dir.path().join("mark"));
    let mut recording = rec();
    recording.args(["trace", "-o"]).arg(&file).arg("--").arg(&program).arg(&mark);
    let recorder = start(&mut with_tracefs(&recording));
    until(|| mark.exists(), || recorder.said());
    // This ends the recording, with the command.
    recorder.signal(Signal::INT);
    let ended = recorder.finish();
    assert!(ended.stderr.contains("rep syscalls"), "{}", ended.stderr);
    let found = answer(&file, &[]);
    let row = |name: &str| rows(&found).find(|row| row["key"]["syscall"] == name);
    let of_pause = row("pause").unwrap_or_else(|| panic!("{found}"));
    // A killed task leaves the kernel by another way on some versions, with an error on others.
    assert_eq!(number(of_pause, "unfinished") + number(of_pause, "calls"), 1, "{of_pause}");
    assert!(row("exit_group").is_none_or(|row| number(row, "calls") == 0));
    let cut = answer(&file, &["--time", "0%-50%"]);
    assert!(rows(&cut).count() > 0);
}

/// Calls by the 32-bit table from a program of 64 bits: getpid is 20 there, and writev in its own.
#[cfg(target_arch = "x86_64")]
const CALLS_OF_32_BITS: &str = r#"
#include <sys/syscall.h>
#include <unistd.h>
static long old(long number) {
    long value;
    __asm__ volatile("int $0x80" : "=a"(value) : "a"(number) : "memory", "r8", "r9", "r10", "r11");
    return value;
}
int main(void) {
    if (old(20) != getpid()) return 2;
    for (int turn = 0; turn < 99; turn++) old(20);
    for (int turn = 0; turn < 30; turn++) syscall(SYS_getppid);
    return 0;
}
"#;

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_the_32_bit_table_have_its_names() {
    if !needs::tracefs() || !needs::commands("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path(), CALLS_OF_32_BITS);
    if !run(&mut Command::new(&program)).status.success() {
        return eprintln!("skipped: this kernel takes no 32-bit calls");
    }
    for flags in [&[][..], &["-g"]] {
        let file = traced(dir.path(), flags, &[program.to_str().unwrap()]);
        let found = counts(&answer(&file, &[]));
        assert_eq!(found.get("getpid (32-bit)"), Some(&(100, 0)), "{found:?}");
        assert_eq!(found.get("getppid"), Some(&(30, 0)), "{found:?}");
        assert!(!found.contains_key("writev"), "{found:?}");
        let others = found.keys().filter(|name| name.ends_with("(32-bit)")).count();
        assert_eq!(others, 1, "{found:?}");
    }
}

/// Runs another program from a thread while the leader waits.
const EXEC_BY_THREAD: &str = r#"
#include <pthread.h>
#include <unistd.h>
static void *leave(void *argument) {
    usleep(20000);
    execl("/bin/true", "true", (char *)0);
    return argument;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, leave, 0);
    for (;;) pause();
}
"#;

#[test]
fn an_exec_by_another_thread_is_one_call() {
    if !needs::tracefs() || !needs::commands("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path(), EXEC_BY_THREAD);
    let all = answer(&traced(dir.path(), &[], &[program.to_str().unwrap()]), &[]);
    let row = |name: &str| rows(&all).find(|row| row["key"]["syscall"] == name).unwrap().clone();
    // The first one began before the recording.
    let exec = row("execve");
    let fields = ["calls", "untimed", "unfinished"].map(|field| number(&exec, field));
    assert_eq!(fields, [2, 1, 0], "{exec}");
    assert!(number(&exec, "total_ns") > 0, "{exec}");
    assert!(!all["warnings"].to_string().contains("without-entry"), "{}", all["warnings"]);
}

#[test]
fn recordings_of_perf_and_of_single_calls_are_read() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perfs.data");
    for events in [
        "raw_syscalls:*",
        "syscalls:sys_enter_newfstat,syscalls:sys_exit_newfstat,syscalls:sys_enter_close,syscalls:sys_exit_close",
    ] {
        let mut recording = perf();
        recording.args(["record", "-q", "-c", "1", "-e", events, "-o"]).arg(&file);
        run(&mut with_tracefs(recording.args(["--", "ls", "/usr"]))).expect(0);
        let found = counts(&answer(&file, &[]));
        assert!(found["close"].0 > 2, "{events}: {found:?}");
        if events.starts_with("syscalls") {
            // By the number, as the tracepoint is called otherwise.
            assert!(
                found.keys().all(|name| ["fstat", "close"].contains(&name.as_str())),
                "{found:?}"
            );
        }
    }
    let mut other = rec();
    other.args(["-e", "cpu-clock", "-o"]).arg(&file).args(["--", "ls", "/usr"]);
    run(&mut other).expect(0);
    let refused = run(rep().arg("syscalls").arg(&file));
    assert_eq!(refused.code(), 1, "{}", refused.stderr);
}

#[test]
fn the_schema_is_what_is_printed() {
    if !needs::tracefs() {
        return;
    }
    let path = workspace().join("report/docs/schema/recrep-syscalls-1.json");
    let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = traced(dir.path(), &["-g"], &["ls", "/usr"]);
    for flags in [&[][..], &["--by", "process,thread,caller", "--limit", "3"]] {
        let mut found = answer(&file, flags);
        let errors: Vec<String> = schema
            .iter_errors(&found)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        found["groups"][0]["rows"][0]["more"] = Value::Null;
        assert!(!schema.is_valid(&found));
    }
}
