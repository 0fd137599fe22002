//! Inlined functions and source lines, compared with `addr2line -i`.

use std::collections::{BTreeSet, HashMap};

use recrep_report::testing::{Demangle, SymbolOptions};
use recrep_report::testing::{Module, ModuleKind, Resolver, SourceFrame};

use super::*;

const C: &str = r"
#include <stdlib.h>
static inline __attribute__((always_inline)) int add(int a, int b) { return a * 3 + b; }
static inline __attribute__((always_inline)) int twice(int a) { return add(a, a) + add(a + 1, rand()); }
__attribute__((noinline)) int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += twice(i) ^ twice(s); return s; }
int main(int argc, char **argv) { return work(argc * 100); }
";

const CPP: &str = r"
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>
int main(int argc, char **argv) {
    std::map<std::string, std::vector<int>> all;
    for (int i = 0; i < argc * 100; i++) { auto &v = all[std::to_string(i % 10)]; v.push_back(i); std::sort(v.begin(), v.end()); }
    long sum = 0;
    for (auto &[name, v] : all) sum += name.size() + std::accumulate(v.begin(), v.end(), 0);
    return sum % 100;
}
";

/// Functions without a linkage name, all inlined.
const SCOPES: &str = r"
volatile long sum;
#define INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
template <class F> INLINE void twice(F f) { f(1); f(2); }
namespace {
INLINE void add(int n) { while (n) sum += n--; }
template <class T> struct Box { T value; INLINE void empty() { while (value) sum += value--; } };
}
namespace shop { namespace {
INLINE void add(int n) { while (n) sum -= n--; }
namespace till { struct Drawer { INLINE void add(int n); }; void Drawer::add(int n) { while (n) sum ^= n--; } }
}
NOINLINE void open(int n) { ::add(n); add(n + 1); till::Drawer().add(n); Box<int>{n}.empty(); }
}
NOINLINE void lambdas(int n) {
    twice([n](int i) { while (i < n) sum += i++; });
    twice([n](int i) { while (i < n) sum ^= i++; });
    struct Local { INLINE void run(int n) { while (n) sum *= n--; } };
    Local().run(n);
}
int main(int argc, char **) { shop::open(argc); lambdas(argc); }
";

const RUST: &str = r#"
use std::collections::BTreeMap;
fn main() {
    let mut all: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for i in 0..std::env::args().count() * 100 { all.entry(format!("{}", i % 7)).or_default().push(i * 3); }
    let sum: usize = all.values().flat_map(|v| v.iter().map(|x| x ^ 5)).sum();
    println!("{sum}");
}
"#;

/// Returns the output of `addr2line` for each address: functions and `file:line`, innermost first.
fn theirs(program: &Path, addresses: &[u64]) -> Vec<Vec<(String, String)>> {
    let words = addresses.iter().map(|address| format!("{address:#x}"));
    let text =
        run(Command::new("addr2line").args(["-a", "-i", "-f", "-e"]).arg(program).args(words));
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap().split(" (discriminator").next().unwrap();
        all.last_mut().unwrap().push((line.to_owned(), base(place)));
    }
    all
}

fn base(place: &str) -> String {
    let name = place.rsplit('/').next().unwrap_or(place);
    name.replace(":?", ":0")
}

fn ours(frames: &[SourceFrame]) -> Vec<(String, String)> {
    let text = |frame: &SourceFrame| {
        let file = frame.file.as_deref().unwrap_or("??");
        (frame.function.clone().unwrap_or("??".into()), base(&format!("{file}:{}", frame.line)))
    };
    frames.iter().map(text).collect()
}

/// Returns at most `most` addresses from all functions of a program, and the difference between
/// addresses and file offsets.
fn addresses(program: &Path, most: usize) -> (Vec<u64>, u64) {
    let bytes = fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let code = file.segments().find(|load| load.permissions().executable()).unwrap();
    let lines = tool("nm --defined-only -S", &[program]);
    let mut all = Vec::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [start, size, kind, _name] = words[..] else { continue };
        if kind.eq_ignore_ascii_case("t") || kind.eq_ignore_ascii_case("w") {
            let hex = |word| u64::from_str_radix(word, 16).unwrap();
            all.extend((hex(start)..hex(start) + hex(size)).step_by(3));
        }
    }
    let step = (all.len() / most).max(1);
    (all.into_iter().step_by(step).take(most).collect(), bias(&code))
}

