//! Tests of `rec stat` with a kernel whose counters have values that are given.

use std::collections::HashMap;
use std::ffi::{CStr, OsString};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Mutex;

use recrep_format::abi::{AttrFlags, EventType, ReadFormat};
use recrep_format::attr::Attr;
use rustix::io::Errno;

use crate::cli::stat::parse;
use crate::kernel::bpf::BpfProgram;
use crate::kernel::ring::Ring;
use crate::kernel::{Kernel, Place};
use crate::machine::Machine;
use crate::messages::error::Result;
use crate::messages::{Messages, Verbosity};
use crate::testkit::sysfs;

mod metrics;

/// Value, and times enabled and running, of an attr's counter; `None`: in error state.
type Values = fn(&Attr, Place) -> Option<[u64; 3]>;

/// An open counter.
struct Opened {
    /// How many were opened before it: numbers of descriptors depend on other tests, too.
    number: usize,
    attr: Attr,
    place: Place,
    leader: Option<RawFd>,
}

/// A kernel that refuses some attrs, and whose other counters have given values.
struct CountingKernel {
    refuse: fn(&Attr) -> Option<Errno>,
    /// Groups do not fit on the PMU.
    refuse_members: bool,
    values: Values,
    /// Open counters.
    opened: Mutex<HashMap<RawFd, Opened>>,
    attrs: Mutex<Vec<Attr>>,
}

impl CountingKernel {
    fn new(values: Values) -> Self {
        let (opened, attrs) = (Mutex::default(), Mutex::default());
        Self { refuse: |_| None, refuse_members: false, values, opened, attrs }
    }

    /// Without events of a CPU's PMU.
    fn without_pmu(values: Values) -> Self {
        let refuse = |attr: &Attr| {
            let of_cpu = [EventType::HARDWARE, EventType::HW_CACHE].contains(&attr.kind);
            of_cpu.then_some(Errno::NOENT)
        };
        Self { refuse, ..Self::new(values) }
    }
}

impl Kernel for CountingKernel {
    fn open(
        &self,
        attr: &Attr,
        place: Place,
        leader: Option<BorrowedFd<'_>>,
    ) -> Result<OwnedFd, Errno> {
        if let Some(errno) = (self.refuse)(attr) {
            return Err(errno);
        }
        if self.refuse_members && leader.is_some() {
            return Err(Errno::INVAL);
        }
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?;
        let leader = leader.map(|leader| leader.as_raw_fd());
        let mut attrs = self.attrs.lock().unwrap();
        let opened = Opened { number: attrs.len(), attr: attr.clone(), place, leader };
        let mut all = self.opened.lock().unwrap();
        // Members of a group whose leader, of an earlier run, had this number.
        all.retain(|_, member| member.leader != Some(fd.as_raw_fd()));
        all.insert(fd.as_raw_fd(), opened);
        attrs.push(attr.clone());
        Ok(fd)
    }

    fn id(&self, counter: BorrowedFd<'_>) -> Result<u64, Errno> {
        Ok(1000 + u64::try_from(counter.as_raw_fd()).unwrap())
    }

    fn read(&self, counter: BorrowedFd<'_>, numbers: &mut [u64]) -> Result<usize, Errno> {
        let opened = self.opened.lock().unwrap();
        let own = counter.as_raw_fd();
        let Opened { attr, place, .. } = &opened[&own];
        let Some([value, enabled, running]) = (self.values)(attr, *place) else { return Ok(0) };
        let id = |fd: RawFd| 1000 + u64::try_from(fd).unwrap();
        let found = if attr.read_format.contains(ReadFormat::GROUP) {
            let mut members: Vec<_> =
                opened.iter().filter(|(_, member)| member.leader == Some(own)).collect();
            members.sort_by_key(|(_, member)| member.number);
            let mut all = vec![1 + members.len() as u64, enabled, running, value, id(own)];
            for (fd, Opened { attr, place, .. }) in members {
                all.extend([(self.values)(attr, *place).unwrap()[0], id(*fd)]);
            }
            all
        } else {
            vec![value, enabled, running, id(own)]
        };
        numbers[..found.len()].copy_from_slice(&found);
        Ok(found.len())
    }

