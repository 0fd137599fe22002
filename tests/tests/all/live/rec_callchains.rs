//! Callchains that rec unwinds while it records: they are whole, whatever the program and wherever
//! it is, and whatever the file; and perf reads them as rep does.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use recrep_tests::aliases::with_shortest_names;
use recrep_tests::needs;
use recrep_tests::perf::{parse_stats, perf, without_loss};
use recrep_tests::programs::{programs, rec, rep, workspace};
use recrep_tests::record::{record_for, recording};
use recrep_tests::report::listed;
use recrep_tests::run::{Outcome, run, start};
use rustix::process::Signal;

/// Sorts and prints for some milliseconds of CPU time, in functions that the C library calls back,
/// without frame pointers. Arguments: milliseconds; `threads` to do it in two threads for so long
/// each, `forks` in three programs, `memfd` from memory; a path to delete first.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define PART __attribute__((noinline, noclone))
static long milliseconds;
static long now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
PART int compare_part(const void *a, const void *b) {
    volatile int spin = 0;
    for (int i = 0; i < 20; i++) spin += i;
    return (*(int *)a > *(int *)b) - (*(int *)a < *(int *)b);
}
PART void sort_part(int *numbers, int count) {
    for (int i = 0; i < count; i++) numbers[i] = i * 7919 % 4099;
    qsort(numbers, count, sizeof *numbers, compare_part);
    numbers[0]++; /* or the call is a jump, and this function no caller */
}
PART void print_part(char *text, int size) {
    for (int i = 0; i < 2000; i++) snprintf(text, size, "%d %s %f", i, "text", i * 1.5);
}
PART void *work_part(void *unused) {
    int numbers[500];
    char text[200];
    long end = now() + milliseconds;
    while (now() < end) { sort_part(numbers, 500); print_part(text, sizeof text); }
    return unused;
}
int main(int argc, char **argv) {
    const char *how = argc > 2 ? argv[2] : "";
    milliseconds = atol(argv[1]);
    if (argc > 3) unlink(argv[3]);
    if (!strcmp(how, "memfd")) {
        static char bytes[1 << 22];
        int memory = memfd_create("sorter", 0), self = open("/proc/self/exe", O_RDONLY);
        ssize_t size = read(self, bytes, sizeof bytes);
        if (write(memory, bytes, size) != size) return 1;
        fexecve(memory, (char *[]){argv[0], argv[1], 0}, (char *[]){0});
        return 1;
    }
    if (!strcmp(how, "forks")) {
        for (int i = 0; i < 3; i++)
            if (!fork()) { execl("/proc/self/exe", argv[0], argv[1], (char *)0); _exit(1); }
        while (wait(0) > 0) {}
        return 0;
    }
    if (!strcmp(how, "threads")) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work_part, 0);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
        return 0;
    }
    work_part(0);
    return 0;
}
"#;

/// The arguments of rec for samples with callchains that it unwinds.
const UNWOUND: &str = "-g -e cpu-clock:u -F 1999";

/// A directory with the program.
struct Place(tempfile::TempDir);

