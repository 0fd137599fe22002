//! `rec --waits` and `rep waits`: what the threads of a program wait for, and who ends their waits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_record_testkit::busy_cpus::BusyCpus;
use recrep_tests::perf::perf;
use recrep_tests::programs::{rec, rep, workspace};
use recrep_tests::run::run;
use recrep_tests::tracing::with_tracefs;
use recrep_tests::{lock, needs};
use serde_json::Value;

/// A thread sleeps with a mutex locked; another one waits for the mutex, and the first thread for its
/// end; a third one waits for a condition, again and again; a child sleeps, whose end is waited for; a pipe
/// is read that the child's end closes.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
pthread_mutex_t guarding = PTHREAD_MUTEX_INITIALIZER;
int ends[2];
static void nap(long ms) { struct timespec time = { 0, ms * 1000000 }; nanosleep(&time, 0); }
__attribute__((noinline)) void hold(void) { pthread_mutex_lock(&guarding); nap(60); pthread_mutex_unlock(&guarding); }
__attribute__((noinline)) void want(void) { nap(20); pthread_mutex_lock(&guarding); pthread_mutex_unlock(&guarding); }
static void *holder(void *argument) { hold(); return argument; }
static void *wanter(void *argument) { want(); return argument; }
struct box { pthread_mutex_t guarding; pthread_cond_t filled; int full; };
__attribute__((noinline)) void take(struct box *box) {
    pthread_mutex_lock(&box->guarding);
    while (!box->full) pthread_cond_wait(&box->filled, &box->guarding);
    box->full = 0;
    pthread_mutex_unlock(&box->guarding);
}
static void *taker(void *argument) { for (int i = 0; i < 8; i++) take(argument); return argument; }
static void fill(struct box *box) {
    nap(5);
    pthread_mutex_lock(&box->guarding);
    box->full = 1;
    pthread_mutex_unlock(&box->guarding);
    pthread_cond_signal(&box->filled);
}
__attribute__((noinline)) void collect(void) { int status; wait(&status); }
__attribute__((noinline)) void drink(void) { char byte; while (read(ends[0], &byte, 1) > 0) { } }
int main(void) {
    pthread_t first, second, third;
    struct box *box = calloc(1, sizeof(*box));
    pthread_create(&first, 0, holder, 0);
    pthread_create(&second, 0, wanter, 0);
    pthread_join(second, 0);
    pthread_join(first, 0);
    pthread_create(&third, 0, taker, box);
    for (int i = 0; i < 8; i++) { fill(box); while (*(volatile int *)&box->full) nap(1); }
    pthread_join(third, 0);
    if (pipe(ends)) return 1;
    if (!fork()) { nap(30); return 0; }
    close(ends[1]);
    drink();
    if (!fork()) { nap(30); return 0; }
    collect();
    collect();
    return 0;
}
"#;

fn compiled(dir: &Path) -> PathBuf {
    let (source, program) = (dir.join("waiting.c"), dir.join("waiting"));
    fs::write(&source, PROGRAM).unwrap();
    let mut cc = Command::new("cc");
    run(cc.args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(&source)).expect(0);
    program
}

/// Records the program, unless this user may not.
fn recorded(dir: &Path, flags: &[&str], before: &[&str]) -> Option<PathBuf> {
    if !needs::perf_events() || !needs::root() {
        return None;
    }
    let (program, file) = (compiled(dir), dir.join("waiting.data"));
    let (_cpus, _busy) = (lock::cpus(), BusyCpus::start());
    let mut recording = rec();
    recording.args(flags).args(["-g", "-e", "cpu-clock", "-o"]).arg(&file).arg("--");
    recording.arg(program);
    let mut inside = Command::new(before.first().copied().unwrap_or("env"));
    inside.args(before.iter().skip(1));
    inside.arg(recording.get_program()).args(recording.get_args());
    run(&mut with_tracefs(&inside)).expect(0);
    Some(file)
}

fn answer(file: &Path, flags: &[&str]) -> Value {
    let outcome = run(rep().arg("waits").arg(file).arg("--json").args(flags)).expect(0);
    serde_json::from_slice(&outcome.stdout).unwrap()
}

/// Returns milliseconds and the first waker of each row, by kind, object and function.
fn rows(answer: &Value) -> BTreeMap<[String; 3], (u64, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = answer["waits"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let key = [text(&row["kind"]), text(&row["object"]), text(&row["site"]["function"])];
        (key, (row["waited"].as_u64().unwrap() / 1_000_000, row["wakers"][0].clone()))
    };
    rows.map(row).collect()
}

