//! `rep bundle`: what rep prints of the recording here, it prints of the bundle where nothing but
//! rep is, and perf reads the bundle as it does the recording.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::perf::perf;
use recrep_tests::programs::{programs, rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::{Outcome, run};
use tempfile::TempDir;

/// A C++ program with inlined functions, templates, callbacks and system calls.
pub(crate) const PROGRAM: &str = r#"
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
volatile unsigned long s;
static char buffer[1 << 16];
static inline __attribute__((always_inline)) void inner(int n) { for (int i = 0; i < n; i++) s += i; }
namespace lib {
__attribute__((noinline)) void outer(int n) { inner(n); s++; }
template <class T> __attribute__((noinline)) T sum(T a, int n) { for (int i = 0; i < n; i++) s += a; return a; }
}
static int compare(const void *a, const void *b) { s++; return *(const int *)a - *(const int *)b; }
int main() {
    static int values[10000];
    for (int i = 0; i < 100; i++) {
        lib::outer(100000);
        lib::sum<long>(3, 50000);
        for (int &value : values) value = rand();
        qsort(values, 10000, sizeof(int), compare);
        int zero = open("/dev/zero", O_RDONLY);
        if (read(zero, buffer, sizeof buffer) < 0) return 1;
        close(zero);
    }
}
"#;

const VIEWS: [&str; 8] = [
    "--no-children -g none",
    "--children -s dso,symbol -g none",
    "--format folded",
    "--format folded --inline",
    "--format csv -s srcline,symbol",
    "--format csv -s ip",
    "script",
    "script -F ip,sym,symoff,srcline,dso",
];

/// A directory with nothing but rep and what its loader needs, to be the root of a process.
pub(super) struct EmptyRoot(TempDir);

impl EmptyRoot {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("rep");
        fs::create_dir(&inside).unwrap();
        fs::copy(&programs().rep, inside.join("rep")).unwrap();
        let listed = run(Command::new("ldd").arg(&programs().rep)).expect(0);
        let listed = String::from_utf8(listed.stdout).unwrap();
        for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
            let library = Path::new(library);
            fs::copy(library, inside.join(library.file_name().unwrap())).unwrap();
        }
        Self(root)
    }

    /// Runs rep with this root on a file that is copied there.
    pub(super) fn rep(&self, view: &str, file: &Path) -> Outcome {
        fs::copy(file, self.0.path().join("x.data")).unwrap();
        let inside = self.0.path().join("rep");
        let loader = fs::read_dir(inside).unwrap().map(|entry| entry.unwrap().file_name());
        let loader = loader
            .map(|name| name.into_string().unwrap())
            .find(|name| name.starts_with("ld-"))
            .unwrap();
        let mut command = Command::new("chroot");
        command.arg(self.0.path()).arg(format!("/rep/{loader}")).args([
            "--library-path",
            "/rep",
            "/rep/rep",
        ]);
        run(command.args(view.split(' ')).arg("x.data"))
    }
}

fn bundled(file: &Path) -> PathBuf {
    let bundle = file.with_extension("bundle");
    run(rep().arg("bundle").arg(file).arg("-o").arg(&bundle)).expect(0);
    bundle
}

#[test]
fn a_bundle_has_all_names_where_nothing_else_is() {
    if !needs::perf_events() || !needs::root() || !needs::commands("g++ chroot ldd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("a.cpp"), dir.path().join("app"));
    fs::write(&source, PROGRAM).unwrap();
    run(Command::new("g++")
        .args(["-O2", "-g", "-fno-omit-frame-pointer", "-o"])
        .arg(&program)
        .arg(&source))
    .expect(0);
    let command = [program.to_str().unwrap().to_owned()];
    let root = EmptyRoot::new();
    for (name, args) in [
        ("copied.data", "-e cpu-clock -F 499 --call-graph dwarf,4096"),
        ("packed.data", "-e cpu-clock -F 499 --call-graph dwarf,4096 -z"),
        ("chains.data", "-e cpu-clock -F 499 -g"),
    ] {
        let file = dir.path().join(name);
        record(&file, args, &command);
        let bundle = bundled(&file);
        for view in VIEWS {
            let here = run(rep().args(view.split(' ')).arg("x.data").current_dir(with_name(&file)))
                .expect(0);
            let there = root.rep(view, &bundle).expect(0);
            let [here, there] =
                [here, there].map(|outcome| String::from_utf8(outcome.stdout).unwrap());
            assert!(here.contains("outer") || view.contains("-s ip"), "{name}: {view}: {here}");
            assert_eq!(here, there, "{name}: {view}");
        }
        // Without the bundle the names are gone there: the root is empty.
        let bare = root.rep("--no-children -g none -s symbol", &file).expect(0);
        assert!(!String::from_utf8(bare.stdout).unwrap().contains("lib::outer"), "{name}");
    }
}

/// Returns a directory in which the file is called `x.data`.
fn with_name(file: &Path) -> PathBuf {
    let directory = file.with_extension("dir");
    fs::create_dir_all(&directory).unwrap();
    fs::copy(file, directory.join("x.data")).unwrap();
    directory
}

/// Two functions, one after the other at the same address, as the jitdump says whose path is the
/// argument, and a child of its own that runs the second.
const JIT: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) unsigned long copied(unsigned long n) { while (n) { n--; __asm__ volatile(""); } return n; }
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static void load(FILE *dump, const char *name, char *code) {
    uint32_t kind[2] = {0, 56 + strlen(name) + 1}, ids[2] = {getpid(), getpid()};
    uint64_t time = now(), place[4] = {(long)code, (long)code, 64, 0};
    fwrite(kind, 1, 8, dump); fwrite(&time, 1, 8, dump); fwrite(ids, 1, 8, dump);
    fwrite(place, 1, 32, dump); fwrite(name, 1, strlen(name) + 1, dump); fflush(dump);
}
int main(int argc, char **argv) {
    char *code = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t head[10] = {0x4a695444, 1, 40, 62, 0, getpid()};
    FILE *dump = fopen(argv[argc - 1], "w+");
    fwrite(head, 1, 40, dump); fflush(dump);
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
    memcpy(code, (char *)copied, 64);
    __builtin___clear_cache(code, code + 64);
    const char *names[] = {"first_version", "second_version"};
    for (int k = 0; k < 2; k++) {
        load(dump, names[k], code);
        for (int i = 0; i < 200 + 200 * k; i++) ((unsigned long (*)(unsigned long))code)(1000000);
    }
    if (!fork()) { for (int i = 0; i < 100; i++) ((unsigned long (*)(unsigned long))code)(1000000); _exit(0); }
    wait(0);
}
"#;