impl Place {
    #[track_caller]
    fn new() -> Option<Self> {
        if !needs::perf_events() || !needs::commands("gcc") {
            return None;
        }
        let place = Self(tempfile::tempdir().unwrap());
        let source = place.at("sorter.c");
        // A build ID of its own: other tests' programs are deleted.
        fs::write(&source, format!("{PROGRAM}\nchar id[] = \"{}\";", source.display())).unwrap();
        let flags = ["-O2", "-fomit-frame-pointer", "-pthread", "-o"];
        run(Command::new("gcc").args(flags).arg(place.at("sorter")).arg(&source)).expect(0);
        Some(place)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program with these arguments, separated by spaces.
    fn sorter(&self, args: &str) -> Vec<String> {
        let program = self.at("sorter").to_str().unwrap().to_owned();
        std::iter::once(program).chain(args.split_whitespace().map(str::to_owned)).collect()
    }

    /// Records a command, whose file is `x.data`, and returns what rec said.
    #[track_caller]
    fn record(&self, args: &str, command: &[String]) -> Outcome {
        run(&mut recording(&self.at("x.data"), &format!("{UNWOUND} {args}"), command)).expect(0)
    }
}

/// The share of whole callchains, by the last line.
#[track_caller]
fn whole(outcome: &Outcome) -> f64 {
    let line = outcome.last_line();
    let (before, _) =
        line.split_once(" % of callchains whole").unwrap_or_else(|| panic!("no share: {line}"));
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Folded stacks, and their samples: none of a piece that holds what came after the last full one.
#[track_caller]
fn stacks(file: &Path) -> Vec<(Vec<String>, u64)> {
    let mut rep = rep();
    // Where rec() of the tests keeps what was deleted.
    rep.env("XDG_CACHE_HOME", workspace().join("target/kept-by-tests"));
    let outcome = listed(run(rep.args(["--format", "folded", "-i"]).arg(file)));
    let stack = |line: &str| {
        let (frames, period) = line.rsplit_once(' ').unwrap();
        (frames.split(';').map(str::to_owned).collect(), period.parse().unwrap())
    };
    outcome.text().lines().map(stack).collect()
}

/// Every stack through one of the program's parts comes from where it was called: those of
/// comparisons through the C library. Returns the share of them, of all.
#[track_caller]
fn assert_whole(file: &Path, outermost: &str) -> f64 {
    let (mut all, mut of_parts, mut compared) = (0, 0, 0);
    for (frames, period) in stacks(file) {
        all += period;
        let place = |name: &str| frames.iter().position(|frame| frame == name);
        let Some(work) = place("work_part") else {
            let parts = ["compare_part", "sort_part", "print_part"];
            let has_part = frames.iter().any(|frame| parts.contains(&frame.as_str()));
            assert!(!has_part, "no way to work_part: {frames:?}");
            continue;
        };
        of_parts += period;
        let start = place(outermost).unwrap_or_else(|| panic!("no {outermost}: {frames:?}"));
        assert!(start < work, "{frames:?}");
        if let Some(compare) = place("compare_part") {
            compared += period;
            let sort = place("sort_part").unwrap_or_else(|| panic!("no sort_part: {frames:?}"));
            assert!(work < sort && sort + 1 < compare, "{frames:?}");
        }
    }
    assert!(compared > 0, "no samples of comparisons");
    of_parts as f64 / all as f64
}

#[test]
fn functions_whose_return_is_probed_keep_their_callers() {
    let Some(place) = Place::new().filter(|_| needs::root() && cfg!(target_arch = "x86_64")) else {
        return;
    };
    let probe = format!("-e uretprobe/path={},func=sort_part/", place.at("sorter").display());
    place.record(&probe, &place.sorter("400"));
    let of_clock = ["--format", "folded", "--no-inline", "--event", "cpu-clock:u"];
    let folded = run(rep().args(of_clock).arg(place.at("x.data"))).expect(0);
    let (mut all, mut right) = (0, 0);
    for line in folded.text().lines().filter(|line| line.contains(";sort_part")) {
        let (stack, period) = line.rsplit_once(' ').unwrap();
        let period: u64 = period.parse().unwrap();
        all += period;
        if stack.contains(";main;work_part;sort_part") {
            right += period;
        } else {
            // It is said that callers are missing; no other is made up.
            assert!(stack.contains("[callers unknown]"), "{stack}");
        }
    }
    assert!(all > 0 && right * 100 > all * 95, "{right} of {all}: {}", folded.text());
}

#[test]
fn callchains_are_whole_and_perf_shows_the_same() {
    let Some(place) = Place::new() else { return };
    let file = place.at("x.data");
    for args in ["", "-z", "--call-graph unwind,32768", "--threads"] {
        let outcome = place.record(args, &place.sorter("600"));
        assert!(whole(&outcome) > 97.0, "{args}: {}", outcome.stderr);
        let share = assert_whole(&file, "main");
        assert!(share > 0.8, "{args}: {share} of the samples are of the program's parts");
        let samples = outcome.summary(&file).samples;
        let stats = run(perf().args(["report", "--stats", "--stdio", "-i"]).arg(&file)).expect(0);
        let stats = parse_stats(&stats);
        assert_eq!(without_loss(&stats.warnings, &stats.records), "", "{args}");
        assert_eq!(stats.records["SAMPLE"], samples, "{args}");
        let fields = ["script", "--no-inline", "-F", "ip,sym"];
        let theirs = run(perf().args(fields).arg("-i").arg(&file)).expect(0);
        assert_eq!(without_loss(&theirs.stderr, &stats.records), "", "{args}");
        let ours = run(rep().args(fields).arg(&file)).expect(0);
        let names = |outcome: &Outcome| {
            let text = with_shortest_names(&String::from_utf8_lossy(&outcome.stdout));
            let lines =
                text.lines().map(|line| line.trim().split_once(' ').map(|(_, n)| n.to_owned()));
            lines.collect::<Vec<_>>()
        };
        let (ours, theirs) = (names(&ours), names(&theirs));
        // rep finds more names of stubs in the PLT: perf has another stub's, or none.
        let is_stub = |name: &str| name.ends_with("@plt");
        let is_same = |(our, their): &(&Option<String>, &Option<String>)| {
            our == their
                || their.as_deref().is_some_and(is_stub)
                || (their.as_deref() == Some("[unknown]") && our.as_deref().is_some_and(is_stub))
        };
        if whole(&outcome) == 100.0 {
            let differ: Vec<_> = ours.iter().zip(&theirs).filter(|both| !is_same(both)).collect();
            assert_eq!(ours.len(), theirs.len(), "{args}");
            assert!(differ.is_empty(), "{args}: {differ:?}");
        }
    }
}

#[test]
fn with_frame_pointers_alone_callers_are_missing() {
    let Some(place) = Place::new() else { return };
    let outcome = run(&mut recording(
        &place.at("x.data"),
        "--call-graph fp -e cpu-clock:u -F 1999",
        &place.sorter("300"),
    ))
    .expect(0);
    assert!(!outcome.stderr.contains("callchains whole"), "{}", outcome.stderr);
    let stacks = stacks(&place.at("x.data"));
    let whole = |frames: &[String]| frames.iter().any(|frame| frame == "main");
    let compared = |frames: &[String]| frames.iter().any(|frame| frame == "compare_part");
    let shares = stacks.iter().filter(|(frames, _)| compared(frames));
    assert!(shares.clone().count() > 0 && !shares.clone().any(|(frames, _)| whole(frames)));
}

#[test]
fn of_threads_and_of_programs_that_were_forked() {
    let Some(place) = Place::new() else { return };
    for (args, outermost) in [("500 threads", "start_thread"), ("400 forks", "main")] {
        let outcome = place.record("", &place.sorter(args));
        assert!(whole(&outcome) > 95.0, "{args}: {}", outcome.stderr);
        assert_whole(&place.at("x.data"), outermost);
    }
}

#[test]
fn of_programs_that_are_deleted_or_in_memory_or_in_a_container() {
    let Some(place) = Place::new() else { return };
    fs::copy(place.at("sorter"), place.at("gone")).unwrap();
    let gone = place.at("gone").to_str().unwrap().to_owned();
    let deleted = vec![gone.clone(), "500".to_owned(), String::new(), gone];
    let mut commands = vec![("deleted", deleted), ("memfd", place.sorter("500 memfd"))];
    if rustix::process::geteuid().is_root() && needs::commands("unshare") {
        let script = "mount -t tmpfs none /mnt && cp \"$0\" /mnt/inside && exec /mnt/inside 500";
        let words = ["unshare", "-m", "sh", "-c", script].map(str::to_owned);
        commands.push(("container", [words.to_vec(), place.sorter("")].concat()));
    }
    for (what, command) in commands {
        let outcome = place.record("", &command);
        assert!(whole(&outcome) > 90.0, "{what}: {}", outcome.stderr);
        assert_whole(&place.at("x.data"), "main");
    }
}

#[test]
fn of_a_process_that_runs_already_and_of_the_whole_machine() {
    let Some(place) = Place::new() else { return };
    let command = place.sorter("60000");
    let sorter = start(Command::new(&command[0]).args(&command[1..]));
    let pid = sorter.pid().as_raw_nonzero().to_string();
    for args in
        [format!("-p {pid}"), "-a".to_owned(), format!("-p {pid} --synth=no --tail-synthesize")]
    {
        if args == "-a" && !rustix::process::geteuid().is_root() {
            continue;
        }
        let mut recorder = rec();
        recorder.arg("-o").arg(place.at("x.data")).args(UNWOUND.split(' ')).args(args.split(' '));
        let outcome = record_for(Duration::from_millis(500), &[&pid], &mut recorder);
        // Others may have deep stacks.
        assert!(args == "-a" || whole(&outcome) > 80.0, "{args}: {}", outcome.stderr);
        if !args.contains("synth") {
            assert_whole(&place.at("x.data"), "main");
        }
    }
    sorter.signal(Signal::KILL);
    drop(sorter);
}

#[test]
fn in_each_of_several_files_and_through_a_pipe() {
    let Some(place) = Place::new() else { return };
    let outcome = place.record("--switch-output=20K", &place.sorter("1500"));
    let pieces: Vec<PathBuf> = fs::read_dir(place.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().contains("x.data."))
        .collect();
    assert!(pieces.len() > 1, "{}", outcome.stderr);
    let mut samples = BTreeMap::new();
    for piece in &pieces {
        for (frames, _) in stacks(piece) {
            if frames.iter().any(|frame| frame == "work_part") {
                assert!(frames.iter().any(|frame| frame == "main"), "{frames:?}");
                *samples.entry(piece).or_insert(0) += 1;
            }
        }
    }
    assert!(samples.len() > 1, "{samples:?}");
    let script = "\"$0\" -q -g -e cpu-clock:u -F 1999 -o - -- \"$1\" 500 > \"$2\"";
    let words = [&programs().rec, &place.at("sorter"), &place.at("pipe.data")];
    run(Command::new("sh").args(["-c", script]).args(words)).expect(0);
    assert!(assert_whole(&place.at("pipe.data"), "main") > 0.8);
}

#[test]
fn of_a_user_without_privileges() {
    let Some(place) = Place::new() else { return };
    if !needs::root() {
        return;
    }
    fs::set_permissions(place.0.path(), Permissions::from_mode(0o777)).unwrap();
    fs::copy(&programs().rec, place.at("rec")).unwrap();
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
    nobody.arg(place.at("rec")).current_dir(place.0.path()).env_remove("XDG_CACHE_HOME");
    let outcome = run(nobody.args(["-g", "-o", "x.data", "--", "./sorter", "600"])).expect(0);
    assert!(whole(&outcome) > 90.0, "{}", outcome.stderr);
    assert_whole(&place.at("x.data"), "main");
}

/// The interrupted functions are callers of a signal's handler; and the file has no registers or
/// stacks of samples that are whole.
#[test]
fn the_file_is_small() {
    let Some(place) = Place::new() else { return };
    let sizes = ["--call-graph fp", "-g"].map(|args| {
        let file = place.at("size.data");
        let mut rec = rec();
        rec.args(["-e", "cpu-clock:u", "-F", "1999", "-o"]).arg(&file);
        rec.args(args.split(' ')).arg("--").args(place.sorter("800"));
        let samples = run(&mut rec).expect(0).summary(&file).samples;
        fs::metadata(&file).unwrap().len() / samples
    });
    let [pointers, unwound] = sizes;
    assert!(unwound < 4 * pointers, "{pointers} and {unwound} bytes a sample");
}
