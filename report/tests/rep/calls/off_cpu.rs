//! Times of threads off and on their CPUs, to the nanosecond.

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{AttrFlags, EventType, HwEvent, SampleType, SwEvent, context, misc};
use recrep_format::record::{Body, SwitchCpuWide};
use serde_json::Value;

use super::common::{KERNEL, MAIN, PARSE, Place, WORK, refusal, rows, stream};

/// Direction of a switch.
#[derive(Clone, Copy)]
enum To {
    In,
    Waiting,
    Preempted,
}

/// Kind of the records of switches.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    PerThread,
    CpuWide,
}

fn switch(stream: Stream, kind: Kind, to: To) -> Stream {
    let bits = match to {
        To::In => 0,
        To::Waiting => misc::SWITCH_OUT,
        To::Preempted => misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT,
    };
    let body = match kind {
        Kind::PerThread => Body::Switch,
        Kind::CpuWide => Body::SwitchCpuWide(SwitchCpuWide { next_prev_pid: 0, next_prev_tid: 0 }),
    };
    stream.record(bits, body)
}

/// Returns an event of running time, and at place 1 the event of switches.
fn events(kind: EventType, config: u64) -> Stream {
    let switches = Event::new("context-switches")
        .counting(EventType::SOFTWARE, SwEvent::CONTEXT_SWITCHES.0)
        .sampling(SampleType::CALLCHAIN)
        .with(|attr| (attr.sample_period, attr.flags) = (1, attr.flags - AttrFlags::FREQ));
    stream(Event::new("cpu").counting(kind, config)).event(switches)
}

fn clock() -> Stream {
    events(EventType::SOFTWARE, SwEvent::CPU_CLOCK.0)
}

/// A CPU sample in `function`, called by `main`.
fn running(stream: Stream, time: u64, function: u64) -> Stream {
    let spec = SampleSpec::at(function + 1).callchain(&[context::USER, function + 1, MAIN + 4]).period(250);
    stream.of(0).at(time).sample(spec)
}

/// A sample of a switch in the kernel, called by `work`.
fn sampled_switch(stream: Stream, time: u64) -> Stream {
    let chain = [context::KERNEL, KERNEL, context::USER, WORK + 4, MAIN + 4];
    stream.of(1).at(time).sample(SampleSpec::at(KERNEL).misc(1).callchain(&chain))
}

/// All that can happen to threads 7 and 8; the last record is one of thread 9.
fn eventful(kind: Kind) -> Stream {
    let mut all = running(clock(), 1000, WORK);
    all = switch(sampled_switch(all, 1100).at(1105), kind, To::Waiting);
    // Another thread runs meanwhile: it comes from nowhere, goes without a sample, loses a record, and exits.
    all = switch(all.task(7, 8).at(2000), kind, To::In);
    all = switch(all.at(2100), kind, To::Preempted);
    all = switch(all.at(2150), kind, To::In);
    all = switch(all.at(2300), kind, To::In).at(2400).exit();
    all = switch(all.at(2410), kind, To::Waiting);
    all = switch(all.task(7, 7).at(3105), kind, To::In);
    all = switch(sampled_switch(running(all, 3200, PARSE), 3300).at(3302), kind, To::Preempted);
    all = switch(all.at(3402), kind, To::In);
    // This switch has no sample.
    all = switch(all.at(3500), kind, To::Waiting);
    all = switch(all.at(4500), kind, To::In);
    // From this one the thread does not come back.
    all = switch(sampled_switch(all, 5000).at(5001), kind, To::Waiting);
    // Idle tasks and those that are gone are not looked at.
    for tid in [0, u32::MAX] {
        all = switch(all.task(tid, tid).at(5100), kind, To::Waiting);
        all = switch(all.at(5200), kind, To::In);
    }
    running(all.task(9, 9), 6001, WORK)
}

/// Returns the values of a key, with samples and period.
fn by(place: &Place, words: &str, key: &str) -> Vec<(String, u64, u64)> {
    let answer: Value = serde_json::from_str(&place.rep(&format!("--json -s {key} {words}"))).unwrap();
    let events = answer["events"].as_array().unwrap();
    assert_eq!(events.len(), 1, "{events:?}");
    let mut rows = crate::common::rows(&answer, 0);
    rows.sort_unstable();
    rows
}

#[test]
fn times_are_exact() {
    for kind in [Kind::PerThread, Kind::CpuWide] {
        let place = Place::new(&eventful(kind));
        // 1105 to 3105, 3302 to 3402, 3500 to 4500, 5001 to the end; thread 8 from 2100 to 2150.
        assert_eq!(by(&place, "--off-cpu", "switch"), rows(&[("preempted", 2, 150), ("waiting", 3, 4000)]), "{kind:?}");
        assert_eq!(by(&place, "--off-cpu", "tid"), rows(&[("7:app", 4, 4100), ("8::8", 1, 50)]));
        let want = rows(&[("preempted", 2, 150), ("running", 3, 750), ("waiting", 3, 4000)]);
        assert_eq!(by(&place, "--wall", "switch"), want, "{kind:?}");
        assert_eq!(
            place.rep("--off-cpu --format folded"),
            ":8;[no sample] 50\napp;main;parse;[nearest sample] 1000\napp;main;work;entry 3100\n"
        );
        assert_eq!(
            place.children("--off-cpu", "symbol"),
            [
                ("[.] main", 4, 0),
                ("[.] parse", 1, 0),
                ("[.] work", 3, 0),
                ("[k] [nearest sample]", 1, 1),
                ("[k] [no sample]", 1, 1),
                ("[k] entry", 3, 3),
            ]
            .map(|(name, all, own)| (name.to_owned(), all, own))
        );
    }
}

