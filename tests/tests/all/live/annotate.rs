//! `rep annotate` on real recordings: each instruction has the samples that `perf annotate` counts
//! there, and each function those of its row in `rep`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use recrep_tests::aliases::aliases;
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::report::report_of;
use recrep_tests::run::run;
use recrep_tests::{needs, perf};
use serde_json::Value;

/// Samples by address.
type Counts = BTreeMap<u64, u64>;

/// Annotates functions of a file, and returns those of its only event.
#[track_caller]
fn annotated(file: &Path, args: &[&str]) -> Vec<Value> {
    let outcome = run(rep().args(["annotate", "--json"]).args(args).arg("-i").arg(file)).expect(0);
    let mut answer: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let Value::Array(functions) = answer["events"][0]["functions"].take() else { panic!() };
    functions
}

fn counts(function: &Value) -> Counts {
    let rows = function["rows"].as_array().unwrap().iter();
    let counted = rows.filter_map(|row| {
        let address = row["address"].as_str().unwrap().strip_prefix("0x").unwrap();
        let samples = row["samples"].as_u64().filter(|samples| *samples > 0)?;
        Some((u64::from_str_radix(address, 16).unwrap(), samples))
    });
    counted.collect()
}

/// Samples by address as perf counts them.
#[track_caller]
fn counts_of_perf(file: &Path, module: &str, symbol: &str) -> Counts {
    let mut perf = perf::perf();
    perf.args(["annotate", "--stdio", "-n", "--percent-type", "local-hits", "--no-source"]);
    let outcome = run(perf.args(["-d", module, "-s", symbol, "-i"]).arg(file)).expect(0);
    let line = |line: &str| {
        let mut cells = line.splitn(3, ':').map(str::trim);
        let samples = cells.next()?.parse().ok().filter(|samples| *samples > 0)?;
        Some((u64::from_str_radix(cells.next()?, 16).ok()?, samples))
    };
    outcome.text().lines().filter_map(line).collect()
}

/// Compares the hottest functions of a recording with perf and `rep`; returns their number.
#[track_caller]
fn compared(file: &Path) -> usize {
    let report = report_of(file, &[], "dso,symbol");
    let of_report = |function: &Value| {
        let rows = report.events[0].rows.iter();
        let is_same = |key: &str, row: &BTreeMap<String, String>| function[key] == row[key];
        let mut same = rows
            .filter(|row| ["dso", "symbol", "cpumode"].iter().all(|key| is_same(key, &row.key)));
        (same.next().map(|row| row.samples), same.count())
    };
    let mut compared = 0;
    for function in annotated(file, &["--limit", "8"]) {
        // perf knows no functions without names.
        if function["symbol"].as_str().is_some_and(|symbol| symbol.contains("+0x")) {
            continue;
        }
        let ours = counts(&function);
        let (samples, others) = of_report(&function);
        if others == 0 {
            assert_eq!(samples, Some(ours.values().sum()), "{}", function["symbol"]);
        }
        // The kernel's image is seldom at hand.
        if function["code"].is_null() {
            continue;
        }
        let text = |key: &str| function[key].as_str().unwrap_or_default();
        let mut theirs = counts_of_perf(file, text("dso"), text("symbol"));
        if theirs.is_empty() {
            theirs = counts_of_perf(file, text("dso"), text("mangled"));
        }
        // perf may know it by another of its names.
        let in_vdso = format!("__vdso_{}", text("symbol"));
        for alias in aliases(text("symbol")).into_iter().chain([in_vdso.as_str()]) {
            if theirs.is_empty() {
                theirs = counts_of_perf(file, text("dso"), alias);
            }
        }
        assert_eq!(ours, theirs, "{} of {}", text("symbol"), text("dso"));
        compared += 1;
    }
    compared
}

const C: &str =
    "static inline unsigned mix(unsigned x) { x ^= x >> 13; x *= 0x5bd1e995; return x ^ x >> 15; }
__attribute__((noinline)) unsigned hot(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        if (mix(i) & 1)
            sum += mix(sum + i);
        else
            sum ^= i;
    return sum;
}
int main(void)
{
    unsigned total = 0;
    for (unsigned i = 0; i < 60; i++)
        total += hot(2000000 + i);
    return total == 1;
}
";

const CPP: &str = "#include <algorithm>
#include <map>
#include <string>
#include <vector>
template <class T> struct Counts {
    std::map<T, int> all;
    __attribute__((noinline)) void add(const T &t) { all[t]++; }
};
__attribute__((noinline)) double squares(const std::vector<double> &v)
{
    double sum = 0;
    for (double x : v) sum += x * x;
    return sum;
}
int main()
{
    Counts<std::string> counts;
    std::vector<double> v(20000, 1.5);
    std::vector<int> w(30000);
    unsigned seed = 7;
    double total = 0;
    for (int turn = 0; turn < 60; turn++) {
        for (int i = 0; i < 300; i++) { seed = seed * 1103515245 + 12345; counts.add(std::to_string(seed % 5000)); }
        for (int i = 0; i < 10; i++) total += squares(v);
        for (auto &x : w) { seed = seed * 1103515245 + 12345; x = seed; }
        std::sort(w.begin(), w.end());
    }
    return total < 0;
}
";

