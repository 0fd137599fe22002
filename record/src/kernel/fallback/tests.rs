//! Tests: table of refusals and next steps.

use recrep_format::abi::{BranchSampleType, ReadFormat, SampleType};
use recrep_format::attr::Attr;

use super::*;
use crate::cli;
use crate::machine::Machine;
use crate::machine::registers::Arch;
use crate::plan::plan;

fn first(line: &str) -> (PlannedEvent, Target) {
    let config =
        cli::parse(["rec"].into_iter().chain(line.split_whitespace()).map(Into::into)).unwrap();
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

/// Follows the steps with a kernel that refuses by `refuse`. Returns the event that works and the
/// notes, or the advice.
fn settle(
    line: &str,
    paranoid: i64,
    refuse: impl Fn(&PlannedEvent) -> Option<Errno>,
) -> Result<(PlannedEvent, Vec<String>), String> {
    settle_on((0, 0), line, paranoid, refuse)
}

/// Like `settle`, on a kernel of this version.
fn settle_on(
    kernel: (u16, u16),
    line: &str,
    paranoid: i64,
    refuse: impl Fn(&PlannedEvent) -> Option<Errno>,
) -> Result<(PlannedEvent, Vec<String>), String> {
    let (mut event, target) = first(line);
    let with =
        Circumstances { target: &target, paranoid, kernel, arch: Arch::X86_64, counting: false };
    let (asked, mut changes) = (event.clone(), Vec::new());
    for _ in 0..20 {
        let Some(errno) = refuse(&event) else {
            let notes = changes.iter().map(|c: &GivenUp| c.note(&asked, &event, with)).collect();
            return Ok((event, notes));
        };
        match next(&event, errno, with) {
            Fallback::Retry { event: better, given_up } => {
                assert_ne!(*better, event, "a step must change something");
                event = *better;
                if given_up == Some(GivenUp::Cycles) {
                    changes.retain(|what| *what == GivenUp::Kernel);
                }
                changes.extend(given_up);
            }
            Fallback::GiveUp(advice) | Fallback::LeaveOut(advice) => return Err(advice),
            Fallback::NotSupported => panic!("recordings end there"),
        }
    }
    panic!("the steps do not end");
}

/// The advice of a kernel that refuses whatever is tried with the same errno.
#[track_caller]
fn advice_of(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> String {
    let mut step = next(event, errno, with);
    while let Fallback::Retry { event, .. } = step {
        step = next(&event, errno, with);
    }
    let Fallback::GiveUp(advice) = step else { panic!("{errno}: {step:?}") };
    advice
}

fn with(target: &Target, paranoid: i64) -> Circumstances<'_> {
    Circumstances { target, paranoid, kernel: (6, 18), arch: Arch::X86_64, counting: false }
}

fn no_hardware(event: &PlannedEvent) -> Option<Errno> {
    (event.attr.kind == EventType::HARDWARE).then_some(Errno::NOENT)
}

#[test]
fn cycles_become_cpu_clock_with_one_line() {
    let (event, notes) = settle("x", 2, no_hardware).unwrap();
    assert_eq!(event.full_name(), "cpu-clock");
    assert_eq!(event.attr.flags.precise_ip(), 0);
    assert_eq!(
        notes,
        ["no hardware counter for cycles:P here (virtual machine?): sampling CPU time \
             (cpu-clock) instead"]
    );
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
    let (event, notes) =
        settle("x", 2, |e| (e.attr.flags.precise_ip() > 1).then_some(Errno::OPNOTSUPP)).unwrap();
    assert_eq!((event.name.as_str(), event.attr.flags.precise_ip()), ("cycles", 1));
    assert!(notes.is_empty());
    let advice =
        settle("-e cycles:pp x", 2, |e| (e.attr.flags.precise_ip() > 1).then_some(Errno::INVAL))
            .unwrap_err();
    assert!(advice.contains("cycles:pp"), "{advice}");
}

#[test]
fn other_hardware_events_have_no_stand_in() {
    let advice = settle("-e instructions x", 2, no_hardware).unwrap_err();
    assert!(
        advice.starts_with(
            "cannot count instructions for the command: this machine has no such counter"
        ),
        "{advice}"
    );
}

#[test]
fn users_get_user_space_with_one_line() {
    let kernel_is_closed = |e: &PlannedEvent| {
        no_hardware(e)
            .or((!e.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)).then_some(Errno::ACCESS))
    };
    let (event, notes) = settle("-e cpu-clock x", 2, kernel_is_closed).unwrap();
    assert_eq!(event.full_name(), "cpu-clock:u");
    assert!(event.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV));
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].contains("(cpu-clock:u)") && notes[0].contains("paranoid is 2"),
        "{}",
        notes[0]
    );
    let (event, notes) = settle("x", 2, kernel_is_closed).unwrap();
    assert_eq!((event.full_name().as_str(), notes.len()), ("cpu-clock:u", 2));
}

