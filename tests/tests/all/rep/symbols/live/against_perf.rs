//! Comparison with `perf` on this machine: samples real programs and lists each frame of their
//! callchains with both.
//!
//! The test accepts two differences. Older versions of perf leave PLT entries unnamed or name them
//! after another slot. Of the aliases of a function, rep shows the name that callers write: `puts`,
//! where perf shows `_IO_puts`.

use recrep_tests::perf;

use super::*;

/// Source of a program whose hot functions have all kinds of names.
const PROGRAM: &str = r#"
#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>
namespace shapes {
template <class T, unsigned N> struct Box {
    T value;
    __attribute__((noinline)) Box(T v) : value(v) { for (int i = 0; i < 200; i++) spin = spin + i; }
    __attribute__((noinline)) ~Box() { for (int i = 0; i < 200; i++) spin = spin + i; }
    __attribute__((noinline)) T operator()(const std::vector<T> &v) const { T s = value; for (auto &e : v) s += e; return s + N; }
    __attribute__((noinline)) operator bool() const { volatile T t = value; return t > 1; }
    static volatile long spin;
};
template <class T, unsigned N> volatile long Box<T, N>::spin;
}
namespace { __attribute__((noinline)) int hidden(int a) { volatile int x = a; for (int i = 0; i < 500; i++) x = x + i; return x; } }
extern "C" __attribute__((noinline)) int plain(int a) { return hidden(a) + hidden(a + 1); }
extern "C" int plain_alias_with_a_longer_name(int) __attribute__((alias("plain")));
__attribute__((noinline)) static int call(const std::function<std::string(int)> &f, int n) { return f(n).size(); }
int main() {
    long sum = 0;
    for (int round = 0; round < 4000; round++) {
        std::vector<double> v(200, 1.5);
        shapes::Box<double, 3> box(round);
        sum += box(v) + (box ? 1 : 0) + plain(round) + plain_alias_with_a_longer_name(round) + time(nullptr) % 2;
        sum += call([](int n) { return std::string(n % 7, 'x'); }, round);
        std::map<std::string, int> m;
        for (int i = 0; i < 20; i++) m[std::to_string(i * round)] = i;
        std::sort(v.begin(), v.end(), [](double a, double b) { return a < b; });
        if (round % 100 == 0) sum += std::regex_match("abcabcabcd", std::regex("(a|b|c)*d"));
    }
    return sum == 42;
}
"#;

/// Returns `name+offset` and module of each frame in a listing.
fn frames(listing: &str) -> Vec<(&str, &str)> {
    let frames =
        listing.lines().filter_map(|line| line.trim().split_once(' ')?.1.strip_suffix(')'));
    frames.filter_map(|frame| frame.rsplit_once(" (")).collect()
}

#[test]
fn the_same_symbols_as_perf() {
    the_same_symbols(
        "-fPIE",
        &[("pie", "-pie"), ("static", "-static"), ("stripped", "-pie -Wl,--build-id")],
    );
}

#[test]
fn the_same_symbols_as_perf_at_fixed_addresses() {
    the_same_symbols("-fno-PIE", &[("fixed", "-no-pie")]);
}

fn the_same_symbols(compiler_flags: &str, kinds: &[(&str, &str)]) {
    let Some(place) = needs::perf_events().then(|| Place::with("g++ objcopy")).flatten() else {
        return;
    };
    let object = place.compiled(&format!("g++ -O1 -c {compiler_flags}"), ("p.cpp", PROGRAM), "p.o");
    for &(name, linker_flags) in kinds {
        let program = place.at(name);
        tool(&format!("g++ {linker_flags} -o"), &[&program, &object]);
        if name == "stripped" {
            let kept = place.at("stripped.debug");
            tool("objcopy --only-keep-debug", &[&program, &kept]);
            tool("strip", &[&program]);
            tool(&format!("objcopy --add-gnu-debuglink={}", kept.display()), &[&program]);
        }
        let data = place.at("perf.data");
        let command = [program.to_str().unwrap().to_owned()];
        perf::record(&data, "-B -e cpu-clock -F 10000 -g", &command);
        let words = "script --no-inline -F ip,sym,symoff,dso -i";
        let theirs = run(perf::perf().args(words.split(' ')).arg(&data));
        // perf uses the file at the recorded path too, and none has changed since.
        let ours = run(crate::rep::rep().args(words.split(' ')).arg(&data).arg("--trust-paths"));
        compare(name, &frames(&ours), &frames(&theirs));
    }
}

/// Returns whether perf's `name+offset` is ours with a longer name of the same function.
fn is_alias(ours: &str, theirs: &str) -> bool {
    let [Some(ours), Some(theirs)] = [ours, theirs].map(|frame| frame.rsplit_once('+')) else {
        return false;
    };
    let bare = ours.0.trim_start_matches('_');
    ours.1 == theirs.1 && !bare.is_empty() && theirs.0.contains(bare)
}

fn compare(name: &str, ours: &[(&str, &str)], theirs: &[(&str, &str)]) {
    assert_eq!(ours.len(), theirs.len(), "{name}");
    let (mut compared, mut differing) = (0, BTreeMap::new());
    for ((ours, _), (theirs, module)) in
        ours.iter().zip(theirs).filter(|(_, (_, module))| *module != "[unknown]")
    {
        compared += 1;
        if ours != theirs && !ours.contains("plt+0x") && !is_alias(ours, theirs) {
            *differing.entry((module, theirs, ours)).or_insert(0) += 1;
        }
    }
    assert!(compared > 200, "{name}: perf named only {compared} frames");
    assert!(differing.is_empty(), "{name}: of {compared} frames: {differing:#?}");
}