#[test]
fn instructions_have_the_samples_that_perf_counts() {
    if !needs::perf_events() || !needs::commands("gcc g++ objdump") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut programs = vec![workload("hot --ms 400")];
    for (compiler, source, text) in [("gcc -O1", "c.c", C), ("g++ -O2", "cpp.cpp", CPP)] {
        fs::write(path(source), text).unwrap();
        let (name, optimization) = compiler.split_once(' ').unwrap();
        let mut command = Command::new(name);
        command.args([optimization, "-g", "-o", &path(name), &path(source)]);
        run(&mut command).expect(0);
        programs.push(vec![path(name)]);
    }
    let (file, mut sum) = (dir.path().join("x.data"), 0);
    for program in &programs {
        record(&file, "-e cpu-clock -F 5000", program);
        let functions = compared(&file);
        assert!(functions > 0, "{program:?}: no function was compared");
        sum += functions;
    }
    println!("{sum} functions of {} programs", programs.len());
}

#[test]
fn lines_inlined_functions_and_jumps_are_told() {
    if !needs::perf_events() || !needs::commands("gcc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("hot.c"), dir.path().join("hot"));
    fs::write(&source, C).unwrap();
    run(Command::new("gcc").args(["-O1", "-g", "-o"]).arg(&program).arg(&source)).expect(0);
    let file = dir.path().join("x.data");
    record(&file, "-e cpu-clock", &[program.to_str().unwrap().to_owned()]);
    let functions = annotated(&file, &["hot"]);
    let [function] = &functions[..] else { panic!("one function is named hot: {functions:?}") };
    let rows = function["rows"].as_array().unwrap();
    let has = |text: &str| rows.iter().any(|row| row["source"]["text"] == text);
    assert!(has("sum ^= i;"), "the text of a line is told: {rows:?}");
    assert!(rows.iter().any(|row| row["inlined"][0] == "mix"), "{rows:?}");
    let back = rows
        .iter()
        .zip(0..)
        .find(|(row, number)| row["jump"].as_u64() < Some(*number) && !row["jump"].is_null());
    let (row, _) = back.expect("a loop jumps back");
    let target =
        rows[usize::try_from(row["jump"].as_u64().unwrap()).unwrap()]["address"].as_str().unwrap();
    assert!(row["text"].as_str().unwrap().contains(&target[2..]), "{row} jumps to {target}");
    let text = run(rep().args(["annotate", "hot"]).arg(&file)).expect(0);
    for part in ["[.] hot (hot)", "[mix] hot.c:1  static inline", "─►", "hot.c:9  sum ^= i;"] {
        assert!(text.text().contains(part), "{part:?} in {}", text.text());
    }
    // A recording in the place of the function is what is read, and nothing else is said to be.
    let first = run(rep().arg("annotate").arg(&file).args(["--limit", "1"])).expect(0);
    assert!(!first.stderr.contains("reading"), "{}", first.stderr);
    run(rep().arg("annotate").arg(&file).args(["--percent-limit", "200"])).expect(2);
    // The same by a pattern, in whatever order of the words.
    let by_pattern = annotated(&file, &["h?t*", "--limit", "1"]);
    assert_eq!(by_pattern, functions);
    let none = run(rep().args(["annotate", "hut*"]).arg(&file)).expect(1);
    assert!(none.stderr.contains("no function with samples is named `hut*`"), "{}", none.stderr);
    let near = run(rep().args(["annotate", "hott"]).arg(&file)).expect(1);
    assert!(near.stderr.contains("near functions are: hot"), "{}", near.stderr);
}

#[test]
fn functions_without_names_have_their_instructions() {
    if !needs::perf_events() || !needs::commands("gcc strip") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("hot.c"), C).unwrap();
    run(Command::new("gcc").args(["-O1", "-o", &path("named"), &path("hot.c")])).expect(0);
    run(Command::new("strip").args(["-o", &path("stripped"), &path("named")])).expect(0);
    let file = dir.path().join("x.data");
    // Without the operands that are names.
    let hottest = |program: &str| {
        record(&file, "-e cpu-clock", &[path(program)]);
        let function = annotated(&file, &["--dso", program, "--limit", "1"]).remove(0);
        let rows = function["rows"].as_array().unwrap().iter();
        let row = |row: &Value| {
            let text = row["text"].as_str().unwrap().split('<').next().unwrap_or_default();
            (row["address"].as_str().unwrap().to_owned(), text.to_owned())
        };
        let rows: Vec<(String, String)> = rows.map(row).collect();
        (function["symbol"].as_str().unwrap().to_owned(), counts(&function), rows)
    };
    let (inferred, counts, rows) = hottest("stripped");
    let (named, _, expected) = hottest("named");
    assert_eq!((named.as_str(), inferred), ("hot", format!("stripped+{}", rows[0].0)));
    assert!(counts.len() > 3, "samples are at instructions: {counts:?}");
    assert_eq!(rows, expected);
}