#[test]
fn an_event_of_the_kernel_says_that_it_will_be_empty() {
    let closed = |e: &PlannedEvent| {
        (!e.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)).then_some(Errno::ACCESS)
    };
    let (_, notes) = settle("-e cs x", 2, closed).unwrap();
    assert!(notes[0].contains("no samples of it"), "{}", notes[0]);
}

#[test]
fn who_has_no_permission_is_told_what_would_allow_it() {
    for (line, words) in [
        ("-e cpu-clock:k x", ["perf_event_paranoid is 2", "cpu-clock:u"]),
        ("-a -e cpu-clock", ["CAP_PERFMON", "0 or less"]),
        ("-p 1 -e cpu-clock", ["belongs to another user", ""]),
    ] {
        let advice = settle(line, 2, |_| Some(Errno::ACCESS)).unwrap_err();
        assert!(words.iter().all(|word| advice.contains(word)), "{line}: {advice}");
    }
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
    assert_eq!(notes.len(), 3);
}

/// Refusals of a kernel or PMU that lacks the feature that `new` detects.
fn lacking(new: fn(&Attr) -> bool) -> impl Fn(&PlannedEvent) -> Option<Errno> {
    move |event| new(&event.attr).then_some(Errno::INVAL)
}

#[test]
fn each_feature_is_given_up_alone_where_the_kernel_s_version_explains_it() {
    use AttrFlags as F;
    use BranchSampleType as B;
    type Row = ((u16, u16), &'static str, fn(&Attr) -> bool, &'static str);
    let rows: &[Row] = &[
        (
            (6, 12),
            "-e {cpu-clock,faults}:S x",
            |a| a.flags.contains(F::INHERIT) && a.read_format.contains(ReadFormat::GROUP),
            "Linux 6.13: leave :S out",
        ),
        (
            (6, 7),
            "-e cycles -j any,counter x",
            |a| a.branch_sample_type.contains(B::COUNTERS),
            "6.8",
        ),
        ((5, 19), "-e cpu-clock x", |a| a.read_format.contains(ReadFormat::LOST), "6.0"),
        (
            (5, 11),
            "-e cpu-clock -W x",
            |a| a.sample_type.contains(SampleType::WEIGHT_STRUCT),
            "5.12",
        ),
        ((5, 11), "-e cpu-clock x", |a| a.flags.contains(F::BUILD_ID), "5.12"),
        ((5, 0), "-e cpu-clock x", |a| a.flags.contains(F::BPF_EVENT), "5.1"),
        ((6, 12), "-e cpu-clock -k raw x", |a| a.clockid == 4, "CLOCK_MONOTONIC"),
        ((4, 0), "-e cpu-clock -k mono x", |a| a.flags.contains(F::USE_CLOCKID), "4.1"),
        ((6, 12), "-e cpu-clock x", |a| a.flags.contains(F::EXCLUDE_GUEST), "virtual machines"),
    ];
    for (kernel, line, new, note) in rows {
        let (event, notes) =
            settle_on(*kernel, line, -1, lacking(*new)).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(!new(&event.attr), "{line}");
        assert!(notes.last().unwrap().contains(note), "{line}: {notes:?}");
    }
}

