//! What is recorded runs as it does alone: the same output, exit status and descriptors, under
//! every kind of event, with threads and children of every kind.
//!
//! A third of the runs, or all with `RECREP_FULL=1`.

use std::path::Path;
use std::process::Command;

use recrep_fixtures::CALLED;
use recrep_tests::forms::is_full;
use recrep_tests::programs::{programs, rec, workload};
use recrep_tests::run::{Outcome, run, start};
use recrep_tests::tracing::with_tracefs;
use recrep_tests::{lock, needs};

/// Calls of the probed function in a round of `workload family`.
const CALLS: u64 = 7;
const ROUNDS: u64 = 3;
/// Exit status of the workload.
const STATUS: i32 = 5;

/// Ways to record. `PROBE` is one on the function that is called; `hits`: the number of samples for
/// each call.
struct Way {
    args: String,
    hits: Option<u64>,
}

/// Ways with a probe.
const PROBES: &[(&str, Option<u64>)] = &[
    ("-e PROBE", Some(1)),
    ("-e PROBE,ret", Some(1)),
    ("-e PROBE+0x0", Some(1)),
    ("-e PROBE,name=mine -g", Some(1)),
    ("-e PROBE -e PROBE,ret", Some(2)),
    ("-e {PROBE,cs}", None),
    ("-e {PROBE,faults}:S", Some(1)),
    ("-e {cpu-clock,PROBE}:S", None),
    ("-e PROBE,cpu-clock,cs,faults", None),
    ("-e PROBE --call-graph dwarf", Some(1)),
    ("-e PROBE --off-cpu", None),
    ("-e PROBE --threads", Some(1)),
    ("-e PROBE --overwrite", Some(1)),
    ("-e PROBE -z", Some(1)),
    ("-e PROBE -i", None),
    ("-e PROBE --per-thread", None),
    ("-e PROBE -s", Some(1)),
    ("-e PROBE -n", Some(0)),
    ("-e PROBE -c 2", None),
    ("-e PROBE -F 1000", None),
    ("-e PROBE -D 1", None),
    ("-e PROBE --switch-events --namespaces --all-cgroups -d", Some(1)),
    ("-e PROBE -a", None),
    ("-e PROBEu", Some(1)),
];

/// Ways without one.
const OTHERS: &[&str] = &[
    "",
    "-g",
    "--call-graph dwarf",
    "--off-cpu -g",
    "-e cpu-clock,task-clock -F max",
    "-e faults -c 1",
    "-e minor-faults,major-faults",
    "-e cs -c 1 -g",
    "-e migrations -c 1",
    "-e alignment-faults,emulation-faults",
    "-e dummy,bpf-output",
    "-e cgroup-switches",
    "-e {cpu-clock,faults,cs}:S",
    "-e {cpu-clock,faults,cs}:S -s",
    "-e cpu-clock:u,cpu-clock:k",
    "-e mem:0x10000/8:w",
    "-e mem:0x10000/8:rw -e mem:0x10010/4:w -e mem:0x10020/1:rw -e mem:0x10030:x",
    "-e mem:0x10000:x -i",
    "-e cpu-clock -I --user-regs",
    "--threads --nice=0",
    "--overwrite",
    "--no-buffering -m 1",
    "-z --switch-output=100K",
    "-D 2",
    "-D 1-3,4-6",
    "--per-thread",
    "-i",
    "-a",
    "-B --no-bpf-event",
    "--tail-synthesize",
];

/// Ways that need tracefs.
const TRACEPOINTS: &[&str] = &[
    "-e sched:sched_switch",
    "-e sched:sched_process_* -g",
    "-e raw_syscalls:sys_enter -F 5000",
    "-e {sched:sched_switch,cs}:S",
    "-e sched:sched_process_fork,PROBE",
    "-e syscalls:sys_enter_exit_group,syscalls:sys_exit_clone",
];

