//! Callchains against the truth: `chains.c` has forty parts, each with a callchain that is known
//! beforehand, and says so.
//!
//! A part's chain is right if the functions of the program in it are those that the program says,
//! in their order; functions of libraries may be between them. It is cut if `[callers unknown]`
//! stands where something is missing. All else is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::programs::rep;
use recrep_tests::record::record;
use recrep_tests::run::run;

/// Time of each part in milliseconds.
const PART: &str = "25";

/// Shares of samples, in per cent.
#[derive(Debug)]
struct Shares {
    right: f64,
    wrong: f64,
}

/// Records the program, compiled with these flags of gcc, with these options of rec; `None` where
/// this cannot be done here.
fn shares(flags: &str, options: &str) -> Option<Shares> {
    if !cfg!(target_arch = "x86_64") || !needs::perf_events() || !needs::commands("gcc") {
        println!("skipped: needs x86-64, gcc and perf events");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let (program, file) = (dir.path().join("chains"), dir.path().join("chains.data"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/live/known_chains/chains.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-w", "-O2", "-g"]).args(flags.split_whitespace());
    run(gcc.arg("-o").arg(&program).arg(&source).args(["-lm", "-lpthread"])).expect(0);
    let command = [program.to_str().unwrap().to_owned(), PART.to_owned()];
    let said = record(&file, &format!("-e cpu-clock -F 1999 {options}"), &command);
    let expected: BTreeMap<&str, Vec<&str>> = said
        .text()
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(leaf, chain)| (leaf, chain.split(';').collect()))
        .collect();
    assert!(expected.len() > 35, "the program says what its chains are");
    let folded = run(rep().args(["--no-inline", "--format", "folded"]).arg(&file)).expect(0);
    Some(judged(&expected, folded.text()))
}

fn judged(expected: &BTreeMap<&str, Vec<&str>>, folded: &str) -> Shares {
    let own: BTreeSet<&str> = expected.values().flatten().copied().collect();
    let (mut right, mut cut, mut wrong) = (0.0, 0.0, 0.0);
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let weight: f64 = weight.parse().unwrap();
        let frames: Vec<&str> = stack.split(';').collect();
        let found: Vec<&str> = frames.iter().copied().filter(|frame| own.contains(frame)).collect();
        // What is in no part: the program's start, its calibration.
        let Some(leaf) = found.iter().rfind(|frame| frame.ends_with("_leaf")) else { continue };
        let is_marked = frames.contains(&"[callers unknown]");
        if found == expected[leaf] {
            right += weight;
        } else if is_marked {
            cut += weight;
        } else {
            println!("wrong: {line}");
            wrong += weight;
        }
    }
    let all = (right + cut + wrong) / 100.0;
    println!("{:.1}% right, {:.1}% cut, {:.1}% wrong", right / all, cut / all, wrong / all);
    Shares { right: right / all, wrong: wrong / all }
}

const WITH: &str = "-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer";
const WITHOUT: &str = "-fomit-frame-pointer";

/// The kernel's chain stands in where the copy ends: nothing is missing.
#[test]
fn a_program_with_frame_pointers_is_unwound_while_it_is_recorded() {
    let Some(shares) = shares(WITH, "-g") else { return };
    assert!(shares.right >= 95.0 && shares.wrong <= 0.5, "{shares:?}");
}

/// Two of the parts cannot be unwound: one has more on its stack than is copied, one has two
/// stacks.
#[test]
fn a_program_without_frame_pointers_is_unwound_while_it_is_recorded() {
    let Some(shares) = shares(WITHOUT, "-g") else { return };
    assert!(shares.right >= 90.0 && shares.wrong <= 0.2, "{shares:?}");
}

#[test]
fn copied_stacks_are_unwound_by_the_report() {
    let Some(shares) = shares(WITHOUT, "--call-graph dwarf,16384") else { return };
    assert!(shares.right >= 90.0 && shares.wrong <= 0.2, "{shares:?}");
}

/// What the kernel made up is not shown.
#[test]
fn chains_of_frame_pointers_alone_have_no_wrong_callers() {
    for flags in [WITH, WITHOUT] {
        let Some(shares) = shares(flags, "--call-graph fp") else { return };
        assert!(shares.wrong <= 0.2, "{flags}: {shares:?}");
    }
}
