//! Shares of the time that passed, by the number of threads that ran at a moment.

use recrep_format::abi::{EventType, SwEvent};

use super::off_cpu::{IN, PER_THREAD, WAITING, by, clock, running, switches};
use super::*;

/// Thread 7 runs from 1000 to 5000, and thread 8 with it from 2000 to 3000.
fn overlapping(kind: EventType, config: u64) -> Stream {
    let mut all = stream(Event::new("cpu").counting(kind, config));
    all = switches(all.task(7, 7), &PER_THREAD, &[(1000, IN)]);
    all = running(all, 1500, WORK);
    all = switches(all.task(7, 8), &PER_THREAD, &[(2000, IN)]);
    all = running(running(all.task(7, 7), 2500, WORK).task(7, 8), 2600, PARSE);
    all = switches(all, &PER_THREAD, &[(3000, WAITING)]);
    all = running(all.task(7, 7), 4000, PARSE);
    switches(all, &PER_THREAD, &[(5000, WAITING)])
}

#[test]
fn time_is_shared_by_the_threads_that_ran() {
    let place = Place::of(&overlapping(EventType::SOFTWARE, SwEvent::CPU_CLOCK.0));
    // Samples have a period of 250.
    assert_eq!(by(&place, "--latency", "parallelism"), rows(&[("1", 2, 500), ("2", 2, 250)]));
    assert_eq!(by(&place, "--latency", "tid"), rows(&[("7:app", 3, 625), ("8::8", 1, 125)]));
    assert_eq!(
        by(&place, "--latency --parallelism 2-9", "tid"),
        rows(&[("7:app", 1, 125), ("8::8", 1, 125)])
    );
    // Of the file's own events, periods stay.
    assert_eq!(by(&place, "", "parallelism"), rows(&[("1", 2, 500), ("2", 2, 500)]));
    assert_eq!(by(&place, "--parallelism 1", "tid"), rows(&[("7:app", 2, 500)]));
    let output = place.command("--latency --no-children -s symbol").output().unwrap();
    let [text, said] = [output.stdout, output.stderr].map(|all| String::from_utf8(all).unwrap());
    assert!(text.contains("#  Latency    Seconds  Symbol"), "{text}");
    let hint = "at least one thread ran for 4 us, threads in all for 5 us: 1.2 at a time";
    assert!(said.contains(hint), "{said}");
}

#[test]
fn cycles_stand_for_the_time_that_the_thread_ran() {
    let place = Place::of(&overlapping(EventType::HARDWARE, 0));
    // Of thread 7: 500 alone, 1000 and 1500 to the next samples, and 1000 after its last one.
    assert_eq!(
        by(&place, "--latency", "tid"),
        rows(&[("7:app", 3, 500 + 1000 / 2 + 2500), ("8::8", 1, 1000 / 2)])
    );
}

#[test]
fn switches_must_have_been_recorded() {
    let lone = running(clock(), 1500, WORK);
    for words in [&["-s", "parallelism"][..], &["--parallelism", "1"]] {
        let refusal = refusal(&lone, words);
        assert!(refusal.contains("rec --latency"), "{refusal}");
    }
    let of_times = refusal(&lone, &["--latency"]);
    assert!(of_times.contains("no switches of threads"), "{of_times}");
}
