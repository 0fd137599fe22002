//! Tests of counters with a fake kernel: places, groups, fallbacks.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};

use recrep_format::attr::Attr;

use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::opening::ListThreads;
use super::*;
use crate::kernel::bpf::BpfProgram;
use crate::kernel::ring::Ring;
use crate::kernel::{Kernel, Place};
use crate::machine::Machine;
use crate::messages::Messages;
use crate::messages::Verbosity;
use crate::messages::error::Result;
use crate::plan::PlannedEvent;
use crate::testkit::fake_ring::FakeRing;

/// A kernel that opens everything except what `refuse` refuses, and notes the calls.
#[derive(Default)]
struct RefusingKernel {
    refuse: Option<fn(&Attr, Place) -> Option<Errno>>,
    /// Number of times that opening is interrupted first.
    interruptions: Cell<usize>,
    /// Maximum pages of all rings together.
    budget: Option<usize>,
    opened: RefCell<Vec<(i32, Attr, Place)>>,
    redirected: RefCell<Vec<(i32, i32)>>,
    enabled: RefCell<Vec<i32>>,
    /// `true` if counters are in error state: a read returns nothing.
    reads_nothing: bool,
    filtered: RefCell<Vec<(i32, CString)>>,
    mapped: RefCell<usize>,
}

impl Kernel for RefusingKernel {
    fn open(&self, attr: &Attr, place: Place, _: Option<BorrowedFd<'_>>) -> Result<OwnedFd, Errno> {
        if let Some(left) = self.interruptions.get().checked_sub(1) {
            self.interruptions.set(left);
            return Err(Errno::INTR);
        }
        if let Some(errno) = self.refuse.and_then(|refuse| refuse(attr, place)) {
            return Err(errno);
        }
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?;
        self.opened.borrow_mut().push((fd.as_raw_fd(), attr.clone(), place));
        Ok(fd)
    }
    fn id(&self, counter: BorrowedFd<'_>) -> Result<u64, Errno> {
        Ok(1000 + u64::try_from(counter.as_raw_fd()).unwrap())
    }
    fn enable(&self, counter: BorrowedFd<'_>) -> Result<(), Errno> {
        self.enabled.borrow_mut().push(counter.as_raw_fd());
        Ok(())
    }
    fn disable(&self, _: BorrowedFd<'_>) -> Result<(), Errno> {
        Ok(())
    }
    fn bpf_programs(&self) -> Result<Vec<BpfProgram>, Errno> {
        Ok(Vec::new())
    }

    fn set_filter(&self, counter: BorrowedFd<'_>, filter: &CStr) -> Result<(), Errno> {
        self.filtered.borrow_mut().push((counter.as_raw_fd(), filter.to_owned()));
        if filter.to_bytes() == b"wrong" { Err(Errno::INVAL) } else { Ok(()) }
    }
    fn redirect(&self, counter: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
        self.redirected.borrow_mut().push((counter.as_raw_fd(), to.as_raw_fd()));
        Ok(())
    }
    fn read(&self, counter: BorrowedFd<'_>, numbers: &mut [u64]) -> Result<usize, Errno> {
        let id = self.id(counter)?;
        if self.reads_nothing {
            return Ok(0);
        }
        numbers[..3].copy_from_slice(&[77, id, if id % 2 == 0 { 5 } else { 0 }]);
        Ok(3)
    }
    fn pause(&self, _: BorrowedFd<'_>, _: bool) -> Result<(), Errno> {
        Ok(())
    }
    fn map(&self, _: BorrowedFd<'_>, pages: usize, _: bool) -> Result<Ring, Errno> {
        if self.budget.is_some_and(|budget| *self.mapped.borrow() + pages > budget) {
            *self.mapped.borrow_mut() = 0;
            return Err(Errno::PERM);
        }
        *self.mapped.borrow_mut() += pages;
        Ok(FakeRing::new(pages as u64).map())
    }
}

