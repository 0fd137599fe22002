//! The finished timeline and its queries.

use std::ops::Range;

use recrep_format::abi::CpuMode;
use rustc_hash::FxHashMap;

use super::space::{Space, find, shown};
use super::{CommRef, Life, Mapping, ModuleId, Moment, SpaceId, Span, Task, ThreadRef, VisiblePart};

/// State of all threads and address spaces over time.
#[derive(Debug, Default)]
pub struct Timeline {
    /// First index and number of each tid's lives in `lives`.
    pub(super) tids: FxHashMap<i32, (u32, u32)>,
    pub(super) lives: Vec<Life>,
    pub(super) comms: Vec<String>,
    pub(super) spaces: Vec<Space>,
    pub(super) kernel: Space,
}

/// An address resolved to a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Module that was mapped there; `None` if nothing was.
    pub module: Option<ModuleId>,
    /// Address by which the module's symbols are looked up; unchanged if nothing was mapped.
    pub address: u64,
    /// Size of the mapping in bytes.
    pub size: u64,
    /// `true` if it is a shared mapping of a file's data.
    pub is_shared: bool,
}

impl Place {
    fn of(mapping: Option<&Mapping>, address: u64) -> Self {
        match mapping {
            Some(mapping) => Self {
                module: mapping.module,
                address: mapping.relative(address),
                size: mapping.end - mapping.start,
                is_shared: mapping.is_shared,
            },
            None => Self { module: None, address, size: 0, is_shared: false },
        }
    }
}

impl Timeline {
    /// Looks up an address of a space in this CPU mode.
    #[inline]
    pub fn place(&self, mode: CpuMode, space: Option<SpaceId>, address: u64, at: Moment) -> Place {
        self.place_in(mode, space, address, at).0
    }

    /// Like [`Timeline::place`]; also returns a range around the address in which the same is mapped.
    #[inline]
    pub fn place_in(&self, mode: CpuMode, space: Option<SpaceId>, address: u64, at: Moment) -> (Place, Range<u64>) {
        let (mapped, range) = match (mode, space) {
            (CpuMode::Kernel, _) => find(std::slice::from_ref(&self.kernel), SpaceId(0), address, at),
            (CpuMode::User, Some(space)) => find(&self.spaces, space, address, at),
            _ => (None, 0..u64::MAX),
        };
        (Place::of(mapped.map(|(_, mapping)| mapping), address), range)
    }

    /// Looks up an address of unknown CPU mode, such as the end of a branch: first in the process, then in the kernel.
    /// If nothing was mapped, the returned mode is the hypervisor's, as in perf. Also returns a range as
    /// [`Timeline::place_in`].
    pub fn place_in_any_mode(&self, space: Option<SpaceId>, address: u64, at: Moment) -> (CpuMode, Place, Range<u64>) {
        let (user, range) = self.place_in(CpuMode::User, space, address, at);
        if user.module.is_some() {
            return (CpuMode::User, user, range);
        }
        let (kernel, other) = self.place_in(CpuMode::Kernel, None, address, at);
        let mode = if kernel.module.is_some() { CpuMode::Kernel } else { CpuMode::Hypervisor };
        (mode, kernel, range.start.max(other.start)..range.end.min(other.end))
    }

    /// Returns all recorded comms, in the order of their numbers.
    pub fn comms(&self) -> impl Iterator<Item = &str> {
        self.comms.iter().map(String::as_str)
    }

