//! Callchains from copied stacks: `rep` against what perf unwinds of the same file, frame by frame.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::report::report_of;
use recrep_tests::run::run;
use recrep_tests::{needs, perf};

/// The names of each sample's functions, the innermost first. What perf has where its own unwinding
/// failed (-1) is no frame.
fn chains(tool: &mut Command, file: &Path) -> Vec<Vec<String>> {
    let outcome = run(tool.arg(file)).expect(0);
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let name = |line: &str| {
        let (ip, name) = line.trim().split_once(' ')?;
        (ip != "ffffffffffffffff").then(|| name.to_owned())
    };
    text.split("\n\n").map(|block| block.lines().filter_map(name).collect()).collect()
}

struct Compared {
    samples: usize,
    /// perf's frames are the first ones of ours.
    agreed: usize,
    frames: [usize; 2],
}

fn compared(file: &Path) -> Compared {
    let theirs = chains(perf::perf().args(["script", "--no-inline", "-F", "ip,sym", "-i"]), file);
    let ours = chains(rep().args(["script", "--no-inline", "-F", "ip,sym"]), file);
    assert_eq!(ours.len(), theirs.len(), "samples");
    let pairs = || ours.iter().zip(&theirs);
    let agreed = pairs().filter(|(our, their)| our.starts_with(their)).count();
    let frames = [&ours, &theirs].map(|all| all.iter().map(Vec::len).sum());
    println!("{} samples, {agreed} agree, frames {frames:?}", ours.len());
    Compared { samples: ours.len(), agreed, frames }
}

#[test]
fn a_known_stack_is_unwound_as_perf_does() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dwarf.data");
    record(&file, "-e cpu-clock:u -F 1999 --call-graph dwarf,16384", &workload("hot --ms 200"));
    let Compared { samples, agreed, frames: [ours, theirs] } = compared(&file);
    assert!(samples > 50, "{samples}");
    assert!(agreed * 100 >= samples * 99, "{agreed} of {samples}");
    assert!(ours >= theirs, "{ours} frames, perf has {theirs}");
    let named = chains(rep().args(["script", "--no-inline", "-F", "ip,sym"]), &file);
    let whole = |chain: &&Vec<String>| {
        chain.iter().any(|name| name.contains("burn"))
            && chain.iter().any(|name| name.contains("main"))
    };
    let whole = named.iter().filter(whole).count();
    assert!(whole * 100 >= samples * 95, "{whole} of {samples} chains lead from main to the loop");
}

/// Returns the counts of folded stacks, by stacks without the hashes of Rust's functions, which tell
/// those apart in a report that share a name. `rep script` names them all alike.
fn counts_of_stacks(text: &str) -> BTreeMap<String, u64> {
    let hash = regex_lite::Regex::new("::h[0-9a-f]{16}").unwrap();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let stack = hash.replace_all(stack, "").into_owned();
        *counts.entry(stack).or_default() += count.parse::<u64>().unwrap();
    }
    counts
}

/// Every view has the chains that `rep script` prints.
#[test]
fn folded_stacks_have_the_unwound_frames() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dwarf.data");
    record(&file, "-e cpu-clock -F 1999 --call-graph dwarf,16384", &workload("hot --ms 200"));
    let script = run(rep().arg("script").arg(&file)).expect(0);
    let mut options = Options::default();
    options.nthreads = 1;
    let mut collapsed = Vec::new();
    Folder::from(options).collapse(&*script.stdout, &mut collapsed).unwrap();
    // `rep script` does not say where callers are missing, and infers no functions.
    let flags = ["--format", "folded", "--no-check-callchains", "--no-inferred"];
    let folded = run(rep().args(flags).arg(&file)).expect(0);
    let ours = counts_of_stacks(folded.text());
    assert!(ours.keys().any(|stack| stack.contains("main;") && stack.contains("burn")), "{ours:?}");
    assert_eq!(ours, counts_of_stacks(std::str::from_utf8(&collapsed).unwrap()));
}