    fn enable(&self, _: BorrowedFd<'_>) -> Result<(), Errno> {
        Ok(())
    }

    fn disable(&self, _: BorrowedFd<'_>) -> Result<(), Errno> {
        Ok(())
    }

    fn set_filter(&self, _: BorrowedFd<'_>, _: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    fn redirect(&self, _: BorrowedFd<'_>, _: BorrowedFd<'_>) -> Result<(), Errno> {
        panic!("counters that are read have no rings")
    }

    fn pause(&self, _: BorrowedFd<'_>, _: bool) -> Result<(), Errno> {
        panic!("counters that are read have no rings")
    }

    fn map(&self, _: BorrowedFd<'_>, _: usize, _: bool) -> Result<Ring, Errno> {
        panic!("counters that are read have no rings")
    }

    fn bpf_programs(&self) -> Result<Vec<BpfProgram>, Errno> {
        Ok(Vec::new())
    }
}

/// Counts with these flags on a machine with two CPUs. Returns the lines of CSV, without the
/// metrics, and the messages.
#[track_caller]
fn counted(kernel: &CountingKernel, line: &str, sysfs: &Path) -> (Vec<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let (out, said) = (dir.path().join("out"), dir.path().join("said"));
    let line = format!("rec stat -x, -o {} {line}", out.display());
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let mut settings = parse(&words).unwrap();
    settings.machine =
        Machine { online: vec![0, 1], sysfs: sysfs.to_owned(), ..Machine::default() };
    let file = std::fs::File::create(&said).unwrap();
    let messages = Messages::to(Verbosity::Normal, Box::new(file));
    super::run(&settings, kernel, &messages).unwrap();
    let text = std::fs::read_to_string(&out).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines = lines.map(|line| {
        let fields: Vec<_> = line.split(',').collect();
        fields[..fields.len() - 2].join(",")
    });
    (lines.collect(), std::fs::read_to_string(&said).unwrap())
}

fn lines(kernel: &CountingKernel, line: &str) -> Vec<String> {
    counted(kernel, line, Path::new("/nowhere")).0
}

#[test]
fn multiplexed_groups_are_scaled_by_perfs_formula() {
    let values = |attr: &Attr, _: Place| {
        Some(if attr.kind == EventType::HARDWARE {
            [attr.config * 100 + 7, 3000, 2000]
        } else {
            [5, 3000, 3000]
        })
    };
    let kernel = CountingKernel::new(values);
    assert_eq!(
        lines(&kernel, "-e {cycles,instructions},faults true"),
        // 7 * 1.5 and 107 * 1.5, cut.
        ["10,,cycles,2000,66.67", "160,,instructions,2000,66.67", "5,,faults,3000,100.00"]
    );
    assert_eq!(lines(&kernel, "--no-scale -e instructions true"), ["107,,instructions,2000,66.67"]);
    // On both CPUs: each is scaled, then they are added up.
    assert_eq!(lines(&kernel, "-a -e instructions true"), ["320,,instructions,4000,66.67"]);
    let attrs = kernel.attrs.lock().unwrap();
    assert_eq!(attrs[0].flags & (AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC), STARTED);
    assert!(!attrs[1].flags.intersects(STARTED), "a member starts with its leader");
    assert!(attrs[0].flags.contains(AttrFlags::INHERIT) && attrs[0].sample_period == 0);
}

const STARTED: AttrFlags = AttrFlags::DISABLED.union(AttrFlags::ENABLE_ON_EXEC);

