//! Tests: plans from command lines, without a kernel.

use recrep_format::abi::{AttrFlags, EventType, ReadFormat, SampleType, SwEvent};

use super::*;

fn machine() -> Machine {
    Machine {
        page_size: 4096,
        online: vec![0, 1, 2, 5],
        paranoid: 2,
        max_rate: 100_000,
        mlock_kb: 516,
        sysfs: "/no/such".into(),
        ..Machine::default()
    }
}

fn planned(line: &str) -> Plan {
    planned_on(line, &machine())
}

fn planned_on(line: &str, machine: &Machine) -> Plan {
    let args = ["rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
    plan(&crate::cli::parse(args).unwrap(), machine).unwrap()
}

#[test]
fn every_attr_describes_its_stream() {
    for line in ["x", "-a", "-p 1 -g", "-c 1 -e faults,cs x", "-e dummy -d x"] {
        for event in planned(line).events {
            let attr = event.attr;
            let always = SampleType::IDENTIFIER
                | SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::CPU;
            assert!(attr.sample_type.contains(always), "{line}");
            assert!(attr.flags.contains(AttrFlags::SAMPLE_ID_ALL | AttrFlags::INHERIT), "{line}");
            assert_eq!(attr.read_format, ReadFormat::ID | ReadFormat::LOST);
        }
    }
}

#[test]
fn times_cannot_be_sampled() {
    for name in ["duration_time", "user_time", "system_time"] {
        let args = ["rec", "-e", name, "x"].map(Into::into);
        let error = plan(&crate::cli::parse(args).unwrap(), &machine()).unwrap_err();
        let said = format!(
            "'{name}' is a time that rec stat measures, and cannot be sampled: rec stat -e {name}"
        );
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn a_command_s_first_event_tracks_and_starts_on_exec() {
    let plan = planned("-e cpu-clock,faults x");
    let flags: Vec<_> = plan.events.iter().map(|e| e.attr.flags).collect();
    assert_eq!(plan.events.len(), 2);
    assert!(flags.iter().all(|f| f.contains(AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC)));
    assert!(flags[0].contains(AttrFlags::MMAP2 | AttrFlags::COMM_EXEC | AttrFlags::TASK));
    assert!(!flags[1].intersects(AttrFlags::MMAP2 | AttrFlags::COMM | AttrFlags::TASK));
    assert!(!flags[0].contains(AttrFlags::MMAP_DATA));
}

#[test]
fn what_runs_already_on_whole_cpus_or_later_is_tracked_by_a_dummy_from_the_start() {
    for line in [
        "-a",
        "-C 0",
        "-p 1 -D 5",
        "-p 1 --control fd:0",
        "-p 1 -e {cycles,faults}:S",
        "-p 1 -e cycles/no-inherit/",
    ] {
        let plan = planned(line);
        let [event, .., dummy] = plan.events.as_slice() else { panic!("{line}") };
        assert!(event.attr.flags.contains(AttrFlags::DISABLED));
        assert!(!event.attr.flags.intersects(AttrFlags::ENABLE_ON_EXEC | AttrFlags::MMAP2));
        assert_eq!((dummy.attr.kind, dummy.attr.config), (EventType::SOFTWARE, SwEvent::DUMMY.0));
        assert!(
            dummy.attr.flags.contains(AttrFlags::MMAP2)
                && !dummy.attr.flags.contains(AttrFlags::DISABLED)
        );
        assert_eq!(dummy.full_name(), "dummy:u");
    }
}

#[test]
fn of_threads_that_run_already_the_first_event_tracks() {
    for line in ["-p 1 -e cpu-clock,faults", "-t 1 -e cpu-clock,faults", "-u 1 -e cpu-clock,faults"]
    {
        let flags: Vec<_> = planned(line).events.iter().map(|event| event.attr.flags).collect();
        let [first, second] = flags[..] else { panic!("{line}: {flags:?}") };
        assert!(
            first.contains(
                AttrFlags::MMAP2 | AttrFlags::COMM | AttrFlags::TASK | AttrFlags::DISABLED
            ),
            "{line}"
        );
        assert!(!second.intersects(AttrFlags::MMAP2 | AttrFlags::COMM | AttrFlags::TASK), "{line}");
    }
}

#[test]
fn the_default_is_cycles_as_precise_as_can_be() {
    let plan = planned("x");
    assert_eq!(plan.events[0].full_name(), "cycles:P");
    assert_eq!(plan.events[0].attr.flags.precise_ip(), 3);
    assert_eq!(plan.events[0].attr.frequency(), Some(4000));
    assert!(plan.events[0].attr.sample_type.contains(SampleType::PERIOD));
}

#[test]
fn rates_are_lowered_to_the_kernel_s_limit() {
    let slow = Machine { max_rate: 1000, ..machine() };
    let plan = planned_on("x", &slow);
    assert_eq!(plan.events[0].attr.frequency(), Some(1000));
    assert!(
        plan.notes[0].starts_with("sampling at 1000 Hz instead of 4000 Hz"),
        "{:?}",
        plan.notes
    );
    assert_eq!(planned_on("-F max x", &slow).events[0].attr.frequency(), Some(1000));
    assert!(planned_on("-F max x", &slow).notes.is_empty());
    assert!(planned_on("-F 1000 x", &slow).notes.is_empty());
    let exact = planned_on("-c 7 x", &slow);
    assert_eq!((exact.events[0].attr.frequency(), exact.events[0].attr.sample_period), (None, 7));
    assert!(!exact.events[0].attr.sample_type.contains(SampleType::PERIOD));
}

#[test]
fn what_samples_carry() {
    let sample_type = |line| planned(line).events[0].attr.sample_type;
    assert!(sample_type("-g x").contains(SampleType::CALLCHAIN));
    assert!(sample_type("-d x").contains(SampleType::ADDR | SampleType::DATA_SRC));
    assert!(
        !sample_type("x")
            .intersects(SampleType::CALLCHAIN | SampleType::ADDR | SampleType::DATA_SRC)
    );
    assert!(planned("-d x").events[0].attr.flags.contains(AttrFlags::MMAP_DATA));
    assert!(sample_type("-e bpf-output x").contains(SampleType::RAW));
}

#[test]
fn rings_fit_the_budget_and_are_powers_of_two() {
    assert_eq!(planned("x").ring_pages, 128);
    assert_eq!(planned_on("x", &Machine { mlock_kb: 300, ..machine() }).ring_pages, 64);
    assert_eq!(planned_on("x", &Machine { mlock_kb: 0, ..machine() }).ring_pages, 1);
    assert_eq!(
        planned_on("x", &Machine { page_size: 65536, mlock_kb: 4096, ..machine() }).ring_pages,
        8
    );
    assert_eq!(planned("-m 2 x").ring_pages, 2);
    assert_eq!(planned("-m 1M x").ring_pages, 256);
    let odd = planned("-m 3 x");
    assert_eq!(odd.ring_pages, 4);
    assert!(odd.notes[0].contains("have 4 pages instead of 3"));
}

#[test]
fn only_cpus_that_are_online() {
    assert_eq!(planned("-C 0-1,5").cpus, [0, 1, 5]);
    assert_eq!(planned("x").cpus, [0, 1, 2, 5]);
    let args = ["rec", "-C", "3"].into_iter().map(Into::into);
    let error = plan(&crate::cli::parse(args).unwrap(), &machine()).unwrap_err();
    assert_eq!(error.to_string(), "cannot record on CPU 3 (-C): online CPUs are 0-2,5");
}

#[test]
fn what_is_done_otherwise_than_asked_is_told_once() {
    for (line, told) in [
        ("-e cycles,faults -F 200000 x", "100000 Hz instead of 200000 Hz"),
        ("--call-graph fp --max-stack 500 x", "127 frames instead of 500"),
        ("-g --max-stack 500 x", "sampling at 999 Hz"),
        ("--call-graph lbr -b -e cycles,faults x", "not lbr"),
        ("-e cycles:k --call-graph lbr x", "user space only"),
        ("--call-graph dwarf --user-regs=ax -e cycles,faults x", "instruction and stack pointers"),
        ("-m 5 x", "8 pages instead of 5"),
    ] {
        let notes = planned(line).notes;
        assert!(matches!(notes.as_slice(), [one] if one.contains(told)), "{line}: {notes:?}");
    }
}
