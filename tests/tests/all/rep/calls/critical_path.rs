//! The critical path of a program with two threads, to the nanosecond.

use recrep_fixtures::build::{TracepointFormat, tracing_data};
use recrep_format::abi::{AttrFlags, misc};
use recrep_format::feature::{Cmdline, HeaderString, TracingData};
use recrep_format::wire::List;

use super::*;
use crate::private::outputs::unpacked;

/// Numbers of the tracepoints.
const WAKING: u64 = 314;
const WAKEUP_NEW: u64 = 315;

/// Places of the events in the stream.
const CLOCK: usize = 0;
const SWITCHES: usize = 1;
const WAKES: usize = 2;
const NEW: usize = 3;

/// Flag of a wake in an interrupt.
const IN_INTERRUPT: u8 = 0x08;

fn events() -> Stream {
    let switches = Event::new("context-switches")
        .counting(EventType::SOFTWARE, SwEvent::CONTEXT_SWITCHES.0)
        .sampling(SampleType::CALLCHAIN)
        .with(|attr| (attr.sample_period, attr.flags) = (1, attr.flags - AttrFlags::FREQ));
    let tracepoint = |name, id| {
        Event::new(name)
            .counting(EventType::TRACEPOINT, id)
            .sampling(SampleType::CALLCHAIN | SampleType::RAW)
    };
    let fields = ["char comm[16];\toffset:8;\tsize:16;", "pid_t pid;\toffset:24;\tsize:4;"];
    let formats = [("sched_waking", WAKING), ("sched_wakeup_new", WAKEUP_NEW)]
        .map(|(name, id)| TracepointFormat { name, id, fields: &fields, print: "\"\"" });
    stream(Event::new("cpu-clock").counting(EventType::SOFTWARE, SwEvent::CPU_CLOCK.0))
        .event(switches)
        .event(tracepoint("sched:sched_waking", WAKING))
        .event(tracepoint("sched:sched_wakeup_new", WAKEUP_NEW))
        .feature(&TracingData { data: &tracing_data(Endian::Little, "sched", &formats) })
}

fn running(stream: Stream, time: u64, function: u64) -> Stream {
    let spec = SampleSpec::at(function + 1)
        .callchain(&[context::USER, function + 1, MAIN + 4])
        .period(250);
    stream.of(CLOCK).at(time).sample(spec)
}

/// A switch from `work`, with its sample just before.
fn out(stream: Stream, time: u64, bits: u16) -> Stream {
    let chain = [context::KERNEL, KERNEL, context::USER, WORK + 4, MAIN + 4];
    let spec = SampleSpec::at(KERNEL).misc(1).callchain(&chain);
    stream.of(SWITCHES).at(time - 5).sample(spec).at(time).record(bits, Body::Switch)
}

fn back(stream: Stream, time: u64) -> Stream {
    stream.at(time).record(0, Body::Switch)
}

/// A wake of thread `target` by another one.
fn wake(
    stream: Stream,
    (event, id): (usize, u64),
    time: u64,
    [waker, target]: [u32; 2],
    flags: u8,
) -> Stream {
    let mut raw = u16::try_from(id).unwrap().to_le_bytes().to_vec();
    raw.extend([flags, 0]);
    raw.extend(waker.to_le_bytes());
    raw.extend([0; 16]);
    raw.extend(target.to_le_bytes());
    let chain = [context::KERNEL, KERNEL, context::USER, PARSE + 4, MAIN + 4];
    stream.of(event).at(time).sample(SampleSpec::at(KERNEL).misc(1).callchain(&chain).raw(&raw))
}

/// The program runs from 1000 to 9000. Thread 8 computes from 2000 to 6000, for which thread 7
/// waits; then thread 7 waits for a timer, from 7000 to 8000.
fn two_threads() -> Stream {
    let mut all = events().task(7, 7).at(1000).exec("app");
    all = running(all, 1500, WORK).at(1800).fork(7, 8);
    all = wake(all, (NEW, WAKEUP_NEW), 1900, [7, 8], 0);
    all = back(all.task(7, 8), 2000);
    all = out(all.task(7, 7), 3000, misc::SWITCH_OUT);
    all = running(all.task(7, 8), 4000, PARSE);
    all = running(all, 5000, PARSE);
    all = wake(all, (WAKES, WAKING), 6000, [8, 7], 0);
    all = back(all.task(7, 7), 6100);
    all = out(all, 7000, misc::SWITCH_OUT);
    // An interrupt on the CPU of thread 8.
    all = wake(all.task(7, 8), (WAKES, WAKING), 8000, [8, 7], IN_INTERRUPT).at(8500).exit();
    all = back(all.task(7, 7), 8050);
    running(all, 8500, WORK).at(9000).exit()
}