#[test]
fn a_small_copy_ends_a_chain_and_is_never_made_up_for() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cut.data");
    record(&file, "-e cpu-clock:u -F 1999 --call-graph dwarf,64", &workload("hot --ms 200"));
    let told = report_of(&file, &["--children"], "symbol").warnings;
    assert!(told.iter().any(|warning| warning.code == "truncated-stack"), "{told:?}");
    let Compared { samples, agreed, frames: [ours, _] } = compared(&file);
    assert!(samples > 0 && ours >= samples, "{ours} frames of {samples} samples");
    assert!(agreed * 100 >= samples * 99, "{agreed} of {samples}");
}

/// Returns the share of the samples whose chains have a function, in per cent, with the call frames
/// of a program compiled with these flags, then changed by a command.
fn share_below_main(flags: &str, change: Option<&[&str]>) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let source = "
        #include <time.h>
        volatile unsigned long sink;
        __attribute__((noinline)) static void leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * n; }
        __attribute__((noinline)) static void middle(int depth) {
            volatile unsigned long here[9] = {1, 2, 3};
            if (depth > 0) middle(depth - 1); else leaf(20000);
            sink += here[depth & 3];
        }
        int main(void) {
            clock_t end = clock() + CLOCKS_PER_SEC / 3;
            while (clock() < end) middle(5);
            return 0;
        }";
    std::fs::write(at("app.c"), source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]);
    run(cc.args(flags.split_whitespace()).args(["-o", &at("app"), &at("app.c")])).expect(0);
    if let Some([program, words @ ..]) = change {
        run(Command::new(program).args(words).current_dir(dir.path())).expect(0);
    }
    let file = dir.path().join("app.data");
    record(&file, "-e cpu-clock:u -F 1999 --call-graph dwarf,8192", &[at("app")]);
    let outcome = run(rep().args(["--format", "folded", "--no-inline"]).arg(&file)).expect(0);
    let counted = |lines: &mut dyn Iterator<Item = &str>| {
        lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum::<f64>()
    };
    let mut of_leaf = outcome.text().lines().filter(|line| line.contains(";leaf"));
    let all = counted(&mut of_leaf);
    let mut whole = outcome
        .text()
        .lines()
        .filter(|line| line.contains(";main;middle;") && line.contains(";leaf"));
    100.0 * counted(&mut whole) / all
}

/// Compilers leave `.eh_frame` to the C library's start files and write `.debug_frame`.
#[test]
fn call_frame_information_of_debuggers_is_used() {
    if !needs::perf_events() || !needs::commands("cc") {
        return;
    }
    let only_debug = "-fno-asynchronous-unwind-tables -fno-unwind-tables";
    for compressed in ["", "-gz=zlib", "-gz=zlib-gnu"] {
        let share = share_below_main(&format!("{only_debug} {compressed}"), None);
        assert!(share > 95.0, "{compressed}: {share}");
    }
    if needs::commands("objcopy") {
        // In a debug file of its own.
        let script = "objcopy --only-keep-debug app app.debug && strip app && \
                      objcopy --add-gnu-debuglink=app.debug app";
        let share = share_below_main(only_debug, Some(&["sh", "-c", script]));
        assert!(share > 95.0, "{share}");
    }
}

/// Code written by hand, whose frames are not at the stack or frame pointer.
#[test]
fn ciphers_are_unwound_by_their_own_rules() {
    if !needs::perf_events() || !needs::commands("openssl") || !cfg!(target_arch = "x86_64") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cipher.data");
    let words = ["openssl", "speed", "-seconds", "1", "-evp", "chacha20-poly1305"];
    record(
        &file,
        "-q -e cpu-clock:u -F 499 --call-graph dwarf,16384",
        &words.map(ToOwned::to_owned),
    );
    let outcome = run(rep().args(["--format", "folded", "--no-inline"]).arg(&file)).expect(0);
    let (mut all, mut whole) = (0.0, 0.0);
    for line in outcome.text().lines() {
        let (chain, weight) = line.rsplit_once(' ').unwrap();
        let weight: f64 = weight.parse().unwrap();
        all += weight;
        whole += if chain.contains(";_start;") || chain.contains(";__libc_start") {
            weight
        } else {
            0.0
        };
    }
    assert!(whole > 0.97 * all, "{whole} of {all}: {}", outcome.text());
}
