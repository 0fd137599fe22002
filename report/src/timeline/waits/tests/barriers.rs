//! Recordings of threads that wait for each other at barriers.

use super::Act::{Begin, Exit, Fork, In, Out, Wake as Wakes};
use super::{Act, Faster, anywhere, recorded};
use crate::timeline::waits::{Barrier, Waits};

/// Returns the time at which a recording ends if its first thread runs this part of its time.
fn end(waits: &Waits, barriers: &[Barrier], part: f64) -> u64 {
    let faster = Faster { thread: Some(0), part: 1.0 - part };
    waits.replay(waits.run_of_program().unwrap(), &faster, barriers)
}

/// Three threads of which `main` comes last to a barrier, for 300 of its 400.
fn three_threads() -> Vec<(u64, &'static str, Act<'static>)> {
    vec![
        (0, "main", Begin),
        (0, "main", Fork("a")),
        (0, "main", Fork("b")),
        (0, "a", In),
        (0, "b", In),
        (100, "a", Out),
        (150, "b", Out),
        (300, "main", Wakes("a")),
        (302, "main", Wakes("b")),
        (304, "a", In),
        (306, "b", In),
        (320, "a", Exit),
        (330, "b", Exit),
        (400, "main", Exit),
    ]
}

#[test]
fn a_thread_that_comes_earlier_to_a_barrier_waits_for_the_others() {
    let (waits, _) = recorded(&anywhere(&three_threads()));
    let barriers = waits.barriers(|_, _, _| true);
    assert_eq!(barriers, [Barrier { time: 300, waker: 0, waiters: vec![(1, 100), (2, 150)] }]);
    // It is still the last one at 240 and 150; at 30 it waits for the second one.
    for (part, wanted) in [(1.0, 400), (0.8, 320), (0.5, 200), (0.1, 150 + 10)] {
        assert_eq!(end(&waits, &barriers, part), wanted, "{part}");
    }
    assert_eq!(end(&waits, &[], 0.1), 40, "at a lock");
}

#[test]
fn who_was_woken_by_it_later_waits_as_well() {
    let mut events = three_threads();
    events.retain(|(time, ..)| *time < 310);
    events.extend([
        (310, "main", Out),
        (400, "a", Wakes("main")),
        (404, "main", In),
        (410, "a", Exit),
        (420, "main", Exit),
    ]);
    let (waits, _) = recorded(&anywhere(&events));
    let barriers = waits.barriers(|_, stretch, _| stretch.off < 200);
    // The others come at 150; `a` runs 96 from 4 after that on.
    assert_eq!(end(&waits, &barriers, 0.0), 150 + 4 + 96 + 4);
}

#[test]
fn a_barrier_opens_once_for_each_thread() {
    let mut events = three_threads();
    events.retain(|(time, ..)| *time < 320);
    events.extend([
        (350, "a", Out),
        (360, "b", Out),
        // Without a stop between.
        (380, "main", Wakes("b")),
        (381, "main", Wakes("a")),
        (385, "a", In),
        (386, "b", In),
        (390, "b", Exit),
        (391, "a", Exit),
        (400, "main", Exit),
    ]);
    let (waits, _) = recorded(&anywhere(&events));
    let barriers = waits.barriers(|_, _, _| true);
    let times: Vec<(u64, usize)> =
        barriers.iter().map(|barrier| (barrier.time, barrier.waiters.len())).collect();
    assert_eq!(times, [(300, 2), (380, 2)]);
    // At the first one, `b` comes last, and goes on at once: it runs for 54.
    assert_eq!(end(&waits, &barriers, 0.0), 150 + 54);
}

#[test]
fn a_waker_that_stops_between_opens_two_barriers() {
    let mut events = three_threads();
    events.extend([(301, "main", Out), (301, "main", In)]);
    events.sort_by_key(|(time, ..)| *time);
    let (waits, _) = recorded(&anywhere(&events));
    assert_eq!(waits.barriers(|_, _, _| true).len(), 2);
    assert_eq!(waits.barriers(|_, _, _| false), []);
}
