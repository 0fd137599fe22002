//! Leaving records out while rings are drained: of other processes, where whole CPUs are counted,
//! of a second counter that a thread has by inheritance, and wakes of others ([`super::wakes`]).
//!
//! Rings of several CPUs are read one after the other, and a thread's first records may be on
//! another CPU than its FORK. So a round goes over the rings twice:
//!
//! ```text
//!  heads of all rings ──▶ look: FORKs, and who gives samples, up to now ──▶ keep: records up to those heads
//! ```
//!
//! A record before the heads is younger than the FORK of its thread, which therefore was in its
//! ring when the look began.

use std::collections::BTreeSet;

use recrep_format::abi::{AttrFlags, RecordType, misc};
use recrep_format::attr::Attr;
use recrep_format::record::RawRecord;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::kernel::counters::Counters;
use crate::kernel::ring::Pending;
use crate::output::layouts::Layouts;

use super::members::{Members, fork};
use super::strangers::Strangers;
use super::wakes::Wakes;

/// Filter of the rings' records: those that it keeps go into the file.
#[derive(Debug)]
pub struct Filter {
    layouts: Layouts,
    kind: FilterKind,
    /// Filter of wakes, if those of whole CPUs are counted for the sake of some threads.
    wakes: Option<Wakes>,
    /// The time of the newest FORK of each child that was applied: one that is still in a ring is
    /// looked at again.
    forked: FxHashMap<u32, u64>,
}

#[derive(Debug)]
enum FilterKind {
    /// All records are kept.
    All,
    Members(Members),
    OneCounter(OneCounter),
}

/// Threads that may have counters of their own and inherited ones.
#[derive(Debug, Default)]
struct OneCounter {
    threads: FxHashSet<u32>,
    /// ID of each thread's own counter of an event and CPU.
    own: FxHashMap<(u32, Counted), u64>,
    /// Event and CPU of each counter, by ID.
    counted: FxHashMap<u64, Counted>,
    /// The ids of own counters of threads that have inherited ones.
    second: FxHashSet<u64>,
}

/// Event and CPU of a counter. A thread that started while counters were opened may have inherited
/// those of some CPUs.
type Counted = (usize, Option<u32>);

impl Filter {
    /// Keeps the records of some tasks, and those that are of none. `attr` is any of the stream's:
    /// rec gives all of them the fields that are read here.
    pub fn members(attr: &Attr, members: Members) -> Self {
        Self::new(attr, FilterKind::Members(members))
    }

    /// Keeps one of two records, where threads that started late turn out to have inherited the
    /// counters that were opened for them. `None`: there are no such threads.
    pub fn once(attr: &Attr, counters: &Counters) -> Option<Self> {
        let mut once = OneCounter::default();
        let inherited = counters.all.iter().filter(|counter| {
            let event = counters.events.get(counter.event);
            event.is_some_and(|event| event.attr.flags.contains(AttrFlags::INHERIT))
        });
        for counter in inherited {
            let counted = (counter.event, counter.place.cpu);
            once.counted.insert(counter.id, counted);
            if let Some(thread) =
                counter.place.thread.filter(|thread| counters.late.contains(thread))
            {
                once.threads.insert(thread);
                once.own.insert((thread, counted), counter.id);
            }
        }
        (!once.threads.is_empty()).then(|| Self::new(attr, FilterKind::OneCounter(once)))
    }

    fn new(attr: &Attr, kind: FilterKind) -> Self {
        Self { layouts: Layouts::of(attr), kind, wakes: None, forked: FxHashMap::default() }
    }

    /// Keeps, of wakes on whole CPUs, those of recorded threads; of all other records, what
    /// `filter` keeps. `attr` is any of the stream's.
    pub fn with_wakes(filter: Option<Self>, attr: &Attr, wakes: Wakes) -> Self {
        let filter = filter.unwrap_or_else(|| Self::new(attr, FilterKind::All));
        Self { wakes: Some(wakes), ..filter }
    }

    /// Returns the filter of wakes.
    pub(crate) fn wakes(&self) -> Option<&Wakes> {
        self.wakes.as_ref()
    }

    /// Returns the wakers that are not recorded and have no name in the file.
    pub(super) fn strangers(&mut self) -> Option<&mut Strangers> {
        self.wakes.as_mut().map(|wakes| &mut wakes.strangers)
    }

