//! Functions of stripped programs: where their samples are, and where they begin, is what the same
//! programs with their symbols say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::programs::rep;
use recrep_tests::record::record;
use recrep_tests::run::run;
use serde_json::Value;
use tempfile::TempDir;

const C: &str = r"
#include <stdlib.h>
#include <string.h>
#define APART __attribute__((noinline, noclone))
static volatile unsigned long sum;
APART static void spin(long n) { for (long i = 0; i < n; i++) sum += i * i; }
APART static int compare(const void *a, const void *b) {
    for (int i = 0; i < 20; i++) sum += i;
    return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}
APART static unsigned long hash(const char *text) {
    unsigned long found = 5381;
    while (*text) found = found * 33 ^ (unsigned char)*text++;
    return found;
}
APART static void fill(int *all, int n) { for (int i = 0; i < n; i++) all[i] = (i * 7919) % n; }
long library(long n);
int main(int argc, char **argv) {
    static int all[4000];
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (int turn = 0; turn < 60; turn++) {
        spin(300000);
        fill(all, 4000);
        qsort(all, 4000, sizeof *all, compare);
        for (int i = 0; i < 200; i++) sum += hash(text);
        sum += library(300000);
    }
    return argc > 5;
}
";

const LIBRARY: &str = r"
#define APART __attribute__((noinline, noclone))
static volatile long total;
APART static long even(long n) { for (long i = 0; i < n; i += 2) total += i; return total; }
APART static long odd(long n) { for (long i = 1; i < n; i += 2) total -= i; return total; }
long library(long n) { return even(n) + odd(n); }
";

const CPP: &str = r"
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#define APART __attribute__((noinline))
namespace {
volatile unsigned long sum;
struct Shape { virtual ~Shape() {} virtual long area(long n) const = 0; };
struct Square : Shape {
    APART long area(long n) const override { for (long i = 0; i < n; i++) sum += i; return sum; }
};
struct Circle : Shape {
    APART long area(long n) const override { for (long i = 0; i < n; i++) sum ^= i; return sum; }
};
APART void checked(int turn) {
    try {
        for (int i = 0; i < 50000; i++) sum += i;
        if (turn % 2) throw std::runtime_error(std::to_string(turn));
    } catch (const std::exception &error) { sum += error.what()[0]; }
}
APART void counted(std::map<std::string, int> &all, int turn) {
    for (int i = 0; i < 2000; i++) all[std::to_string(i * turn % 977)]++;
}
}
int main() {
    Square square; Circle circle;
    std::map<std::string, int> all;
    std::vector<int> numbers(20000);
    for (int turn = 0; turn < 60; turn++) {
        for (const Shape *shape : {(const Shape *)&square, (const Shape *)&circle}) sum += shape->area(200000);
        checked(turn);
        counted(all, turn);
        for (size_t i = 0; i < numbers.size(); i++) numbers[i] = i * 7919 % numbers.size();
        std::sort(numbers.begin(), numbers.end(), [](int a, int b) { sum++; return a > b; });
    }
}
";

const RUST: &str = r#"
use std::collections::BTreeMap;
use std::hint::black_box;

#[inline(never)]
fn spin(n: u64) -> u64 { (0..n).fold(0, |sum, i| black_box(sum ^ i)) }

#[inline(never)]
fn sorted(n: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (0..n).map(|i| i.wrapping_mul(7919) % n).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all
}

#[inline(never)]
fn counted(n: u32) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    for i in 0..n { *all.entry(format!("key {}", i % 977)).or_insert(0) += 1; }
    all
}

fn main() {
    let mut sum = 0;
    for turn in 0..160 {
        sum += spin(400_000) + sorted(20_000)[turn] as u64 + counted(3000).len() as u64;
    }
    assert!(black_box(sum) > 0);
}
"#;

/// A program with its symbols and the same without, each in a folder of its own, at the same paths
/// below these.
struct Twins {
    dir: TempDir,
    /// Names of the files, the program first.
    files: Vec<&'static str>,
}