#[test]
fn what_is_never_missed_is_given_up_without_a_word() {
    use AttrFlags as F;
    use BranchSampleType as B;
    let quiet = |kernel, line, new: fn(&Attr) -> bool| {
        let (event, notes) = settle_on(kernel, line, -1, lacking(new)).unwrap();
        (new(&event.attr), notes.len())
    };
    assert_eq!(
        quiet((5, 5), "-e cycles -B --call-graph lbr x", |a| a
            .branch_sample_type
            .contains(B::HW_INDEX)),
        (false, 1)
    );
    assert_eq!(
        quiet((5, 0), "-e cpu-clock -B --no-bpf-event x", |a| a.flags.contains(F::KSYMBOL)),
        (false, 1)
    );
    assert_eq!(
        quiet((3, 15), "-e cpu-clock -B --no-bpf-event x", |a| a.flags.contains(F::MMAP2)),
        (false, 1)
    );
    // Only the missing count of lost samples is noted, as a kernel this old has none.
    let (_, notes) =
        settle_on((5, 0), "-e cpu-clock x", -1, lacking(|a| a.flags.contains(F::KSYMBOL))).unwrap();
    assert!(notes.iter().any(|note| note.contains("lost samples")), "{notes:?}");
}

#[test]
fn a_new_kernel_s_refusal_takes_nothing_away_that_it_knows() {
    let mut tried = Vec::new();
    let tried = std::cell::RefCell::new(&mut tried);
    let refuse = |event: &PlannedEvent| {
        tried.borrow_mut().push(event.attr.read_format);
        Some(Errno::INVAL)
    };
    assert!(settle_on((6, 12), "-e cpu-clock x", -1, refuse).unwrap_err().contains("combination"));
    assert!(tried.borrow().iter().all(|format| format.contains(ReadFormat::LOST)));
}

#[test]
fn flags_that_the_kernel_is_too_old_for_are_named() {
    for (kernel, line, named) in [
        ((5, 10), "-e cpu-clock --code-page-size x", "--code-page-size (Linux 5.11)"),
        ((5, 10), "-e cpu-clock --data-page-size x", "--data-page-size (Linux 5.11)"),
        ((5, 6), "-e cpu-clock --all-cgroups x", "--all-cgroups (Linux 5.7)"),
        ((4, 13), "-e cpu-clock --phys-data x", "--phys-data (Linux 4.14)"),
        ((4, 11), "-e cpu-clock --namespaces x", "--namespaces (Linux 4.12)"),
        ((4, 6), "-e cpu-clock --overwrite x", "--overwrite (Linux 4.7)"),
        ((4, 2), "-e cpu-clock --switch-events x", "--switch-events (Linux 4.3)"),
        ((3, 18), "-e cpu-clock -I x", "-I (Linux 3.19)"),
    ] {
        let advice = settle_on(kernel, line, -1, |_| Some(Errno::INVAL)).unwrap_err();
        assert!(advice.contains(named) && advice.contains("too old"), "{line}: {advice}");
    }
    let unknown =
        settle("-e cpu-clock --code-page-size x", -1, |_| Some(Errno::INVAL)).unwrap_err();
    assert!(unknown.contains("without --code-page-size"), "{unknown}");
}

#[test]
fn guests_are_left_out_where_the_pmu_wants_it_and_they_were_not_named() {
    let host_only = |e: &PlannedEvent| {
        (!e.attr.flags.contains(AttrFlags::EXCLUDE_GUEST)).then_some(Errno::OPNOTSUPP)
    };
    let (event, notes) = settle("-e cycles:D x", 2, host_only).unwrap();
    assert_eq!((event.full_name().as_str(), notes.len()), ("cycles:DH", 1));
    assert!(settle("-e instructions:G x", 2, host_only).is_err());
    let no_hardware =
        |e: &PlannedEvent| (e.attr.kind == EventType::HARDWARE).then_some(Errno::OPNOTSUPP);
    let (event, notes) = settle("x", 2, no_hardware).unwrap();
    assert_eq!((event.full_name().as_str(), notes.len()), ("cpu-clock", 1), "{notes:?}");
}

