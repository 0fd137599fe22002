//! Times of threads off and on their CPUs, to the nanosecond.

use recrep_format::abi::{AttrFlags, EventType, HwEvent, SwEvent, misc};
use recrep_format::record::SwitchCpuWide;

use super::*;

// What a thread does at a switch: the bits of the record.
pub(super) const IN: u16 = 0;
pub(super) const WAITING: u16 = misc::SWITCH_OUT;
const PREEMPTED: u16 = misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT;

// Kinds of the records of switches.
pub(super) const PER_THREAD: Body<'static> = Body::Switch;
const CPU_WIDE: Body<'static> =
    Body::SwitchCpuWide(SwitchCpuWide { next_prev_pid: 0, next_prev_tid: 0 });

/// Adds switches of the current thread: their times, and what it does.
pub(super) fn switches(stream: Stream, kind: &Body<'_>, all: &[(u64, u16)]) -> Stream {
    all.iter().fold(stream, |stream, (time, bits)| stream.at(*time).record(*bits, kind.clone()))
}

/// Returns an event of running time, and at place 1 the event of switches.
fn events(kind: EventType, config: u64) -> Stream {
    let switches = Event::new("context-switches")
        .counting(EventType::SOFTWARE, SwEvent::CONTEXT_SWITCHES.0)
        .sampling(SampleType::CALLCHAIN)
        .with(|attr| (attr.sample_period, attr.flags) = (1, attr.flags - AttrFlags::FREQ));
    stream(Event::new("cpu").counting(kind, config)).event(switches)
}

pub(super) fn clock() -> Stream {
    events(EventType::SOFTWARE, SwEvent::CPU_CLOCK.0)
}

/// A CPU sample in `function`, called by `main`.
pub(super) fn running(stream: Stream, time: u64, function: u64) -> Stream {
    let spec = SampleSpec::at(function + 1)
        .callchain(&[context::USER, function + 1, MAIN + 4])
        .period(250);
    stream.of(0).at(time).sample(spec)
}

/// A sample of a switch in the kernel, called by `work`.
fn sampled_switch(stream: Stream, time: u64) -> Stream {
    let chain = [context::KERNEL, KERNEL, context::USER, WORK + 4, MAIN + 4];
    stream.of(1).at(time).sample(SampleSpec::at(KERNEL).misc(1).callchain(&chain))
}

/// All that can happen to threads 7 and 8; the last record is one of thread 9.
fn eventful(kind: &Body<'_>) -> Stream {
    let mut all = running(clock(), 1000, WORK);
    all = switches(sampled_switch(all, 1100), kind, &[(1105, WAITING)]);
    // Another thread runs meanwhile: it comes from nowhere, goes without a sample, loses a record,
    // and exits.
    all = switches(all.task(7, 8), kind, &[(2000, IN), (2100, PREEMPTED), (2150, IN), (2300, IN)]);
    all = switches(all.at(2400).exit(), kind, &[(2410, WAITING)]);
    all = switches(all.task(7, 7), kind, &[(3105, IN)]);
    // The second switch out has no sample.
    all = sampled_switch(running(all, 3200, PARSE), 3300);
    all = switches(all, kind, &[(3302, PREEMPTED), (3402, IN), (3500, WAITING), (4500, IN)]);
    // From this one the thread does not come back.
    all = switches(sampled_switch(all, 5000), kind, &[(5001, WAITING)]);
    // Idle tasks and those that are gone are not looked at.
    for tid in [0, u32::MAX] {
        all = switches(all.task(tid, tid), kind, &[(5100, WAITING), (5200, IN)]);
    }
    running(all.task(9, 9), 6001, WORK)
}

/// Returns the values of a key, with samples and period.
pub(super) fn by(place: &Place, words: &str, key: &str) -> Vec<(String, u64, u64)> {
    let answer = parsed(place.rep(&format!("--json -s {key} {words}")));
    assert_eq!(list(&answer["events"]).len(), 1, "{answer}");
    let mut rows = super::super::rows(&answer, 0);
    rows.sort_unstable();
    rows
}

#[test]
fn times_are_exact() {
    for kind in &[PER_THREAD, CPU_WIDE] {
        let place = Place::of(&eventful(kind));
        // 1105 to 3105, 3302 to 3402, 3500 to 4500, 5001 to the end; thread 8 from 2100 to 2150.
        assert_eq!(
            by(&place, "--off-cpu", "switch"),
            rows(&[("preempted", 2, 150), ("waiting", 3, 4000)]),
            "{kind:?}"
        );
        assert_eq!(by(&place, "--off-cpu", "tid"), rows(&[("7:app", 4, 4100), ("8::8", 1, 50)]));
        let want = rows(&[("preempted", 2, 150), ("running", 3, 750), ("waiting", 3, 4000)]);
        assert_eq!(by(&place, "--wall", "switch"), want, "{kind:?}");
        assert_eq!(
            place.rep("--off-cpu --format folded"),
            ":8;[no sample] 50\napp;main;parse;[nearest sample] 1000\napp;main;work;entry 3100\n"
        );
        let of_any_stack = [
            ("[.] main", 4, 0),
            ("[.] parse", 1, 0),
            ("[k] [nearest sample]", 1, 1),
            ("[k] [no sample]", 1, 1),
        ];
        let with = |more: &[(&str, u64, u64)]| {
            let mut all = [&of_any_stack, more].concat();
            all.sort_unstable();
            rows(&all)
        };
        // The function that waits, and not what it calls in the kernel.
        assert_eq!(place.children("--off-cpu", "symbol"), with(&[("[.] work", 3, 3)]));
        assert_eq!(
            place.children("--off-cpu --kernel-waits", "symbol"),
            with(&[("[.] work", 3, 0), ("[k] entry", 3, 3)])
        );
    }
}

