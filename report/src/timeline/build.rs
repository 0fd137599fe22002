//! Building of a [`Timeline`] in one pass over the side-band, in the order of its moments.

use indexmap::IndexSet;
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::space::Space;
use super::{Life, Mapping, Moment, SpaceId, Timeline};

/// Tid of the idle task, as in perf.
const IDLE: i32 = 0;

/// Effect of a side-band record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A thread gets a new comm.
    Comm { pid: i32, tid: i32, comm: String },
    /// A new thread starts.
    Fork {
        pid: i32,
        tid: i32,
        ppid: i32,
        ptid: i32,
        /// `true` if a new process gets a copy of its parent's mappings (not if the fork is
        /// synthesized).
        copies: bool,
    },
    /// A mapping is added to a process.
    Map {
        pid: i32,
        /// Thread that created the mapping.
        tid: i32,
        mapping: Mapping,
    },
    /// A JIT puts code into anonymous memory of a process.
    Code { pid: i32, mapping: Mapping },
    /// A mapping is added to the kernel.
    KernelMap(Mapping),
}

#[derive(Default)]
struct Builder {
    /// Uses of all tids.
    lives: Vec<Life>,
    /// Last use of each tid.
    last: FxHashMap<i32, usize>,
    comms: IndexSet<String, FxBuildHasher>,
    spaces: Vec<Space>,
    kernel: Space,
}

impl Timeline {
    /// Builds the timeline of these changes, which may be in any order.
    pub(crate) fn build(mut changes: Vec<(Moment, Change)>) -> Self {
        changes.par_sort_by_key(|(moment, _)| *moment);
        let mut builder = Builder::default();
        builder.set_comm(IDLE, IDLE, "swapper".into(), Moment::START);
        for (at, change) in changes {
            builder.apply(at, change);
        }
        builder.freeze()
    }
}

impl Builder {
    fn apply(&mut self, at: Moment, change: Change) {
        match change {
            Change::Comm { pid, tid, comm } => self.set_comm(pid, tid, comm, at),
            Change::Fork { .. } => self.fork(&change, at),
            Change::Map { pid, tid, mapping } => {
                let space = self.ensure_space(pid, tid);
                if let Some(space) = self.spaces.get_mut(space.0 as usize) {
                    space.mappings.push((at, mapping));
                }
            }
            Change::Code { pid, mapping } => {
                let space = self.ensure_space(pid, pid);
                if let Some(space) = self.spaces.get_mut(space.0 as usize) {
                    space.code.push((at, mapping));
                }
            }
            Change::KernelMap(mapping) => self.kernel.mappings.push((at, mapping)),
        }
    }

    /// Begins a use of a tid; later records with it are about this thread.
    fn begin(&mut self, tid: i32, start: Moment) -> usize {
        let number = self.lives.len();
        let (pid, parent, space, names) = (None, None, None, Vec::new());
        self.lives.push(Life { start, tid, pid, parent, space, names });
        self.last.insert(tid, number);
        number
    }

    /// Returns the last use of a tid.
    fn life(&mut self, tid: i32) -> &mut Life {
        let number = self.last.get(&tid).copied().unwrap_or_else(|| self.begin(tid, Moment::START));
        #[allow(clippy::indexing_slicing, reason = "uses are only added")]
        &mut self.lives[number]
    }

    /// Makes sure that the thread has a process and an address space: its own if it is the leader,
    /// else its leader's.
    fn ensure_space(&mut self, pid: i32, tid: i32) -> SpaceId {
        let life = self.life(tid);
        let unplaced = life.pid.is_none_or(|known| known == -1 && pid != -1);
        if let (Some(space), false) = (life.space, unplaced) {
            return space;
        }
        let own = life.space;
        let space = if pid == tid || pid == -1 {
            own.unwrap_or_else(|| self.new_space())
        } else {
            self.ensure_space(pid, pid)
        };
        let life = self.life(tid);
        (life.pid, life.space) = (Some(pid), Some(space));
        space
    }

    fn new_space(&mut self) -> SpaceId {
        let id = SpaceId(u32::try_from(self.spaces.len()).unwrap_or(u32::MAX));
        self.spaces.push(Space::default());
        id
    }

    fn set_comm(&mut self, pid: i32, tid: i32, comm: String, at: Moment) {
        let (id, _) = self.comms.insert_full(comm);
        self.ensure_space(pid, tid);
        self.life(tid).names.push((at, u32::try_from(id).unwrap_or(u32::MAX)));
    }

