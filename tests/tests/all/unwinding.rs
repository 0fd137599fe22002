//! Callchains from copied stacks: `rep` against what perf unwinds of the same file, frame by frame.

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
    // `rep script` does not say where callers are missing.
    let flags = ["--format", "folded", "--no-check-callchains"];
    let folded = run(rep().args(flags).arg(&file)).expect(0);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let ours = sorted(folded.text());
    assert!(ours.iter().any(|line| line.contains("main;") && line.contains("burn")), "{ours:?}");
    assert_eq!(ours, sorted(std::str::from_utf8(&collapsed).unwrap()));
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
