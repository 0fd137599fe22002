//! Threads change the speed, never the output.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use recrep_tests::needs;
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::run;

/// Every byte that rep prints of a file is the same with one, two and five threads.
#[track_caller]
fn assert_same_bytes(file: &Path, args: &[&str]) {
    let output = |threads: &str| {
        let outcome = run(rep().args(args).arg(file).env("RAYON_NUM_THREADS", threads));
        (outcome.code(), outcome.stdout, outcome.stderr)
    };
    let one = output("1");
    // A file without samples has no folded stacks.
    assert!(!one.1.is_empty() || one.0 != 0 || args.contains(&"folded"), "rep {args:?} prints nothing");
    for threads in ["2", "5"] {
        assert!(one == output(threads), "rep {args:?} of {} differs with {threads} threads", file.display());
    }
}

#[test]
fn the_same_bytes_with_any_number_of_threads() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = needs::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("threads.data");
    let work = workload("hot --ms 1000 --threads 3 --forks 1 --children 1");
    record(&file, "-e cpu-clock,page-faults -F 20000 -g", &work);
    for sort in ["comm,dso,symbol", "pid,tid", "ip", "cpu,event,comm", "symbol"] {
        assert_same_bytes(&file, &["--sort", sort]);
        assert_same_bytes(&file, &["--json", "--sort", sort]);
    }
    assert_same_bytes(&file, &[]);
    assert_same_bytes(&file, &["--format", "folded"]);
}

/// The same for real files of many kernels and machines, where `RECREP_CORPUS` names a directory of them; none of
/// them may be more than rep can bear.
#[test]
fn the_corpus_is_borne_and_the_same_with_any_number_of_threads() {
    let Some(corpus) = std::env::var_os("RECREP_CORPUS") else {
        return;
    };
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
        assert!(matches!(outcome.code(), 0 | 1), "{name}: status {}: {}", outcome.code(), outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "{name}: {}", outcome.stderr);
    }
    assert!(files > 0, "no perf.data file in {}", Path::new(&corpus).display());
}
