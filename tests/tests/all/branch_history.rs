//! `rep --branch-history` against perf's: rows and trees, line by line, of branches whose functions
//! both know.
//!
//! From the callee on, for there the order of frames is the same. How often a loop was turned is
//! left out: perf divides by one sample too few, and says nothing where there was only one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{BranchEntry, BranchFlags, BranchSampleType, SampleType, context};
use recrep_format::endian::Endian;
use recrep_format::feature::BranchStackMark;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use recrep_tests::{needs, perf};
use tempfile::TempDir;

const CODE: u64 = 0x10_0000;
/// Number of functions; each is [`LEN`] bytes long.
const FUNCTIONS: u64 = 24;
const LEN: u64 = 0x40;

/// Names for the code of this process, where perf looks for those of a JIT.
struct Names {
    path: PathBuf,
    /// The tests of this process have one such file together.
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Names {
    fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let path = PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()));
        let line =
            |number: u64| format!("{:x} {LEN:x} function_{number:02}\n", CODE + number * LEN);
        std::fs::write(&path, (0..FUNCTIONS).map(line).collect::<String>()).unwrap();
        Self { path, _turn: turn }
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).unwrap();
    }
}

/// Samples with branches that loop, fork and meet, of several threads; `with_calls` with callchains
/// that partly overlap them.
fn stream(with_calls: bool) -> Stream {
    let pid = std::process::id();
    let event = Event::new("cycles").branches(BranchSampleType::USER | BranchSampleType::ANY);
    let event = if with_calls { event.sampling(SampleType::CALLCHAIN) } else { event };
    let mut stream =
        Stream::new(Endian::NATIVE).event(event).feature(&BranchStackMark { data: &[] });
    stream = stream.task(pid, pid).comm("looping").map("//anon", CODE, FUNCTIONS * LEN, 0).at(10);
    let mut state = 7u64;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..3_000 {
        let branch =
            |from: u64, to: u64, flags: u64| BranchEntry { from, to, flags: BranchFlags(flags) };
        // Few places, so that ways are shared; turns of two branches and of one.
        let mut stack: Vec<BranchEntry> = Vec::new();
        for _ in 0..1 + next(5) {
            let (from, turns) = (CODE + LEN * next(5) + 8, next(3));
            let (predicted, cycles, aborted, kind) =
                (1 + next(2), next(12), next(2), next(4) * next(2));
            let flags = predicted | cycles << 4 | aborted << 3 | kind << 20;
            stack.push(branch(from, CODE + LEN * next(2), flags));
            for _ in 0..turns {
                stack.push(branch(from + 4, CODE + LEN * 9 + 16, 2 | next(9) << 4));
                stack.push(branch(CODE + LEN * 9 + 24, from, 2));
            }
        }
        let sampled = CODE + LEN * next(FUNCTIONS);
        let mut chain = vec![context::USER, sampled];
        for _ in 0..next(9) {
            chain.push(CODE + LEN * next(6) + 12);
        }
        stream = stream.sample(
            SampleSpec::at(sampled).callchain(&chain).branches(&stack).period(1 + next(1 << 40)),
        );
    }
    stream
}

/// perf gives up where a program that it asks for lines has ended, unless such pipes do no harm.
fn unbreakable(perf: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' PIPE; exec \"$0\" \"$@\""]).arg(perf.get_program());
    shell.envs(perf.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

/// The lines of the tree below each row.
fn trees(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut trees = BTreeMap::<String, Vec<String>>::new();
    let mut row = String::new();
    for line in
        text.lines().map(str::trim_end).filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        if line.starts_with("            ") {
            trees.get_mut(&row).unwrap().push(without_turns(line));
        } else {
            row = line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(trees.insert(row.clone(), Vec::new()).is_none(), "{row} is there twice");
        }
    }
    trees
}

fn without_turns(line: &str) -> String {
    match line.split_once("iter:") {
        Some((before, _)) if before.ends_with('(') => before.trim_end_matches(" (").to_owned(),
        Some((before, _)) => format!("{})", before.trim_end()),
        None => line.to_owned(),
    }
}

#[track_caller]
fn assert_agrees(file: &Path, graph: &str) -> usize {
    let flags = ["--branch-history", "--no-children", "--stdio", "-s", "comm,dso,sym", "-g", graph];
    let mut perf = unbreakable(&perf::perf());
    perf.arg("report").args(flags).arg("-i").arg(file);
    let theirs = trees(run(&mut perf).expect(0).text());
    let ours = trees(run(rep().arg("--trust-paths").args(flags).arg(file)).expect(0).text());
    assert!(theirs.len() == usize::try_from(FUNCTIONS).unwrap(), "{} rows", theirs.len());
    for (row, tree) in &theirs {
        assert_eq!(ours.get(row), Some(tree), "{row} of {} with {graph}", file.display());
    }
    assert_eq!(ours.len(), theirs.len());
    theirs.values().map(Vec::len).sum()
}

#[test]
fn trees_are_perfs() {
    if !needs::perf_events() {
        return;
    }
    let (_names, dir) = (Names::new(), TempDir::new().unwrap());
    let mut compared = 0;
    for with_calls in [false, true] {
        let file = dir.path().join(format!("{with_calls}.data"));
        std::fs::write(&file, stream(with_calls).file()).unwrap();
        for graph in ["graph,0,callee", "graph,2,callee,count", "graph,5,callee,period"] {
            compared += assert_agrees(&file, graph);
        }
    }
    println!("{compared} lines of trees are perf's");
    assert!(compared > 10_000);
}

/// The order of frames does not matter for what each function has gathered.
#[test]
fn rows_with_children_are_perfs() {
    if !needs::perf_events() {
        return;
    }
    let (_names, dir) = (Names::new(), TempDir::new().unwrap());
    let file = dir.path().join("calls.data");
    std::fs::write(&file, stream(true).file()).unwrap();
    for order in ["caller", "callee"] {
        // Trees of parts that no row has leave the rows.
        let graph = format!("graph,100,{order}");
        let flags = [
            "--branch-history",
            "--children",
            "--stdio",
            "-s",
            "comm,dso,sym",
            "-t",
            "|",
            "-g",
            &graph,
        ];
        let rows = |text: &str| {
            let cells = |line: &str| {
                line.split('|').map(|cell| cell.trim().trim_end_matches('%').to_owned()).collect()
            };
            let is_row = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
            let mut rows: Vec<Vec<String>> = text.lines().filter(is_row).map(cells).collect();
            rows.sort();
            rows
        };
        let mut perf = unbreakable(&perf::perf());
        perf.arg("report").args(flags).arg("-i").arg(&file);
        let theirs = rows(run(&mut perf).expect(0).text());
        assert_eq!(
            rows(run(rep().arg("--trust-paths").args(flags).arg(&file)).expect(0).text()),
            theirs,
            "{order}"
        );
        assert!(theirs.len() > 20, "{theirs:?}");
    }
}
