//! Threads that wait for CPUs.

use super::*;

#[test]
fn a_thread_that_waits_for_a_cpu_waits_for_the_one_that_has_it() {
    const MS: u64 = 1_000_000;
    let on = |time, thread, act| (time, thread, act, Some(3));
    let events = [
        on(0, "main", Begin),
        on(MS, "main", Fork("worker")),
        on(4 * MS, "main", Preempt),
        on(4 * MS + 20, "worker", In),
        on(8 * MS, "worker", Preempt),
        on(8 * MS + 20, "main", In),
        on(10 * MS, "main", Exit),
    ];
    let path = [
        ("main", 0, 4 * MS, "run"),
        ("worker", 4 * MS, 4 * MS + 20, "runqueue"),
        ("worker", 4 * MS + 20, 8 * MS, "run"),
        ("main", 8 * MS, 8 * MS + 20, "runqueue"),
        ("main", 8 * MS + 20, 10 * MS, "run"),
    ];
    check(&events, &path, "worker", 8 * MS + 10);
    // Of another CPU nothing is known.
    let mut elsewhere = events;
    elsewhere[5].3 = Some(2);
    let (waits, names) = recorded(&elsewhere);
    let path = waits.path(waits.run_of_program().unwrap());
    assert_eq!(words(&waits, &names, &path)[1].3, "preempted");
}

#[test]
fn the_path_returns_from_a_thread_that_took_the_cpu_of_one_that_waits() {
    const MS: u64 = 1_000_000;
    let on = |time, thread, act| (time, thread, act, Some(3));
    // The watcher sleeps, and takes the CPU twice: when it wakes, and behind another one.
    let events = [
        on(0, "main", Begin),
        on(1000, "main", Fork("watcher")),
        on(2000, "main", Preempt),
        on(2000, "watcher", In),
        on(3000, "watcher", Out),
        on(3000, "main", In),
        (3 * MS, "main", Interrupt("watcher"), Some(3)),
        on(3 * MS + 10, "main", Preempt),
        on(3 * MS + 20, "watcher", In),
        on(3 * MS + 150_020, "watcher", Out),
        on(3 * MS + 150_040, "main", In),
        on(5 * MS, "main", Fork("other")),
        on(5 * MS + 10, "main", Preempt),
        on(5 * MS + 10, "other", In),
        (6 * MS, "other", Interrupt("watcher"), Some(3)),
        on(7 * MS, "other", Out),
        on(7 * MS + 10, "watcher", In),
        on(8 * MS, "watcher", Out),
        on(8 * MS + 10, "main", In),
        on(9 * MS, "main", Exit),
    ];
    let path = [
        ("main", 0, 2000, "run"),
        ("main", 2000, 3000, "preempted"),
        ("main", 3000, 3 * MS + 10, "run"),
        ("main", 3 * MS + 10, 3 * MS + 20, "preempted"),
        ("watcher", 3 * MS + 20, 3 * MS + 150_020, "run"),
        ("main", 3 * MS + 150_020, 3 * MS + 150_040, "runqueue"),
        ("main", 3 * MS + 150_040, 5 * MS, "run"),
        ("other", 5 * MS, 5 * MS + 10, "runqueue"),
        ("other", 5 * MS + 10, 7 * MS, "run"),
        ("watcher", 7 * MS, 7 * MS + 10, "runqueue"),
        ("watcher", 7 * MS + 10, 8 * MS, "run"),
        ("main", 8 * MS, 8 * MS + 10, "runqueue"),
        ("main", 8 * MS + 10, 9 * MS, "run"),
    ];
    let (waits, names) = recorded(&events);
    let found = waits.path(waits.run_of_program().unwrap());
    let found: Vec<_> = words(&waits, &names, &found);
    let path = path.map(|(name, from, to, word)| (name.to_owned(), from, to, word.to_owned()));
    assert_eq!(found, path);
}

#[test]
fn an_exiting_thread_leaves_its_cpu_without_a_switch() {
    const MS: u64 = 1_000_000;
    let on = |time, thread, act| (time, thread, act, Some(3));
    let events = [
        on(0, "main", Begin),
        on(MS, "main", Fork("worker")),
        on(2 * MS, "main", Preempt),
        on(2 * MS, "worker", In),
        on(8 * MS, "worker", Exit),
        on(8 * MS + 200_000, "main", In),
        on(9 * MS, "main", Exit),
    ];
    let path = [
        ("main", 0, 2 * MS, "run"),
        ("worker", 2 * MS, 8 * MS, "run"),
        ("main", 8 * MS, 8 * MS + 200_000, "runqueue"),
        ("main", 8 * MS + 200_000, 9 * MS, "run"),
    ];
    check(&events, &path, "worker", 6 * MS);
}