/// Records of a thread that was found waiting when the recording began.
fn found_waiting(stream: Stream, tid: u32) -> Stream {
    let chain = [context::USER, WORK + 4, MAIN + 4];
    let spec = SampleSpec::at(WORK + 4).misc(2 | misc::WAITS_AT_START).callchain(&chain);
    let sampled = stream.of(1).task(7, tid).at(500).sample(spec);
    sampled.record(misc::SWITCH_OUT | misc::WAITS_AT_START, Body::Switch)
}

#[test]
fn threads_that_do_not_run_wait_from_the_start_to_the_end() {
    let mut all = clock();
    for tid in [7, 8, 9, 10] {
        all = found_waiting(all, tid);
    }
    // 7 stays; 8 is woken; 9 ran when the recording began; 10 went to sleep before that.
    all = switches(all.task(7, 8), &PER_THREAD, &[(1500, IN)]);
    all = running(all.task(7, 9), 700, PARSE);
    all = switches(all.task(7, 9), &PER_THREAD, &[(800, WAITING), (900, IN)]);
    all = switches(all.task(7, 10), &PER_THREAD, &[(600, WAITING)]);
    let place = Place::of(&running(all.task(7, 11), 2500, WORK));
    let want = [("10::10", 1, 1900), ("7:app", 1, 1999), ("8::8", 1, 999), ("9::9", 1, 100)];
    assert_eq!(by(&place, "--off-cpu", "tid"), rows(&want));
    let folded = place.rep("--off-cpu --format folded --tid 7,8");
    assert_eq!(folded, ":8;main;work 999\napp;main;work 1999\n");
    let text = place.rep("--off-cpu --tid 7 -s comm,sym");
    assert!(text.contains("Seconds") && text.contains("0.000002"), "{text}");
}

#[test]
fn idle_threads_of_a_whole_machine_are_told_apart() {
    let mut all = found_waiting(found_waiting(clock(), 7), 8);
    all = switches(all.task(7, 8), &CPU_WIDE, &[(1500, IN), (1600, WAITING), (1700, IN)]);
    all = switches(all.task(0, 0), &CPU_WIDE, &[(1800, WAITING)]);
    let place = Place::of(&running(all.task(7, 9), 2500, WORK));
    assert_eq!(by(&place, "--off-cpu", "tid"), rows(&[("8::8", 2, 1099)]));
    assert_eq!(
        by(&place, "--off-cpu", "switch"),
        rows(&[("waiting", 2, 1099), ("waiting (idle)", 1, 1999)])
    );
    assert_eq!(by(&place, "--off-cpu --tid 7", "tid"), rows(&[("7:app", 1, 1999)]));
}

#[test]
fn plain_reports_lead_to_the_waits() {
    let place = Place::of(&eventful(&PER_THREAD));
    let text = place.rep("-s symbol");
    assert!(text.contains("event 'cpu'") && !text.contains("context-switches"), "{text}");
    assert!(text.contains("rep --off-cpu"), "{text}");
    let asked = place.rep("-s symbol --event context-switches");
    assert!(asked.contains("event 'context-switches'"), "{asked}");
    assert_eq!(list(&parsed(place.rep("--json"))["events"]).len(), 2);
}

#[test]
fn times_are_filtered_by_their_beginnings() {
    let place = Place::of(&eventful(&PER_THREAD));
    let at = |words: &str| by(&place, &format!("--wall {words}"), "switch");
    assert_eq!(at("--time 0.000001100,0.000001100"), rows(&[("waiting", 1, 2000)]));
    assert_eq!(
        at("--time 0.0000035,0.0000040"),
        rows(&[("waiting", 1, 1000)]),
        "a time at the nearest sample"
    );
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
    all = switches(sampled_switch(all, 1100), &PER_THREAD, &[(1105, WAITING), (3105, IN)]);
    all = switches(running(all, 3200, PARSE), &PER_THREAD, &[(3300, PREEMPTED), (3400, IN)]);
    // A thread without CPU samples.
    all = switches(all.task(7, 8), &PER_THREAD, &[(4000, IN), (4100, WAITING)]);
    let place = Place::of(&running(all.task(9, 9), 5000, WORK));
    // Of the time since 1000, when the thread is first seen, to 1105, 3105 to 3300 and 3400 to
    // 5000, thread 7 has its last sample at 3200. Thread 8 runs for 100 and then waits until the
    // end.
    let want = rows(&[
        ("preempted", 1, 100),
        ("running", 4, 105 + 195 + 1600 + 100),
        ("waiting", 2, 2000 + 900),
    ]);
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
        all = switches(all, &PER_THREAD, &[(time + 100, IN)]);
        if n % 3 > 0 {
            all = sampled_switch(all, time + 200);
        }
        all = switches(
            all,
            &PER_THREAD,
            &[(time + 203, if n % 2 == 0 { WAITING } else { PREEMPTED })],
        );
    }
    let place = Place::of(&all);
    let with = |threads: &str| {
        let mut rep = rep();
        let words = "--wall --json --children -s tid,symbol,switch,time";
        rep.args(words.split(' ')).arg(place.at("x.data")).env("RAYON_NUM_THREADS", threads);
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
    let faults = switches(faults, &PER_THREAD, &[(10, WAITING), (20, IN)]);
    assert!(refusal(&faults, &["--wall"]).contains("running time is unknown"));
    assert_eq!(by(&Place::of(&faults), "--off-cpu", "switch"), rows(&[("waiting", 1, 10)]));
}

#[test]
fn what_is_missing_is_told() {
    let place = Place::of(&eventful(&PER_THREAD));
    assert_eq!(
        codes(&parsed(place.rep("--json --off-cpu"))),
        ["unpaired-switches", "unsampled-switches"]
    );
}
