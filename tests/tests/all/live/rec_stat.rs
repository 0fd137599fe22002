//! `rec stat` counts what perf stat counts, of programs whose counts are known.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::perf::{perf, version, versions};
use recrep_tests::programs::rec;
use recrep_tests::run::{Outcome, run, start};
use recrep_tests::tracing::with_tracefs;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// A program that does one thing a given number of times.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

volatile long watched;
static long times;
static pthread_barrier_t barrier;

static void ask(long n) {
    while (n-- > 0)
        syscall(SYS_getppid);
}

static void *asker(void *factor) {
    pthread_barrier_wait(&barrier);
    ask(times * (long)factor);
    return 0;
}

int main(int count, char **words) {
    times = atol(words[2]);
    if (!strcmp(words[1], "ask"))
        ask(times);
    if (!strcmp(words[1], "watch"))
        for (long i = 0; i < times; i++)
            watched = i;
    if (!strcmp(words[1], "touch") && times) {
        char *pages = mmap(0, times * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(pages, times * 4096, MADV_NOHUGEPAGE);
        for (long i = 0; i < times; i++)
            pages[i * 4096] = 1;
    }
    if (!strcmp(words[1], "pingpong")) {
        cpu_set_t one;
        int there[2], back[2];
        char byte = 0;
        sched_getaffinity(0, sizeof one, &one);
        for (int cpu = 0, found = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &one) && found++)
                CPU_CLR(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        if (pipe(there) || pipe(back))
            return 1;
        if (!fork()) {
            while (times-- > 0)
                if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
                    return 1;
            return 0;
        }
        while (times-- > 0)
            if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
                return 1;
        wait(0);
    }
    if (!strcmp(words[1], "threads")) {
        pthread_t threads[2];
        char byte = 0;
        pthread_barrier_init(&barrier, 0, 3);
        for (long i = 0; i < 2; i++) {
            pthread_create(&threads[i], 0, asker, (void *)(i + 1));
            pthread_setname_np(threads[i], i ? "twice" : "once");
        }
        /* Two descriptors of each, so that nobody waits for the other end. */
        int in = open(words[3], O_RDWR), out = open(words[4], O_RDWR);
        puts("ready");
        fflush(stdout);
        if (read(in, &byte, 1) != 1)
            return 1;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], 0);
        if (write(out, "\n", 1) != 1)
            return 1;
        pause();
    }
    return 0;
}
"#;

/// A tracepoint that occurs exactly as often as the program says.
const ASKED: &str = "syscalls:sys_enter_getppid";

/// A directory with the program.
struct Place(TempDir);

impl Place {
    /// Builds the program; `None` if the machine cannot.
    fn new() -> Option<Self> {
        if !needs::perf_events() || !needs::commands("gcc") {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("app.c"), PROGRAM).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-no-pie", "-pthread", "-o", "app", "app.c"]).current_dir(dir.path());
        run(&mut gcc).expect(0);
        Some(Self(dir))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The command line of the program; `args` split at spaces.
    fn app(&self, args: &str) -> Vec<OsString> {
        let words = args.split_whitespace().map(OsString::from);
        std::iter::once(self.path("app").into_os_string()).chain(words).collect()
    }

    /// Runs `rec stat ARGS -- app APP`, which must succeed.
    #[track_caller]
    fn stat(&self, args: &str, app: &str) -> Outcome {
        let mut command = rec();
        command.arg("stat").args(args.split_whitespace()).arg("--").args(self.app(app));
        run(tracing(command, args).current_dir(self.0.path())).expect(0)
    }
}

/// The numbers of an event in the lines of CSV that a program wrote, in their order.
fn numbers(csv: &str, event: &str) -> Vec<f64> {
    let lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let of_event = lines.filter_map(|fields| {
        let place = fields.iter().position(|field| *field == event)?;
        fields.get(place.checked_sub(2)?)?.parse().ok()
    });
    of_event.collect()
}

/// A command where tracefs is mounted, if an event is a tracepoint.
fn tracing(command: Command, event: &str) -> Command {
    let is_needed =
        event.contains("syscalls:") && !Path::new("/sys/kernel/tracing/events").is_dir();
    if is_needed { with_tracefs(&command) } else { command }
}

/// Counts of an event in three runs: by rec, and by perf if it is there.
fn both(place: &Place, event: &str, app: &str) -> [Vec<f64>; 2] {
    let mut counts = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        let ours = place.stat(&format!("-x, -e {event}"), app);
        counts[0].extend(numbers(&ours.stderr, event));
        if needs::commands("perf") {
            let mut theirs = perf();
            theirs.args(["stat", "-x,", "-e", event, "--"]).args(place.app(app));
            counts[1].extend(numbers(&run(&mut tracing(theirs, event)).expect(0).stderr, event));
        }
    }
    assert_eq!(counts[0].len(), 3, "{event}");
    counts
}

