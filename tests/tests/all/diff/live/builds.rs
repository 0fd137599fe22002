//! Functions of one source in two builds are matched, whatever compilers add to their names.

use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::programs::rep;
use recrep_tests::record::record;
use recrep_tests::run::run;
use serde_json::Value;

const CPP: &str = r"
#include <algorithm>
#include <vector>
#define APART __attribute__((noinline))
volatile long sum;
namespace { APART void hidden(long n) { for (long i = 0; i < n; i++) sum += i; } }
template <class T> APART T made(T n) { T r = 0; for (T i = 0; i < n; i++) { sum ^= (long)i; r += i; } return r; }
struct Box {
    APART void f(int n) { for (int i = 0; i < n; i++) sum += i * 3; }
    APART void f(long n) const { for (long i = 0; i < n; i++) sum -= i; }
};
static APART long part(long n, int mode) { long r = 0; for (long i = 0; i < n; i++) { sum += mode; r += sum; } return r; }
int main() {
    Box box;
    auto first = [](long n) APART { for (long i = 0; i < n; i++) sum = sum * 3 + 1; };
    auto second = [](long n) APART { for (long i = 0; i < n; i++) sum = sum * 5 + 1; };
    for (int turn = 0; turn < 200; turn++) {
        hidden(60000); made(50000); made(40000.0); box.f(50000); ((const Box &)box).f(60000L);
        part(40000, 3); part(30000, 3); first(30000); second(40000);
    }
}
";

const RUST: &str = r"
use std::hint::black_box;
#[inline(never)] fn plain(n: u64) -> u64 { let mut s = 0u64; for i in 0..n { s = s.wrapping_mul(31).wrapping_add(black_box(i)); } s }
#[inline(never)] fn generic<T: Into<u64> + Copy>(v: T, n: u64) -> u64 { let mut s = v.into(); for i in 0..n { s ^= black_box(i).rotate_left(3); } s }
struct Size { x: u64 }
trait Work { fn work(&self, n: u64) -> u64; }
impl Work for Size { #[inline(never)] fn work(&self, n: u64) -> u64 { let mut s = self.x; for i in 0..n { s = s.wrapping_add(black_box(i) * 7); } s } }
#[inline(never)] fn call(f: &dyn Fn(u64) -> u64, n: u64) -> u64 { f(n) }
fn main() {
    let size = Size { x: 3 };
    let mut t = 0;
    for _ in 0..300 {
        t ^= plain(60000); t ^= generic(3u32, 40000); t ^= generic(5u8, 50000); t ^= size.work(50000);
        t ^= call(&|n| { let mut s = 1u64; for i in 0..n { s = s.wrapping_mul(black_box(i) | 1); } s }, 40000);
        t ^= call(&|n| { let mut s = 9u64; for i in 0..n { s = s.wrapping_sub(black_box(i)); } s }, 30000);
    }
    assert_ne!(t, 1);
}
";

/// A program compiled in one way, with three recordings of it.
struct Build {
    _dir: tempfile::TempDir,
    files: Vec<PathBuf>,
}

impl Build {
    /// Compiles a source and records the program; none if the compiler is missing.
    fn of((name, text): (&str, &str), build: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let (source, program) = (dir.path().join(name), dir.path().join("app"));
        std::fs::write(&source, text).unwrap();
        let mut words = build.split(' ');
        let mut compiler = Command::new(words.next().unwrap());
        compiler.args(words).arg("-o").arg(&program).arg(&source);
        if !compiler.output().is_ok_and(|output| output.status.success()) {
            println!("skipped: {build} does not compile here");
            return None;
        }
        let record = |turn| recorded(dir.path(), &program, &format!("{turn}.data"));
        let files = (0..3).map(record).collect();
        Some(Self { _dir: dir, files })
    }

    /// Returns the functions of many samples of this build and a later one, with their statuses.
    fn compared_with(&self, new: &Self) -> Vec<(String, String)> {
        let mut command = rep();
        command.args(["diff", "--json"]).args(&self.files).arg("--").args(&new.files);
        let answer: Value = serde_json::from_slice(&run(&mut command).expect(0).stdout).unwrap();
        let rows = answer["events"][0]["rows"].as_array().unwrap().iter();
        let many = rows.filter(|row| row["key"]["dso"] == "app").filter(|row| {
            let samples = |side: &str| row[side]["samples"].as_u64().unwrap();
            samples("base") + samples("new") > 60
        });
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        many.map(|row| (text(&row["key"]["symbol"]), text(&row["status"]))).collect()
    }
}

/// Compares builds of a source by these compilers with one by the first compiler.
fn compared(source: (&str, &str), base: &str, others: &[&str]) -> Vec<Vec<(String, String)>> {
    let Some(base) = Build::of(source, base) else { return Vec::new() };
    let others = others.iter().filter_map(|other| Build::of(source, other));
    others.map(|other| base.compared_with(&other)).collect()
}

fn recorded(dir: &Path, program: &Path, name: &str) -> PathBuf {
    let file = dir.join(name);
    record(&file, "-e cpu-clock:u -F 4000", &[program.to_str().unwrap().to_owned()]);
    file
}

/// Each of these functions is a row of both sides.
#[track_caller]
fn assert_matched(rows: &[(String, String)], functions: &[&str]) {
    for function in functions {
        let found: Vec<_> = rows.iter().filter(|(name, _)| name.contains(function)).collect();
        assert!(!found.is_empty(), "{function}: {rows:?}");
        for (name, status) in found {
            assert!(status != "new" && status != "gone", "{name} is {status}: {rows:?}");
        }
    }
}

#[test]
fn builds_of_cpp() {
    if !needs::perf_events() || !needs::commands("g++") {
        return;
    }
    let functions = ["hidden", "made<", "Box::f", "part"];
    for rows in compared(("app.cc", CPP), "g++ -O1", &["g++ -O2 -flto", "clang++ -O2"]) {
        assert_matched(&rows, &functions);
    }
    // Without names on either side there is one row for all.
    for rows in compared(("app.cc", CPP), "g++ -O1 -s", &["g++ -O2 -s"]) {
        assert_matched(&rows, &["app+?"]);
    }
}

#[test]
fn builds_of_rust() {
    if !needs::perf_events() {
        return;
    }
    let functions = ["plain", "generic", "Size as ", "main::{{closure}}"];
    let others = ["rustc -Copt-level=2 -Ccodegen-units=1 -Cmetadata=x", "rustc +1.88 -O"];
    for rows in compared(("app.rs", RUST), "rustc -O", &others) {
        assert_matched(&rows, &functions);
    }
}
