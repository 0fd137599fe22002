//! Wakes of recorded threads, out of those that are counted on whole CPUs (`--waits`).
//!
//! ```text
//!  sched_waking on whole CPUs ─┬─ the thread that is woken is not recorded ─▶ left out
//!                              ├─ the waker's own counter has it, too ──────▶ left out (a double)
//!                              └─ by an interrupt, by a thread that exits or is not recorded ─▶ kept
//! ```
//!
//! The kernel writes both samples of one wake into the ring of its CPU, the waker's own first: an
//! event that is scheduled later, as with each switch of threads, stands before others of its CPU.
//!
//! Raw data has numbers of the first PID namespace. Where rec is in another one, the sample of a
//! wake shows both numbers of its waker; a thread of which only the raw number is known may be
//! recorded, so its wakes are kept.

use std::fs;
use std::mem;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use recrep_format::abi::{AttrFlags, RecordType};
use recrep_format::endian::Endian;
use recrep_format::feature::tracing::RawFields;
use recrep_format::layout::SampleLayout;
use recrep_format::record::{Body, RawRecord, Sample};
use rustc_hash::{FxHashMap, FxHashSet};

use super::members::{Fork, Members};
use super::strangers::Strangers;
use crate::kernel::counters::Counters;
use crate::machine::tracepoint::Tracefs;
use crate::messages::error::{Error, Result};
use crate::output::layouts::{Layouts, event_id};
use crate::plan::WAKING;

/// Longest time between the two samples of one wake, in nanoseconds.
const SAME_WAKE: u64 = 100_000;
/// `common_flags` of a tracepoint in an interrupt: `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`.
const IN_INTERRUPT: u8 = 0x18;
/// Inode of the first PID namespace (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: u64 = 0xefff_fffc;

/// Filter of wakes.
#[derive(Debug)]
pub struct Wakes {
    /// Layout of the samples of each counter of wakes, by ID.
    counters: FxHashMap<u64, WakeCounter>,
    fields: WakeFields,
    /// The recorded threads.
    recorded: Members,
    /// Threads that ended, by the round in which that was observed: this one, the one before. Their
    /// last wakes may still be in a ring.
    ended: [FxHashSet<u32>; 2],
    /// `true` if rings are overwritten, so that wakes of threads that ended long ago are in them.
    keeps_ended: bool,
    /// Newest wake on each CPU by a recorded thread, by its own counter.
    own: FxHashMap<u32, Wake>,
    /// Numbers in rec's PID namespace by those in the first one; `None` if that is rec's.
    numbers: Option<FxHashMap<u32, u32>>,
    pub(super) strangers: Strangers,
    pub(super) left_out: DroppedWakes,
}

/// A counter of wakes.
#[derive(Debug)]
struct WakeCounter {
    layout: SampleLayout,
    /// `true` if it counts a whole CPU for the sake of some threads.
    is_whole_cpu: bool,
}

/// Places of the fields in the raw data of a wake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeFields {
    flags: usize,
    waker: usize,
    target: usize,
}

/// Wakes on whole CPUs that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DroppedWakes {
    /// Wakes of threads that are not recorded.
    pub(crate) others: u64,
    /// Wakes that the waker's own counter has.
    pub(crate) doubles: u64,
}

/// A wake.
#[derive(Clone, Copy, Debug)]
struct Wake {
    time: u64,
    cpu: u32,
    /// Process and thread of the waker, in rec's PID namespace.
    waker: [u32; 2],
    /// The waker's and the woken thread's numbers in the first PID namespace.
    raw_waker: u32,
    target: u32,
    in_interrupt: bool,
}

impl WakeFields {
    /// Reads the format of the tracepoint.
    pub(crate) fn read(tracefs: Option<&Path>) -> Result<Self> {
        let format = tracefs.zip(WAKING.split_once(':')).and_then(|(root, (system, name))| {
            Tracefs::at(root.to_owned()).fields(system, name).ok()
        });
        let place = |name| format.iter().flatten().find(|field| field.name == name);
        match [place("common_flags"), place("common_pid"), place("pid")] {
            [Some(flags), Some(waker), Some(target)] => {
                Ok(Self { flags: flags.offset, waker: waker.offset, target: target.offset })
            }
            _ => Err(Error::Failed(format!(
                "--waits: cannot read the format of {WAKING} in tracefs; mount it again"
            ))),
        }
    }

    /// Returns a number of 32 bits.
    fn number(raw: &[u8], at: usize) -> Option<u32> {
        let raw = RawFields { bytes: raw, endian: Endian::NATIVE };
        u32::try_from(raw.number(at, 4)?).ok()
    }
}

/// Returns whether this process is in the first PID namespace.
pub(crate) fn is_in_first_namespace() -> bool {
    fs::metadata("/proc/self/ns/pid").map_or(true, |ns| ns.ino() == FIRST_NAMESPACE)
}

