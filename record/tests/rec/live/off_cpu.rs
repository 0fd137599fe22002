//! `--off-cpu`: where threads wait, and for how long.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use recrep_format::abi::{RecordType, SwEvent, misc};

use crate::common::{
    Recording, can_record_system, last_line, nobody_records_user_space, place, run, run_as_nobody,
    said, skipped,
};

/// Sleeps of a known length, one after the other.
const NAPS: &str = "for i in 1 2 3 4 5; do sleep 0.05; done";
const NAP: u64 = 50_000_000;

/// Held by each test: where another recording samples the same software event, the kernel fills one
/// `perf_sample_data` for both, so that the second's sample has the first's id.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kind of a thread's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Sample,
    Out,
    In,
}

/// Of each thread: what, when, in its order. Of the samples, those of context switches.
fn switches(recording: &Recording) -> BTreeMap<u32, Vec<(u64, What)>> {
    let file = recording.file();
    let entries = file.attrs.entries();
    let sampled = entries.iter().position(|entry| entry.attr.config == SwEvent::CONTEXT_SWITCHES.0);
    let mut threads: BTreeMap<u32, Vec<(u64, What)>> = BTreeMap::new();
    for raw in file.records().map(Result::unwrap) {
        let (tid, time, what) = match raw.header.kind {
            RecordType::SAMPLE => {
                // Another recording on this machine may sample the same software event.
                let Some((event, sample)) = file.attrs.sample(raw) else { continue };
                if Some(event.0) != sampled {
                    continue;
                }
                (sample.tid().unwrap(), sample.time().unwrap(), What::Sample)
            }
            RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE => {
                let record = file.attrs.decode(&raw).unwrap();
                let what = if record.misc & misc::SWITCH_OUT != 0 { What::Out } else { What::In };
                (record.trailer.tid.unwrap()[1], record.trailer.time.unwrap(), what)
            }
            _ => continue,
        };
        threads.entry(tid).or_default().push((time, what));
    }
    threads.values_mut().for_each(|list| list.sort_unstable());
    threads
}

/// Returns the time that a thread was off the CPU.
fn waited(list: &[(u64, What)]) -> u64 {
    let runs: Vec<_> = list.iter().filter(|(_, what)| *what != What::Sample).collect();
    let waits = runs.windows(2).filter(|pair| pair[0].1 == What::Out);
    waits.map(|pair| pair[1].0 - pair[0].0).sum()
}

/// Returns whether the five who slept and the shell waited for as long; a busy machine may have
/// interrupted them in between.
fn have_slept(threads: &BTreeMap<u32, Vec<(u64, What)>>) -> bool {
    threads.values().filter(|list| waited(list) >= NAP / 2).count() == 6
}

fn has_lost(output: &std::process::Output) -> bool {
    let told = last_line(output);
    (told.lost_events, told.lost_samples) != (0, 0)
}

#[test]
fn each_switch_is_a_sample_and_two_records() {
    if !can_record_system() {
        return;
    }
    let _alone = alone();
    let (_dir, path) = place();
    let output = run(&path, &["--off-cpu", "-e", "cpu-clock", "--", "sh", "-c", NAPS]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!has_lost(&output), "{}", said(&output));
    let recording = Recording::read(&path);
    let threads = switches(&recording);
    for (tid, list) in &threads {
        let of = |what| {
            list.iter().filter(|(_, is)| *is == what).map(|(time, _)| *time).collect::<Vec<_>>()
        };
        let (samples, outs, ins) = (of(What::Sample), of(What::Out), of(What::In));
        assert_eq!(samples.len(), outs.len(), "{tid}: {list:?}");
        // The kernel samples on the way out, just before it writes the record.
        assert!(samples.iter().zip(&outs).all(|(sample, out)| sample <= out), "{tid}: {list:?}");
        let runs: Vec<_> = list.iter().filter(|(_, what)| *what != What::Sample).collect();
        assert!(
            runs.windows(2).all(|pair| pair[0].1 != pair[1].1),
            "{tid} goes out and in by turns: {list:?}"
        );
        // Whoever is born comes in first, and whoever ends is not told of any more.
        let first = usize::from(runs.first().is_some_and(|(_, what)| *what == What::In));
        assert_eq!(ins.len() - first, outs.len(), "{tid} has come back from each switch: {list:?}");
    }
    assert!(have_slept(&threads), "{threads:?}");
}