/// Fails unless the waits of the program are told with what they waited for, where, and who ended
/// them.
#[track_caller]
fn assert_told(answer: &Value) {
    let rows = rows(answer);
    let row = |kind: &str, object: &str, site: &str| {
        let key = [kind, object, site].map(str::to_owned);
        rows.get(&key).unwrap_or_else(|| panic!("{key:?}: {rows:#?}")).clone()
    };
    let woken = |(_, waker): &(u64, Value), kind: &str, site: &str| {
        assert_eq!(waker["kind"], kind, "{waker}");
        assert_eq!(waker["site"].as_str().unwrap_or_default(), site, "{waker}");
    };
    // A mutex that is locked for 60 ms is wanted after 20 ms, or later on a busy machine.
    let mutex = row("futex", "guarding", "want");
    woken(&mutex, "thread", "hold");
    let join = row("futex", "join", "main");
    assert!(join.0 >= 40, "{rows:#?}");
    woken(&join, "thread", "exit");
    let nap = row("sleep", "", "nap");
    assert!(nap.0 >= 140, "{rows:#?}");
    woken(&nap, "interrupt", "");
    assert_eq!(nap.1["thread"], "timer");
    // The C library uses two futexes of a condition in turn.
    let taken = rows.keys().filter(|[kind, _, site]| kind == "futex" && site == "take");
    let address = |object: &str| u64::from_str_radix(object.strip_prefix("0x")?, 16).ok();
    let addresses: Vec<u64> = taken.map(|[_, object, _]| address(object).unwrap()).collect();
    assert!(!addresses.is_empty(), "{rows:#?}");
    assert!(addresses.iter().all(|address| address % 8 == 0), "{rows:#?}");
    let pipe = row("pipe", "fd 3", "drink");
    woken(&pipe, "thread", "exit");
    let child = row("child", "any child", "collect");
    woken(&child, "thread", "exit");
    assert!(pipe.0 >= 10 && child.0 >= 10, "{rows:#?}");
}

#[test]
fn waits_have_their_object_place_and_waker() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = recorded(dir.path(), &["--waits"], &[]) else { return };
    let all = answer(&file, &[]);
    assert_told(&all);
    let path = workspace().join("report/docs/schema/recrep-waits-1.json");
    let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for by in ["object", "site", "waker", "thread", "object,thread"] {
        let answer = answer(&file, &["--by", by]);
        let errors: Vec<String> =
            schema.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{by}: {errors:#?}");
        for number in ["count", "waited", "runnable", "without_waker", "threads"] {
            assert_eq!(answer[number], all[number], "{by}: {number}");
        }
    }
    let shown = run(rep().arg("waits").arg(&file)).expect(0);
    let text = shown.text();
    assert!(text.contains("futex (guarding)") && text.contains("have a waker"), "{text}");
    let table = run(rep().args(["waits", "--format", "csv"]).arg(&file)).expect(0);
    let csv = table.text();
    let lines = all["waits"].as_array().unwrap().iter();
    let lines: usize = lines.map(|row| row["wakers"].as_array().unwrap().len()).sum();
    assert_eq!(csv.lines().count(), lines + 1, "{csv}");
    let limited = answer(&file, &["--limit", "2"]);
    assert_eq!(limited["waits"].as_array().unwrap().len(), 2);
    let none = run(rep().args(["waits", "--comm", "nobody"]).arg(&file)).expect(1);
    assert!(none.stderr.contains("nobody"), "{}", none.stderr);
}

#[test]
fn in_a_namespace_of_processes_wakers_are_found_too() {
    let dir = tempfile::tempdir().unwrap();
    let before = ["unshare", "--fork", "--pid", "--mount-proc"];
    let Some(file) = recorded(dir.path(), &["--waits"], &before) else { return };
    assert_told(&answer(&file, &[]));
}

#[test]
fn without_wakes_waits_lack_their_wakers_alone() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = recorded(dir.path(), &["--off-cpu"], &[]) else { return };
    let answer = answer(&file, &[]);
    let kinds: Vec<[String; 3]> = rows(&answer).into_keys().collect();
    assert!(kinds.iter().any(|[kind, _, site]| kind == "sleep" && site == "nap"), "{kinds:?}");
    let mut wakers = rows(&answer).into_values().map(|(_, waker)| waker);
    assert!(wakers.all(|waker| waker["kind"] == "unknown" || waker["site"] == "exit"), "{answer}");
    let shown = run(rep().arg("waits").arg(&file)).expect(0);
    let text = shown.text();
    assert!(text.contains("rec --waits does that"), "{text}");
    let none = run(rep().arg("waits").arg(recrep_fixtures_file(dir.path()))).expect(1);
    assert!(none.stderr.contains("rec --waits"), "{}", none.stderr);
}

/// Returns a recording without switches.
fn recrep_fixtures_file(dir: &Path) -> PathBuf {
    let file = dir.join("plain.data");
    run(rec().args(["-e", "cpu-clock", "-o"]).arg(&file).args(["--", "true"])).expect(0);
    file
}

#[test]
fn perf_reads_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = recorded(dir.path(), &["--waits"], &[]) else { return };
    if !needs::commands("perf") {
        return;
    }
    let outcome =
        run(perf().args(["script", "-F", "comm,tid,event,trace", "-i"]).arg(&file)).expect(0);
    let text = outcome.text();
    assert!(
        text.contains("sched:sched_waking: comm=") && text.contains("sched_wakeup_new"),
        "{text}"
    );
}