/// Returns what `rep` answers in JSON of a program with two threads.
pub(crate) fn answer_of_two_threads(words: &str) -> Value {
    parsed(Place::of(&two_threads()).rep(&format!("{words} --json")))
}

fn by(place: &Place, words: &str, key: &str) -> Vec<(String, u64, u64)> {
    let answer = parsed(place.rep(&format!("--critical-path --json -s {key} {words}")));
    let mut rows = super::super::rows(&answer, 0);
    rows.sort_unstable();
    rows
}

#[test]
fn the_pieces_add_up_to_the_run() {
    let place = Place::of(&two_threads());
    let want = [
        // 1000 to 1900, 6100 to 7000, 8050 to 9000; 2000 to 6000.
        ("running", 5, 900 + 900 + 950 + 4000),
        ("runnable", 3, 100 + 100 + 50),
        ("waiting", 1, 1000),
    ];
    let sum: u64 = want.iter().map(|(.., time)| time).sum();
    assert_eq!(sum, 8000);
    let found = by(&place, "", "switch");
    let times: Vec<(&str, u64)> = found.iter().map(|(name, _, time)| (&**name, *time)).collect();
    let mut wanted = want.map(|(name, _, time)| (name, time));
    wanted.sort_unstable();
    assert_eq!(times, wanted);
    let threads = by(&place, "", "tid");
    let threads: Vec<(&str, u64)> =
        threads.iter().map(|(name, _, time)| (&**name, *time)).collect();
    assert_eq!(threads, [("7:app", 8000 - 4100), ("8:app", 4100)]);
    // All outputs have the same sum.
    let folded = place.rep("--critical-path --format folded");
    let folded = folded.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert_eq!(folded.sum::<u64>(), 8000);
    // A part of the time, and a path that ends with another thread.
    let part = by(&place, "--time 0.000002500,0.000003500", "tid");
    assert_eq!(part.iter().map(|(.., time)| time).sum::<u64>(), 1000);
    let of_thread = by(&place, "--tid 8", "tid");
    assert_eq!(of_thread.iter().map(|(.., time)| time).sum::<u64>(), 8500 - 1000);
}

#[test]
fn waits_have_their_kinds_as_functions() {
    let place = Place::of(&two_threads());
    // A function in no table says nothing.
    let unknown = by(&place, "", "symbol");
    let names: Vec<&str> = unknown.iter().map(|(name, ..)| &**name).collect();
    assert_eq!(names, ["kernel|[nearest sample]", "user|parse", "user|work"]);
    place.put("kallsyms", format!("{TEXT:x} T _text\n{KERNEL:x} T hrtimer_nanosleep\n"));
    let named = by(&place, "", "symbol");
    let of_sleep = |rows: &[(String, u64, u64)]| {
        rows.iter().find(|(name, ..)| name == "kernel|[sleep]").map(|(.., time)| *time)
    };
    assert_eq!(of_sleep(&named), Some(1000), "{named:?}");
    let sum = |rows: &[(String, u64, u64)]| rows.iter().map(|(.., time)| time).sum::<u64>();
    assert_eq!((sum(&unknown), sum(&named)), (8000, 8000));
    let kinds = by(&place, "", "wait");
    assert_eq!(kinds, [("N/A".to_owned(), 7, 7000), ("sleep".to_owned(), 1, 1000)]);
    // The callers are those of the wait, and the kernel's functions are there where they are wanted.
    let folded = |words: &str| place.rep(&format!("--critical-path --format folded {words}"));
    assert!(folded("").contains(";main;work;hrtimer_nanosleep 1150\n"), "{}", folded(""));
    let tree = place.rep("--critical-path -g caller --no-children -s symbol");
    let (_, tree) = tree.split_once("[sleep]").unwrap();
    let lines: Vec<&str> = tree.lines().skip(2).take(2).map(str::trim).collect();
    assert_eq!(lines, ["---work", "[sleep]"]);
    let kernel = by(&place, "--kernel-waits", "symbol");
    assert!(of_sleep(&kernel).is_none() && sum(&kernel) == 8000, "{kernel:?}");
    let waits = parsed(place.rep("--off-cpu --json -s wait,sym"));
    let row = &waits["events"][0]["rows"][0];
    assert_eq!((&row["key"]["wait"], &row["key"]["sym"]), (&"sleep".into(), &"work".into()));
}