    /// Updates the state that [`keeps`](Self::keeps) depends on by the records of all rings.
    pub(super) fn observe(&mut self, rings: &[Pending<'_>]) {
        let mut forks = BTreeSet::new();
        let mut scratch = Vec::new();
        if let Some(wakes) = &mut self.wakes {
            wakes.begin_round();
        }
        for ring in rings {
            ring.records(&mut scratch, |record| {
                if let FilterKind::OneCounter(once) = &mut self.kind {
                    once.observe(record, &self.layouts);
                }
                if record.header.kind == RecordType::FORK {
                    forks.extend(fork(record, &self.layouts));
                }
                if let Some(wakes) = &mut self.wakes {
                    wakes.observe(record, &self.layouts);
                    if is_execution(record) && self.kind.keeps(record, &self.layouts) {
                        wakes.execute(record, &self.layouts);
                    }
                }
            });
        }
        // Forks are applied in the order of time, whichever CPU they were on.
        for fork in forks {
            let [_, child] = fork.child;
            if self.forked.get(&child).is_none_or(|applied| *applied < fork.time) {
                self.forked.insert(child, fork.time);
                if let FilterKind::Members(members) = &mut self.kind {
                    members.apply(fork);
                }
                if let Some(wakes) = &mut self.wakes {
                    wakes.fork(fork);
                }
            }
        }
    }

    /// Returns whether a record goes into the file. One that cannot be decoded does, and is reported
    /// there.
    pub(super) fn keeps(&mut self, record: &RawRecord<'_>) -> bool {
        if let Some(keeps) = self.wakes.as_mut().and_then(|wakes| wakes.keeps(record)) {
            return keeps;
        }
        self.kind.keeps(record, &self.layouts)
    }
}

impl FilterKind {
    fn keeps(&self, record: &RawRecord<'_>, layouts: &Layouts) -> bool {
        match self {
            Self::All => true,
            Self::Members(members) => members.keeps(record, layouts),
            Self::OneCounter(once) => {
                event_id(record, layouts).is_none_or(|id| !once.second.contains(&id))
            }
        }
    }
}

/// Returns whether a record is that of an execution.
fn is_execution(record: &RawRecord<'_>) -> bool {
    record.header.kind == RecordType::COMM && record.header.misc & misc::COMM_EXEC != 0
}

impl OneCounter {
    /// Notes the counters of threads that have inherited ones, too: a sample of such a thread has the
    /// id of another thread's counter.
    fn observe(&mut self, record: &RawRecord<'_>, layouts: &Layouts) {
        let Some(sample) = layouts.sample(record) else { return };
        let Some((tid, id)) = sample.tid().zip(sample.event_id()) else { return };
        if !self.threads.contains(&tid) {
            return;
        }
        let Some(counted) = self.counted.get(&id) else { return };
        self.second.extend(self.own.get(&(tid, *counted)).filter(|own| **own != id));
    }
}

fn event_id(record: &RawRecord<'_>, layouts: &Layouts) -> Option<u64> {
    match layouts.sample(record) {
        Some(sample) => sample.event_id(),
        None => layouts.decode(record).ok()?.trailer.event_id(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::kernel::Place;
    use crate::kernel::counters::Counter;
    use crate::plan::PlannedEvent;
    use crate::testkit::fake_ring::fake_record;
    use recrep_format::abi::SampleType as S;

    fn attr() -> Attr {
        let sample_type = S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU;
        Attr {
            size: 128,
            sample_type,
            flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::INHERIT,
            ..Attr::default()
        }
    }

    fn two(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    fn sample(id: u64, pid: u32, tid: u32) -> Vec<u8> {
        fake_record(RecordType::SAMPLE.0, &[id, 0x1000, two(pid, tid), 5, 0])
    }

    /// A record of a task, with a trailer that names somebody else.
    fn of_task(kind: RecordType, [child, parent]: [[u32; 2]; 2], time: u64) -> Vec<u8> {
        let task = [two(child[0], parent[0]), two(child[1], parent[1]), time];
        fake_record(kind.0, &[&task[..], &[two(99, 99), time, 0, 1]].concat())
    }

    fn comm(pid: u32, tid: u32) -> Vec<u8> {
        fake_record(RecordType::COMM.0, &[two(pid, tid), 0x61, two(99, 99), 0, 0, 1])
    }

    /// Returns the records that are kept of a round.
    pub(in crate::drain) fn kept(filter: &mut Filter, rings: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
        let rings: Vec<Vec<u8>> = rings.iter().map(|ring| ring.concat()).collect();
        let rings: Vec<_> = rings.iter().map(|ring| Pending::new(ring, &[], 0)).collect();
        filter.observe(&rings);
        let mut all = Vec::new();
        for ring in &rings {
            ring.records(&mut Vec::new(), |record| {
                all.extend(filter.keeps(record).then(|| record.bytes.to_vec()));
            });
        }
        all
    }

    fn members(ids: &[u32], threads: bool, inherit: bool) -> Filter {
        Filter::members(&attr(), Members { ids: ids.iter().copied().collect(), threads, inherit })
    }

    #[test]
    fn other_processes_are_left_out_and_what_is_of_nobody_stays() {
        let lost = fake_record(RecordType::LOST.0, &[0, 3, 0, 0, 0, 1]);
        let ours =
            [sample(1, 7, 8), comm(7, 7), of_task(RecordType::EXIT, [[7, 8], [7, 7]], 5), lost];
        let others = [sample(1, 8, 8), comm(9, 9), of_task(RecordType::EXIT, [[8, 8], [7, 7]], 5)];
        let ring = ours.iter().chain(&others).cloned().collect();
        assert_eq!(kept(&mut members(&[7], false, true), &[ring]), ours);
    }

    #[test]
    fn children_are_followed_over_all_rings_in_the_order_of_time() {
        let fork = |child: u32, parent: u32, time| {
            of_task(RecordType::FORK, [[child; 2], [parent; 2]], time)
        };
        // The grandchild's FORK is looked at before its parent's.
        let rings =
            [vec![sample(1, 30, 30), fork(30, 20, 2)], vec![fork(20, 10, 1), sample(1, 20, 20)]];
        assert_eq!(kept(&mut members(&[10], false, true), &rings).len(), 4);
        // Without children, only that the member forked is its own record.
        assert_eq!(kept(&mut members(&[10], false, false), &rings), [fork(20, 10, 1)]);
    }

    #[test]
    fn a_number_that_another_task_gets_is_no_member_any_more() {
        let again = of_task(RecordType::FORK, [[7, 7], [1, 1]], 1);
        assert_eq!(
            kept(&mut members(&[7], false, true), &[vec![again, sample(1, 7, 7)]]),
            [[0; 0]; 0]
        );
        // A new thread of the process is no new process.
        let thread = of_task(RecordType::FORK, [[7, 70], [7, 7]], 1);
        assert_eq!(
            kept(&mut members(&[7], false, true), &[vec![thread, sample(1, 7, 70)]]).len(),
            2
        );
    }

    #[test]
    fn a_fork_that_is_seen_again_changes_nothing() {
        let [old, new] = [([7; 2], [10; 2], 1), ([7; 2], [1; 2], 2)]
            .map(|(child, parent, time)| of_task(RecordType::FORK, [child, parent], time));
        let mut filter = members(&[10], false, true);
        assert_eq!(kept(&mut filter, &[vec![old.clone(), sample(1, 7, 7)]]).len(), 2);
        // The number is another task's now; its old FORK is in a ring that was not drained.
        assert_eq!(kept(&mut filter, &[vec![new]]), [[0; 0]; 0]);
        assert_eq!(kept(&mut filter, &[vec![old, sample(1, 7, 7)]]).len(), 1);
    }

    #[test]
    fn threads_alone() {
        let fork = of_task(RecordType::FORK, [[7, 80], [7, 8]], 1);
        let ring = vec![fork, sample(1, 7, 8), sample(1, 7, 80), sample(1, 7, 7)];
        assert_eq!(kept(&mut members(&[8], true, false), std::slice::from_ref(&ring)).len(), 2);
        assert_eq!(kept(&mut members(&[8], true, true), &[ring]).len(), 3);
    }

    #[test]
    fn of_two_counters_of_a_late_thread_the_inherited_one_stays() {
        let fd = || rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let on = |cpu, id, event, tid| {
            Counter::new(fd(), id, event, Place { thread: Some(tid), cpu: Some(cpu), cgroup: None })
        };
        let counter = |id, event, tid| on(0, id, event, tid);
        let event = || PlannedEvent { attr: attr(), ..PlannedEvent::default() };
        // Thread 7 was there; 8 and 9 started late.
        let mut all = vec![
            counter(1, 0, 7),
            counter(2, 0, 8),
            counter(3, 0, 9),
            counter(4, 1, 7),
            counter(5, 1, 8),
        ];
        all.extend([on(1, 6, 0, 7), on(1, 7, 0, 8)]);
        let mut counters = Counters {
            all,
            events: vec![event(), event()],
            late: [8, 9].into(),
            ..Counters::default()
        };
        let mut filter = Filter::once(&attr(), &counters).unwrap();
        let inherited = [sample(1, 7, 8), sample(4, 7, 7)];
        // 8 has event 0 on CPU 0 twice, as the samples in both rings tell; on CPU 1, event 1 and
        // thread 9 have one counter each.
        let single = [sample(5, 7, 8), sample(3, 7, 9), sample(7, 7, 8)];
        let rings = [
            [&[sample(2, 7, 8)], &inherited[..]].concat(),
            [&single[..], &[sample(2, 7, 8)]].concat(),
        ];
        assert_eq!(kept(&mut filter, &rings), [&inherited[..], &single].concat());
        counters.late.clear();
        assert!(Filter::once(&attr(), &counters).is_none());
    }
}