fn compare(program: &Path, most: usize) -> usize {
    let (addresses, bias) = addresses(program, most);
    let path = program.to_str().unwrap().as_bytes();
    let resolver = Resolver::new(SymbolOptions {
        demangle: Demangle::No,
        trust_paths: true,
        ..SymbolOptions::default()
    });
    let loaded = resolver.load(&Module::new(path, None, ModuleKind::File));
    assert!(loaded.lines().is_known());
    let mut known = 0;
    let mut differing = Vec::new();
    for (address, theirs) in addresses.iter().zip(theirs(program, &addresses)) {
        let ours = ours(&loaded.lines().frames(address - bias));
        // Where debug information has nothing, addr2line falls back on the symbol table.
        let is_fallback = ours.is_empty() && theirs.len() == 1 && theirs[0].1.ends_with(":0");
        if is_fallback || theirs.iter().all(|(_, place)| place.starts_with("??")) {
            continue;
        }
        known += 1;
        let same = ours.len() == theirs.len()
            && ours
                .iter()
                .zip(&theirs)
                .all(|(a, b)| same_place(&a.1, &b.1) && same_name(&a.0, &b.0));
        if !same {
            differing.push((format!("{address:#x}"), ours, theirs));
        }
    }
    assert!(
        differing.is_empty(),
        "{} of {known}, the first: {:#?}",
        differing.len(),
        &differing[..1]
    );
    known
}

/// addr2line sometimes takes a header for the source file, with a line number beyond the end of
/// that file.
fn same_place(ours: &str, theirs: &str) -> bool {
    let line = |place: &str| place.rsplit(':').next().and_then(|line| line.parse::<usize>().ok());
    let misled = theirs.starts_with("cc.cc:") && line(theirs) > Some(CPP.lines().count());
    ours == theirs || (misled && line(ours) == line(theirs))
}

/// addr2line prints a name as the debug information has it: possibly mangled, or without its scope
/// and parameters.
fn same_name(ours: &str, theirs: &str) -> bool {
    ours == theirs || ours.contains(theirs)
}

#[test]
fn inlined_functions_agree_with_addr2line() {
    let Some(place) = Place::with("gcc g++ addr2line nm") else { return };
    let mut known = 0;
    for (compiler, source) in [
        ("gcc -O2 -g", ("c.c", C)),
        ("gcc -O2 -g -no-pie -gz", ("c.c", C)),
        ("g++ -O2 -g", ("cc.cc", CPP)),
    ] {
        known += compare(&place.compiled(compiler, source, "program"), 800);
    }
    if needs::commands("rustc") {
        known += compare(&place.compiled("rustc -O -g", ("r.rs", RUST), "rust"), 600);
    }
    assert!(known >= 1000, "only {known} addresses have lines");
}

#[test]
fn functions_without_linkage_names_have_their_scopes() {
    let Some(place) = Place::with("g++ nm") else { return };
    for flags in ["", "-gz", "-gdwarf-4 -no-pie", "-flto -ffat-lto-objects"] {
        let program =
            place.compiled(&format!("g++ -O2 -g {flags}"), ("scopes.cc", SCOPES), "program");
        let (addresses, bias) = addresses(&program, 4000);
        let resolver =
            Resolver::new(SymbolOptions { trust_paths: true, ..SymbolOptions::default() });
        let loaded = resolver.load(&Module::new(
            program.to_str().unwrap().as_bytes(),
            None,
            ModuleKind::File,
        ));
        let frames = addresses.iter().flat_map(|address| loaded.lines().frames(address - bias));
        let names: BTreeSet<String> = frames.filter_map(|frame| frame.function).collect();
        for name in [
            "(anonymous namespace)::add",
            "shop::(anonymous namespace)::add",
            "shop::(anonymous namespace)::till::Drawer::add",
            "(anonymous namespace)::Box<int>::empty",
            "lambdas(int)::{lambda#1}::operator()",
            "lambdas(int)::{lambda#2}::operator()",
            "lambdas(int)::Local::run",
            "main",
        ] {
            assert!(names.contains(name), "{flags}: {name} is not among {names:#?}");
        }
        assert!(!names.contains("add") && !names.contains("operator()"), "{flags}: {names:#?}");
    }
}