#[test]
fn samples_of_switches_have_callchains_up_to_the_user_s() {
    if !can_record_system() {
        return;
    }
    let _alone = alone();
    let (_dir, path) = place();
    assert!(run(&path, &["--off-cpu", "-e", "cpu-clock", "--", "sleep", "0.01"]).status.success());
    let recording = Recording::read(&path);
    let file = recording.file();
    let names: Vec<_> =
        file.attrs.entries().iter().map(|entry| entry.name.clone().unwrap()).collect();
    assert_eq!(names, ["cpu-clock", "context-switches"]);
    let raw: Vec<_> = file.records().map(Result::unwrap).collect();
    let samples =
        raw.iter().filter_map(|raw| file.attrs.sample(*raw)).filter(|(event, _)| event.0 == 1);
    let both = |chain: Vec<u64>| {
        let marker = |wanted: i64| chain.iter().any(|ip| *ip == wanted.cast_unsigned());
        // PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER
        marker(-128) && marker(-512)
    };
    let chains: Vec<bool> = samples
        .map(|(_, sample)| both(sample.callchain().unwrap().unwrap().iter().collect()))
        .collect();
    assert!(!chains.is_empty() && chains.iter().all(|both| *both), "{chains:?}");
}

#[test]
fn on_all_cpus_each_sample_has_its_record() {
    if !can_record_system() {
        return;
    }
    let _alone = alone();
    let (_dir, path) = place();
    let output = run(&path, &["--off-cpu", "-a", "-e", "cpu-clock", "--", "sh", "-c", NAPS]);
    assert!(output.status.success(), "{}", said(&output));
    if has_lost(&output) {
        return skipped("the machine is too busy to record all of its switches");
    }
    let recording = Recording::read(&path);
    let [wide, narrow] =
        [RecordType::SWITCH_CPU_WIDE, RecordType::SWITCH].map(|kind| recording.count(kind));
    assert!(wide > 20 && narrow == 0, "{wide} and {narrow} switches: {}", said(&output));
    let threads = switches(&recording);
    // The idle tasks of several CPUs have one number, and so have threads that have exited.
    for (tid, list) in threads.iter().filter(|(tid, _)| ![0, u32::MAX].contains(*tid)) {
        // Records begin earlier than samples and end later.
        let first = list.iter().position(|(_, what)| *what == What::Sample).unwrap_or(list.len());
        for pair in list[first..].windows(2).filter(|pair| pair[0].1 == What::Sample) {
            assert_eq!(pair[1].1, What::Out, "{tid}: {list:?}");
        }
    }
}

#[test]
fn plain_users_get_the_records_alone_with_a_line_that_says_so() {
    if !nobody_records_user_space() {
        return;
    }
    let _alone = alone();
    let (_dir, path) = place();
    let output = run_as_nobody(&path, &["--off-cpu", "--", "sh", "-c", NAPS]);
    assert!(output.status.success(), "{}", said(&output));
    let told: Vec<_> = said(&output)
        .lines()
        .filter(|l| l.contains("context switches"))
        .map(str::to_owned)
        .collect();
    assert!(
        matches!(told.as_slice(), [line] if line.contains("perf_event_paranoid is 2")),
        "{}",
        said(&output)
    );
    let recording = Recording::read(&path);
    let names: Vec<_> =
        recording.file().attrs.entries().iter().map(|e| e.name.clone().unwrap()).collect();
    assert!(names.len() == 1 && names[0].ends_with(":u"), "{names:?}");
    let threads = switches(&recording);
    assert!(have_slept(&threads), "{threads:?}");
}

#[test]
fn a_process_that_hangs_waits_from_the_start_to_the_end() {
    if !can_record_system() {
        return;
    }
    let _alone = alone();
    let (_dir, path) = place();
    // It waits for input that does not come.
    let mut hanging = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = hanging.id().to_string();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = Instant::now();
    while !state().contains(") S ") && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let command = ["--", "sleep", "0.2"];
    let output =
        run(&path, &[&["--off-cpu", "-g", "-e", "cpu-clock", "-p", &pid][..], &command].concat());
    hanging.kill().unwrap();
    hanging.wait().unwrap();
    assert!(output.status.success() && last_line(&output).samples > 0, "{}", said(&output));
    let recording = Recording::read(&path);
    let threads = switches(&recording);
    let list = &threads[&pid.parse().unwrap()];
    assert!(
        matches!(list[..2], [(sample, What::Sample), (out, What::Out)] if sample == out),
        "{list:?}"
    );
    let file = recording.file();
    let times = file.records().filter_map(|raw| file.attrs.time_of(&raw.unwrap()));
    assert!(times.max().unwrap() - list[0].0 >= 200_000_000, "the end has a record");
}
