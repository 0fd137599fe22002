//! Functions that share a name are rows and frames of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::programs::rep;
use recrep_tests::record::record;
use recrep_tests::run::run;
use serde_json::Value;
use tempfile::TempDir;

/// Overloads, a const method and a plain one, a static function of two files, and a static function
/// that a library has under the same name.
const MAIN: &str = r"
#include <dlfcn.h>
#define APART __attribute__((noinline, noclone))
volatile long sum;
#define SPIN(n) for (long i = 0; i < n * 1000; i++) sum += i
APART void eat(int n) { SPIN(n); sum++; }
APART void eat(double n) { SPIN(n); sum--; }
struct Box {
    long size;
    APART void open() { SPIN(size); sum += 2; }
    APART void open() const { SPIN(size); sum -= 2; }
};
APART static void step(long n) { SPIN(n); sum += 3; }
void other(long n);
typedef void Step(long);
int main(int, char **argv) {
    Step *of_library = (Step *)dlsym(dlopen(argv[1], RTLD_NOW), dlsym_name);
    Box box{100};
    const Box &same = box;
    for (int turn = 0; turn < 600; turn++) {
        eat(100); eat(200.0); box.open(); same.open(); step(100); other(200); of_library(300);
    }
}
";

const OTHER: &str = r"
extern volatile long sum;
__attribute__((noinline, noclone)) static void step(long n) { for (long i = 0; i < n * 1000; i++) sum += i; sum += 4; }
void other(long n) { step(n); sum++; }
";

const LIBRARY: &str = r#"
volatile long total;
void step(long n) { for (long i = 0; i < n * 1000; i++) total += i; total++; }
"#;

/// Returns a recording of the program.
fn recording(dir: &TempDir) -> PathBuf {
    let path = |name: &str| dir.path().join(name);
    let main = MAIN.replace("dlsym_name", r#""_Z4stepl""#);
    for (name, text) in [("main.cc", &*main), ("other.cc", OTHER), ("library.cc", LIBRARY)] {
        std::fs::write(path(name), text).unwrap();
    }
    let build = |args: &[&str], sources: &[&str]| {
        let mut compiler = Command::new("g++");
        compiler.args(["-O1", "-fno-omit-frame-pointer"]).args(args);
        run(compiler.args(sources).current_dir(dir.path())).expect(0);
    };
    build(&["-shared", "-fPIC", "-o", "libstep.so"], &["library.cc"]);
    build(&["-o", "program"], &["main.cc", "other.cc"]);
    let (file, command) =
        (path("out.data"), ["program", "libstep.so"].map(|name| path(name).display().to_string()));
    record(&file, "-e cpu-clock:u -F 1999 -g", &command);
    file
}

fn answer(file: &Path, args: &[&str]) -> String {
    run(rep().args(args).arg(file)).expect(0).text().to_owned()
}

/// Returns the samples of each of the program's rows, by the names of functions.
fn named(rows: &Value) -> BTreeMap<String, Vec<u64>> {
    let mut names = BTreeMap::new();
    for row in rows.as_array().unwrap() {
        let name = row["key"]["symbol"].as_str().unwrap();
        // Without parameters: `eat` is a part of `init_cpu_features` and `open` of `_dl_open`.
        let plain = name.split('(').next().unwrap();
        if ["eat", "Box::open", "step"].contains(&plain) {
            names
                .entry(name.to_owned())
                .or_insert_with(Vec::new)
                .push(row["samples"].as_u64().unwrap());
        }
    }
    names
}

#[test]
fn functions_that_share_a_name_stay_apart() {
    if !needs::perf_events() || !needs::commands("g++") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = recording(&dir);
    let json = |args: &[&str]| -> Value { serde_json::from_str(&answer(&file, args)).unwrap() };

    let report = json(&["--json", "-s", "symbol"]);
    let rows = &report["events"][0]["rows"];
    let functions = named(rows);
    let names: Vec<&str> = functions.keys().map(String::as_str).collect();
    let apart = ["Box::open()", "Box::open() const", "eat(double)", "eat(int)"];
    assert_eq!(names[..4], apart, "{names:?}");
    // The two of the program differ only in their places; that of the library is its only one.
    assert_eq!(
        (&names[4..], functions["step"].len(), functions["step(long)"].len()),
        (&["step", "step(long)"][..], 1, 2)
    );
    assert!(functions["eat(double)"][0] > functions["eat(int)"][0], "{functions:?}");
    let mangled = |name: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["key"]["symbol"] == name).unwrap();
        row["key"]["mangled"].clone()
    };
    assert_eq!(
        ["eat(int)", "Box::open() const", "step"].map(mangled),
        ["_Z3eati", "_ZNK3Box4openEv", "_Z4stepl"]
    );

    let levels = json(&["--json", "-H", "-s", "symbol"]);
    let levels = levels["events"][0]["hierarchy"].as_array().unwrap();
    for name in ["eat(int)", "eat(double)", "Box::open() const"] {
        let level = levels
            .iter()
            .find(|level| level["value"] == name)
            .unwrap_or_else(|| panic!("{name}: {levels:?}"));
        assert_eq!(
            (&level["mangled"], &level["samples"]),
            (&mangled(name), &functions[name][0].into())
        );
    }

    // Whoever asks for all of a name gets it, and so does who asks for one function.
    let of =
        |filter: &str| named(&json(&["--json", "-s", "symbol", "-S", filter])["events"][0]["rows"]);
    assert_eq!(of("eat").keys().collect::<Vec<_>>(), ["eat(double)", "eat(int)"]);
    for filter in ["eat(int)", "_Z3eati"] {
        assert_eq!(
            of(filter),
            BTreeMap::from([("eat".to_owned(), functions["eat(int)"].clone())]),
            "{filter}"
        );
    }
    // Whole names on demand; nothing else changes.
    let whole = named(&json(&["--json", "-s", "symbol", "--demangle=full"])["events"][0]["rows"]);
    let of_program = |name: &&String| name.starts_with("step(long) (program+0x");
    assert_eq!(
        (whole.len(), whole.keys().filter(of_program).count(), whole["step(long)"].len()),
        (7, 2, 1),
        "{whole:?}"
    );
    assert_eq!(whole["eat(int)"], functions["eat(int)"]);
}

#[test]
fn frames_of_functions_that_share_a_name_stay_apart() {
    if !needs::perf_events() || !needs::commands("g++") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = recording(&dir);
    let folded = answer(&file, &["--format", "folded"]);
    let stacks: Vec<&str> = folded.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert!(stacks.is_sorted_by(|a, b| a < b), "each stack is one line: {folded}");
    let callees =
        ["eat(int)", "eat(double)", "Box::open()", "Box::open() const", "step", "step(long)"];
    for callee in callees {
        // What has no frame pointer of its own hides `main`.
        let end = format!(";{callee}");
        assert!(stacks.iter().any(|stack| stack.ends_with(&end)), "{callee}: {folded}");
    }
    let text = answer(&file, &["-s", "comm", "--no-children", "-G"]);
    for callee in callees {
        assert!(
            text.lines().any(|line| line.ends_with(&format!("%--{callee}"))),
            "{callee}: {text}"
        );
    }
    // A sample counts once in the children's row of each function.
    let report: Value =
        serde_json::from_str(&answer(&file, &["--json", "--children", "-s", "symbol"])).unwrap();
    let event = &report["events"][0];
    let all = event["samples"].as_u64().unwrap();
    for row in event["rows"].as_array().unwrap() {
        let with_callees = row["children"]["samples"].as_u64().unwrap();
        assert!(with_callees <= all, "{row}");
    }
}
