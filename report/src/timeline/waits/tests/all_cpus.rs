//! Recordings of all CPUs, with threads of the kernel and of other programs.

use super::Act::{Begin, Exit, Fork, In, Interrupt, Out, Preempt, Wake as Wakes};
use super::{Event, Faster, Recorded, anywhere, recorded, words};

/// Returns the path of a recording of all CPUs with these threads of the kernel, and its end if the
/// program is twice as fast.
fn on_all_cpus(
    events: &[Event<'_>],
    kernel: &[&'static str],
) -> (Vec<(String, u64, u64, String)>, u64) {
    let mut recording = Recorded { kernel: Some(kernel.to_vec()), ..Recorded::default() };
    for (time, thread, act, cpu) in events {
        recording.act(*time, thread, *act, *cpu);
    }
    let (waits, names) = recording.waits(false);
    let span = waits.run_of_program().unwrap();
    let path = words(&waits, &names, &waits.path(span));
    (path, waits.replay(span, &Faster { thread: waits.index(100, 0), part: 0.5 }, &[]))
}

#[test]
fn the_path_returns_from_a_thread_of_the_kernel_where_the_wait_began() {
    // The service wakes by its own timer, whether somebody waits for it or not.
    let mut events = anywhere(&[
        (0, "main", Begin),
        (1, "service", Begin),
        (2, "other", Begin),
        (10, "service", Out),
        (100, "main", Out),
        (300, "other", Interrupt("service")),
        (301, "service", In),
        (310, "service", Wakes("main")),
        (312, "main", In),
        (320, "service", Out),
        (400, "main", Exit),
    ]);
    let text = |(thread, from, to, kind): &(String, u64, u64, String)| {
        format!("{thread} {from}-{to} {kind}")
    };
    let (path, faster) = on_all_cpus(&events, &["service"]);
    let want = [
        "main 0-100 run",
        "service 100-300 wait",
        "service 300-301 runqueue",
        "service 301-310 run",
        "main 310-312 runqueue",
        "main 312-400 run",
    ];
    assert_eq!(path.iter().map(text).collect::<Vec<_>>(), want);
    // The wait keeps its length.
    assert_eq!(faster, 50 + 212 + 44);
    // A service that main itself woke leads back to main at that moment.
    events.insert(4, (60, "main", Wakes("service"), None));
    events.retain(|(time, ..)| *time != 300);
    events.push((61, "service", In, None));
    events.retain(|(time, ..)| *time != 301);
    let (path, _) = on_all_cpus(&events, &["service"]);
    assert_eq!(text(&path[0]), "main 0-100 run");
    assert_eq!(text(&path[1]), "service 100-310 run");
    // What another program woke it for is not waited for.
    let mut for_other = events.clone();
    for_other.retain(|(time, ..)| *time > 61 || *time < 60);
    for_other.push((200, "other", Wakes("service"), None));
    for_other.push((201, "service", In, None));
    let (path, _) = on_all_cpus(&for_other, &["service"]);
    assert_eq!(text(&path[0]), "main 0-100 run");
    assert_eq!(text(&path[1]), "service 100-200 wait");
    assert_eq!(text(&path[3]), "service 201-310 run");
    // The path goes with other threads for good.
    let (path, _) = on_all_cpus(&events, &[]);
    assert_eq!(text(&path[0]), "main 0-60 run");
}

#[test]
fn other_programs_take_cpus_anyway() {
    const MS: u64 = 1_000_000;
    let on = |time, thread, act| (time, thread, act, Some(3));
    let mut events = vec![
        on(0, "main", Begin),
        on(MS, "other", Begin),
        on(4 * MS, "main", Preempt),
        on(4 * MS + 20, "other", In),
        on(8 * MS, "other", Preempt),
        on(8 * MS + 20, "main", In),
        on(10 * MS, "main", Exit),
    ];
    let kinds = |path: &[(String, u64, u64, String)]| {
        path.iter().map(|(thread, .., kind)| format!("{thread} {kind}")).collect::<Vec<_>>()
    };
    let (path, _) = on_all_cpus(&events, &[]);
    assert_eq!(kinds(&path), ["main run", "main preempted", "main run"]);
    // A child is of the program.
    events[1] = on(MS, "main", Fork("other"));
    let (path, _) = on_all_cpus(&events, &[]);
    assert_eq!(
        kinds(&path),
        ["main run", "other runqueue", "other run", "main runqueue", "main run"]
    );
}

#[test]
fn what_ended_before_samples_were_taken_is_left_out() {
    let events = anywhere(&[
        (0, "main", Begin),
        (5, "main", Out),
        (20, "main", In),
        (30, "main", Out),
        (50, "other", Interrupt("main")),
        (52, "main", In),
        (60, "main", Exit),
    ]);
    let mut recording = Recorded { kernel: Some(Vec::new()), ..Recorded::default() };
    for (time, thread, act, cpu) in &events {
        recording.act(*time, thread, *act, *cpu);
    }
    let (waits, _) = recording.waits(false);
    assert_eq!(waits.between, (50, 60));
    let main = waits.thread(waits.index(100, 60).unwrap()).unwrap();
    assert_eq!(main.stretches.iter().map(|one| (one.off, one.on)).collect::<Vec<_>>(), [(30, 52)]);
    // Of a command everything is sampled from its exec on.
    let (waits, _) = recorded(&events);
    assert_eq!(waits.thread(0).unwrap().stretches.len(), 2);
}