impl Twins {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("stripped")).unwrap();
        Self { dir, files: Vec::new() }
    }

    /// Returns the path of a file without its symbols.
    fn stripped(&self, name: &str) -> PathBuf {
        self.dir.path().join("stripped").join(name)
    }

    /// Returns the path of the same file with its symbols: that of the other one below a root.
    fn whole(&self, name: &str) -> PathBuf {
        let below = self.stripped(name);
        self.dir.path().join("root").join(below.strip_prefix("/").unwrap())
    }

    /// Builds a file from a source with a compiler, and strips a copy of it.
    fn build(&mut self, name: &'static str, source: &str, compiler: &str, args: &str) {
        let (whole, stripped) = (self.whole(name), self.stripped(name));
        std::fs::create_dir_all(whole.parent().unwrap()).unwrap();
        let text = self.dir.path().join(format!("{name}.source"));
        std::fs::write(&text, source).unwrap();
        let mut build = Command::new(compiler);
        build.current_dir(whole.parent().unwrap()).args(args.split_whitespace());
        run(build.arg("-o").arg(&whole).arg(&text)).expect(0);
        run(Command::new("strip").arg("-o").arg(&stripped).arg(&whole)).expect(0);
        self.files.push(name);
    }

    /// Checks what a recording of the stripped program says, and returns the number of samples in
    /// inferred functions.
    #[track_caller]
    fn check(&self) -> u64 {
        let file = self.dir.path().join("rec.data");
        let program = self.stripped(self.files[0]).to_str().unwrap().to_owned();
        record(&file, "-e cpu-clock -F 2000", &[program]);
        let rows = Rows::of(&file, &[]);
        let root = self.dir.path().join("root");
        let named = Rows::of(&file, &["--no-inferred", "--symfs", root.to_str().unwrap()]);
        let mut all = 0;
        for name in &self.files {
            let starts = starts(&self.whole(name));
            let (mut inferred, mut unknown) = (0, 0);
            for (symbol, row) in rows.all.iter().filter(|((dso, _), _)| dso == name) {
                let start = symbol.1.strip_prefix(&format!("{name}+0x"));
                assert!(!row.is_inferred || start.is_some(), "{symbol:?}");
                let Some(start) = start else { continue };
                if !row.is_inferred {
                    unknown += row.samples;
                    continue;
                }
                inferred += row.samples;
                let start = u64::from_str_radix(start, 16).unwrap();
                let names = starts.get(&start);
                let names = names.unwrap_or_else(|| panic!("no symbol begins at {symbol:?}"));
                let of_names = names.iter().map(|name| named.samples(&symbol.0, name)).max();
                assert_eq!(of_names, Some(row.samples), "{symbol:?} is {names:?}");
            }
            println!("{name}: {inferred} samples in inferred functions, {unknown} in none");
            assert!(inferred * 100 >= (inferred + unknown) * 95, "{name}: {inferred}, {unknown}");
            all += inferred;
        }
        all
    }
}

#[derive(Clone, Copy, Default)]
struct Row {
    samples: u64,
    is_inferred: bool,
}

/// Rows by module and function, as the file spells it.
struct Rows {
    all: BTreeMap<(String, String), Row>,
}

impl Rows {
    #[track_caller]
    fn of(file: &Path, args: &[&str]) -> Self {
        let outcome = run(rep().args(["--json", "-s", "dso,symbol"]).args(args).arg(file));
        let report: Value = serde_json::from_slice(&outcome.expect(0).stdout).unwrap();
        let mut all = BTreeMap::<_, Row>::new();
        for row in report["events"][0]["rows"].as_array().unwrap() {
            let text = |key: &str| row["key"][key].as_str().map(str::to_owned);
            let name = text("mangled").or_else(|| text("symbol")).unwrap();
            let sum = all.entry((text("dso").unwrap(), name)).or_default();
            sum.samples += row["samples"].as_u64().unwrap();
            sum.is_inferred = row["inferred"] == true;
        }
        Self { all }
    }

    fn samples(&self, module: &str, name: &str) -> u64 {
        self.all.get(&(module.to_owned(), name.to_owned())).map_or(0, |row| row.samples)
    }
}

/// Returns the symbols of code in a file by their addresses.
fn starts(file: &Path) -> BTreeMap<u64, Vec<String>> {
    let outcome = run(Command::new("nm").arg(file)).expect(0);
    let mut starts = BTreeMap::<u64, Vec<String>>::new();
    for line in outcome.text().lines() {
        if let [address, kind, name] = line.split(' ').collect::<Vec<_>>()[..]
            && "tTwWi".contains(kind)
        {
            starts.entry(u64::from_str_radix(address, 16).unwrap()).or_default().push(name.into());
        }
    }
    starts
}

#[test]
fn functions_of_c_and_its_library_are_found_without_names() {
    if !needs::perf_events() || !needs::commands("gcc strip nm") {
        return;
    }
    for at in ["-no-pie", "-pie"] {
        let mut twins = Twins::new();
        twins.build("libparts.so", LIBRARY, "gcc", "-O2 -fPIC -shared -xc");
        let folder = twins.whole("");
        // The stripped library is beside the stripped program.
        let library = format!("-L{} -Wl,-rpath,$ORIGIN", folder.display());
        let link = format!("-O2 {at} {library} -Wl,--no-as-needed -lparts -xc");
        twins.build("parts", C, "gcc", &link);
        twins.files.rotate_right(1);
        assert!(twins.check() > 50);
    }
}