    fn fork(&mut self, change: &Change, at: Moment) {
        let Change::Fork { pid, tid, ppid, ptid, copies } = *change else { return };
        self.ensure_space(ppid, ptid);
        if self.life(ptid).pid != Some(ppid) {
            self.begin(ptid, at);
            self.ensure_space(ppid, ptid);
        }
        let Life { space: parent, names, .. } = self.life(ptid);
        let (parent, comm) = (*parent, names.last().map(|(_, comm)| *comm));
        // What a tid was used for before is unknown, unless there was a fork.
        self.life(tid);
        self.begin(tid, at);
        let space = self.ensure_space(pid, tid);
        let life = self.life(tid);
        life.parent = Some(ptid);
        life.names.extend(comm.map(|comm| (at, comm)));
        // A new process has a space of its own, newer than its parent's: only then does every chain
        // of parents end.
        let parent = parent.filter(|parent| pid != ppid && copies && *parent < space);
        if let Some(space) = self.spaces.get_mut(space.0 as usize) {
            space.parent = space.parent.or(parent.map(|parent| (parent, at)));
        }
    }

    fn freeze(mut self) -> Timeline {
        // Stable: the uses of a tid stay in their order.
        self.lives.sort_by_key(|life| life.tid);
        let mut tids: FxHashMap<i32, (u32, u32)> = FxHashMap::default();
        for (index, life) in (0u32..).zip(&self.lives) {
            tids.entry(life.tid).or_insert((index, 0)).1 += 1;
        }
        let spaces = self.spaces.into_par_iter().map(Space::indexed).collect();
        let comms = self.comms.into_iter().collect();
        Timeline { tids, lives: self.lives, comms, spaces, kernel: self.kernel.indexed() }
    }
}

#[cfg(test)]
mod tests {
    use recrep_format::abi::CpuMode;

    use super::*;
    use crate::timeline::clock::at;
    use crate::timeline::frozen::Span;
    use crate::timeline::frozen::TaskRef;
    use crate::timeline::{Memory, ModuleId, RecentSpans};

    fn comm(pid: i32, tid: i32, name: &str) -> Change {
        Change::Comm { pid, tid, comm: name.into() }
    }

    fn fork(pid: i32, tid: i32, ppid: i32, ptid: i32) -> Change {
        Change::Fork { pid, tid, ppid, ptid, copies: true }
    }

    fn map(pid: i32, start: u64, module: u32) -> Change {
        let (end, module) = (start + 0x100, Some(ModuleId(module)));
        let (is_shared, memory) = (false, Memory::Code);
        let mapping = Mapping { start, end, first: 0, module, is_shared, memory };
        Change::Map { pid, tid: pid, mapping }
    }

    fn build(changes: Vec<(u64, Change)>) -> Timeline {
        Timeline::build(changes.into_iter().map(|(time, change)| (at(time), change)).collect())
    }

    fn name(timeline: &Timeline, pid: i32, tid: i32, time: u64) -> String {
        timeline.comm(timeline.span(pid, tid, at(time)).task.comm).into_owned()
    }

    fn module(timeline: &Timeline, pid: i32, tid: i32, address: u64, time: u64) -> Option<u32> {
        let task = timeline.span(pid, tid, at(time)).task;
        timeline.place(CpuMode::User, task.space, address, at(time)).module.map(|m| m.0)
    }

    #[test]
    fn the_first_comm_also_applies_before_its_moment() {
        let t = build(vec![(10, comm(5, 5, "sh")), (20, comm(5, 5, "ls"))]);
        let names = [1, 10, 19, 20, 99].map(|time| name(&t, 5, 5, time));
        assert_eq!(names, ["sh", "sh", "sh", "ls", "ls"]);
        assert_eq!(name(&t, 0, 0, 3), "swapper");
        assert_eq!(name(&t, 77, 77, 3), ":77");
        assert_eq!(name(&t, -1, -1, 3), ":-1");
        let (first, last) = (t.span(5, 5, at(1)).task, t.span(5, 5, at(99)).task);
        assert_eq!(t.thread_label(first.thread).1, last.comm);
    }

    #[test]
    fn forks_in_a_circle_end() {
        let t = build(vec![(1, map(7, 0x1000, 7)), (2, fork(5, 6, 7, 7)), (3, fork(7, 8, 5, 5))]);
        assert_eq!([5, 7].map(|pid| module(&t, pid, pid, 0x1000, 9)), [Some(7), Some(7)]);
        assert_eq!([5, 7].map(|pid| module(&t, pid, pid, 0x9000, 9)), [None, None]);
    }

    #[test]
    fn a_fork_with_a_used_tid_is_another_thread() {
        let t = build(vec![
            (1, comm(1, 1, "init")),
            (10, fork(5, 5, 1, 1)),
            (11, comm(5, 5, "old")),
            (12, map(5, 0x5000, 0)),
            (30, fork(5, 5, 1, 1)),
            (31, comm(5, 5, "new")),
        ]);
        let names = [9, 10, 11, 29, 30, 31].map(|time| name(&t, 5, 5, time));
        assert_eq!(names, [":5", "init", "old", "old", "init", "new"]);
        assert_ne!(t.span(5, 5, at(12)).task.thread, t.span(5, 5, at(32)).task.thread);
        assert_eq!([29, 30].map(|time| module(&t, 5, 5, 0x5000, time)), [Some(0), None]);
    }