#[test]
fn page_faults_are_those_of_perf() {
    let Some(place) = Place::new() else { return };
    let [ours, theirs] = both(&place, "page-faults", "touch 5000");
    for count in ours.iter().chain(&theirs) {
        // Those of the start, too.
        assert!((5000.0..5400.0).contains(count), "{ours:?} {theirs:?}");
    }
    let mean = |counts: &[f64]| counts.iter().sum::<f64>() / counts.len() as f64;
    if !theirs.is_empty() {
        assert!((mean(&ours) - mean(&theirs)).abs() < 20.0, "{ours:?} {theirs:?}");
    }
}

#[test]
fn switches_of_a_ping_pong_are_those_of_perf() {
    let Some(place) = Place::new() else { return };
    let [ours, theirs] = both(&place, "context-switches", "pingpong 2000");
    for count in ours.iter().chain(&theirs) {
        // Each side waits once in each round; others on the CPU only add to that.
        assert!((3990.0..12_000.0).contains(count), "{ours:?} {theirs:?}");
    }
}

#[test]
fn system_calls_and_breakpoints_are_exact() {
    let Some(place) = Place::new().filter(|_| needs::tracefs()) else { return };
    let [ours, theirs] = both(&place, ASKED, "ask 1234");
    assert!(ours.iter().chain(&theirs).all(|count| *count == 1234.0), "{ours:?} {theirs:?}");
    // By CPU, too: the program runs on one at a time.
    let by_cpu = place.stat(&format!("-A -x, -e {ASKED}"), "ask 1234");
    assert_eq!(numbers(&by_cpu.stderr, ASKED).iter().sum::<f64>(), 1234.0, "{by_cpu:?}");
    let none = place.stat(&format!("-x, -e {ASKED} --filter common_pid==0"), "ask 1234");
    assert_eq!(numbers(&none.stderr, ASKED), [0.0]);
    if needs::commands("nm") {
        let symbols = run(Command::new("nm").arg(place.path("app"))).expect(0);
        let mut lines = symbols.text().lines();
        let address = lines.find_map(|line| line.strip_suffix(" watched")?.split(' ').next());
        // The kernel writes there, too, when it clears the program's memory.
        let event = format!("mem:0x{}/8:w:u", address.unwrap().trim_start_matches('0'));
        let outcome = place.stat(&format!("-x, -e {event}"), "watch 4321");
        assert_eq!(numbers(&outcome.stderr, &event), [4321.0], "{outcome:?}");
    }
}

#[test]
fn text_csv_and_json_have_the_same_numbers() {
    let Some(place) = Place::new().filter(|_| needs::tracefs()) else { return };
    let text = place.stat(&format!("-e {{task-clock,{ASKED}}}"), "ask 70000");
    let heading =
        format!("Performance counter stats for '{} ask 70000':", place.path("app").display());
    assert!(text.stderr.contains(&heading), "{text:?}");
    for part in [
        " 70,000      syscalls:sys_enter_getppid ",
        " msec task-clock ",
        "CPUs utilized",
        "/sec",
        "seconds time elapsed",
        "seconds user",
        "seconds sys",
    ] {
        assert!(text.stderr.contains(part), "{part}: {text:?}");
    }
    assert_eq!(text.text(), "", "the command's output is its own");
    let plain = place.stat(&format!("--no-big-num -e {ASKED}"), "ask 70000");
    assert!(plain.stderr.contains("  70000 "), "{plain:?}");
    let csv = place.stat(&format!("-x; -e {ASKED}"), "ask 70000").stderr;
    assert!(csv.starts_with("70000;;syscalls:sys_enter_getppid;"), "{csv}");
    let json = place.stat(&format!("-j -r 3 -e {ASKED},task-clock"), "ask 70000").stderr;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["runs"]), (&"recrep-stat/1".into(), &3.into()));
    let count = &json["counts"][0];
    assert_eq!((&count["event"], &count["value"]), (&ASKED.into(), &70000.0.into()));
    assert_eq!((&count["status"], &count["spread"]["error"]), (&"counted".into(), &0.0.into()));
    let seconds = &json["seconds"]["elapsed"];
    let number = |name: &str| seconds[name].as_f64().unwrap();
    assert!(number("low") <= number("mean") && number("mean") <= number("high"), "{json}");
    let clock = &json["counts"][1];
    let ratio = clock["metrics"][0]["value"].as_f64().unwrap();
    let expected = clock["count"].as_f64().unwrap() / 1e9 / number("mean");
    assert!((ratio - expected).abs() < 1e-6 * expected, "{json}");
}