    pub fn comm(&self, comm: CommRef) -> std::borrow::Cow<'_, str> {
        match comm {
            CommRef::Known(id) => self.comms.get(id as usize).map_or("", String::as_str).into(),
            CommRef::Bare(tid) => format!(":{tid}").into(),
        }
    }

    /// Returns the state of thread `tid` at this moment; `pid` is the process given by the sample.
    pub fn thread(&self, pid: i32, tid: i32, at: Moment) -> Task {
        self.span(pid, tid, at).task
    }

    /// Like [`Timeline::thread`], with the period for which the state is valid.
    pub fn span(&self, pid: i32, tid: i32, at: Moment) -> Span {
        let Some((index, life)) = self.life(tid, at) else {
            let (thread, comm) = (ThreadRef::Bare(tid), CommRef::Bare(tid));
            let task = Task { thread, pid, comm, space: self.leader_space(pid, tid, at) };
            return Span { pid, tid, moments: at..at, named: Moment::START, task };
        };
        let task = Task {
            thread: ThreadRef::Known(index),
            pid: life.pid.unwrap_or(pid),
            comm: life.comm(at),
            space: life.space.or_else(|| self.leader_space(pid, tid, at)),
        };
        let names = &life.names;
        let named = names.first().map_or(Moment::START, |(when, _)| *when);
        if life.space.is_none() {
            return Span { pid, tid, moments: at..at, named, task };
        }
        let next = names.partition_point(|(when, _)| *when <= at);
        // The first comm also applies to the time before it.
        let since = next.checked_sub(1).filter(|last| *last > 0).and_then(|last| names.get(last));
        let renamed = names.get(next.max(1)).map_or(Moment::END, |(when, _)| *when);
        let replaced = self.lives.get(index as usize + 1).filter(|l| l.tid == tid).map_or(Moment::END, |l| l.start);
        let from = since.map_or(life.start, |(when, _)| life.start.max(*when));
        Span { pid, tid, moments: from..renamed.min(replaced), named, task }
    }

    /// Returns the tid and the last comm of a thread, as in perf's `pid` column.
    pub fn thread_label(&self, thread: ThreadRef) -> (i32, CommRef) {
        match thread {
            ThreadRef::Bare(tid) => (tid, CommRef::Bare(tid)),
            ThreadRef::Known(index) => {
                let life = self.lives.get(index as usize);
                life.map_or((-1, CommRef::Bare(-1)), |life| (life.tid, life.comm(Moment::END)))
            }
        }
    }

    /// Returns the last life of each tid whose process is recorded, sorted by tid.
    pub fn last_lives(&self) -> Vec<&Life> {
        let of_tids = self.lives.chunk_by(|a, b| a.tid == b.tid);
        of_tids.filter_map(|lives| lives.iter().rfind(|life| life.pid.is_some())).collect()
    }

    /// Returns the mappings of a process at the end, sorted by address; one that is partly covered by later mappings is
    /// split into its visible parts.
    pub fn shown(&self, space: SpaceId) -> Vec<VisiblePart> {
        shown(&self.spaces, space)
    }

    fn life(&self, tid: i32, at: Moment) -> Option<(u32, &Life)> {
        let &(first, count) = self.tids.get(&tid)?;
        let lives = self.lives.get(first as usize..(first + count) as usize)?;
        let index = if count == 1 { 0 } else { lives.partition_point(|l| l.start <= at).checked_sub(1)? };
        Some((first + u32::try_from(index).ok()?, lives.get(index)?))
    }

    /// Returns the leader's address space, for a thread that has none from its own records.
    fn leader_space(&self, pid: i32, tid: i32, at: Moment) -> Option<SpaceId> {
        if pid == tid {
            return None;
        }
        self.life(pid, at)?.1.space
    }
}

/// Number of threads whose states are kept at hand.
const RECENT: usize = 256;

/// States of recent threads, for as long as they do not change, each with a `T`; by the low bits of the tid.
#[derive(Debug)]
pub(crate) struct RecentSpans<T>(Vec<Option<(Span, T)>>);

impl<T: Copy> Default for RecentSpans<T> {
    fn default() -> Self {
        Self(vec![None; RECENT])
    }
}

impl<T: Copy> RecentSpans<T> {
    /// Returns the state of thread `tid` at this moment, and the `value` of its span.
    #[inline]
    pub(crate) fn get(
        &mut self,
        timeline: &Timeline,
        (pid, tid): (i32, i32),
        at: Moment,
        value: impl FnOnce(&Span) -> T,
    ) -> &(Span, T) {
        let slot = usize::try_from(tid.cast_unsigned()).unwrap_or(0) & (RECENT - 1);
        #[allow(clippy::indexing_slicing, reason = "a slot is below RECENT")]
        let known = &mut self.0[slot];
        if !known.as_ref().is_some_and(|(span, _)| span.covers(pid, tid, at)) {
            *known = None;
        }
        known.get_or_insert_with(|| {
            let span = timeline.span(pid, tid, at);
            let value = value(&span);
            (span, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Change;

    fn at(time: u64) -> Moment {
        Moment::timed(time, 0)
    }

    fn timeline() -> Timeline {
        let comm = |time, tid: i32, comm: &str| (at(time), Change::Comm { pid: tid, tid, comm: comm.into() });
        Timeline::build(vec![comm(10, 5, "a"), comm(20, 5, "b"), comm(30, 5 + 256, "c")])
    }

    #[test]
    fn recent_states_are_those_of_the_timeline() {
        let (timeline, mut spans) = (timeline(), RecentSpans::default());
        // The two threads share a place.
        for time in (0..40).chain((0..40).rev()) {
            for tid in [5, 5 + 256, 7] {
                let (span, value) = spans.get(&timeline, (tid, tid), at(time), |span| span.moments.start).clone();
                let fresh = timeline.span(tid, tid, at(time));
                assert_eq!((span.task, value), (fresh.task, fresh.moments.start), "{tid} at {time}");
                assert_eq!(span.comm_so_far(at(time)), fresh.comm_so_far(at(time)), "{tid} at {time}");
            }
        }
    }

    #[test]
    fn a_comm_so_far_does_not_apply_to_the_time_before_it() {
        let timeline = timeline();
        let first = timeline.span(5, 5, at(3));
        let so_far = |span: &Span, time| timeline.comm(span.comm_so_far(at(time))).into_owned();
        assert_eq!([so_far(&first, 9), so_far(&first, 10)], [":5", "a"]);
        assert_eq!(timeline.comm(first.task.comm), "a");
        assert_eq!(so_far(&timeline.span(5, 5, at(20)), 20), "b");
    }
}