/// Addresses are sampled instructions, or the byte before a return address.
#[test]
fn inlined_functions_are_frames_of_callchains() {
    let Some(place) = Place::with("g++ addr2line nm") else { return };
    let program = place.compiled("g++ -O2 -g", ("cc.cc", CPP), "program");
    let (addresses, bias) = addresses(&program, 1300);
    let (main, _) = function(&program, "main");
    let event = Event::new("cycles:u").sampling(SampleType::CALLCHAIN);
    let mut stream = mapped(stream_with(event), &program).at(2);
    for (turn, address) in addresses.iter().enumerate() {
        let at = BASE + (address - bias);
        let chain = if turn % 2 == 0 {
            vec![context::USER, at]
        } else {
            vec![context::USER, BASE + main, at + 1]
        };
        stream = stream.sample(SampleSpec::at(at).callchain(&chain));
    }
    // The chains are made up: no rule leads from these addresses to main.
    let folded_of = |inline: &str| {
        let args = ["--format", "folded", inline, "--no-demangle", "--no-check-callchains"];
        rep(&place, &[&args[..], &["-s", "ip"]].concat(), &stream)
    };
    let folded = folded_of("--inline");
    let lines: HashMap<&str, &str> =
        folded.lines().map(|line| line.split_once(';').unwrap()).collect();
    let mut known = 0;
    for (address, theirs) in addresses.iter().zip(theirs(&program, &addresses)) {
        if theirs
            .iter()
            .any(|(name, at)| at.starts_with("??") || at.ends_with(":0") || name == "??")
        {
            continue;
        }
        let line =
            lines[format!("{:#x}", BASE + (address - bias)).as_str()].rsplit_once(' ').unwrap().0;
        let ours: Vec<&str> = line.split(';').collect();
        let same = ours.len() >= theirs.len()
            && ours
                .iter()
                .zip(theirs.iter().rev())
                .all(|(ours, (theirs, _))| same_name(ours, theirs));
        assert!(same, "{address:#x}: {line}, addr2line {theirs:?}");
        known += 1;
    }
    assert!(known >= 1000, "only {known} addresses have lines");
    let plain = folded_of("--no-inline");
    assert!(
        plain.lines().all(|line| line.split(';').count() <= 3)
            && folded.len() > plain.len() * 3 / 2
    );
}

#[test]
fn source_lines_of_a_stripped_program_come_from_its_debug_file() {
    let Some(place) = Place::with("gcc objcopy strip") else { return };
    let program = place.program("program", "");
    let (offset, _) = function(&program, "inner");
    let debug = place.at("program.debug");
    tool("objcopy --only-keep-debug", &[&program, &debug]);
    tool("strip", &[&program]);
    tool(&format!("objcopy --add-gnu-debuglink={}", debug.display()), &[&program]);
    let module = Module::new(program.to_str().unwrap().as_bytes(), None, ModuleKind::File);
    let loaded = Resolver::new(SymbolOptions { trust_paths: true, ..SymbolOptions::default() })
        .load(&module);
    let line = loaded.lines().line(offset).unwrap();
    assert_eq!(loaded.lines().get(line).to_string(), "p.c:1");
}

