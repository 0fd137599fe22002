//! The table of refusals and answers.

use super::*;
use crate::args;
use crate::machine::Machine;
use crate::plan::plan;

fn first(line: &str) -> (PlannedEvent, Target) {
    let config = args::parse(["rec"].into_iter().chain(line.split_whitespace()).map(Into::into)).unwrap();
    let machine = Machine {
        page_size: 4096,
        online: vec![0],
        paranoid: 2,
        max_rate: 100_000,
        mlock_kb: 516,
        ..Machine::default()
    };
    let plan = plan(&config, &machine).unwrap();
    (plan.events[0].clone(), config.target)
}

/// Follows the steps against a kernel that answers `refuse`; the event that works and the notes, or the advice.
fn settle(
    line: &str,
    paranoid: i64,
    refuse: impl Fn(&PlannedEvent) -> Option<Errno>,
) -> Result<(PlannedEvent, Vec<String>), String> {
    let (mut event, target) = first(line);
    let with = Circumstances { target: &target, paranoid };
    let (asked, mut changes) = (event.clone(), Vec::new());
    for _ in 0..20 {
        let Some(errno) = refuse(&event) else {
            let notes = changes.iter().map(|c: &GivenUp| c.note(&asked, &event, with)).collect();
            return Ok((event, notes));
        };
        match next(&event, errno, with) {
            Step::Retry { event: better, given_up } => {
                assert_ne!(*better, event, "a step must change something");
                event = *better;
                changes.extend(given_up);
            }
            Step::GiveUp(advice) => return Err(advice),
        }
    }
    panic!("the steps do not end");
}

fn no_hardware(event: &PlannedEvent) -> Option<Errno> {
    (event.attr.kind == EventType::HARDWARE).then_some(Errno::NOENT)
}

#[test]
fn cycles_become_cpu_clock_with_one_line() {
    let (event, notes) = settle("x", 2, no_hardware).unwrap();
    assert_eq!(event.full_name(), "cpu-clock");
    assert_eq!(event.attr.flags.precise_ip(), 0);
    assert_eq!(notes, ["this machine has no counter for cycles:P: sampling cpu-clock instead"]);
}

#[test]
fn cycles_that_were_named_become_cpu_clock_too() {
    let (event, notes) = settle("-e cycles:u x", 2, no_hardware).unwrap();
    assert_eq!(event.full_name(), "cpu-clock:u");
    assert!(event.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL));
    assert_eq!(notes.len(), 1);
}

#[test]
fn precision_goes_down_one_level_at_a_time() {
    let (event, notes) = settle("x", 2, |e| (e.attr.flags.precise_ip() > 1).then_some(Errno::OPNOTSUPP)).unwrap();
    assert_eq!((event.name.as_str(), event.attr.flags.precise_ip()), ("cycles", 1));
    assert!(notes.is_empty());
    let advice = settle("-e cycles:pp x", 2, |e| (e.attr.flags.precise_ip() > 1).then_some(Errno::INVAL)).unwrap_err();
    assert!(advice.contains("cycles:pp"), "{advice}");
}

#[test]
fn other_hardware_events_have_no_stand_in() {
    let advice = settle("-e instructions x", 2, no_hardware).unwrap_err();
    assert!(
        advice.starts_with("cannot count instructions for the command: this machine has no such counter"),
        "{advice}"
    );
}

#[test]
fn users_get_user_space_with_one_line() {
    let kernel_is_closed = |e: &PlannedEvent| {
        no_hardware(e).or((!e.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)).then_some(Errno::ACCESS))
    };
    let (event, notes) = settle("-e cpu-clock x", 2, kernel_is_closed).unwrap();
    assert_eq!(event.full_name(), "cpu-clock:u");
    assert!(event.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV));
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("(cpu-clock:u)") && notes[0].contains("paranoid is 2"), "{}", notes[0]);
    let (event, notes) = settle("x", 2, kernel_is_closed).unwrap();
    assert_eq!((event.full_name().as_str(), notes.len()), ("cpu-clock:u", 2));
}

#[test]
fn an_event_of_the_kernel_says_that_it_will_be_empty() {
    let closed = |e: &PlannedEvent| (!e.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)).then_some(Errno::ACCESS);
    let (_, notes) = settle("-e cs x", 2, closed).unwrap();
    assert!(notes[0].contains("no samples of it"), "{}", notes[0]);
}

#[test]
fn who_asked_for_the_kernel_is_told_what_would_allow_it() {
    let advice = settle("-e cpu-clock:k x", 2, |_| Some(Errno::ACCESS)).unwrap_err();
    assert!(advice.contains("perf_event_paranoid is 2") && advice.contains("cpu-clock:u"), "{advice}");
}

#[test]
fn the_whole_system_is_not_for_users() {
    let advice = settle("-a -e cpu-clock", 2, |_| Some(Errno::ACCESS)).unwrap_err();
    assert!(advice.contains("CAP_PERFMON") && advice.contains("0 or less"), "{advice}");
}

#[test]
fn another_users_process() {
    let advice = settle("-p 1 -e cpu-clock", 2, |_| Some(Errno::ACCESS)).unwrap_err();
    assert!(advice.contains("belongs to another user"), "{advice}");
}

#[test]
fn older_kernels_lose_the_newest_first() {
    let old = |e: &PlannedEvent| {
        let new = e.attr.read_format.contains(ReadFormat::LOST)
            || e.attr.flags.intersects(AttrFlags::KSYMBOL | AttrFlags::BPF_EVENT);
        new.then_some(Errno::INVAL)
    };
    let (event, notes) = settle("-e cpu-clock x", 1, old).unwrap();
    assert_eq!(event.attr.read_format, ReadFormat::ID);
    assert!(event.attr.flags.contains(AttrFlags::MMAP2));
    assert_eq!(notes.len(), 1);
}

#[test]
fn every_refusal_says_more_than_its_errno() {
    for errno in [
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOENT,
        Errno::INVAL,
        Errno::OPNOTSUPP,
        Errno::SRCH,
        Errno::BUSY,
        Errno::NOSPC,
        Errno::MFILE,
        Errno::NOMEM,
        Errno::NOSYS,
        Errno::NODEV,
    ] {
        let advice = settle("-e faults x", -1, |_| Some(errno)).unwrap_err();
        assert!(advice.starts_with("cannot count faults for the command: ") && advice.len() > 50, "{advice}");
        assert!(!advice.contains("os error"), "{advice}");
    }
}