#[test]
fn refusals_of_what_only_some_machines_and_users_have() {
    for (line, paranoid, errno, named) in [
        ("-e cpu-clock -b x", -1, Errno::OPNOTSUPP, "leave out -b"),
        ("-e instructions --call-graph lbr x", -1, Errno::OPNOTSUPP, "--call-graph dwarf"),
        ("-e mem:0x1000:w x", -1, Errno::NOSPC, "breakpoints"),
        ("-e mem:0x1000:w x", -1, Errno::OPNOTSUPP, "mem:ADDR"),
        ("-e cpu-clock:u --namespaces x", 2, Errno::ACCESS, "--namespaces is for root"),
        ("-e cpu-clock:u --phys-data x", 2, Errno::ACCESS, "--phys-data is for root"),
        ("-e cpu-clock -g --max-stack 100 x", -1, Errno::OVERFLOW, "perf_event_max_stack"),
        ("-e cpu-clock --phys-data x", -1, Errno::TOOBIG, "--phys-data"),
        ("-e cpu-clock x", -1, Errno::TOOBIG, "newer kernel"),
        ("-e cpu-clock x", -1, Errno::MFILE, "ulimit -Hn"),
        ("-e instructions:pp x", -1, Errno::OPNOTSUPP, "leave out the p"),
        ("-u 4294967294 -e cpu-clock", 1, Errno::ACCESS, "another user"),
    ] {
        let advice = settle(line, paranoid, |_| Some(errno)).unwrap_err();
        assert!(advice.contains(named), "{line}: {advice}");
    }
}

/// The errors of perf_event_open(2)'s manual page, and those that the kernel gives beside them.
const ERRORS: [Errno; 22] = [
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
    Errno::NXIO,
    Errno::NFILE,
    Errno::TOOBIG,
    Errno::OVERFLOW,
    Errno::INTR,
    Errno::BADF,
    Errno::FAULT,
    Errno::IO,
    Errno::AGAIN,
    Errno::NETDOWN,
];

/// What each error means is a sentence of its own, of a PMU's event; the last is none of the
/// kernel's.
#[test]
fn every_refusal_says_more_than_its_errno() {
    let (mut event, target) = first("-e faults x");
    (event.attr.kind, event.pmu) = (EventType(77), Some("box".to_owned()));
    let with = with(&target, -1);
    let mut said = std::collections::BTreeSet::new();
    for errno in ERRORS {
        let advice = advice_of(&event, errno, with);
        let words = crate::messages::error::why_words(&errno.into());
        let (whom, why) = advice.split_once(": ").unwrap();
        assert_eq!(whom, "cannot count faults for the command");
        assert!(!advice.contains("os error"), "{advice}");
        assert_eq!(why == words, errno == Errno::NETDOWN, "{advice}");
        assert!(errno == Errno::NETDOWN || why.len() > 45, "{advice}");
        assert!(said.insert(why.to_owned()), "{errno} has the words of another: {why}");
    }
}

#[test]
fn the_rule_that_was_broken_is_told() {
    for (line, paranoid, errno, named) in [
        ("-e mem:0x1000:r x", -1, Errno::INVAL, "x86 cannot watch for reads alone"),
        ("-e mem:0x1000/3:w x", -1, Errno::INVAL, "1, 2, 4 or 8 bytes"),
        ("-e mem:0x1001/8:w x", -1, Errno::INVAL, "a multiple of its length, unlike 0x1001"),
        ("-e mem:0x1000:rwx x", -1, Errno::INVAL, "not both"),
        ("-e mem:0x1000:wx x", -1, Errno::INVAL, "not both"),
        ("-e mem:0x1000/4:x x", -1, Errno::INVAL, "leave /LENGTH out"),
        ("-i -e mem:0xffffffff81000000:w x", 2, Errno::ACCESS, "run as root or with CAP_SYS_ADMIN"),
        ("-i -e mem:0xffffffff81000000:w x", -1, Errno::PERM, "run as root or with CAP_SYS_ADMIN"),
        ("-i -e mem:0xffffffff81000000:w:u x", 2, Errno::INVAL, "leave out the modifier u"),
        ("-e mem:0x1000:w x", -1, Errno::NXIO, "no registers for breakpoints"),
        ("-e cpu-clock --call-graph dwarf x", -1, Errno::NOSYS, "cannot copy user stacks"),
        ("-e cpu-clock x", -1, Errno::NFILE, "fs.file-max"),
    ] {
        let advice = settle(line, paranoid, |_| Some(errno)).unwrap_err();
        assert!(advice.contains(named), "{line}: {advice}");
    }
}