#[test]
fn a_bundle_has_all_versions_of_code_that_was_replaced() {
    if !needs::perf_events() || !needs::commands("gcc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("jit.c"), JIT).unwrap();
    run(Command::new("gcc").args(["-O1", "-o"]).arg(at("jit")).arg(at("jit.c"))).expect(0);
    let (file, dump) = (at("x.data"), at("jit-7.dump"));
    record(
        &file,
        "-k mono -e cpu-clock:u -F 999 -g",
        &[&at("jit"), &dump].map(|path| path.to_str().unwrap().to_owned()),
    );
    let bundle = bundled(&file);
    let shown = |view: &str, file: &Path| {
        let directory = with_name(file);
        run(rep().args(view.split(' ')).arg("x.data").current_dir(directory))
            .expect(0)
            .text()
            .to_owned()
    };
    let views = ["-s pid,symbol --format csv", "--format folded", "script -F pid,time,ip,sym,dso"];
    let here = views.map(|view| shown(view, &file));
    assert!(
        ["first_version", "second_version"]
            .iter()
            .all(|name| here.iter().all(|rows| rows.contains(name)))
    );
    fs::remove_file(&dump).unwrap();
    let again = at("again.data");
    run(rep().arg("bundle").arg(&bundle).arg("-o").arg(&again)).expect(0);
    for (view, here) in views.iter().zip(here) {
        assert_eq!(shown(view, &bundle), here, "{view}");
        assert_eq!(shown(view, &again), here, "{view}, of a bundle's bundle");
        assert!(!shown(view, &file).contains("_version"), "{view}: the dump is gone");
    }
}

#[test]
fn perf_reads_a_bundle_as_it_reads_the_recording() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, stream) = (dir.path().join("a.data"), dir.path().join("stream.data"));
    record(&file, "-e cpu-clock,page-faults -g", &workload("hot --ms 100 --forks 1"));
    let mut through_a_pipe = recrep_tests::programs::rec();
    through_a_pipe
        .args(["-e", "cpu-clock,page-faults", "-g", "-o", "-"])
        .args(workload("hot --ms 100 --forks 1"));
    fs::write(&stream, run(&mut through_a_pipe).expect(0).stdout).unwrap();
    for file in [&file, &stream] {
        let bundle = bundled(file);
        let ask = |file: &Path, question: &[&str]| {
            let outcome = run(perf().args(question).arg("-i").arg(file)).expect(0);
            (String::from_utf8(outcome.stdout).unwrap(), outcome.stderr)
        };
        assert_eq!(ask(file, &["script", "-F", "comm,tid,time,event,ip,sym"]), {
            ask(&bundle, &["script", "-F", "comm,tid,time,event,ip,sym"])
        });
        let (events, said) = ask(&bundle, &["evlist"]);
        assert_eq!((events.as_str(), said.as_str()), ("cpu-clock\npage-faults\n", ""));
    }
}

#[test]
fn a_damaged_bundle_is_told_and_the_rest_is_reported() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.data");
    record(&file, "-e cpu-clock", &workload("hot --ms 50"));
    let bundle = bundled(&file);
    let mut bytes = fs::read(&bundle).unwrap();
    // The last section of the file is the bundle's.
    let at = bytes.len() - 20;
    bytes[at..].fill(0xff);
    fs::write(&bundle, bytes).unwrap();
    let outcome = run(rep().args(["-s", "symbol"]).arg(&bundle)).expect(0);
    assert!(
        outcome.stderr.contains("names of functions in the file are not all used"),
        "{}",
        outcome.stderr
    );
    assert!(
        String::from_utf8(outcome.stdout).unwrap().contains("hot_three_quarters"),
        "the files are here"
    );
}

#[test]
fn the_recording_itself_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.data");
    fs::write(&file, b"PERFILE2 and so on").unwrap();
    let outcome = run(rep().arg("bundle").arg(&file).arg("-o").arg(&file));
    assert_eq!(outcome.code(), 1);
    assert!(outcome.stderr.contains("is the recording itself"), "{}", outcome.stderr);
    assert_eq!(fs::read(&file).unwrap(), b"PERFILE2 and so on");
}
