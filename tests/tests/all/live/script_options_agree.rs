//! The options of `rep script` against those of `perf script`: the same lines, on files that rec
//! records in the test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use recrep_tests::agreement::Extent;
use recrep_tests::listing::compare_with;
use recrep_tests::needs;
use recrep_tests::perf::perf;
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::run;

/// Records what a shell and its commands did, by clock ticks and by faults, with all that rec can
/// note beside.
fn recorded(dir: &Path, more: &str) -> PathBuf {
    let file = dir.join("rec.data");
    let script = "for i in 1 2; do ls -l /usr/bin >/dev/null; seq 30000 | sort -rn | md5sum \
                  >/dev/null; done";
    record(
        &file,
        &format!("-e cpu-clock,page-faults -d {more}"),
        &["sh", "-c", script].map(str::to_owned),
    );
    file
}

/// Holds the listings against each other, and tells how many lines there were.
#[track_caller]
fn same(file: &Path, options: &str) -> usize {
    let options: Vec<&str> = options.split_whitespace().collect();
    let listing = compare_with(file, &options, Extent::Command);
    println!("{options:?}: {} lines, {:?} in form", listing.lines, listing.forms);
    listing.lines
}

#[test]
fn how_lines_look() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = recorded(dir.path(), "-g -k mono");
    let all = same(&file, "");
    assert!(all > 100, "{all} lines");
    for options in [
        "--ns",
        "--reltime",
        "--deltatime --ns",
        "-L",
        "-F +misc,+pid",
        "-F +tod --ns",
        "-F -sym,-symoff",
    ] {
        assert_eq!(same(&file, options), all, "{options}");
    }
    let without_chains = same(&file, "-G");
    assert!(without_chains < all && same(&file, "-G -F +addr,-period") == without_chains);
    assert!(same(&file, "--max-stack 2") < all);
    assert!(same(&file, "--stop-bt main,_start,__libc_start_main") <= all);
    assert!(same(&file, "-F sw:comm,tid,time") == without_chains);
}

#[test]
fn which_samples() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = recorded(dir.path(), "");
    let all = same(&file, "");
    let fields = ["script", "-F", "ip,sym"];
    let listings = [
        run(rep().args(fields).arg(&file)).expect(0),
        run(perf().args(fields).arg("-i").arg(&file)).expect(0),
    ];
    let is_name = |name: &&str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    // Of several names of a function, each may prefer another.
    let [ours, theirs] = listings.each_ref().map(|listing| {
        let words = listing.text().lines().filter_map(|line| line.trim().split_once(' '));
        words.map(|(_, name)| name.trim()).filter(is_name).collect::<BTreeSet<&str>>()
    });
    let names = ours.intersection(&theirs).copied();
    let two: Vec<&str> = names.take(2).collect();
    let by_name = format!("-S {}", two.join(","));
    for options in
        ["-c md5sum", "-c ls,seq", "--dsos libc.so.6", &by_name, "--time 50%/2", "--time 0%-30%"]
    {
        assert!(same(&file, options) < all, "{options}");
    }
    // All may have run on one CPU.
    let listing = run(rep().args(["script", "-F", "cpu"]).arg(&file)).expect(0);
    let cpus: BTreeSet<&str> =
        listing.text().lines().map(|line| line.trim_matches([' ', '[', ']'])).collect();
    assert_eq!(cpus.iter().map(|cpu| same(&file, &format!("-C {cpu}"))).sum::<usize>(), all);
    let listing = run(rep().args(["script", "-F", "pid,tid,ip,sym"]).arg(&file)).expect(0);
    let line = listing.text().lines().nth(all / 2).unwrap().to_owned();
    let (pid, rest) = line.trim().split_once('/').unwrap();
    let ip = rest.split_whitespace().nth(1).unwrap();
    for options in
        [format!("--pid {pid}"), format!("--tid {pid}"), format!("-S 0x{ip} --addr-range 4096")]
    {
        assert!((1..all).contains(&same(&file, &options)), "{options}");
    }
    assert!(same(&file, "--switch-on page-faults") < all);
    assert_eq!(
        same(&file, "--switch-on page-faults --switch-off cpu-clock --show-on-off-events"),
        { same(&file, "--switch-on page-faults --switch-off cpu-clock --show-on-off-events --ns") }
    );
}

#[test]
fn records_among_the_samples() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = recorded(dir.path(), "--switch-events --namespaces");
    let all = same(&file, "");
    for options in [
        "--show-task-events",
        "--show-mmap-events",
        "--show-switch-events",
        "--show-namespace-events",
    ] {
        assert!(same(&file, options) > all, "{options}");
        // All may have run on one CPU.
        let cpus = 0..std::thread::available_parallelism().unwrap().get();
        let lines: usize =
            cpus.map(|cpu| same(&file, &format!("{options} -F +misc -C {cpu}"))).sum();
        assert!(lines > 0, "{options}");
    }
    for options in [
        "--show-lost-events",
        "--show-bpf-events",
        "--show-text-poke-events",
        "--show-cgroup-events",
    ] {
        assert!(same(&file, options) >= all, "{options}");
    }
    same(
        &file,
        "--show-task-events --show-mmap-events --show-switch-events --show-namespace-events \
         --reltime",
    );
}

#[test]
fn registers() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rec.data");
    record(&file, "-e cpu-clock -I --user-regs=ip,sp,bx", &workload("hot --ms 100"));
    assert!(same(&file, "-F comm,ip,iregs") > 5);
    assert!(same(&file, "-F comm,ip,uregs") > 5);
}

#[test]
fn each_event_has_its_file() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = recorded(dir.path(), "");
    let whole = run(rep().arg("script").arg(&file)).expect(0);
    let told = run(rep().args(["script", "--per-event-dump"]).arg(&file)).expect(0);
    let dump = |event: &str| {
        std::fs::read_to_string(dir.path().join(format!("rec.data.{event}.dump"))).unwrap()
    };
    let (clock, faults) = (dump("cpu-clock"), dump("page-faults"));
    let of = |event: &str| -> String {
        let lines = whole.text().lines().filter(|line| line.contains(&format!(" {event}: ")));
        lines.map(|line| format!("{line}\n")).collect()
    };
    assert_eq!((clock, faults), (of("cpu-clock"), of("page-faults")));
    assert!(
        told.text().lines().count() == 2 && told.text().contains("rec.data.page-faults.dump: "),
        "{}",
        told.text()
    );
}