impl Wakes {
    /// Creates a filter that keeps wakes of `recorded`; `None` if no wakes are counted on whole CPUs
    /// for their sake.
    pub(crate) fn new(
        counters: &Counters,
        fields: WakeFields,
        recorded: Members,
        has_own_numbers: bool,
    ) -> Option<Self> {
        let mut counted = FxHashMap::default();
        let (mut any, mut keeps_ended) = (false, false);
        for counter in &counters.all {
            let Some(event) = counters.events.get(counter.event) else { continue };
            if event.tracepoint.as_deref() == Some(WAKING) {
                let layout = SampleLayout::of(&event.attr);
                any |= event.system_wide;
                keeps_ended |= event.attr.flags.contains(AttrFlags::WRITE_BACKWARD);
                counted.insert(counter.id, WakeCounter { layout, is_whole_cpu: event.system_wide });
            }
        }
        let tracker = counters.tracker().filter(|_| any)?;
        Some(Self {
            counters: counted,
            fields,
            recorded,
            ended: Default::default(),
            keeps_ended,
            own: FxHashMap::default(),
            numbers: has_own_numbers.then(FxHashMap::default),
            strangers: Strangers::new(&tracker.attr, counters.tracking_id()),
            left_out: DroppedWakes::default(),
        })
    }

    /// Removes threads whose end was observed two rounds ago.
    pub(super) fn begin_round(&mut self) {
        let [now, before] = &mut self.ended;
        for tid in before.drain() {
            self.recorded.ids.remove(&tid);
        }
        mem::swap(now, before);
    }

    /// Observes ends and executions of recorded tasks, and numbers of wakers.
    pub(super) fn observe(&mut self, record: &RawRecord<'_>, layouts: &Layouts) {
        match record.header.kind {
            RecordType::SAMPLE if self.numbers.is_some() => {
                let wake =
                    event_id(record).and_then(|id| self.wake(record, self.counters.get(&id)?));
                if let (Some(wake), Some(numbers)) = (wake, &mut self.numbers)
                    && wake.waker[1] != u32::MAX
                {
                    numbers.insert(wake.raw_waker, wake.waker[1]);
                }
            }
            RecordType::EXIT if !self.keeps_ended => {
                if let Ok(Body::Exit(of)) = layouts.decode(record).map(|record| record.body) {
                    self.ended[0].insert(of.tid);
                }
            }
            _ => {}
        }
    }

    /// Adds the task of an execution: another thread than the first one has the first one's number
    /// from then on.
    pub(super) fn execute(&mut self, record: &RawRecord<'_>, layouts: &Layouts) {
        if let Ok(Body::Comm(of)) = layouts.decode(record).map(|record| record.body) {
            self.begin(of.tid);
            self.recorded.ids.insert(of.tid);
        }
    }

    pub(super) fn fork(&mut self, fork: Fork) {
        self.begin(fork.child[1]);
        self.recorded.apply(fork);
    }

    fn begin(&mut self, tid: u32) {
        for ended in &mut self.ended {
            ended.remove(&tid);
        }
    }

    /// Returns whether the sample of a wake on a whole CPU is kept; `None` for other records.
    pub(super) fn keeps(&mut self, record: &RawRecord<'_>) -> Option<bool> {
        let counted = self.counters.get(&event_id(record)?)?;
        let wake = self.wake(record, counted)?;
        let is_own = self.recorded.ids.contains(&wake.waker[1]);
        if !counted.is_whole_cpu {
            if is_own {
                self.own.insert(wake.cpu, wake);
            }
            return None;
        }
        if !self.is_recorded(wake.target) {
            self.left_out.others += 1;
            return Some(false);
        }
        if self.own.get(&wake.cpu).is_some_and(|own| own.is_same(&wake)) {
            self.own.remove(&wake.cpu);
            self.left_out.doubles += 1;
            return Some(false);
        }
        if !is_own && !wake.in_interrupt {
            self.strangers.add(wake.waker);
        }
        Some(true)
    }

    fn is_recorded(&self, target: u32) -> bool {
        match &self.numbers {
            None => self.recorded.ids.contains(&target),
            Some(numbers) => {
                let tid = numbers.get(&target);
                tid.is_none_or(|tid| self.recorded.ids.contains(tid))
            }
        }
    }

    fn wake(&self, record: &RawRecord<'_>, counted: &WakeCounter) -> Option<Wake> {
        let sample = Sample::new(*record, &counted.layout, Endian::NATIVE);
        let raw = sample.raw().ok()??;
        Some(Wake {
            time: sample.time()?,
            cpu: sample.cpu()?,
            waker: [sample.pid()?, sample.tid()?],
            raw_waker: WakeFields::number(raw, self.fields.waker)?,
            target: WakeFields::number(raw, self.fields.target)?,
            in_interrupt: raw.get(self.fields.flags)? & IN_INTERRUPT != 0,
        })
    }
}