#[test]
fn functions_of_cpp_are_found_without_names() {
    if !needs::perf_events() || !needs::commands("g++ strip nm") {
        return;
    }
    let mut twins = Twins::new();
    twins.build("shapes", CPP, "g++", "-O2 -std=c++17 -xc++");
    assert!(twins.check() > 50);
}

#[test]
fn functions_of_rust_are_found_without_names() {
    if !needs::perf_events() || !needs::commands("rustc strip nm") {
        return;
    }
    let mut twins = Twins::new();
    twins.build("counts", RUST, "rustc", "--edition 2021 -O --crate-name counts");
    assert!(twins.check() > 50);
}

fn json(args: &[&str], file: &Path) -> Value {
    let outcome = run(rep().args(args).arg(file));
    serde_json::from_slice(&outcome.expect(0).stdout).unwrap()
}

/// Returns what `rep` prints with and without a flag, of a command.
fn with_and_without(flag: &str, words: &str, files: &[&Path]) -> [String; 2] {
    [&[flag][..], &[]].map(|flag| {
        let mut command = rep();
        command.args(words.split_whitespace()).args(flag).args(files);
        run(&mut command).expect(0).text().to_owned()
    })
}

#[test]
fn all_views_tell_inferred_functions_from_named_ones() {
    if !needs::perf_events() || !needs::commands("g++ strip nm") {
        return;
    }
    let mut twins = Twins::new();
    twins.build("shapes", CPP, "g++", "-O2 -std=c++17 -fno-omit-frame-pointer -xc++");
    let at = |name: &str| twins.dir.path().join(name);
    let file = at("rec.data");
    let program = twins.stripped("shapes").to_str().unwrap().to_owned();
    record(&file, "-e cpu-clock:u --call-graph fp", &[program]);
    let sort = ["--json", "-s", "dso,symbol"];
    let events =
        |args: &[&str], file: &Path| json(&[&sort[..], args].concat(), file)["events"].take();
    let [whole, plain] = [events(&[], &file), events(&["--no-inferred"], &file)];
    let is_inferred = |row: &&Value| row["inferred"] == true;
    let rows = |events: &Value| events[0]["rows"].as_array().unwrap().clone();
    let (all, without) = (rows(&whole), rows(&plain));
    let samples = |rows: &mut dyn Iterator<Item = &Value>| {
        rows.map(|row| row["samples"].as_u64().unwrap()).sum::<u64>()
    };
    let inferred = samples(&mut all.iter().filter(is_inferred));
    assert!(inferred > 50, "{whole}");
    assert!(!without.iter().any(|row| is_inferred(&row)));
    assert_eq!(samples(&mut all.iter()), samples(&mut without.iter()));
    // Of the modules' samples they are neither resolved nor unknown.
    let modules = json(&["modules", "--json"], &file);
    assert_eq!(modules["inferred"], inferred);
    let of_plain = json(&["modules", "--json", "--no-inferred"], &file);
    assert_eq!((&of_plain["inferred"], &of_plain["resolved"]), (&0.into(), &modules["resolved"]));
    // A bundle has them, and a profile.
    let (bundle, profile) = (at("x.bundle"), at("x.pb.gz"));
    run(rep().args(["bundle", "-o"]).args([&bundle, &file])).expect(0);
    run(rep().args(["export", "-o"]).args([&profile, &file])).expect(0);
    let nowhere = twins.dir.path().to_str().unwrap();
    assert_eq!(events(&["--symfs", nowhere], &bundle), whole);
    assert_eq!(events(&["--symfs", nowhere, "--no-inferred"], &bundle), plain);
    assert_eq!(rows(&events(&["--symfs", nowhere], &profile)), all);
    // Callers are functions, too.
    let folded =
        with_and_without("--no-inferred", "--format folded --no-check-callchains", &[&file]);
    let starts = starts(&twins.whole("shapes"));
    let main = starts.iter().find(|(_, names)| names.contains(&"main".to_owned())).unwrap().0;
    let caller = format!(";shapes+{main:#x};shapes+0x");
    assert!(folded[1].contains(&caller) && !folded[0].contains("shapes+0x"), "{folded:?}");
    // What is compared with perf, or with another build, has none unless that is asked for.
    for words in ["script", "-t , --no-children -g none -s symbol", "-U --json -s symbol"] {
        let [without, usual] = with_and_without("--no-inferred", words, &[&file]);
        assert_eq!(without, usual, "{words}");
        let [with, _] = with_and_without("--inferred", words, &[&file]);
        assert!(with.contains("shapes+0x") && !usual.contains("shapes+0x"), "{words}: {usual}");
    }
    let [without, usual] = with_and_without("--no-inferred", "diff --json", &[&profile, &file]);
    assert_eq!(without, usual);
}