fn opened(kernel: &RefusingKernel, line: &str, threads: &[Option<u32>]) -> Result<Counters> {
    opened_as_listed(kernel, line, &mut || threads.to_vec())
}

fn opened_as_listed(
    kernel: &RefusingKernel,
    line: &str,
    threads: &mut ListThreads<'_>,
) -> Result<Counters> {
    let args = ["rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
    let config = crate::cli::parse(args).unwrap();
    let machine = Machine {
        page_size: 4096,
        online: vec![0, 3],
        paranoid: 2,
        max_rate: 100_000,
        mlock_kb: 516,
        ..Machine::default()
    };
    let plan = crate::plan::plan(&config, &machine).unwrap();
    let messages = Messages::to(Verbosity::Quiet, Box::new(std::io::sink()));
    open(kernel, &plan, threads, &config.target, &machine, &messages)
}

#[test]
fn a_counter_for_each_event_thread_and_cpu_and_a_ring_for_each_cpu() {
    let kernel = RefusingKernel::default();
    let counters = opened(&kernel, "-p 7 -e cpu-clock", &[Some(7), Some(8)]).unwrap();
    // cpu-clock, which tracks, two threads, two CPUs.
    assert_eq!(counters.all.len(), 4);
    assert_eq!(counters.rings.len(), 2);
    let owners: Vec<_> = counters.owners.iter().map(|i| counters.all[*i].place).collect();
    assert_eq!(owners, [0, 3].map(|cpu| Place { thread: Some(7), cpu: Some(cpu), cgroup: None }));
    assert_eq!(kernel.redirected.borrow().len(), 2);
    let cpu_of = |fd: i32| kernel.opened.borrow().iter().find(|o| o.0 == fd).unwrap().2.cpu;
    assert!(kernel.redirected.borrow().iter().all(|(from, to)| cpu_of(*from) == cpu_of(*to)));
    assert_eq!(counters.ids(0).len(), 4);
    assert_eq!(Some(counters.tracking_id()), counters.ids(0).first().copied());
}

#[test]
fn counters_that_tasks_inherit_are_switched_again() {
    let kernel = RefusingKernel::default();
    let counters = opened(&kernel, "-p 7 -e cpu-clock", &[Some(7)]).unwrap();
    counters.enable(&kernel).unwrap();
    let enabled = kernel.enabled.borrow();
    let [first, second] = [0, 1].map(|place| counters.all[place].as_fd().as_raw_fd());
    assert_eq!(*enabled, [first, second].repeat(4));
}

#[test]
fn only_counters_that_wait_are_started() {
    let kernel = RefusingKernel::default();
    opened(&kernel, "-a -e cpu-clock", &[None]).unwrap().enable(&kernel).unwrap();
    assert_eq!(kernel.enabled.borrow().len(), 2);
}

#[test]
fn a_refusal_is_settled_once_and_then_asked_for_everywhere() {
    fn no_hardware(attr: &Attr, _: Place) -> Option<Errno> {
        (attr.kind.0 == 0).then_some(Errno::NOENT)
    }
    let kernel = RefusingKernel { refuse: Some(no_hardware), ..RefusingKernel::default() };
    let counters = opened(&kernel, "x", &[Some(7)]).unwrap();
    assert_eq!(counters.events[0].full_name(), "cpu-clock");
    assert!(kernel.opened.borrow().iter().all(|(_, attr, _)| *attr == counters.events[0].attr));
    assert!(counters.sees_kernel());
}

#[test]
fn a_signal_that_interrupts_the_kernel_is_no_refusal() {
    let kernel = RefusingKernel { interruptions: Cell::new(3), ..RefusingKernel::default() };
    assert_eq!(opened(&kernel, "-e cs x", &[Some(7)]).unwrap().all.len(), 2);
    let kernel =
        RefusingKernel { interruptions: Cell::new(usize::MAX), ..RefusingKernel::default() };
    let refusal = opened(&kernel, "-e cs x", &[Some(7)]).unwrap_err().to_string();
    assert!(refusal.contains("signals keep interrupting"), "{refusal}");
}

#[test]
fn threads_that_ended_meanwhile_are_passed_over() {
    fn ended(_: &Attr, place: Place) -> Option<Errno> {
        (place.thread == Some(8)).then_some(Errno::SRCH)
    }
    let kernel = RefusingKernel { refuse: Some(ended), ..RefusingKernel::default() };
    assert_eq!(opened(&kernel, "-p 7 -e cpu-clock", &[Some(8), Some(7)]).unwrap().all.len(), 2);
    let error = opened(&kernel, "-p 8 -e cpu-clock", &[Some(8)]).unwrap_err();
    assert!(error.to_string().contains("it has ended"), "{error}");
}

#[test]
fn threads_that_start_meanwhile_have_counters_too() {
    let kernel = RefusingKernel::default();
    let listings = [vec![7], vec![7, 9], vec![8, 9, 7], vec![7, 8, 9]];
    let mut later = listings.iter().map(|tids| tids.iter().copied().map(Some).collect());
    let counters =
        opened_as_listed(&kernel, "-p 7 -e {cpu-clock,faults},cs", &mut || later.next().unwrap())
            .unwrap();
    assert_eq!(later.next(), None, "it was listed until there was nothing new");
    assert_eq!(counters.late, [8, 9].into());
    // Three events, three threads, two CPUs.
    assert_eq!(counters.all.len(), 18);
    for event in 0..3 {
        let places = counters
            .all
            .iter()
            .filter(|counter| counter.event == event)
            .map(|counter| counter.place.thread);
        assert_eq!(places.collect::<Vec<_>>(), [7, 7, 9, 9, 8, 8].map(Some));
        assert_eq!(counters.ids(event).len(), 6);
    }
}

#[test]
fn a_process_that_keeps_starting_threads_is_listed_so_many_times() {
    let kernel = RefusingKernel::default();
    let mut listings = 0;
    let mut threads = || {
        listings += 1;
        (7..7 + listings).map(Some).collect()
    };
    let counters = opened_as_listed(&kernel, "-p 7 -e cpu-clock", &mut threads).unwrap();
    assert_eq!((listings, counters.late.len(), counters.all.len()), (5, 4, 10));
}

#[test]
fn so_many_files_as_there_are_counters() {
    let machine = Machine { online: vec![0, 3], ..Machine::default() };
    for (line, threads, all) in [
        ("-p 7 -e cpu-clock", 5, 10),
        ("-p 7 -e cpu-clock,faults", 5, 20),
        ("-a -e cpu-clock", 1, 4),
    ] {
        let config =
            crate::cli::parse(["rec"].into_iter().chain(line.split_whitespace()).map(Into::into))
                .unwrap();
        let plan = crate::plan::plan(&config, &machine).unwrap();
        assert_eq!(files(&plan, threads), all, "{line}");
    }
}

#[test]
fn rings_are_halved_until_they_fit_the_budget() {
    let kernel = RefusingKernel { budget: Some(70), ..RefusingKernel::default() };
    let counters = opened(&kernel, "x", &[Some(7)]).unwrap();
    let page = rustix::param::page_size();
    assert_eq!(counters.rings.iter().map(Ring::size).collect::<Vec<_>>(), [32 * page, 32 * page]);
    let none = RefusingKernel { budget: Some(0), ..RefusingKernel::default() };
    let message = opened(&none, "x", &[Some(7)]).unwrap_err().to_string();
    assert!(message.contains("perf_event_mlock_kb"), "{message}");
}

#[test]
fn losses_are_told_by_counter() {
    let kernel = RefusingKernel::default();
    let counters = opened(&kernel, "-a -e cpu-clock", &[None]).unwrap();
    let lost: Vec<_> = counters
        .read(&kernel)
        .unwrap()
        .iter()
        .filter(|r| r.lost > 0)
        .map(|r| (counters.by_id()[&r.id].event, r.id, r.lost))
        .collect();
    let odd: Vec<_> =
        counters.all.iter().filter(|c| c.id % 2 == 0).map(|c| (c.event, c.id, 5)).collect();
    assert_eq!(lost, odd);
}

#[test]
fn counters_in_error_state_have_no_value() {
    let kernel = RefusingKernel { reads_nothing: true, ..RefusingKernel::default() };
    let counters = opened(&kernel, "-a -e cpu-clock:D", &[None]).unwrap();
    let readings = counters.read(&kernel).unwrap();
    assert_eq!(readings.len(), counters.all.len());
    assert!(readings.iter().all(|reading| reading.failed && reading.value == 0), "{readings:?}");
}

#[test]
fn filters_are_set_on_every_counter() {
    let kernel = RefusingKernel::default();
    let machine = Machine { online: vec![0, 1], ..Machine::default() };
    let config = crate::cli::parse(["rec", "-e", "dummy", "x"].map(Into::into)).unwrap();
    let mut plan = crate::plan::plan(&config, &machine).unwrap();
    plan.events[0].filter = Some("prio < 5".to_owned());
    let messages = Messages::stderr(Verbosity::Quiet);
    let open = |plan: &crate::plan::Plan| {
        open(&kernel, plan, &mut || vec![Some(1)], &config.target, &machine, &messages)
    };
    open(&plan).unwrap();
    let filtered: Vec<_> =
        kernel.filtered.borrow().iter().map(|(fd, text)| (*fd, text.clone())).collect();
    let opened: Vec<_> =
        kernel.opened.borrow().iter().map(|(fd, ..)| (*fd, c"prio < 5".to_owned())).collect();
    assert_eq!(filtered, opened);
    plan.events[0].filter = Some("wrong".to_owned());
    plan.events[0].tracepoint = Some("a:b".to_owned());
    let refusal = open(&plan).unwrap_err().to_string();
    assert!(
        refusal.contains("the filter 'wrong' on dummy") && refusal.contains("rec list a:b"),
        "{refusal}"
    );
}

#[test]
fn the_attr_of_a_probe_points_to_its_target_only_while_it_is_opened() {
    let kernel = RefusingKernel::default();
    let machine = Machine { online: vec![0], ..Machine::default() };
    let config = crate::cli::parse(["rec", "-e", "dummy", "x"].map(Into::into)).unwrap();
    let mut plan = crate::plan::plan(&config, &machine).unwrap();
    plan.events[0].probe =
        Some(crate::event::Probe { target: Some(c"/bin/x".to_owned()), ..Default::default() });
    let messages = Messages::stderr(Verbosity::Quiet);
    let counters =
        open(&kernel, &plan, &mut || vec![Some(1)], &config.target, &machine, &messages).unwrap();
    assert_ne!(kernel.opened.borrow()[0].1.config1, 0);
    assert_eq!(counters.events[0].attr.config1, 0);
}

#[test]
fn what_is_taken_out_of_a_weak_group_starts_when_its_leader_does() {
    use recrep_format::abi::AttrFlags as F;
    /// Refuses instructions in a group.
    fn no_place(attr: &Attr, _: Place) -> Option<Errno> {
        (attr.kind.0 == 0 && attr.config == 1 && !attr.flags.contains(F::DISABLED))
            .then_some(Errno::INVAL)
    }
    let kernel = || RefusingKernel { refuse: Some(no_place), ..RefusingKernel::default() };
    let started = |counters: &Counters| {
        assert_eq!(counters.events[1].leader, None);
        counters.events[1].attr.flags & (F::DISABLED | F::ENABLE_ON_EXEC)
    };
    let counters = opened(&kernel(), "-e {cycles,instructions}:W x", &[Some(7)]).unwrap();
    assert_eq!(started(&counters), F::DISABLED | F::ENABLE_ON_EXEC);
    let kernel = kernel();
    let counters = opened(&kernel, "-a -e {cycles,instructions}:W", &[None]).unwrap();
    assert_eq!(started(&counters), F::DISABLED);
    counters.enable(&kernel).unwrap();
    // Two events on two CPUs.
    assert_eq!(kernel.enabled.borrow().len(), 4);
}

#[test]
fn of_a_user_what_may_not_be_looked_into_is_passed_over() {
    use recrep_format::abi::AttrFlags as F;
    /// Refuses a protected thread, as for a user without privileges.
    fn protected(attr: &Attr, place: Place) -> Option<Errno> {
        (place.thread == Some(8) || !attr.flags.contains(F::EXCLUDE_KERNEL))
            .then_some(Errno::ACCESS)
    }
    let kernel = || RefusingKernel { refuse: Some(protected), ..RefusingKernel::default() };
    for threads in [[Some(7), Some(8)], [Some(8), Some(7)]] {
        let counters = opened(&kernel(), "-u 1 -e cpu-clock", &threads).unwrap();
        // cpu-clock on two CPUs.
        assert_eq!(counters.all.len(), 2);
        assert!(counters.all.iter().all(|counter| counter.place.thread == Some(7)));
        assert_eq!(counters.hidden, [8].into());
        assert_eq!(counters.events[0].full_name(), "cpu-clock:u");
    }
    let none = opened(&kernel(), "-u 1 -e cpu-clock", &[Some(8)]).unwrap_err().to_string();
    assert!(none.contains("protected from ptrace"), "{none}");
    // A thread given by its id is not skipped.
    let named =
        opened(&kernel(), "-p 7,8 -e cpu-clock", &[Some(7), Some(8)]).unwrap_err().to_string();
    assert!(
        named.contains("protected from ptrace") || named.contains("unlike on the CPUs before it"),
        "{named}"
    );
}

#[test]
fn switches_that_may_not_be_sampled_leave_the_others_as_they_are() {
    use recrep_format::abi::AttrFlags as F;
    fn user_only(attr: &Attr, _: Place) -> Option<Errno> {
        (!attr.flags.contains(F::EXCLUDE_KERNEL)).then_some(Errno::ACCESS)
    }
    let kernel = RefusingKernel { refuse: Some(user_only), ..RefusingKernel::default() };
    let counters = opened(&kernel, "-p 7 -D 5 --off-cpu -e cpu-clock", &[Some(7)]).unwrap();
    let names: Vec<_> = counters.events.iter().map(PlannedEvent::full_name).collect();
    assert_eq!(names, ["cpu-clock:u", "dummy:u"]);
    // Each on two CPUs, by the places that the events have now.
    assert_eq!(counters.all.iter().map(|counter| counter.event).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert!(counters.tracker().unwrap().attr.flags.contains(F::CONTEXT_SWITCH));
    assert_eq!(counters.tracking_id(), counters.ids(1)[0]);
    let all =
        opened(&RefusingKernel::default(), "-p 7 -D 5 --off-cpu -e cpu-clock", &[Some(7)]).unwrap();
    assert_eq!(all.events.len(), 3);
}

#[test]
fn counters_are_found_by_event_and_by_id() {
    let kernel = RefusingKernel::default();
    let counters =
        opened(&kernel, "-p 7 -e {cpu-clock,faults},cs", &[Some(7), Some(8), Some(9)]).unwrap();
    let by_id = counters.by_id();
    assert_eq!((counters.all.len(), by_id.len()), (18, 18));
    for event in 0..3 {
        let ids: Vec<_> =
            counters.all.iter().filter(|counter| counter.event == event).map(|c| c.id).collect();
        assert_eq!((counters.ids(event), ids.len()), (ids.clone(), 6));
        assert!(ids.iter().all(|id| by_id[id].event == event));
    }
    assert!(counters.ids(3).is_empty());
    assert_eq!(counters.tracking_id(), counters.ids(0)[0]);
}
