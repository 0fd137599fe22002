//! Threads change the speed, never the output.

use std::path::Path;

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{BranchEntry, BranchFlags, BranchSampleType, SampleType, context};
use recrep_format::endian::Endian;
use recrep_tests::needs;
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::run;

/// Every byte that rep prints of a file is the same with one, two and seven threads.
#[track_caller]
fn assert_same_bytes(file: &Path, args: &[&str]) {
    let output = |threads: &str| {
        let outcome = run(rep().args(args).arg(file).env("RAYON_NUM_THREADS", threads));
        (outcome.code(), outcome.stdout, outcome.stderr)
    };
    let one = output("1");
    // A file without samples has no folded stacks.
    assert!(
        !one.1.is_empty() || one.0 != 0 || args.contains(&"folded"),
        "rep {args:?} prints nothing"
    );
    for threads in ["2", "7"] {
        assert!(
            one == output(threads),
            "rep {args:?} of {} differs with {threads} threads",
            file.display()
        );
    }
}

/// Samples with all that views are made of, by several threads on several CPUs, from two events, in
/// several pieces.
fn rich() -> Stream {
    const TEXT: u64 = 0x40_0000;
    const LIB: u64 = 0x7f00_0000;
    let fields = SampleType::ADDR
        | SampleType::WEIGHT
        | SampleType::DATA_SRC
        | SampleType::CPU
        | SampleType::PHYS_ADDR
        | SampleType::CALLCHAIN
        | SampleType::RAW;
    let branches = BranchSampleType::USER | BranchSampleType::ANY;
    let mut stream = Stream::new(Endian::NATIVE)
        .event(Event::new("mem-loads:u").sampling(fields).branches(branches))
        .event(Event::new("mem-stores:u").sampling(fields).branches(branches));
    for thread in 0..5u32 {
        stream = stream
            .task(10, 10 + thread)
            .comm(["main", "left", "right", "reader", "writer"][thread as usize]);
        stream =
            stream.map("/nowhere/program", TEXT, 0x4000, 0).map("/nowhere/lib.so", LIB, 0x4000, 0);
    }
    let mut state = 1u64;
    let mut next = |below: u64| {
        // A linear congruence: the same numbers on every run.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // Bytes that hardly a view prints make pieces of few samples.
    let raw = [0; 1224];
    for turn in 0..1_250u64 {
        let thread = u32::try_from(next(5)).unwrap();
        let event = usize::try_from(next(2)).unwrap();
        let op = if event == 0 { 2 } else { 4 };
        let level = [8u64 | 2, 0x40 | 2, 0x400 | 2][usize::try_from(next(3)).unwrap()];
        let src = op | level << 5 | [2u64, 0x10][usize::try_from(next(2)).unwrap()] << 19;
        let mut branch = || BranchEntry {
            from: TEXT + 16 * next(40),
            to: [TEXT, LIB][usize::try_from(next(2)).unwrap()] + 16 * next(40),
            flags: BranchFlags((1 + next(2)) | (next(30) << 4)),
        };
        let stack = [branch(), branch(), branch()];
        let chain = [context::USER, TEXT + 8 * next(60), LIB + 8 * next(9), TEXT + 8 * next(3)];
        let spec = SampleSpec::at(chain[1])
            .callchain(&chain)
            .branches(&stack)
            .data_src(src)
            .weight(1 + next(300));
        let spec =
            spec.addr(LIB + 8 * next(200)).phys_addr(next(1 << 20)).period(1 + next(9)).raw(&raw);
        stream = stream
            .task(10, 10 + thread)
            .on_cpu(thread)
            .of(event)
            .at(1_000_000_000 + turn * 100_000)
            .sample(spec);
    }
    stream.round()
}

#[test]
fn every_view_is_the_same_with_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rich.data");
    let stream = rich();
    std::fs::write(&file, stream.file()).unwrap();
    assert!(std::fs::metadata(&file).unwrap().len() > 3 << 19, "several pieces");
    let keys = "comm,dso,symbol,cpu,mem,local_weight,dcacheline,process,reach";
    for view in [
        &["mem"][..],
        &["mem", "-s", "symbol,tid,snoop"],
        &["c2c"],
        &["c2c", "--show-all", "-c", "pid,tid,iaddr,dso", "-N", "--double-cl"],
        &["c2c", "--stats"],
        &["branches"],
        &["timeline", "--time-quantum", "10ms"],
        &["modules"],
        &["info"],
        &["--mem-mode", "-s", keys],
        &["-b"],
        &["-n"],
        &["-s", "comm,dso,sym,ip,cpu,pid,event"],
        &["--hierarchy", "-s", "comm,dso,symbol"],
        &["--group", "-s", "comm,symbol"],
        &["--children", "-g", "caller", "-s", "comm,symbol"],
        &["--branch-history", "--children"],
        &["--branch-history", "-g", "callee,fractal,1", "-s", "comm,symbol"],
        &["--stats"],
        &["--tasks"],
        &["--mmaps"],
    ] {
        assert_same_bytes(&file, view);
        if !view.contains(&"--mmaps") && !view.contains(&"--tasks") {
            assert_same_bytes(&file, &[view, &["--json"]].concat());
        }
    }
    for view in [
        &["script"][..],
        &[
            "script",
            "-F",
            "+brstack,+misc,-sym",
            "--show-task-events",
            "--show-mmap-events",
            "--deltatime",
        ],
        &["script", "--show-round-events", "-G", "-C", "1-3", "--time", "10%/2"],
        &["script", "-D", "--limit", "500"],
        &["mem", "-D", "-x", ","],
        &["branches", "--format", "bolt"],
        &["--format", "folded"],
        &["--branch-history", "--format", "folded"],
        &["dump", "--limit", "2000"],
        &["evlist", "-v"],
    ] {
        assert_same_bytes(&file, view);
    }
}

/// The same for real files of many kernels and machines, where `RECREP_CORPUS` names a directory of
/// them; none of them may be more than rep can bear.
#[test]
fn the_corpus_is_borne_and_the_same_with_any_number_of_threads() {
    let Some(corpus) = needs::corpus() else { return };
    let mut files = 0;
    for entry in std::fs::read_dir(&corpus).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().and_then(|name| name.to_str()).unwrap();
        if !file.is_file() || !(name.contains(".data") || name.ends_with(".perf")) {
            continue;
        }
        files += 1;
        assert_same_bytes(&file, &["--json", "--sort", "comm,dso"]);
        assert_same_bytes(&file, &["--format", "folded"]);
        let outcome = run(rep().arg(&file));
        assert!(
            matches!(outcome.code(), 0 | 1),
            "{name}: status {}: {}",
            outcome.code(),
            outcome.stderr
        );
        assert!(!outcome.stderr.contains("panicked"), "{name}: {}", outcome.stderr);
    }
    assert!(files > 0, "no perf.data file in {}", corpus.display());
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn the_same_bytes_with_any_number_of_threads() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("threads.data");
        let work = workload("hot --ms 300 --threads 3 --forks 1 --children 1");
        record(&file, "-e cpu-clock,page-faults -F 8000 -g", &work);
        for sort in ["comm,dso,symbol", "pid,tid", "ip", "cpu,event,comm", "symbol"] {
            assert_same_bytes(&file, &["--sort", sort]);
            assert_same_bytes(&file, &["--json", "--sort", sort]);
        }
        assert_same_bytes(&file, &[]);
        assert_same_bytes(&file, &["--format", "folded"]);
    }
}
