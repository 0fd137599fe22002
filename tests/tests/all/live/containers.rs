//! Names of programs and of JITs' code that only a process leads to: in a container, deleted,
//! replaced, made in memory; while it lives, and afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recrep_tests::needs;
use recrep_tests::perf::recorder;
use recrep_tests::programs::{rec, rep};
use recrep_tests::record::record_for;
use recrep_tests::run::{Running, run, start, until};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Runs a function of its own, and code in anonymous memory that a map or a dump in `/tmp` calls
/// `made_at_run_time`, until it has had a tenth of a second on a CPU at least. Arguments: `map`,
/// `dump` or `none`; milliseconds; `memfd` to run itself from memory first.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void compiled_code(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) unsigned long copied_code(unsigned long n) { while (n) { n--; __asm__ volatile(""); } return n; }
static long now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
int main(int argc, char **argv) {
    if (argc > 3) {
        static char bytes[1 << 22];
        int memory = memfd_create("tool", 0), self = open("/proc/self/exe", O_RDONLY);
        ssize_t size = read(self, bytes, sizeof bytes);
        if (write(memory, bytes, size) != size) return 1;
        argv[3] = 0;
        fexecve(memory, argv, (char *[]){0});
        return 1;
    }
    char *code = mmap((void *)0x20000000, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), path[64];
    memcpy(code, (char *)copied_code, 64);
    __builtin___clear_cache(code, code + 64);
    if (!strcmp(argv[1], "map")) {
        snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
        FILE *map = fopen(path, "w");
        fprintf(map, "%lx 40 made_at_run_time\n", (long)code);
        fclose(map);
    } else if (!strcmp(argv[1], "dump")) {
        snprintf(path, sizeof path, "/tmp/jit-%d.dump", getpid());
        FILE *dump = fopen(path, "w+");
        char name[] = "made_at_run_time";
        uint32_t head[10] = {0x4a695444, 1, 40, 62, 0, getpid()}, load[4] = {0, 56 + sizeof name + 64}, ids[2] = {getpid(), getpid()};
        uint64_t place[4] = {0, (long)code, 64, 0};
        place[0] = place[1];
        fwrite(head, 1, 40, dump); fwrite(load, 1, 16, dump); fwrite(ids, 1, 8, dump);
        fwrite(place, 1, 32, dump); fwrite(name, 1, sizeof name, dump); fwrite(code, 1, 64, dump);
        fflush(dump);
        mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
    }
    for (long end = now(CLOCK_MONOTONIC) + atol(argv[2]); now(CLOCK_MONOTONIC) < end || now(CLOCK_PROCESS_CPUTIME_ID) < 100;) { compiled_code(300000); ((unsigned long (*)(unsigned long))code)(600000); }
}
"#;

/// Makes a root of its own, in namespaces of its own, and runs the program there. `$1`: the
/// program; then its arguments.
const CONTAINER: &str = r#"
mount --make-rprivate / && root=$(mktemp -d) && mount -t tmpfs none "$root" && cd "$root" && mkdir proc app old tmp || exit 1
cp "$1" app/inside && mount -t proc none proc && pivot_root . old || exit 1
shift
exec /app/inside "$@"
"#;