impl Wake {
    fn is_same(&self, other: &Self) -> bool {
        self.target == other.target && self.time.abs_diff(other.time) < SAME_WAKE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::filter::Filter;
    use crate::drain::filter::tests::kept;
    use crate::kernel::Place;
    use crate::kernel::counters::Counter;
    use crate::plan::PlannedEvent;
    use crate::testkit::fake_ring::fake_record;
    use recrep_format::abi::{SampleType as S, misc};
    use recrep_format::attr::Attr;

    const OWN: u64 = 1;
    const WHOLE_CPU: u64 = 2;
    const FIELDS: WakeFields = WakeFields { flags: 2, waker: 4, target: 24 };
    const HARD_INTERRUPT: u8 = 8;

    fn attr(more: S) -> Attr {
        let sample_type = S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU | S::RAW | more;
        Attr {
            size: 128,
            sample_type,
            flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::COMM,
            ..Attr::default()
        }
    }

    /// Returns a filter of the wakes of `threads`, by events with these flags.
    fn filter(threads: &[u32], has_own_numbers: bool, flags: AttrFlags) -> Filter {
        let fd = || rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let counter = |id, event, thread| {
            Counter::new(fd(), id, event, Place { thread, cpu: Some(0), cgroup: None })
        };
        let event = |more, system_wide| PlannedEvent {
            attr: Attr { flags: attr(more).flags | flags, ..attr(more) },
            tracepoint: Some(WAKING.to_owned()),
            system_wide,
            ..PlannedEvent::default()
        };
        let counters = Counters {
            all: vec![counter(OWN, 0, threads.first().copied()), counter(WHOLE_CPU, 1, None)],
            events: vec![event(S::CALLCHAIN, false), event(S::empty(), true)],
            ..Counters::default()
        };
        let recorded =
            Members { ids: threads.iter().copied().collect(), threads: true, inherit: true };
        let wakes = Wakes::new(&counters, FIELDS, recorded, has_own_numbers).unwrap();
        Filter::with_wakes(None, &attr(S::empty()), wakes)
    }

    /// Sample of a wake: who wakes whom, in rec's namespace and in the first one.
    #[derive(Clone, Copy)]
    struct Waking {
        time: u64,
        cpu: u64,
        waker: [u32; 2],
        target: u32,
        flags: u8,
    }

    impl Waking {
        fn of(time: u64, waker: u32, target: u32) -> Self {
            Self { time, cpu: 0, waker: [waker; 2], target, flags: 0 }
        }

        fn bytes(self, id: u64) -> Vec<u8> {
            let [tid, raw_tid] = self.waker;
            let mut raw = [0; 40];
            raw[..4].copy_from_slice(&36u32.to_ne_bytes());
            raw[4 + FIELDS.flags] = self.flags;
            for (at, number) in [(FIELDS.waker, raw_tid), (FIELDS.target, self.target)] {
                raw[4 + at..8 + at].copy_from_slice(&number.to_ne_bytes());
            }
            let raw = raw.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
            let task = u64::from(tid) | u64::from(tid) << 32;
            let mut words = vec![id, 0x1000, task, self.time, self.cpu];
            words.extend((id == OWN).then_some(0));
            words.extend(raw);
            fake_record(RecordType::SAMPLE.0, &words)
        }

        fn own(self) -> Vec<u8> {
            self.bytes(OWN)
        }

        fn whole_cpu(self) -> Vec<u8> {
            self.bytes(WHOLE_CPU)
        }
    }

    fn of_task(kind: RecordType, child: u32, parent: u32, time: u64) -> Vec<u8> {
        let both = u64::from(child) | u64::from(parent) << 32;
        fake_record(kind.0, &[both, both, time, 0, time, 0, 1])
    }

    #[test]
    fn wakes_of_others_and_doubles_are_left_out() {
        let mut filter = filter(&[10, 11], false, AttrFlags::empty());
        let by_own = Waking::of(1000, 10, 11);
        let double = Waking { time: 3000, ..by_own };
        // The timer wakes it again at once: that is another wake.
        let again = Waking { time: 4000, flags: HARD_INTERRUPT, ..by_own };
        let [late, elsewhere] =
            [Waking { time: 200_000, ..by_own }, Waking { cpu: 1, time: 2000, ..by_own }];
        let to_other = Waking::of(5000, 10, 99);
        let ring = vec![
            by_own.own(),
            double.whole_cpu(),
            again.whole_cpu(),
            to_other.own(),
            to_other.whole_cpu(),
            late.whole_cpu(),
            elsewhere.whole_cpu(),
        ];
        let left = [
            by_own.own(),
            again.whole_cpu(),
            to_other.own(),
            late.whole_cpu(),
            elsewhere.whole_cpu(),
        ];
        assert_eq!(kept(&mut filter, &[ring]), left);
        assert_eq!(filter.wakes().unwrap().left_out, DroppedWakes { others: 1, doubles: 1 });
    }

    #[test]
    fn new_threads_are_recorded_and_ended_ones_for_a_while() {
        let mut filter = filter(&[10], false, AttrFlags::empty());
        let wake = |time, target| Waking::of(time, 99, target).whole_cpu();
        // The thread starts on another CPU than the one that wakes it.
        let rings = [vec![wake(5, 20), wake(6, 30)], vec![of_task(RecordType::FORK, 20, 10, 1)]];
        assert_eq!(kept(&mut filter, &rings).len(), 2);
        let exit = of_task(RecordType::EXIT, 20, 10, 7);
        assert_eq!(kept(&mut filter, &[vec![exit, wake(6, 20)]]).len(), 2);
        assert_eq!(kept(&mut filter, &[vec![wake(8, 20)]]).len(), 1);
        assert_eq!(kept(&mut filter, &[vec![wake(9, 20)]]).len(), 0);
        let mut overwritten = self::filter(&[20], false, AttrFlags::WRITE_BACKWARD);
        let exit = of_task(RecordType::EXIT, 20, 10, 7);
        assert_eq!(kept(&mut overwritten, &[vec![exit]]).len(), 1);
        for time in [8, 9, 10] {
            assert_eq!(kept(&mut overwritten, &[vec![wake(time, 20)]]).len(), 1, "{time}");
        }
        // A number that another process gets is not recorded.
        let again = of_task(RecordType::FORK, 10, 1, 10);
        assert_eq!(kept(&mut filter, &[vec![again, wake(11, 10)]]).len(), 1);
    }

    #[test]
    fn a_thread_that_executes_a_program_becomes_the_first_one() {
        let mut filter = filter(&[10, 11], false, AttrFlags::empty());
        let exit = of_task(RecordType::EXIT, 10, 1, 1);
        let mut execution = fake_record(RecordType::COMM.0, &[10 | 10 << 32, 0x61, 0, 2, 0, 1]);
        execution[4..6].copy_from_slice(&misc::COMM_EXEC.to_ne_bytes());
        assert_eq!(kept(&mut filter, &[vec![exit, execution]]).len(), 2);
        for time in [10, 20, 30] {
            let wake = Waking::of(time, 11, 10).whole_cpu();
            assert_eq!(kept(&mut filter, &[vec![wake]]).len(), 1, "{time}");
        }
    }

    #[test]
    fn in_another_namespace_samples_of_wakes_show_both_numbers() {
        let mut filter = filter(&[10], true, AttrFlags::empty());
        let by = |waker, target| Waking { waker, ..Waking::of(1, 0, target) }.whole_cpu();
        let (unknown, of_10) = (by([0, 700], 800), by([0, 700], 1010));
        // 1010 is 10 here, and 700 is none of the namespace.
        assert_eq!(kept(&mut filter, &[vec![unknown.clone(), of_10.clone()]]).len(), 2);
        let pairs = [by([10, 1010], 700), by([20, 1020], 1020)];
        let ring = vec![of_10.clone(), pairs[0].clone(), pairs[1].clone()];
        assert_eq!(kept(&mut filter, &[ring]), [of_10]);
    }

    #[test]
    fn a_waker_that_is_not_recorded_has_its_name_once_in_a_file() {
        let mut filter = filter(&[10], false, AttrFlags::empty());
        let me = rustix::thread::gettid().as_raw_pid().cast_unsigned();
        let pid = std::process::id();
        let mut wake = Waking::of(1, me, 10).whole_cpu();
        wake[24..28].copy_from_slice(&pid.to_ne_bytes());
        let mut interrupted = Waking { flags: HARD_INTERRUPT, ..Waking::of(1, me, 10) }.whole_cpu();
        interrupted[24..28].copy_from_slice(&pid.to_ne_bytes());
        let mut names = |record: &Vec<u8>| {
            kept(&mut filter, &[vec![record.clone()]]);
            filter.strangers().unwrap().take()
        };
        assert!(names(&interrupted).is_empty());
        let name = names(&wake);
        assert_eq!(name[..4], RecordType::COMM.0.to_ne_bytes());
        assert_eq!(name[12..16], me.to_ne_bytes());
        assert!(names(&wake).is_empty());
        filter.strangers().unwrap().forget();
        assert_eq!(kept(&mut filter, &[vec![wake]]).len(), 1);
        assert_eq!(filter.strangers().unwrap().take(), name);
    }
}