#[test]
fn intervals_add_up_and_the_summary_has_the_sum() {
    let Some(place) = Place::new().filter(|_| needs::tracefs()) else { return };
    let outcome = place.stat(&format!("-I 10 --summary -x, -e {ASKED}"), "ask 300000");
    let (intervals, summary): (Vec<&str>, Vec<&str>) =
        outcome.stderr.lines().partition(|line| !line.starts_with("summary,"));
    assert_eq!(numbers(&intervals.join("\n"), ASKED).iter().sum::<f64>(), 300_000.0, "{outcome:?}");
    assert_eq!(numbers(&summary.join("\n"), ASKED), [300_000.0]);
    let ends: Vec<f64> =
        intervals.iter().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(ends.is_sorted() && ends[0] >= 0.01, "{ends:?}");
    // A number of intervals ends it, and the command.
    let mut command = rec();
    command.args(["stat", "-I", "10", "--interval-count", "3", "-x,", "-e", "cs", "sleep", "60"]);
    let outcome = run(&mut command).expect(128 + 15);
    assert_eq!(outcome.stderr.lines().count(), 3, "{outcome:?}");
}

#[test]
fn threads_of_a_process_have_lines_of_their_own() {
    let Some(place) = Place::new().filter(|_| needs::tracefs()) else { return };
    for name in ["in", "out"] {
        run(Command::new("mkfifo").arg(place.path(name))).expect(0);
    }
    for flags in ["--per-thread", ""] {
        let mut app = Command::new(place.path("app"));
        app.args(["threads", "5000"]).args(["in", "out"].map(|name| place.path(name)));
        let app = start(&mut app);
        recrep_tests::run::until(|| app.printed().contains("ready"), || "no threads".to_owned());
        let pid = app.pid().as_raw_nonzero().to_string();
        let mut command = rec();
        command.args(["stat", "-x,", "-e", ASKED, "-p", &pid]).args(flags.split_whitespace());
        // The command starts when the counters do.
        command.args(["--", "sh", "-c", "echo > in; read line < out"]);
        let outcome = run(tracing(command, ASKED).current_dir(place.0.path())).expect(0);
        app.signal(Signal::TERM);
        app.finish();
        let counts = numbers(&outcome.stderr, ASKED);
        assert_eq!(counts.iter().sum::<f64>(), 15_000.0, "{outcome:?}");
        for (name, count) in [("once-", "5000"), ("twice-", "10000")] {
            let line = outcome.stderr.lines().find(|line| line.starts_with(name));
            let count = line.map(|line| line.split(',').nth(1) == Some(count));
            assert_eq!(count, (!flags.is_empty()).then_some(true), "{outcome:?}");
        }
    }
}

/// Returns the numbers of an event that `perf stat report` prints.
#[track_caller]
fn reported(perf: &std::ffi::OsStr, file: &Path, flags: &[&str], event: &str) -> Vec<u64> {
    let outcome = run(version(perf).args(["stat", "report", "-i"]).arg(file).args(flags)).expect(0);
    let text = format!("{}{}", outcome.text(), outcome.stderr);
    let of_event = text.lines().filter(|line| line.contains(event));
    // The heading has the name, too.
    let words = of_event.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = words.iter().position(|word| *word == event)?;
        words.get(place.checked_sub(1)?)?.parse().ok()
    });
    words.collect()
}

#[test]
fn perf_stat_report_reads_the_file() {
    let Some(place) = Place::new().filter(|_| needs::tracefs()) else { return };
    if !needs::commands("perf") {
        return;
    }
    let record = |file: &str, flags: &str, app: &str| {
        let mut command = rec();
        command.args(["stat", "record", "-e", ASKED, "-o"]).arg(place.path(file));
        command.args(flags.split_whitespace()).arg("--").args(place.app(app));
        run(&mut tracing(command, ASKED)).expect(0);
        place.path(file)
    };
    let whole = record("whole", "", "ask 1234");
    let cpus = record("cpus", "-A", "ask 1234");
    let system = record("system", "-a --per-socket", "ask 1234");
    for perf in versions() {
        assert_eq!(reported(&perf, &whole, &[], ASKED), [1234], "{perf:?}");
        assert_eq!(reported(&perf, &cpus, &[], ASKED).iter().sum::<u64>(), 1234, "{perf:?}");
        assert!(reported(&perf, &system, &[], ASKED).iter().sum::<u64>() >= 1234, "{perf:?}");
        let cores = reported(&perf, &system, &["--per-core"], ASKED);
        assert_eq!(
            cores.iter().sum::<u64>(),
            reported(&perf, &system, &[], ASKED).iter().sum::<u64>()
        );
    }
    let intervals = record("intervals", "-I 10", "ask 300000");
    let counts = reported(perf().get_program(), &intervals, &[], ASKED);
    assert_eq!(counts.iter().sum::<u64>(), 300_000, "{counts:?}");
    // A stream, and what was there before.
    let mut stream = rec();
    stream.args(["stat", "record", "-e", ASKED, "-o", "-"]).args(place.app("ask 9"));
    std::fs::write(place.path("stream"), run(&mut tracing(stream, ASKED)).expect(0).stdout)
        .unwrap();
    let mut piped = Command::new("sh");
    piped.args(["-c", "exec \"$0\" stat report -i - < \"$1\""]).env("LC_ALL", "C");
    piped.arg(perf().get_program()).arg(place.path("stream"));
    let outcome = run(&mut piped).expect(0);
    let text = format!("{}{}", outcome.text(), outcome.stderr);
    let nine = text.lines().find(|line| line.contains(ASKED)).map(str::trim_start);
    assert!(nine.is_some_and(|line| line.starts_with("9 ")), "{outcome:?}");
    record("whole", "", "ask 5");
    assert!(place.path("whole.old").exists());
}