#[test]
fn a_package_of_split_debug_information_is_found_by_the_names_of_program_and_debug_file() {
    let Some(place) = Place::with("gcc dwp objcopy strip") else { return };
    // The tools put the debug information of each source file beside the program.
    let compiler = "gcc -O1 -g -gsplit-dwarf -gdwarf-4 -Wl,--build-id";
    let source = "volatile int x;\n\
                  static inline __attribute__((always_inline)) int inner(int a) { while (a) x += \
                  a--; return x; }\n\
                  __attribute__((noinline)) int outer(int a) { return inner(a) + 1; }\n\
                  int main(int argc, char **argv) { return outer(argc); }\n";
    let program = place.compiled(compiler, ("p.c", source), "app");
    let package = place.put("package", "");
    tool("dwp -e", &[&program, Path::new("-o"), &package]);
    let split: Vec<_> =
        fs::read_dir(place.at("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    split
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "dwo"))
        .for_each(|it| fs::remove_file(it).unwrap());
    let (offset, _) = function(&program, "outer");
    let debug = place.put("debug/app.debug", "");
    tool("objcopy --only-keep-debug", &[&program, &debug]);
    tool("strip -s", &[&program]);
    tool(&format!("objcopy --add-gnu-debuglink={}", debug.display()), &[&program]);
    let debug_dir = place.at(".debug");
    fs::rename(place.at("debug"), &debug_dir).unwrap();
    let functions = || {
        let module = Module::new(program.to_str().unwrap().as_bytes(), None, ModuleKind::File);
        let loaded = Resolver::new(SymbolOptions { trust_paths: true, ..SymbolOptions::default() })
            .load(&module);
        let frames =
            (offset..offset + 8).map(|at| loaded.lines().frames(at)).max_by_key(Vec::len).unwrap();
        frames.into_iter().filter_map(|frame| frame.function).collect::<Vec<_>>()
    };
    assert!(functions().len() < 2, "nothing names what was split off");
    for name in ["app.dwp", ".debug/app.dwp", ".debug/app.debug.dwp"] {
        let at = place.at(name);
        fs::copy(&package, &at).unwrap();
        assert_eq!(functions(), ["inner", "outer"], "{name}");
        fs::remove_file(at).unwrap();
    }
}

#[test]
fn rows_by_source_line_and_file() {
    let Some(place) = Place::with("gcc strip") else { return };
    let program = place.program("program", "");
    let (offset, _) = function(&program, "main");
    let elsewhere = SampleSpec::at(1).period(2);
    let sampled = sampled(stream(), &program, offset).sample(elsewhere);
    let rows = |keys: &str| {
        let text = rep(&place, &["-t", "|", "-s", keys], &sampled);
        text.lines()
            .filter(|line| line.contains("%|"))
            .map(|line| line.split_once('|').unwrap().1.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(rows("srcline"), ["??:0", "p.c:3"]);
    assert_eq!(rows("srcfile"), [".", "p.c"]);
    let whole = rep(&place, &["-t", "|", "-s", "srcfile", "--full-source-path"], &sampled);
    assert!(whole.contains(&format!("%|{}\n", place.at("p.c").display())), "{whole}");
    assert_eq!(rows("sym,srcline")[1], "[.] main|p.c:3");
    tool("strip -g", &[&program]);
    assert_eq!(rows("srcline,srcfile")[1], "main+0|.");
}

/// A sample may be taken where a call returns to, which the call's own line and inlined functions
/// are not those of. A profile tells both, as the recording does.
#[test]
fn callers_and_samples_at_one_address_have_their_own_lines_in_a_profile() {
    let Some(place) = Place::with("gcc objdump") else { return };
    let program = place.compiled("gcc -O2 -g", ("lines.c", C), "lines");
    let (_, bias) = addresses(&program, 1);
    let listed = tool("objdump -d --no-show-raw-insn", &[&program]);
    let lines: Vec<(u64, &str)> = listed
        .lines()
        .filter_map(|line| {
            let (address, text) = line.trim().split_once(":\t")?;
            Some((u64::from_str_radix(address, 16).ok()?, text))
        })
        .collect();
    let calls = lines.windows(2).filter(|pair| pair[0].1.starts_with("call"));
    let returns: Vec<u64> = calls.map(|pair| BASE + pair[1].0 - bias).collect();
    let mut stream =
        mapped(stream_with(Event::new("cycles:u").sampling(SampleType::CALLCHAIN)), &program);
    for (time, at) in (2..).zip(&returns) {
        let called = [context::USER, BASE + 0x10, *at];
        stream = stream.at(time).sample(SampleSpec::at(*at).callchain(&[context::USER, *at]));
        stream = stream.sample(SampleSpec::at(BASE + 0x10).callchain(&called));
    }
    let profile = place.at("x.pb.gz");
    rep(&place, &["export", "--trust-paths", "-o", profile.to_str().unwrap()], &stream);
    let views =
        [&["--format", "folded", "--inline"][..], &["--format", "folded", "--inline", "-n"]];
    for view in views {
        let ours = rep(&place, &[view, &["--trust-paths"]].concat(), &stream);
        assert!(ours.lines().any(|line| line.contains("work;twice")), "{ours}");
        assert_eq!(run(super::super::rep().args(view).arg(&profile)), ours);
    }
}
