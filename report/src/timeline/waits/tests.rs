//! Timelines that are stated by hand, and made-up ones.

mod all_cpus;
mod barriers;
mod cpus;
mod made_up;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{CriticalPiece, PathSpan, PieceKind, Savings, Waits};
use crate::timeline::Activity;
use crate::timeline::off_cpu::{
    Mark, RecordedProgram, ThreadFacts, ThreadRecord, ThreadWalk, Wake, WantedTimes,
};

/// What a thread does at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act<'a> {
    Begin,
    Fork(&'a str),
    Out,
    Preempt,
    In,
    Wake(&'a str),
    /// An interrupt that borrows the thread wakes another one.
    Interrupt(&'a str),
    Exit,
}

use Act::{Begin, Exit, Fork, In, Interrupt, Out, Preempt, Wake as Wakes};

/// A recording in the making.
#[derive(Default)]
struct Recorded {
    names: Vec<String>,
    records: BTreeMap<u32, Vec<ThreadRecord>>,
    wakes: FxHashMap<u32, Vec<Wake>>,
    /// Wakes get offsets of their own.
    next: u64,
    end: u64,
    /// Threads of the kernel, of a recording of all CPUs.
    kernel: Option<Vec<&'static str>>,
}

impl Recorded {
    fn tid(&mut self, name: &str) -> u32 {
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        u32::try_from(place).unwrap() + 100
    }

    fn mark(&mut self, time: u64, tid: u32, cpu: Option<u32>, mark: Mark) {
        self.records.entry(tid).or_default().push(ThreadRecord::new(time, 0, cpu, mark));
    }

    fn wake(&mut self, time: u64, waker: u32, target: u32, bits: u64) {
        self.next += 1;
        self.wakes.entry(target).or_default().push(Wake::new(time, self.next, waker, bits));
    }

    fn act(&mut self, time: u64, thread: &str, act: Act<'_>, cpu: Option<u32>) {
        let tid = self.tid(thread);
        self.end = self.end.max(time);
        match act {
            Begin => self.mark(time, tid, cpu, Mark::Alive),
            Fork(child) => {
                let child = self.tid(child);
                let begin = ThreadRecord::new(time, tid.into(), cpu, Mark::Begin);
                self.records.entry(child).or_default().push(begin);
                self.wake(time, tid, child, Wake::NEW);
            }
            Out => self.mark(time, tid, cpu, Mark::Out(Activity::Waiting)),
            Preempt => self.mark(time, tid, cpu, Mark::Out(Activity::Preempted)),
            In => self.mark(time, tid, cpu, Mark::In),
            Wakes(target) | Interrupt(target) => {
                let target = self.tid(target);
                let bits = if matches!(act, Interrupt(_)) { Wake::INTERRUPT } else { 0 };
                self.wake(time, tid, target, bits);
            }
            Exit => self.mark(time, tid, cpu, Mark::Exit),
        }
    }

    fn waits(mut self, lacks_exits: bool) -> (Waits, Vec<String>) {
        let end = self.end;
        let kernel = self.kernel.take();
        let is_of_all_cpus = kernel.is_some();
        let kernel = kernel.iter().flatten().map(|name| self.tid(name)).collect();
        let threads = self.records.into_iter().map(|(tid, mut records)| {
            records.sort_by_key(|record| record.time());
            // Each thread is a process, where others than the program's are recorded.
            let pid = if is_of_all_cpus { tid.cast_signed() } else { 7 };
            let (thread, _) = ThreadWalk::of(pid, &records, end, WantedTimes::Lives);
            (tid.cast_signed(), thread)
        });
        let waits = Waits::of(ThreadFacts {
            threads: threads.collect(),
            wakes: self.wakes,
            between: (0, end),
            program: Some(RecordedProgram { time: 0, tid: 100 }),
            lacks_exits,
            is_of_all_cpus,
            kernel,
            ..ThreadFacts::default()
        });
        (waits, self.names)
    }
}

/// Saves a part of one thread's running time.
struct Faster {
    thread: Option<u32>,
    part: f64,
}

impl Savings for Faster {
    fn part(&self, thread: u32, _: Option<usize>) -> f64 {
        if self.touches(thread) { self.part } else { 0.0 }
    }

    fn touches(&self, thread: u32) -> bool {
        self.thread.is_none_or(|wanted| wanted == thread)
    }
}

type Event<'a> = (u64, &'a str, Act<'a>, Option<u32>);

/// Returns the recording of some events; the first thread is the program's.
fn recorded(events: &[Event<'_>]) -> (Waits, Vec<String>) {
    let mut recorded = Recorded::default();
    for (time, thread, act, cpu) in events {
        recorded.act(*time, thread, *act, *cpu);
    }
    recorded.waits(false)
}

/// Returns events without CPUs.
fn anywhere<'a>(events: &[(u64, &'a str, Act<'a>)]) -> Vec<Event<'a>> {
    events.iter().map(|&(time, thread, act)| (time, thread, act, None)).collect()
}

fn word(kind: PieceKind) -> &'static str {
    match kind {
        PieceKind::Running => "run",
        PieceKind::Runnable => "runqueue",
        PieceKind::Preempted => "preempted",
        PieceKind::Waiting => "wait",
        PieceKind::Unknown => "unknown",
    }
}

/// Returns a path in words: thread, start, end and kind of each piece.
fn words(
    waits: &Waits,
    names: &[String],
    path: &[CriticalPiece],
) -> Vec<(String, u64, u64, String)> {
    let all = path.iter().map(|piece| {
        let tid = waits.thread(piece.thread).unwrap().tid;
        let name = names[usize::try_from(tid - 100).unwrap()].clone();
        (name, piece.from, piece.to, word(piece.kind).to_owned())
    });
    all.collect()
}

/// Checks the path of a recording, and when it would end if a thread were twice as fast.
fn check(events: &[Event<'_>], path: &[(&str, u64, u64, &str)], faster: &str, end: u64) {
    let (waits, names) = recorded(events);
    let span = waits.run_of_program().unwrap();
    let found = words(&waits, &names, &waits.path(span));
    let wanted: Vec<_> = path
        .iter()
        .map(|&(thread, from, to, kind)| (thread.to_owned(), from, to, kind.to_owned()))
        .collect();
    assert_eq!(found, wanted);
    let tid = 100 + i32::try_from(names.iter().position(|name| name == faster).unwrap()).unwrap();
    let thread = waits.index(tid, 0);
    assert_eq!(
        waits.replay(span, &Faster { thread, part: 0.5 }, &[]),
        end,
        "{faster} twice as fast"
    );
    assert_eq!(
        waits.replay(span, &Faster { thread: None, part: 0.0 }, &[]),
        span.to,
        "as recorded"
    );
}

#[test]
fn a_timer_ends_a_sleep_that_stays_as_long() {
    let events = anywhere(&[
        (0, "main", Begin),
        (20, "main", Out),
        (100, "none", Interrupt("main")),
        (104, "main", In),
        (120, "main", Exit),
    ]);
    let path = [
        ("main", 0, 20, "run"),
        ("main", 20, 100, "wait"),
        ("main", 100, 104, "runqueue"),
        ("main", 104, 120, "run"),
    ];
    check(&events, &path, "main", 102);
}

#[test]
fn the_path_returns_from_a_watcher_that_stops_others_now_and_then() {
    // The watcher sleeps for long, and has the worker wait for it for a moment.
    let stops = |back| {
        anywhere(&[
            (0, "main", Begin),
            (10, "main", Fork("watcher")),
            (12, "watcher", In),
            (20, "watcher", Out),
            (1000, "none", Interrupt("watcher")),
            (1004, "watcher", In),
            (1010, "main", Out),
            (back, "watcher", Wakes("main")),
            (back + 4, "main", In),
            (back + 6, "watcher", Out),
            (back + 100, "main", Exit),
        ])
    };
    let path = [
        ("main", 0, 1010, "run"),
        ("watcher", 1010, 1030, "run"),
        ("main", 1030, 1034, "runqueue"),
        ("main", 1034, 1130, "run"),
    ];
    let (waits, names) = recorded(&stops(1030));
    let found = waits.path(waits.run_of_program().unwrap());
    let path = path.map(|(name, from, to, word)| (name.to_owned(), from, to, word.to_owned()));
    assert_eq!(words(&waits, &names, &found), path);
    // What the watcher does after its sleep takes long: the sooner, the better.
    let (waits, names) = recorded(&stops(1400));
    let found = waits.path(waits.run_of_program().unwrap());
    let slept = ("watcher".to_owned(), 20, 1000, "wait".to_owned());
    assert!(words(&waits, &names, &found).contains(&slept));
}

#[test]
fn the_path_follows_the_waker_and_does_not_come_back() {
    // The worker runs all the time; what main did before it waited is not on the path.
    let events = anywhere(&[
        (0, "main", Begin),
        (10, "main", Fork("worker")),
        (12, "worker", In),
        (60, "main", Out),
        (200, "worker", Wakes("main")),
        (204, "main", In),
        (206, "worker", Exit),
        (220, "main", Exit),
    ]);
    let path = [
        ("main", 0, 10, "run"),
        ("worker", 10, 12, "runqueue"),
        ("worker", 12, 200, "run"),
        ("main", 200, 204, "runqueue"),
        ("main", 204, 220, "run"),
    ];
    check(&events, &path, "worker", 126);
}

#[test]
fn a_thread_wakes_after_its_exit_record() {
    let events = anywhere(&[
        (0, "main", Begin),
        (2, "main", Fork("worker")),
        (4, "worker", In),
        (10, "main", Out),
        (50, "worker", Exit),
        (54, "worker", Wakes("main")),
        (55, "main", In),
        (60, "main", Exit),
    ]);
    let path = [
        ("main", 0, 2, "run"),
        ("worker", 2, 4, "runqueue"),
        ("worker", 4, 54, "run"),
        ("main", 54, 55, "runqueue"),
        ("main", 55, 60, "run"),
    ];
    check(&events, &path, "worker", 35);
}

#[test]
fn an_exit_ends_a_wait_where_exiting_threads_leave_no_wake() {
    let events = anywhere(&[
        (0, "main", Begin),
        (2, "main", Fork("worker")),
        (4, "worker", In),
        (10, "main", Out),
        (50, "worker", Exit),
        (55, "main", In),
        (60, "main", Exit),
    ]);
    let mut recording = Recorded::default();
    for (time, thread, act, cpu) in &events {
        recording.act(*time, thread, *act, *cpu);
    }
    let (waits, names) = recording.waits(true);
    let path = waits.path(waits.run_of_program().unwrap());
    let found = words(&waits, &names, &path);
    assert_eq!(found[2], ("worker".into(), 4, 50, "run".into()));
    // Otherwise it is a wait without a known end.
    let (waits, names) = recorded(&events);
    let path = waits.path(waits.run_of_program().unwrap());
    assert_eq!(words(&waits, &names, &path)[1], ("main".into(), 10, 55, "wait".into()));
}

#[test]
fn a_wake_just_before_the_switch_counts_from_the_switch_on() {
    let events = anywhere(&[
        (0, "main", Begin),
        (1, "main", Fork("other")),
        (2, "other", In),
        (38, "other", Wakes("main")),
        (40, "main", Out),
        (50, "main", In),
        (60, "main", Exit),
        (61, "other", Exit),
    ]);
    let path = [
        ("main", 0, 1, "run"),
        ("other", 1, 2, "runqueue"),
        ("other", 2, 40, "run"),
        ("main", 40, 50, "runqueue"),
        ("main", 50, 60, "run"),
    ];
    check(&events, &path, "other", 60);
}

#[test]
fn wakes_by_interrupts_strangers_and_itself_end_no_wait_of_another() {
    for waking in
        [("worker", Interrupt("main")), ("stranger", Wakes("main")), ("main", Wakes("main"))]
    {
        let mut events = anywhere(&[
            (0, "main", Begin),
            (1, "main", Fork("worker")),
            (2, "worker", In),
            (10, "main", Out),
            (55, "main", In),
            (60, "main", Exit),
            (70, "worker", Exit),
        ]);
        events.push((50, waking.0, waking.1, None));
        let path = [
            ("main", 0, 10, "run"),
            ("main", 10, 50, "wait"),
            ("main", 50, 55, "runqueue"),
            ("main", 55, 60, "run"),
        ];
        check(&events, &path, "worker", 60);
    }
}

#[test]
fn a_gain_ends_where_another_thread_becomes_the_path() {
    let events = anywhere(&[
        (0, "main", Begin),
        (0, "main", Fork("worker")),
        (0, "worker", In),
        (80, "main", Out),
        (100, "worker", Wakes("main")),
        (100, "main", In),
        (101, "worker", Exit),
        (110, "main", Exit),
    ]);
    let path = [("worker", 0, 100, "run"), ("main", 100, 110, "run")];
    check(&events, &path, "worker", 90);
}

#[test]
fn lost_records_leave_unknown_time() {
    for (lost, unknown) in [
        // The switch in, of which the next switch out tells.
        (vec![(10, Out), (50, Out), (60, In)], (10, 50)),
        // The switch out: it ran at 10 for the last time.
        (vec![(5, Out), (10, In), (40, In)], (10, 40)),
    ] {
        let mut events = anywhere(&[(0, "main", Begin), (90, "main", Exit)]);
        events.extend(lost.into_iter().map(|(time, act)| (time, "main", act, None)));
        let (waits, names) = recorded(&events);
        let path = words(&waits, &names, &waits.path(waits.run_of_program().unwrap()));
        let found = path.iter().find(|(.., kind)| kind == "unknown").unwrap();
        assert_eq!((found.1, found.2), unknown);
        assert_eq!(path.iter().map(|(_, from, to, _)| to - from).sum::<u64>(), 90);
    }
}

#[test]
fn a_span_ends_where_its_thread_ran_last() {
    let events = anywhere(&[
        (0, "main", Begin),
        (1, "main", Fork("worker")),
        (2, "worker", In),
        (30, "worker", Out),
        (90, "main", Exit),
    ]);
    let (waits, _) = recorded(&events);
    let span = |until| waits.run_of(|thread| thread.tid == 101, until);
    assert_eq!(span(u64::MAX), Some(PathSpan { from: 0, to: 30, thread: 1 }));
    assert_eq!(span(20), Some(PathSpan { from: 0, to: 20, thread: 1 }));
    assert_eq!(waits.run_of(|_| false, u64::MAX), None);
}

/// Checks the timelines in the folder that `RECREP_WAITS_CASES` names.
#[test]
fn timelines_of_the_golden_cases() {
    let Some(folder) = std::env::var_os("RECREP_WAITS_CASES") else {
        println!("skipped: RECREP_WAITS_CASES names no folder of cases");
        return;
    };
    let text = std::fs::read_to_string(std::path::Path::new(&folder).join("timelines.json"));
    let all: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
    for case in all["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut recording = Recorded::default();
        for event in case["events"].as_array().unwrap() {
            let text = |at: usize| event[at].as_str().unwrap_or_default();
            let (cpu_at, act) = match text(2) {
                "begin" => (3, Begin),
                "fork" => (4, Fork(text(3))),
                "out" => (3, Out),
                "preempt" => (3, Preempt),
                "in" => (3, In),
                "wake" if text(4) == "irq" => (5, Interrupt(text(3))),
                "wake" => (4, Wakes(text(3))),
                "exit" => (3, Exit),
                other => panic!("{name}: {other}"),
            };
            let cpu = event[cpu_at].as_u64().map(|cpu| u32::try_from(cpu).unwrap());
            recording.act(event[0].as_u64().unwrap(), text(1), act, cpu);
        }
        let (waits, names) = recording.waits(false);
        let span = waits.run_of_program().unwrap();
        let found = words(&waits, &names, &waits.path(span));
        let wanted: Vec<(String, u64, u64, String)> =
            serde_json::from_value(case["path"].clone()).unwrap();
        assert_eq!(found, wanted, "{name}");
        let faster = case["if"][0].as_str().unwrap();
        let tid = 100 + i32::try_from(names.iter().position(|of| of == faster).unwrap()).unwrap();
        let faster = Faster { thread: waits.index(tid, 0), part: 0.5 };
        let end = f64::from(u32::try_from(waits.replay(span, &faster, &[])).unwrap());
        // Times of whole nanoseconds are rounded.
        assert!((end - case["if"][1].as_f64().unwrap()).abs() <= 1.0, "{name}: {end}");
    }
}