    #[test]
    fn a_child_starts_with_the_mappings_of_its_parent() {
        let t = build(vec![
            (1, map(1, 0x1000, 0)),
            (10, fork(2, 2, 1, 1)),
            (11, map(2, 0x1000, 1)),
            (12, map(1, 0x2000, 2)),
        ]);
        assert_eq!(module(&t, 2, 2, 0x1000, 10), Some(0));
        assert_eq!(module(&t, 2, 2, 0x1000, 11), Some(1));
        assert_eq!(module(&t, 2, 2, 0x2000, 99), None);
        assert_eq!(module(&t, 1, 1, 0x1000, 99), Some(0));
        let synthesized = Change::Fork { pid: 3, tid: 3, ppid: 1, ptid: 1, copies: false };
        let t = build(vec![(1, map(1, 0x1000, 0)), (10, synthesized)]);
        assert_eq!(module(&t, 3, 3, 0x1000, 10), None);
    }

    #[test]
    fn threads_share_the_address_space_of_their_leader() {
        let t = build(vec![(1, map(1, 0x1000, 0)), (2, fork(1, 9, 1, 1)), (3, map(1, 0x2000, 1))]);
        assert_eq!(module(&t, 1, 9, 0x1000, 9), Some(0));
        assert_eq!(module(&t, 1, 9, 0x2000, 9), Some(1));
        assert_eq!(module(&t, 1, 8, 0x1000, 3), Some(0), "a thread without records");
        assert_eq!(module(&t, 7, 8, 0x1000, 3), None, "neither has its leader");
    }

    #[test]
    fn a_span_is_valid_for_all_of_its_time() {
        let t = build(vec![
            (1, comm(1, 1, "init")),
            (10, fork(5, 5, 1, 1)),
            (20, comm(5, 5, "a")),
            (25, comm(5, 5, "b")),
            (30, fork(5, 5, 1, 1)),
            (40, comm(9, 9, "late")),
            (45, comm(9, 9, "later")),
        ]);
        for (pid, tid) in [(5, 5), (9, 9), (1, 1), (5, 77), (0, 0)] {
            for start in 0..50 {
                let span = t.span(pid, tid, at(start));
                for time in (0..50).filter(|time| span.covers(pid, tid, at(*time))) {
                    let task = t.span(pid, tid, at(time)).task;
                    assert_eq!(task, span.task, "{tid} from {start} at {time}");
                }
                let lasts = (0..50).filter(|time| span.covers(pid, tid, at(*time))).count();
                // A thread without an address space of its own depends on its leader, so its spans
                // are empty.
                let unplaced = tid == 77 || (tid == 5 && start < 10);
                assert!(lasts > 3 || unplaced, "{tid} at {start} lasts {lasts}");
            }
        }
    }

    #[test]
    fn references_can_be_packed_and_unpacked() {
        for reference in
            [TaskRef::Known(7), TaskRef::Bare(-1), TaskRef::Bare(7), TaskRef::Bare(i32::MAX)]
        {
            assert_eq!(TaskRef::unpack(reference.pack()), reference);
        }
    }

    fn renamed() -> Timeline {
        build(vec![(10, comm(5, 5, "a")), (20, comm(5, 5, "b")), (30, comm(5 + 256, 5 + 256, "c"))])
    }

    #[test]
    fn recent_states_are_those_of_the_timeline() {
        let (timeline, mut spans) = (renamed(), RecentSpans::default());
        // The two threads share a place.
        for time in (0..40).chain((0..40).rev()) {
            for tid in [5, 5 + 256, 7] {
                let (span, value) =
                    spans.get(&timeline, tid, tid, at(time), |span| span.moments.start).clone();
                let fresh = timeline.span(tid, tid, at(time));
                let found = (span.task, value, span.comm_so_far(at(time)));
                let expected = (fresh.task, fresh.moments.start, fresh.comm_so_far(at(time)));
                assert_eq!(found, expected, "{tid} at {time}");
            }
        }
    }

    #[test]
    fn a_comm_so_far_does_not_apply_to_the_time_before_it() {
        let timeline = renamed();
        let first = timeline.span(5, 5, at(3));
        let so_far = |span: &Span, time| timeline.comm(span.comm_so_far(at(time))).into_owned();
        assert_eq!([so_far(&first, 9), so_far(&first, 10)], [":5", "a"]);
        assert_eq!(timeline.comm(first.task.comm), "a");
        assert_eq!(so_far(&timeline.span(5, 5, at(20)), 20), "b");
    }
}