#[test]
fn a_member_of_a_group_is_neither_pinned_nor_exclusive() {
    for (letter, told) in [("D", "D (pinned)"), ("e", "e (exclusive)")] {
        let line = ["rec", "-e", &format!("{{cs,faults:{letter}}}"), "x"].map(Into::into);
        let config = cli::parse(line).unwrap();
        let plan = plan(&config, &Machine::default()).unwrap();
        let with = with(&Target::Command, -1);
        let advice = advice_of(&plan.events[1], Errno::INVAL, with);
        assert!(advice.contains(told) && advice.contains(&format!("{{a,b}}:{letter}")), "{advice}");
        // That it would be taken alone is true, and not the reason.
        assert_eq!(diagnose(&plan.events[1], with, |_, grouped| !grouped), None);
    }
}

#[test]
fn trials_show_what_the_kernel_does_not_take() {
    let (mut event, target) = first("-e faults x");
    event.name = "msr/tsc/".to_owned();
    let with = with(&target, -1);
    let told = diagnose(&event, with, |attr, _| attr.sample_period == 0).unwrap();
    assert!(
        told.contains("count it with -n") && told.contains("'{cpu-clock,msr/tsc/}:S'"),
        "{told}"
    );
    let told =
        diagnose(&event, with, |attr, _| !attr.flags.contains(AttrFlags::EXCLUDE_GUEST)).unwrap();
    assert!(told.contains("takes it without the modifiers u k h I G H"), "{told}");
    assert_eq!(diagnose(&event, with, |_, _| false), None);
}

#[test]
fn an_event_that_ftrace_uses_is_told() {
    let (mut event, target) = first("-e dummy:u x");
    event.tracepoint = Some("probes:mine".to_owned());
    let with = with(&target, -1);
    let Fallback::GiveUp(advice) = next(&event, Errno::INTR, with) else {
        panic!("nothing to give up")
    };
    assert!(
        advice.contains("in use by ftrace") && advice.contains("events/probes/mine/enable"),
        "{advice}"
    );
}

#[test]
fn a_probe_needs_its_pmu() {
    let (mut event, target) = first("-e dummy:u x");
    event.probe =
        Some(crate::event::Probe { target: Some(c"/bin/x".to_owned()), ..Default::default() });
    let with = with(&target, -1);
    for (pmu, errno, told) in [
        ("uprobe", Errno::NOENT, "the PMU uprobe is missing"),
        ("kprobe", Errno::NOENT, "the PMU kprobe is missing"),
        ("uprobe", Errno::OPNOTSUPP, "cannot be probed"),
        ("uprobe", Errno::INVAL, "first byte of an instruction"),
    ] {
        event.pmu = Some(pmu.to_owned());
        let advice = advice_of(&event, errno, with);
        assert!(advice.contains(told), "{advice}");
    }
}

#[test]
fn probes_are_for_root() {
    let (mut event, target) = first("-e dummy:u x");
    event.probe =
        Some(crate::event::Probe { target: Some(c"/bin/x".to_owned()), ..Default::default() });
    let with = with(&target, 2);
    let advice = advice_of(&event, Errno::ACCESS, with);
    assert!(advice.contains("run as root or with CAP_SYS_ADMIN"), "{advice}");
}

#[test]
fn switches_that_may_not_be_sampled_are_left_out_and_told() {
    let config = cli::parse(["rec", "--off-cpu", "-e", "cpu-clock", "x"].map(Into::into)).unwrap();
    let plan = plan(&config, &Machine { max_rate: 100_000, ..Machine::default() }).unwrap();
    let event = plan.events.iter().find(|event| event.added.is_some()).unwrap();
    let answer = |errno, paranoid| next(event, errno, with(&Target::Command, paranoid));
    let Fallback::LeaveOut(told) = answer(Errno::ACCESS, 2) else { panic!() };
    assert!(told.contains("perf_event_paranoid is 2") && !told.contains('\n'), "{told}");
    // A seccomp filter refuses every event.
    assert!(matches!(answer(Errno::PERM, 1), Fallback::GiveUp(_)));
    assert!(matches!(answer(Errno::OPNOTSUPP, 2), Fallback::GiveUp(_)));
}