#[test]
fn times_are_events() {
    // What the dummies count is not shown.
    let kernel = CountingKernel::new(|_, _| Some([7, 1000, 1000]));
    let events = "duration_time,user_time,system_time";
    for line in [format!("-e {events} true"), format!("-r 2 -e {events} true")] {
        let found = lines(&kernel, &line);
        let values: Vec<u64> = found
            .iter()
            .zip(events.split(','))
            .map(|(line, name)| {
                let fields: Vec<&str> = line.split(',').collect();
                assert_eq!(fields[1..3], ["ns", name], "{line}");
                fields[0].parse().unwrap()
            })
            .collect();
        let [duration, user, system] = values[..] else { panic!("{found:?}") };
        assert!(duration > 1000 && user + system > 1000, "{found:?}");
    }
    let dummies = kernel.attrs.lock().unwrap();
    assert!(dummies.iter().all(|attr| attr.kind == EventType::SOFTWARE && attr.config == 9));
    drop(dummies);
    // Of several CPUs, the first has the time.
    let found = lines(&kernel, "-a -A -e duration_time true");
    assert!(found[0].starts_with("CPU0,") && found[0].contains(",ns,duration_time,"));
}

#[test]
fn what_never_ran_is_not_counted() {
    let kernel = CountingKernel::new(|attr, place| match (attr.config, place.cpu) {
        (0, _) => Some([0, 1000, 0]),
        (_, Some(1)) => Some([0, 1000, 0]),
        _ => Some([4, 1000, 1000]),
    });
    assert_eq!(
        lines(&kernel, "-e cycles,instructions true"),
        ["<not counted>,,cycles,0,0.00", "4,,instructions,1000,100.00"]
    );
    assert_eq!(
        lines(&kernel, "-a -A -e instructions true"),
        ["CPU0,4,,instructions,1000,100.00", "CPU1,<not counted>,,instructions,0,0.00"]
    );
}

#[test]
fn a_pinned_counter_without_room_is_told() {
    let kernel = CountingKernel::new(|attr, _| {
        (!attr.flags.contains(AttrFlags::PINNED)).then_some([4, 1000, 1000])
    });
    let (lines, said) = counted(&kernel, "-e cycles:D,faults true", Path::new("/nowhere"));
    assert_eq!(lines, ["<not counted>,,cycles:D,0,100.00", "4,,faults,1000,100.00"]);
    assert_eq!(said.matches("cycles:D has lost its counter: it is pinned").count(), 1, "{said}");
}

#[test]
fn what_the_machine_lacks_is_not_supported() {
    let kernel = CountingKernel::without_pmu(|_, _| Some([4, 1000, 1000]));
    assert_eq!(
        lines(&kernel, "-e cycles,faults -d true")[..3],
        [
            "<not supported>,,cycles,0,100.00",
            "4,,faults,1000,100.00",
            "<not supported>,,L1-dcache-loads,0,100.00"
        ]
    );
    // What is left of a group counts alone, and is started.
    let kernel = CountingKernel::without_pmu(|_, _| Some([4, 1000, 1000]));
    assert_eq!(
        lines(&kernel, "-e {cycles,faults,cs} true"),
        ["<not supported>,,cycles,0,100.00", "4,,faults,1000,100.00", "4,,cs,1000,100.00"]
    );
    assert!(kernel.attrs.lock().unwrap().iter().all(|attr| attr.flags.contains(STARTED)));
}

#[test]
fn what_the_user_may_not_count_is_told_once() {
    let kernel = CountingKernel {
        refuse: |attr| (!attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)).then_some(Errno::ACCESS),
        ..CountingKernel::new(|_, _| Some([4, 1000, 1000]))
    };
    let (lines, said) = counted(&kernel, "-e task-clock,faults,cs true", Path::new("/nowhere"));
    assert!(lines[1].starts_with("4,,faults:u,") && lines.len() == 3, "{lines:?}");
    assert_eq!(said.matches("counting user space only (:u)").count(), 1, "{said}");
}