#[test]
fn ends_are_those_of_the_command() {
    if !needs::perf_events() {
        return;
    }
    let status = |code: i32, args: &str| {
        run(rec().arg("stat").args(args.split_whitespace())).expect(code).stderr
    };
    assert!(status(3, "-e faults -- sh -c exit$IFS\"3\"").contains("faults"));
    let missing = status(127, "-e faults -- no-such-command-anywhere");
    assert!(missing.contains("no-such-command-anywhere") && !missing.contains("Performance"));
    assert!(status(2, "-e no-such-event -- true").contains("no-such-event"));
    assert!(status(2, "--no-such -- true").contains("no option '--no-such'"));
    assert!(status(2, "-e faults").contains("COMMAND"));
    assert!(status(125, "-e faults -p 2147483632").contains("there is no process 2147483632"));
    assert!(status(143, "--timeout 50 -e faults -- sleep 60").contains("faults"));
    // A signal ends the command, and what was counted is printed.
    let stopped =
        start(rec().args(["stat", "-e", "faults", "--", "sh", "-c", "echo on; sleep 60"]));
    recrep_tests::run::until(|| stopped.printed().contains("on"), || "no start".to_owned());
    stopped.signal(Signal::INT);
    let outcome = stopped.finish().expect(143);
    assert!(outcome.stderr.contains(" faults"), "{outcome:?}");
}

#[test]
fn output_goes_where_it_is_sent() {
    let Some(place) = Place::new() else { return };
    let quiet = place.stat("-o out.txt -e faults", "touch 0");
    assert_eq!((quiet.text(), quiet.stderr.as_str()), ("", ""));
    place.stat("-o out.txt --append -e faults", "touch 0");
    let text = std::fs::read_to_string(place.path("out.txt")).unwrap();
    assert_eq!(text.matches("# started on ").count(), 2, "{text}");
    assert_eq!(text.matches(" faults").count(), 2, "{text}");
    let to_stdout = place.stat("--log-fd 1 -x, -e faults", "touch 0");
    assert_eq!(numbers(to_stdout.text(), "faults").len(), 1, "{to_stdout:?}");
    let steps =
        place.stat("-r 2 --pre=echo$IFS>>steps --post=false$IFS||true -n --table", "touch 0");
    assert_eq!(std::fs::read_to_string(place.path("steps")).unwrap(), "\n\n");
    assert!(steps.stderr.contains("Table of individual runs"), "{steps:?}");
    let failed = run(rec().args(["stat", "--pre", "exit 4", "--", "true"])).expect(125);
    assert!(failed.stderr.contains("--pre: 'exit 4' failed"), "{failed:?}");
}

#[test]
fn a_whole_machine_has_cpu_clocks_as_long_as_it_is_counted() {
    let Some(place) = Place::new().filter(|_| needs::root()) else { return };
    let json = place.stat("-a -A -j -e cpu-clock", "touch 0").stderr;
    let json: Value = serde_json::from_str(&json).unwrap();
    let counts = json["counts"].as_array().unwrap();
    let online = std::thread::available_parallelism().unwrap().get();
    assert!(counts.len() >= online, "{json}");
    for count in counts {
        // The clock runs as long as the counter is enabled, whatever else the machine does.
        let (count, enabled) =
            (count["count"].as_f64().unwrap(), count["enabled_ns"].as_f64().unwrap());
        assert!((count - enabled).abs() < 0.2 * enabled + 1e7, "{json}");
    }
    let cgroups = place.stat("-a --for-each-cgroup / -x, -e cpu-clock", "touch 0");
    assert!(cgroups.stderr.contains(",cpu-clock,/,"), "{cgroups:?}");
}