#[test]
fn a_hint_says_that_spinning_is_running() {
    let place = Place::of(&two_threads());
    let hints = || {
        let answer = parsed(place.rep("--critical-path --json"));
        let warnings = list(&answer["warnings"]).iter();
        let hints = warnings.filter(|warning| warning["code"] == "spinning");
        hints.map(|hint| hint["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(hints(), [""; 0]);
    // It has half of the path.
    place.put("root/tmp/perf-7.map", format!("{MAIN:x} 10 main\n{PARSE:x} 10 spin_wait\n"));
    let [hint] = &*hints() else { panic!("{:?}", hints()) };
    assert!(hint.starts_with("50.0% of the critical path is in code that spins"), "{hint}");
    assert!(hint.contains("mostly spin_wait"), "{hint}");
}

#[test]
fn a_faster_function_gains_as_long_as_it_is_waited_for() {
    let place = Place::of(&two_threads());
    let answer =
        parsed(place.rep("--critical-path --json --what-if parse=-50% --what-if tid:7=-10%"));
    let path = &answer["critical_paths"][0];
    assert_eq!((&path["comm"], &path["period"]), (&"app".into(), &8000.into()));
    let [of_parse, of_thread] = list(&path["what_if"]) else { panic!("{path}") };
    assert_eq!((&of_parse["on_path"], &of_parse["first_order"]), (&4000.into(), &2000.into()));
    // Thread 7 waits from 3000 on: thread 8 is early enough after 1000 less. Its first sample stands
    // for what it ran before.
    assert_eq!(of_parse["saved"], 2000);
    assert_eq!(of_thread["saved"], (900 + 900 + 950) / 10);
    let text = place.rep("--critical-path --what-if parse=-50%");
    assert!(
        text.contains("# If parse (4 us on the path) were 50 % faster: 2 us (25 %) shorter"),
        "{text}"
    );
}

#[test]
fn steps_say_who_woke_whom() {
    let place = Place::of(&two_threads());
    let answer = parsed(place.rep("critical-path --steps --json"));
    let steps = list(&answer["paths"][0]["steps"]).iter().map(|step| {
        let text = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
        (step["time"].as_u64().unwrap(), text("thread"), text("what"), text("woken_by"))
    });
    let steps: Vec<_> = steps.collect();
    let want = [
        (0, "7:app", "running", ""),
        (900, "8:app", "runnable", "7:app"),
        (1000, "8:app", "running", ""),
        (5000, "7:app", "runnable", "8:app"),
        (5100, "7:app", "running", ""),
        (6000, "7:app", "waiting", ""),
        (7000, "7:app", "runnable", "interrupt"),
        (7050, "7:app", "running", ""),
    ];
    let want = want
        .map(|(time, thread, what, by)| (time, thread.to_owned(), what.to_owned(), by.to_owned()));
    assert_eq!(steps, want);
}

#[test]
fn of_several_recorders_it_is_the_program_of_the_command_line() {
    let words = ["/usr/bin/rec", "--waits", "-a", "-o", "x.data", "--", "./app"];
    let words = words.map(HeaderString::new).to_vec();
    let all = two_threads().feature(&Cmdline { args: List(words) });
    let all = all.task(5, 5).at(300).comm("rec").at(600).exec("other").at(900).exit();
    let all = all.task(7, 7).at(400).comm("rec");
    let place = Place::of(&all);
    let answer = parsed(place.rep("critical-path --json"));
    assert_eq!(answer["paths"][0]["tid"], 7, "{answer}");
}

#[test]
fn a_page_has_the_stacks_of_those_who_woke() {
    let place = Place::of(&two_threads());
    let page = unpacked(place.rep("html -o -").as_bytes());
    let texts = page.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
    let stacks: Vec<&str> = texts.filter(|text| text.contains('\n')).collect();
    assert!(stacks.contains(&"entry\nparse\nmain"), "{stacks:?}");
}

#[test]
fn without_wakes_there_is_no_path() {
    let clock = Event::new("cpu-clock").counting(EventType::SOFTWARE, SwEvent::CPU_CLOCK.0);
    let message = refusal(&back(running(stream(clock), 100, WORK), 200), &["--critical-path"]);
    assert!(message.contains("rec --waits"), "{message}");
}