#[test]
fn times_are_filtered_by_their_beginnings() {
    let place = Place::new(&eventful(Kind::PerThread));
    let at = |words: &str| by(&place, &format!("--wall {words}"), "switch");
    assert_eq!(at("--time 0.000001100,0.000001100"), rows(&[("waiting", 1, 2000)]));
    assert_eq!(at("--time 0.0000035,0.0000040"), rows(&[("waiting", 1, 1000)]), "a time at the nearest sample");
    assert_eq!(at("--tid 8"), rows(&[("preempted", 1, 50)]));
    assert_eq!(at("--cpu 0"), at(""));
    assert_eq!(at("--cpu 1"), []);
    let times = by(&place, "--off-cpu --ns --time-quantum 1ns", "time");
    let starts: Vec<&str> = times.iter().map(|(time, ..)| time.as_str()).collect();
    assert_eq!(starts, ["0.000001100", "0.000002100", "0.000003300", "0.000003500", "0.000005000"]);
}

#[test]
fn cycles_stand_for_the_running_time_between_them() {
    let mut all = running(events(EventType::HARDWARE, HwEvent::CPU_CYCLES.0), 1000, WORK);
    all = switch(sampled_switch(all, 1100).at(1105), Kind::PerThread, To::Waiting);
    all = switch(all.at(3105), Kind::PerThread, To::In);
    all = running(all, 3200, PARSE);
    all = switch(all.at(3300), Kind::PerThread, To::Preempted);
    all = switch(all.at(3400), Kind::PerThread, To::In);
    // A thread without CPU samples.
    all = switch(all.task(7, 8).at(4000), Kind::PerThread, To::In);
    all = switch(all.at(4100), Kind::PerThread, To::Waiting);
    let place = Place::new(&running(all.task(9, 9), 5000, WORK));
    // Of the time since 1000, when the thread is first seen, to 1105, 3105 to 3300 and 3400 to 5000, thread 7 has its
    // last sample at 3200. Thread 8 runs for 100 and then waits until the end.
    let want = rows(&[("preempted", 1, 100), ("running", 4, 105 + 195 + 1600 + 100), ("waiting", 2, 2000 + 900)]);
    assert_eq!(by(&place, "--wall", "switch"), want);
    assert_eq!(by(&place, "--wall --tid 7", "switch")[1], ("running".into(), 2, 1900));
    let off = rows(&[("preempted", 1, 100), ("waiting", 2, 2900)]);
    assert_eq!(by(&place, "--off-cpu", "switch"), off);
    assert_eq!(by(&place, "--off-cpu", "event"), rows(&[("off-cpu", 3, 3000)]));
}

#[test]
fn threads_change_no_number() {
    let mut all = clock();
    for n in 0..40_000 {
        let (tid, time) = (7 + n % 5, 1000 * u64::from(n));
        all = running(all.task(7, tid), time, WORK);
        all = switch(all.at(time + 100), Kind::PerThread, To::In);
        if n % 3 > 0 {
            all = sampled_switch(all, time + 200);
        }
        all = switch(all.at(time + 203), Kind::PerThread, if n % 2 == 0 { To::Waiting } else { To::Preempted });
    }
    let place = Place::new(&all);
    let with = |threads: &str| {
        let mut rep = crate::common::rep();
        let words = "--wall --json --children -s tid,symbol,switch,time";
        rep.args(words.split(' ')).arg(place.0.at("x.data")).env("RAYON_NUM_THREADS", threads);
        rep.output().unwrap().stdout
    };
    let one = with("1");
    assert!(one.len() > 1000);
    assert!(["2", "7"].into_iter().all(|threads| with(threads) == one));
}

#[test]
fn files_without_switches_are_refused_with_advice() {
    let without = running(clock(), 1000, WORK);
    for flag in ["--off-cpu", "--wall"] {
        let message = refusal(&without, &[flag]);
        assert!(message.contains("rec --off-cpu"), "{message}");
    }
    let faults = stream(Event::new("faults").counting(EventType::SOFTWARE, SwEvent::PAGE_FAULTS.0));
    let faults = switch(switch(faults.at(10), Kind::PerThread, To::Waiting).at(20), Kind::PerThread, To::In);
    assert!(refusal(&faults, &["--wall"]).contains("running time is unknown"));
    assert_eq!(by(&Place::new(&faults), "--off-cpu", "switch"), rows(&[("waiting", 1, 10)]));
}

#[test]
fn what_is_missing_is_told() {
    let place = Place::new(&eventful(Kind::PerThread));
    let answer: Value = serde_json::from_str(&place.rep("--json --off-cpu")).unwrap();
    let warnings: Vec<_> = answer["warnings"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(warnings, ["unpaired-switches", "unsampled-switches"]);
}
