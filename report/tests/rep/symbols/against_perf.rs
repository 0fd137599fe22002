//! Comparison with `perf` on this machine: samples real programs and looks up each sampled address with both.
//!
//! `perf script -F ip,sym,symoff,dso` prints each frame's address in the space that our lookups use (for user code the
//! file offset, for the kernel the address) and the name it found. Older versions of perf leave PLT entries unnamed or
//! name them after another slot; this is the only difference that the test accepts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use recrep_format::build_id::BuildId;
use recrep_report::query::SymbolOptions;
use recrep_report::symbols::{Module, ModuleKind, Origin, Resolver};

use super::common::{Place, build_id_in, tool};

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
    for (int round = 0; round < 10000; round++) {
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

/// Returns address, `name+offset` and module of each frame that perf prints.
fn frames(data: &Path) -> Vec<(u64, String, String)> {
    let text = tool("perf script --no-inline -F ip,sym,symoff,dso -i", &[data]);
    let frame = |line: &str| {
        let (address, rest) = line.trim().split_once(' ')?;
        let (name, module) = rest.strip_suffix(')')?.rsplit_once(" (")?;
        Some((u64::from_str_radix(address, 16).ok()?, name.to_owned(), module.to_owned()))
    };
    text.lines().filter_map(frame).collect()
}

/// Returns our `name+offset` for the same address.
fn ours(resolver: &Resolver, kernel: Option<BuildId>, address: u64, module: &str) -> Option<String> {
    let module = match module {
        "[unknown]" => return None,
        "[kernel.kallsyms]" => Module::new(b"[kernel.kallsyms]", kernel, ModuleKind::Kernel),
        _ => {
            let path = module.as_bytes();
            Module::new(path, None, ModuleKind::of_user_mapping(path, 0, true, false))
        }
    };
    let module = module.on(&Arc::new(Origin { kernel, ..Origin::default() }));
    let loaded = resolver.load(&module);
    let symbol = loaded.table.lookup(address);
    Some(
        symbol.map_or("[unknown]".into(), |symbol| {
            format!("{}+{:#x}", loaded.shown(symbol.name), address - symbol.start)
        }),
    )
}

#[test]
fn the_same_symbols_as_perf() {
    let Some(place) = Place::with("perf g++ objcopy") else { return };
    let kernel = std::fs::read("/sys/kernel/notes").ok().and_then(|notes| BuildId::new(&build_id_in(&notes)));
    let kinds =
        [("pie", "-fPIE -pie"), ("fixed", "-no-pie -fno-PIE"), ("static", "-static"), ("stripped", "-Wl,--build-id")];
    for (name, flags) in kinds {
        let program = place.compiled(&format!("g++ -O1 {flags}"), ("p.cpp", PROGRAM), name);
        if name == "stripped" {
            let kept = place.at("stripped.debug");
            tool("objcopy --only-keep-debug", &[&program, &kept]);
            tool("strip", &[&program]);
            tool(&format!("objcopy --add-gnu-debuglink={}", kept.display()), &[&program]);
        }
        let data = place.at("perf.data");
        let recorded = Command::new("perf")
            .args(["record", "-q", "-B", "-e", "cpu-clock", "-F", "10000", "-g", "-o"])
            .arg(&data)
            .arg(&program)
            .output()
            .unwrap();
        if !data.exists() && std::env::var_os("CI").is_none_or(|ci| ci != "true") {
            eprintln!("skipped: perf cannot record here: {}", String::from_utf8_lossy(&recorded.stderr));
            return;
        }
        compare(name, &frames(&data), kernel);
    }
}

fn compare(name: &str, frames: &[(u64, String, String)], kernel: Option<BuildId>) {
    // perf uses the file at the recorded path too, and none has changed since.
    let resolver = Resolver::new(SymbolOptions { trust_paths: true, ..SymbolOptions::default() });
    let mut differing = BTreeMap::new();
    let mut compared = 0;
    for (address, theirs, module) in frames {
        let Some(ours) = ours(&resolver, kernel, *address, module) else { continue };
        compared += 1;
        if ours != *theirs && !ours.contains("plt+0x") {
            *differing.entry((module, theirs, ours)).or_insert(0) += 1;
        }
    }
    assert!(compared > 200, "{name}: perf named only {compared} frames");
    assert!(differing.is_empty(), "{name}: of {compared} frames: {differing:#?}");
}