/// A directory with the program, and a cache of its own. There is one at a time: the number of a
/// namespace that is gone is given to the next one, which may be another test's.
struct Place(TempDir, #[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

static ONE: Mutex<()> = Mutex::new(());

impl Place {
    fn new() -> Option<Self> {
        if !needs::perf_events() || !needs::root() || !needs::commands("gcc unshare") {
            return None;
        }
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Self(tempfile::tempdir().unwrap(), one);
        let source = place.at("program.c");
        // A build ID of its own: other living processes with the same program would give it names,
        // too.
        let unique = format!("const char unique[] = \"{}\";\n", place.0.path().display());
        fs::write(&source, format!("{PROGRAM}{unique}")).unwrap();
        run(Command::new("gcc")
            .args(["-O1", "-static", "-o"])
            .arg(place.at("program"))
            .arg(&source))
        .expect(0);
        fs::write(place.at("container.sh"), CONTAINER).unwrap();
        Some(place)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program in a container.
    fn container(&self, args: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["-m", "-p", "--fork", "sh"])
            .arg(self.at("container.sh"))
            .arg(self.at("program"))
            .args(args);
        command
    }

    /// Runs a copy of the program.
    fn copied(&self, name: &str, args: &[&str]) -> Command {
        fs::copy(self.at("program"), self.at(name)).unwrap();
        let mut command = Command::new(self.at(name));
        command.args(args);
        command
    }

    fn record(&self, pid: Pid, file: &str, options: &[&str]) {
        let mut command = rec();
        command.env("XDG_CACHE_HOME", self.0.path()).args([
            "-q",
            "-e",
            "cpu-clock:u",
            "-F",
            "499",
            "-o",
        ]);
        let pid = pid.as_raw_nonzero().to_string();
        command.arg(self.at(file)).args(options).args(["-p", &pid]);
        record_for(Duration::from_millis(200), &[&pid], &mut command);
    }

    fn rep(&self, words: &[&str], file: &str) -> String {
        let mut command = rep();
        command.env("XDG_CACHE_HOME", self.0.path()).env("PERF_BUILDID_DIR", self.0.path());
        run(command.args(words).arg(self.at(file))).expect(0).text().to_owned()
    }

    /// Returns which of the two functions have names.
    fn names(&self, file: &str) -> [bool; 2] {
        let rows = self.rep(&["--format", "csv", "-s", "dso,symbol"], file);
        assert!(rows.lines().count() > 1, "{rows}");
        ["compiled_code", "made_at_run_time"].map(|name| rows.contains(name))
    }
}

const BOTH: [bool; 2] = [true; 2];
const NEITHER: [bool; 2] = [false; 2];

/// Waits until the process below `parent` that spins is found, and returns its pid.
fn spinning(parent: &Running, comm: &str) -> Pid {
    let find = || {
        let mut pid = parent.pid().as_raw_nonzero().to_string();
        while fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim() != comm {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            pid = children.split_whitespace().next()?.to_owned();
        }
        // Its code is mapped.
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        maps.contains("20000000-20001000").then(|| pid.parse().ok().and_then(Pid::from_raw))?
    };
    until(|| find().is_some(), || format!("{comm} does not begin: {}", parent.said()));
    // The list is written soon after the code is mapped, in less than the recording takes.
    find().unwrap()
}

/// Ends the process, and waits for what started it.
fn end(pid: Pid, parent: Running) {
    kill_process(pid, Signal::KILL).unwrap();
    parent.finish();
}

#[test]
fn a_container_has_names_while_it_lives_and_afterwards() {
    let Some(place) = Place::new() else { return };
    for kind in ["map", "dump"] {
        let container = start(&mut place.container(&[kind, "60000"]));
        let pid = spinning(&container, "inside");
        place.record(pid, "kept.data", &[]);
        place.record(pid, "not-kept.data", &["--no-keep"]);
        assert_eq!(
            (place.names("kept.data"), place.names("not-kept.data")),
            (BOTH, BOTH),
            "{kind}: it lives"
        );
        let bundle = place.at("bundle.data");
        place.rep(&["bundle", "-o", bundle.to_str().unwrap()], "kept.data");
        end(pid, container);
        assert_eq!(place.names("kept.data"), BOTH, "{kind}: it has ended");
        assert_eq!(
            place.names("not-kept.data"),
            [true, false],
            "{kind}: rec kept the program of the other recording"
        );
        fs::remove_dir_all(place.at("recrep/kept")).unwrap();
        assert_eq!(
            (place.names("kept.data"), place.names("bundle.data")),
            (NEITHER, BOTH),
            "{kind}: the bundle has them"
        );
        assert_eq!(place.names("not-kept.data"), NEITHER, "{kind}: nothing is left");
        let modules = place.rep(&["modules"], "not-kept.data");
        assert!(modules.contains("in a container: below /proc/PID/root"), "{modules}");
        assert!(modules.contains("--no-keep"), "{modules}");
    }
}

#[test]
fn a_container_that_ends_while_it_is_recorded_has_names() {
    let Some(place) = Place::new() else { return };
    for kind in ["map", "dump"] {
        let mut command = rec();
        command.env("XDG_CACHE_HOME", place.0.path()).args([
            "-q",
            "-e",
            "cpu-clock:u",
            "-F",
            "499",
            "-o",
        ]);
        let container = place.container(&[kind, "600"]);
        command
            .arg(place.at("x.data"))
            .arg("--")
            .arg(container.get_program())
            .args(container.get_args());
        run(&mut command).expect(0);
        assert_eq!(place.names("x.data"), BOTH, "{kind}");
    }
}

#[test]
fn a_container_with_recorded_namespaces_is_told_when_it_is_gone() {
    let Some(place) = Place::new() else { return };
    let container = start(&mut place.container(&["map", "60000"]));
    let pid = spinning(&container, "inside");
    place.record(pid, "x.data", &["--no-keep", "--namespaces"]);
    assert_eq!(place.names("x.data"), BOTH);
    end(pid, container);
    let modules = place.rep(&["modules"], "x.data");
    assert!(modules.contains("container: the file is in a container"), "{modules}");
}

#[test]
fn programs_that_are_deleted_replaced_or_in_memory_have_names() {
    let Some(place) = Place::new() else { return };
    let other = place.at("other.c");
    fs::write(&other, "int main(void) { return 7; }\n").unwrap();
    run(Command::new("gcc").arg("-o").arg(place.at("other")).arg(&other)).expect(0);
    for (name, change_before) in [
        ("deleted", true),
        ("deleted", false),
        ("upgraded", true),
        ("upgraded", false),
        ("memfd", true),
    ] {
        let what = format!("{name}, before the recording: {change_before}");
        let args = ["none", "60000", "memfd"];
        let mut command = place.copied(name, if name == "memfd" { &args } else { &args[..2] });
        let process = start(&mut command);
        // A program that is run by its descriptor is named after it.
        let pid = process.pid();
        let maps = || {
            fs::read_to_string(format!("/proc/{}/maps", pid.as_raw_nonzero())).unwrap_or_default()
        };
        until(|| maps().contains("20000000-20001000"), || format!("{what}: {}", process.said()));
        let change = || {
            fs::remove_file(place.at(name)).unwrap();
            if name == "upgraded" {
                fs::copy(place.at("other"), place.at(name)).unwrap();
            }
        };
        if change_before {
            change();
        }
        place.record(pid, "kept.data", &[]);
        place.record(pid, "not-kept.data", &["--no-keep"]);
        place.record(pid, "inode.data", &["--no-keep", "--no-buildid-mmap"]);
        if !change_before {
            change();
        }
        for file in ["kept.data", "not-kept.data", "inode.data"] {
            assert!(place.names(file)[0], "{what}, {file}: it lives");
        }
        end(pid, process);
        assert!(place.names("kept.data")[0], "{what}: it has ended");
        fs::remove_dir_all(place.at("recrep/kept")).unwrap();
        for file in ["not-kept.data", "kept.data"] {
            assert!(!place.names(file)[0], "{what}: no file is left");
            let modules = place.rep(&["modules"], file);
            assert!(
                modules.contains("--no-keep") || modules.contains("build-id-mismatch"),
                "{what}: {modules}"
            );
        }
    }
}

/// Records the program as a command of `recorder`; its shell does something before it runs the
/// program. Returns where the map is.
fn recorded_map(place: &Place, mut recorder: Command, before: &str, kind: &str) -> PathBuf {
    let script = format!("echo $$ > pid; {before}; exec ./program {kind} 300");
    recorder.current_dir(place.0.path()).env("XDG_CACHE_HOME", place.0.path());
    recorder.args(["-e", "cpu-clock:u", "-F", "499", "-o", "x.data", "--", "sh", "-c", &script]);
    run(&mut recorder).expect(0);
    let pid = fs::read_to_string(place.at("pid")).unwrap();
    PathBuf::from(format!("/tmp/perf-{}.map", pid.trim()))
}

fn without_keeping() -> Command {
    let mut command = rec();
    command.args(["-q", "--no-keep"]);
    command
}

/// Returns why the code has no name.
fn refusal(place: &Place) -> String {
    assert!(!place.names("x.data")[1]);
    let modules = place.rep(&["modules"], "x.data");
    modules.lines().filter(|line| line.contains("(JIT map)")).map(str::trim).collect()
}

#[test]
fn a_map_of_another_process_with_the_same_pid_is_refused() {
    let Some(place) = Place::new() else { return };
    const WRITE: &str = "echo 20000000 40 made_at_run_time > /tmp/perf-$$.map; touch -d '10 \
                         seconds ago' /tmp/perf-$$.map";
    let record = || {
        let mut command = recorder();
        command.arg("-q");
        command
    };
    for recorder in [without_keeping as fn() -> Command, record] {
        let map = recorded_map(&place, recorder(), "true", "map");
        assert!(place.names("x.data")[1], "{}", place.rep(&["modules"], "x.data"));
        // A process that has the pid now.
        std::thread::sleep(Duration::from_millis(1100));
        fs::write(&map, "20000000 40 made_at_run_time\n").unwrap();
        let said = refusal(&place);
        assert!(said.contains("after the end of the recorded process"), "{said}");
        assert!(
            place
                .rep(&["--format", "csv", "-s", "symbol", "--trust-paths"], "x.data")
                .contains("made_at_run_time")
        );
        fs::remove_file(map).unwrap();
        // One that had it before.
        let map = recorded_map(&place, recorder(), WRITE, "none");
        let said = refusal(&place);
        assert!(said.contains("before the recorded process began"), "{said}");
        fs::remove_file(map).unwrap();
    }
    // rec keeps neither.
    let map = recorded_map(&place, rec(), WRITE, "none");
    assert!(!place.names("x.data")[1]);
    fs::remove_file(map).unwrap();
    let map = recorded_map(&place, rec(), "true", "map");
    fs::write(&map, "20000000 40 of_another_process\n").unwrap();
    assert!(place.names("x.data")[1], "{}", place.rep(&["modules"], "x.data"));
    fs::remove_file(map).unwrap();
}

#[test]
fn a_map_of_a_process_whose_start_is_unknown_is_a_judgement() {
    let Some(place) = Place::new() else { return };
    let process = start(&mut place.copied("app", &["map", "60000"]));
    let pid = spinning(&process, "app");
    let map = PathBuf::from(format!("/tmp/perf-{}.map", pid.as_raw_nonzero()));
    until(|| fs::metadata(&map).is_ok_and(|map| map.len() > 0), || "there is no map".to_owned());
    place.record(pid, "x.data", &["--no-keep"]);
    let warned = |rows: &str| {
        let answer: serde_json::Value = serde_json::from_str(rows).unwrap();
        let warnings = answer["warnings"].as_array().unwrap().clone();
        let judged = warnings.into_iter().find(|warning| warning["code"] == "judged-names");
        let named = answer["events"][0]["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["key"]["symbol"] == "made_at_run_time");
        let samples: u64 = named.map(|row| row["samples"].as_u64().unwrap()).sum();
        (judged.map(|warning| warning["message"].as_str().unwrap().to_owned()), samples)
    };
    let report = || place.rep(&["--json", "-s", "symbol"], "x.data");
    let (judged, samples) = warned(&report());
    assert!(judged.is_none() && samples > 0, "it lives: {judged:?}");
    end(pid, process);
    let (judged, samples) = warned(&report());
    let judged = judged.unwrap();
    assert!(judged.starts_with(&format!("the functions of {samples} of ")), "{samples}: {judged}");
    fs::remove_file(map).unwrap();
}

#[test]
fn a_map_is_kept_for_each_file_of_a_recording() {
    let Some(place) = Place::new() else { return };
    let mut command = rec();
    command.env("XDG_CACHE_HOME", place.0.path()).args(["-q", "-e", "cpu-clock:u", "-F", "499"]);
    command.args(["--switch-output=1s", "-o"]).arg(place.at("x.data"));
    command.arg("--").arg(place.at("program")).args(["map", "2500"]);
    run(&mut command).expect(0);
    let is_file = |name: &str| name.starts_with("x.data.") && Path::new(name).extension().is_some();
    let names = fs::read_dir(place.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: Vec<_> = names.filter(|name| is_file(name)).collect();
    let kept = fs::read_dir(place.at("recrep/kept/jit")).unwrap().count();
    assert!(files.len() > 1 && kept <= files.len(), "{kept} of {files:?}");
    for file in &files {
        let modules = place.rep(&["modules"], file);
        let rows = place.rep(&["--format", "csv", "-s", "symbol"], file);
        assert!(
            rows.contains("made_at_run_time") && modules.contains("(kept by rec)"),
            "{file}: {rows}{modules}"
        );
    }
    for map in fs::read_dir("/tmp").unwrap().flatten() {
        let name = map.file_name().into_string().unwrap_or_default();
        let kept = fs::read_dir(place.at("recrep/kept/jit")).unwrap().flatten();
        let pids =
            kept.filter_map(|kept| Some(kept.file_name().to_str()?.rsplit_once('-')?.1.to_owned()));
        if pids.into_iter().any(|pid| name == format!("perf-{pid}")) {
            fs::remove_file(map.path()).unwrap();
        }
    }
}