#[test]
fn default_events_depend_on_the_machine() {
    let names = |kernel: &CountingKernel, line: &str| {
        let lines = lines(kernel, line);
        lines.iter().map(|line| line.split(',').nth(2).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let software = ["task-clock", "context-switches", "cpu-migrations", "page-faults"];
    let without = CountingKernel::without_pmu(|_, _| Some([4, 1000, 1000]));
    assert_eq!(names(&without, "true"), software);
    assert_eq!(names(&without, "-d true"), software, "no caches without a PMU");
    assert_eq!(names(&without, "-a true")[0], "cpu-clock");
    let with = CountingKernel::new(|_, _| Some([4, 1000, 1000]));
    let hardware = ["cycles", "instructions", "branches", "branch-misses"];
    assert_eq!(names(&with, "true"), [software, hardware].concat());
    assert_eq!(names(&with, "-ddd true").len(), 8 + 4 + 6 + 2);
}

#[test]
fn each_kind_of_core_has_its_default_events() {
    let machine = sysfs::machine(sysfs::HYBRID);
    let kernel = CountingKernel::new(|_, _| Some([4, 1000, 1000]));
    let (lines, _) = counted(&kernel, "-C 0 true", &machine.path().join("sys"));
    // Those of the other kind are on none of the CPUs.
    assert!(lines.iter().any(|line| line.contains(",cpu_core/cycles/,")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("cpu_atom")), "{lines:?}");
}

#[test]
fn pmus_of_the_machine_have_units_and_their_own_cpus() {
    let machine = sysfs::machine(&[
        ("imc_0/type", "20"),
        ("imc_0/cpumask", "1"),
        ("imc_0/format/event", "config:0-7"),
        ("imc_0/events/reads", "event=0x3"),
        ("imc_0/events/reads.unit", "MiB"),
        ("imc_0/events/reads.scale", "0.5"),
        ("imc_1/type", "21"),
        ("imc_1/cpumask", "1"),
        ("imc_1/format/event", "config:0-7"),
        ("imc_1/events/reads", "event=0x3"),
        ("imc_1/events/reads.unit", "MiB"),
        ("imc_1/events/reads.scale", "0.5"),
    ]);
    let sysfs = machine.path().join("sys");
    let kernel = CountingKernel::new(|attr, place| {
        assert_eq!((place.cpu, place.thread), (Some(1), None), "{attr:?}");
        Some([u64::from(attr.kind.0) * 100, 1000, 1000])
    });
    let run = |line: &str| {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let words = format!("rec stat -x, -o {} {line} true", out.display());
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        let machine = Machine { online: vec![0, 1], sysfs: sysfs.clone(), ..Machine::default() };
        let mut settings = parse(&words).unwrap();
        let sources = crate::machine::sources::EventSources::new(&machine.sysfs, None);
        settings.events.clear();
        crate::event::append(&mut settings.events, "imc/reads/", &sources).unwrap();
        settings.machine = machine;
        let messages = Messages::to(Verbosity::Quiet, Box::new(std::io::sink()));
        super::run(&settings, &kernel, &messages).unwrap();
        std::fs::read_to_string(out).unwrap()
    };
    let sum = run("");
    assert!(sum.ends_with("2050.00,MiB,imc/reads/,2000,100.00,,\n"), "{sum}");
    let apart = run("--no-merge");
    assert!(apart.contains("1000.00,MiB,imc_0/reads/,"), "{apart}");
    assert!(apart.contains("1050.00,MiB,imc_1/reads/,"), "{apart}");
}

#[test]
fn runs_and_cgroups() {
    let kernel = CountingKernel::new(|_, _| Some([4, 1000, 1000]));
    assert_eq!(lines(&kernel, "-r 3 -e faults true"), ["4,,faults,0.00%,1000,100.00"]);
    let intervals = lines(&kernel, "-I 20 --interval-count 2 -e faults sleep 60");
    assert_eq!(intervals.len(), 2);
    assert!(intervals[0].ends_with(",4,,faults,1000,100.00"), "{intervals:?}");
    // Nothing more since the interval before.
    assert!(intervals[1].ends_with(",<not counted>,,faults,0,100.00"), "{intervals:?}");
}
