//! `--waits`: who ends the waits of threads.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use recrep_format::abi::{Register, RegsAbi, RegsArch, context, misc};
use recrep_format::record::{Body, SampleFields};

use crate::busy_cpus::BusyCpus;
use crate::common::{
    Recording, can_record_system, last_line, nobody_records_user_space, place, rec, run_as_nobody,
    said, skipped, wait_until,
};

const WAKING: &str = "sched:sched_waking";
/// `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`.
const IN_INTERRUPT: u8 = 0x18;

/// A wake, by the fields of its raw data.
#[derive(Debug)]
struct Wake {
    waker: u32,
    target: u32,
    in_interrupt: bool,
    has_callchain: bool,
}

/// Returns the samples of an event of the file.
fn samples<'a>(recording: &'a Recording, is_it: impl Fn(usize, &str) -> bool) -> Vec<Fields<'a>> {
    let file = recording.file();
    let mut all = Vec::new();
    for raw in file.records().map(Result::unwrap) {
        let Some((event, sample)) = file.attrs.sample(raw) else { continue };
        let name = file.attrs.entries()[event.0].name.as_deref().unwrap();
        if is_it(event.0, name) {
            let waits_at_start = raw.header.misc & misc::WAITS_AT_START != 0;
            all.push(Fields { of: sample.fields().unwrap(), waits_at_start });
        }
    }
    all
}

struct Fields<'a> {
    of: SampleFields<'a>,
    waits_at_start: bool,
}

fn wakes(recording: &Recording) -> Vec<Wake> {
    let found = samples(recording, |_, name| name == WAKING);
    let wake = |fields: &Fields<'_>| {
        let raw = fields.of.raw.unwrap();
        let number = |at: usize| u32::from_ne_bytes(raw[at..at + 4].try_into().unwrap());
        // As `sched/sched_waking/format` in tracefs has it, for many years.
        Wake {
            waker: number(4),
            target: number(24),
            in_interrupt: raw[2] & IN_INTERRUPT != 0,
            has_callchain: fields.of.callchain.is_some(),
        }
    };
    found.iter().map(wake).collect()
}

/// Returns the threads of the recording, by their FORK records.
fn forked(recording: &Recording) -> BTreeSet<u32> {
    let records = recording.records();
    let tids = records.iter().filter_map(|record| match &record.body {
        Body::Fork(of) if of.time > 0 => Some(of.tid),
        _ => None,
    });
    tids.collect()
}

/// Runs `rec -o PATH` with these words after it, where tracefs is mounted, whatever the machine has.
fn run(path: &Path, words: &[&str]) -> Output {
    let script = "mount -t tracefs nodev /sys/kernel/tracing; exec \"$0\" \"$@\"";
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "sh", "-c", script]).arg(rec().get_program()).arg("-o").arg(path);
    inside.args(words).output().unwrap()
}

fn has_lost(output: &Output) -> bool {
    let told = last_line(output);
    (told.lost_events, told.lost_samples) != (0, 0)
}

#[test]
fn a_parent_is_woken_by_children_that_exit_and_they_by_a_timer() {
    if !can_record_system() {
        return;
    }
    let (_dir, path) = place();
    let _busy = BusyCpus::start();
    let naps = "for i in 1 2 3 4 5; do sleep 0.02; done";
    // It says how many wakes it left out, should one be missing.
    let output = run(&path, &["-v", "--waits", "-e", "cpu-clock", "--", "sh", "-c", naps]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!has_lost(&output), "{}", said(&output));
    let recording = Recording::read(&path);
    let entries = recording.file().attrs.entries().to_vec();
    let names: Vec<_> = entries.iter().map(|entry| entry.name.clone().unwrap()).collect();
    let expected = ["cpu-clock", "context-switches", WAKING, "sched:sched_wakeup_new", WAKING]
        .map(str::to_owned);
    assert_eq!(names, expected);
    let children = forked(&recording);
    assert_eq!(children.len(), 5, "{children:?}");
    let wakes = wakes(&recording);
    for child in &children {
        assert!(
            wakes.iter().any(|wake| wake.target == *child && wake.in_interrupt),
            "{child} sleeps: {wakes:?} {}",
            said(&output)
        );
        // The shell may be so late that the child has exited before it waits.
        let of_child = wakes.iter().filter(|wake| wake.waker == *child && !wake.in_interrupt);
        assert!(of_child.clone().all(|wake| !children.contains(&wake.target)), "{wakes:?}");
    }
    let of_others = wakes.iter().filter(|wake| !wake.has_callchain);
    let targets: BTreeSet<u32> = of_others.map(|wake| wake.target).collect();
    let shell: Vec<&u32> = targets.difference(&children).collect();
    assert_eq!(shell.len(), 1, "of others, only wakes of the recorded are there: {targets:?}");
}