/// Returns the ways of a list, as arguments; a third of them unless all are wanted.
fn ways<'a>(all: impl IntoIterator<Item = &'a (&'a str, Option<u64>)>) -> Vec<Way> {
    let probe = format!("uprobe/path={},func={CALLED}", programs().workload.display());
    let filled = |args: &str| {
        let words = args.split(' ').map(|word| match word.split_once("PROBE") {
            None => word.to_owned(),
            Some((before, after)) => {
                let (terms, behind) =
                    after.split_at(after.find([',', '}', 'u']).map_or(after.len(), |at| {
                        // Terms of the probe go on after a comma; other events begin there.
                        if [",ret", ",name=mine"].contains(&&after[at..]) {
                            after.len()
                        } else {
                            at
                        }
                    }));
                format!("{before}{probe}{terms}/{behind}")
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let step = if is_full() { 1 } else { 3 };
    all.into_iter()
        .step_by(step)
        .map(|(args, hits)| Way { args: filled(args), hits: *hits })
        .collect()
}

/// Returns the command line of the workload, with a status of its own.
fn family(more: &str) -> Vec<String> {
    workload(&format!("family --rounds {ROUNDS} --status {STATUS} {more}"))
}

fn alone(words: &[String]) -> Outcome {
    run(Command::new(&words[0]).args(&words[1..])).expect(STATUS)
}

/// Asserts that a run gave what one alone gives.
#[track_caller]
fn assert_same(outcome: &Outcome, alone: &Outcome, args: &str, said: &str) {
    assert_eq!(outcome.text(), alone.text(), "{args}: {said}");
    assert_eq!(outcome.code(), alone.code(), "{args}: {said}");
    assert!(alone.text().contains(": ok") && !alone.text().contains("rror"), "{}", alone.text());
}

/// Times that a way is tried: of a hundred runs, the kernel misses the calls of a child in one to
/// three, with perf, too.
const ATTEMPTS: usize = 5;

/// Returns whether each call was a sample; there may not be more.
#[track_caller]
fn has_all_hits(way: &Way, recorded: &Outcome, file: &Path) -> bool {
    let Some(hits) = way.hits else { return true };
    let (samples, all) = (recorded.summary(file).samples, hits * CALLS * ROUNDS);
    assert!(samples <= all, "{samples} samples of {all}, {}: {}", way.args, recorded.stderr);
    samples == all
}

/// Records the workload as a command in each way.
fn assert_commands(ways: &[Way], in_namespace: impl Fn(&Command) -> Option<Command>) {
    let dir = tempfile::tempdir().unwrap();
    let words = family("");
    let alone = alone(&words);
    for (number, way) in ways.iter().enumerate() {
        let file = dir.path().join(format!("{number}.data"));
        let mut command = rec();
        command.arg("-o").arg(&file).args(way.args.split_whitespace()).arg("--").args(&words);
        let mut command = in_namespace(&command).unwrap_or(command);
        let records_all = |_| {
            let recorded = run(&mut command);
            assert_same(&recorded, &alone, &way.args, &recorded.stderr);
            has_all_hits(way, &recorded, &file)
        };
        assert!((0..ATTEMPTS).any(records_all), "{}: calls are never all recorded", way.args);
    }
}

#[test]
fn a_command_runs_as_alone_under_probes() {
    if needs::perf_events() && needs::root() {
        assert_commands(&ways(PROBES), |_| None);
    }
}

#[test]
fn a_command_runs_as_alone_under_all_other_events() {
    if needs::perf_events() && needs::root() {
        let others: Vec<_> = OTHERS.iter().map(|args| (*args, None)).collect();
        assert_commands(&ways(&others), |_| None);
    }
}

#[test]
fn a_command_runs_as_alone_under_tracepoints() {
    if needs::tracefs() {
        let tracepoints: Vec<_> = TRACEPOINTS.iter().map(|args| (*args, None)).collect();
        assert_commands(&ways(&tracepoints), |command| Some(with_tracefs(command)));
    }
}

/// A server that is attached to when it runs, and forks and starts threads from then on.
#[test]
fn an_attached_server_runs_as_alone() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let words = family(&format!("--after {}", go.display()));
    std::fs::write(&go, "").unwrap();
    let alone = alone(&words);
    // What attaches by itself has another way of saying whom to count.
    let attaches = |args: &str| {
        !["-a", "--per-thread", "-D", "-i", "--switch-output"].iter().any(|own| args.contains(own))
    };
    let all: Vec<_> =
        PROBES.iter().copied().chain(OTHERS.iter().map(|args| (*args, None))).collect();
    let all: Vec<_> = all.into_iter().filter(|(args, _)| attaches(args)).collect();
    for (number, way) in ways(&all).iter().enumerate() {
        let file = dir.path().join(format!("{number}.data"));
        let records_all = |_| {
            std::fs::remove_file(&go).unwrap();
            let cpus = lock::cpus();
            let server = start(Command::new(&words[0]).args(&words[1..]));
            let pid = server.pid().as_raw_nonzero().to_string();
            let mut command = rec();
            command
                .arg("-o")
                .arg(&file)
                .args(way.args.split_whitespace())
                .args(["-p", &pid, "--", "sh", "-c"]);
            // It is run when the counters are on, and is asked to end when the server has ended.
            let recorder = start(command.arg(format!("touch {}; exec sleep 60", go.display())));
            let served = server.finish();
            let recorded = recorder.finish();
            drop(cpus);
            assert_eq!(recorded.code(), 128 + 15, "{}: {}", way.args, recorded.stderr);
            assert_same(&served, &alone, &way.args, &recorded.stderr);
            has_all_hits(way, &recorded, &file)
        };
        assert!((0..ATTEMPTS).any(records_all), "{}: calls are never all recorded", way.args);
    }
}