#[test]
fn a_waker_that_is_not_recorded_is_named_and_the_wait_has_its_descriptor() {
    if !can_record_system() {
        return;
    }
    let (dir, path) = place();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Open for both, so that it waits for what comes, not for a writer.
    let reader = format!("exec cat <>'{}'", fifo.display());
    let mut reader =
        Command::new("sh").args(["-c", &reader]).stdout(Stdio::null()).spawn().unwrap();
    let pid = reader.id();
    let comm = || std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    wait_until(|| comm().trim() == "cat" && state().contains(") S "));
    let kernel_stack = std::fs::read_to_string(format!("/proc/{pid}/stack")).unwrap_or_default();
    let writer = format!("echo >'{}'; sleep 0.1", fifo.display());
    let output = run(
        &path,
        &["--waits", "-e", "cpu-clock", "-p", &pid.to_string(), "--", "sh", "-c", &writer],
    );
    reader.kill().unwrap();
    reader.wait().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    if has_lost(&output) {
        return skipped("the machine is too busy to record all wakes");
    }
    let recording = Recording::read(&path);
    let wakes = wakes(&recording);
    let [wake] = &wakes[..] else { panic!("{wakes:?}") };
    assert!(wake.target == pid && !wake.in_interrupt && !wake.has_callchain, "{wake:?}");
    let records = recording.records();
    let names: Vec<String> = records
        .iter()
        .filter_map(|record| match &record.body {
            Body::Comm(of) if of.tid == wake.waker => {
                Some(String::from_utf8_lossy(of.comm.as_bytes()).into_owned())
            }
            _ => None,
        })
        .collect();
    assert_eq!(names, ["sh"]);
    // The reader waits for its standard input: at the beginning, and again in the end.
    let arch = if cfg!(target_arch = "x86_64") { RegsArch::X86 } else { RegsArch::Arm64 };
    let first = if arch == RegsArch::X86 { "DI" } else { "X0" };
    let first =
        arch.registers().into_iter().find(|r: &Register| r.name.eq_ignore_ascii_case(first));
    let switches = samples(&recording, |_, name| name == "context-switches");
    assert!(switches.len() >= 2 && switches[0].waits_at_start, "{}", switches.len());
    for switch in &switches {
        let regs = switch.of.regs_user.unwrap();
        assert_eq!(regs.abi, RegsAbi::ABI_64);
        if switch.waits_at_start || switch.of.time == switches.last().unwrap().of.time {
            assert_eq!(regs.get(first.unwrap().number), Some(0), "descriptor 0");
        }
        // Where the kernel shows its part of stacks, the first one has it, too.
        let chain = switch.of.callchain.unwrap();
        let in_kernel = !switch.waits_at_start || kernel_stack.contains("+0x");
        assert_eq!(chain.iter().next() == Some(context::KERNEL), in_kernel, "{kernel_stack}");
        assert!(chain.iter().any(|word| word == context::USER));
    }
}

#[test]
fn on_all_cpus_one_event_has_all_wakes() {
    if !can_record_system() {
        return;
    }
    let (_dir, path) = place();
    let output = run(&path, &["--waits", "-a", "-e", "cpu-clock", "--", "sleep", "0.05"]);
    assert!(output.status.success(), "{}", said(&output));
    let recording = Recording::read(&path);
    let entries = recording.file().attrs.entries().to_vec();
    let names = entries.iter().map(|entry| entry.name.clone().unwrap());
    assert_eq!(names.filter(|name| name == WAKING).count(), 1);
    let wakes = wakes(&recording);
    assert!(!wakes.is_empty() && wakes.iter().all(|wake| wake.has_callchain), "{wakes:?}");
}

#[test]
fn plain_users_are_told_what_is_missing_and_what_they_may() {
    if !nobody_records_user_space() {
        return;
    }
    let (_dir, path) = place();
    let output = run_as_nobody(&path, &["--waits", "--", "true"]);
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    let told = said(&output);
    for word in ["--waits", "CAP_PERFMON", "--off-cpu"] {
        assert!(told.contains(word), "{told}");
    }
    assert!(!path.exists());
}
