//! The finished timeline: threads over time, and queries.

use std::ops::Range;

use recrep_format::abi::CpuMode;
use rustc_hash::FxHashMap;

use super::space::{Space, find, shown};
use super::{Mapping, ModuleId, Moment, SpaceId, VisiblePart};

/// State of all threads and address spaces over time.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// First index and number of each tid's lives in `lives`.
    pub(super) tids: FxHashMap<i32, (u32, u32)>,
    pub(super) lives: Vec<Life>,
    /// All recorded comms, in the order of their numbers.
    pub comms: Vec<String>,
    pub(super) spaces: Vec<Space>,
    pub(super) kernel: Space,
}

/// An address resolved to a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Module that was mapped there; `None` if nothing was.
    pub module: Option<ModuleId>,
    /// Address by which the module's symbols are looked up; unchanged if nothing was mapped.
    pub address: u64,
    /// Size of the mapping in bytes.
    pub size: u64,
    /// `true` if it is a shared mapping of a file's data.
    pub is_shared: bool,
}

/// One use of a tid: the kernel reuses them. It lasts from one fork with that tid to the next. The
/// time before the first fork is a life too: the only one of a thread that existed before the
/// recording.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    /// Start; the end is the start of the next life of the same tid.
    pub start: Moment,
    pub tid: i32,
    /// Process; `None` if only samples have it.
    pub pid: Option<i32>,
    /// Parent thread; `None` if no fork was recorded.
    pub parent: Option<i32>,
    /// Address space; `None` if not recorded.
    pub space: Option<SpaceId>,
    /// Its comms, each with the moment from which on it has it.
    pub names: Vec<(Moment, u32)>,
}

impl Life {
    /// Returns the comm at this moment. The first one also applies to the time before it.
    pub(crate) fn comm(&self, at: Moment) -> CommRef {
        let last = self.names.partition_point(|(when, _)| *when <= at).saturating_sub(1);
        self.names.get(last).map_or(CommRef::Bare(self.tid), |&(_, id)| CommRef::Known(id))
    }
}

/// Reference to a thread that records describe, by its number, or only to its tid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TaskRef {
    /// Number of a comm, or of a life.
    Known(u32),
    /// Tid of a thread without a comm (shown as `:tid`), or that appears only in samples.
    Bare(i32),
}

/// A comm.
pub(crate) type CommRef = TaskRef;

/// A thread.
pub(crate) type ThreadRef = TaskRef;

impl TaskRef {
    /// Packs it into one number, for packed keys.
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        match self {
            Self::Known(number) => u64::from(number),
            Self::Bare(tid) => 1 << 63 | u64::from(tid.cast_unsigned()),
        }
    }

    /// Reverses [`TaskRef::pack`].
    pub(crate) fn unpack(packed: u64) -> Self {
        let low = u32::try_from(packed & u64::from(u32::MAX)).unwrap_or(0);
        if packed >> 63 == 1 { Self::Bare(low.cast_signed()) } else { Self::Known(low) }
    }
}

/// State of a thread at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub thread: ThreadRef,
    pub pid: i32,
    pub comm: CommRef,
    /// Address space; `None` if unknown.
    pub space: Option<SpaceId>,
}

impl Task {
    /// A task about which nothing is known.
    pub(crate) const UNKNOWN: Self =
        Self { thread: ThreadRef::Bare(-1), pid: -1, comm: CommRef::Bare(-1), space: None };
}

/// A period in which the state of a thread does not change, as seen by samples with one pid and
/// tid.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pid: i32,
    tid: i32,
    pub moments: Range<Moment>,
    /// Moment of its first comm.
    named: Moment,
    pub task: Task,
}

impl Span {
    /// Returns whether this span is valid for this thread at this moment.
    #[inline]
    pub(crate) fn covers(&self, pid: i32, tid: i32, at: Moment) -> bool {
        self.tid == tid && self.pid == pid && self.moments.contains(&at)
    }

    /// Returns the comm as known at this moment of the span. For listings in record order, in which
    /// a comm does not apply to the time before it.
    #[inline]
    pub(crate) fn comm_so_far(&self, at: Moment) -> CommRef {
        if at < self.named { CommRef::Bare(self.tid) } else { self.task.comm }
    }
}

impl Timeline {
    /// Looks up an address of a space in this CPU mode.
    #[inline]
    pub(crate) fn place(
        &self,
        mode: CpuMode,
        space: Option<SpaceId>,
        address: u64,
        at: Moment,
    ) -> Place {
        self.place_in(mode, space, address, at).0
    }

    /// Like [`Timeline::place`]; also returns a range around the address in which the same is
    /// mapped.
    #[inline]
    pub(crate) fn place_in(
        &self,
        mode: CpuMode,
        space: Option<SpaceId>,
        address: u64,
        at: Moment,
    ) -> (Place, Range<u64>) {
        let (mapped, range) = match (mode, space) {
            (CpuMode::Kernel, _) => {
                find(std::slice::from_ref(&self.kernel), SpaceId(0), address, at)
            }
            (CpuMode::User, Some(space)) => find(&self.spaces, space, address, at),
            _ => (None, 0..u64::MAX),
        };
        let Some((_, mapping)) = mapped else {
            return (Place { module: None, address, size: 0, is_shared: false }, range);
        };
        let Mapping { start, end, module, is_shared, .. } = *mapping;
        (Place { module, address: mapping.relative(address), size: end - start, is_shared }, range)
    }

    /// Looks up an address of unknown CPU mode, such as the end of a branch: first in the process,
    /// then in the kernel. If nothing was mapped, the returned mode is the hypervisor's, as in
    /// perf. Also returns a range as [`Timeline::place_in`].
    pub(crate) fn place_in_any_mode(
        &self,
        space: Option<SpaceId>,
        address: u64,
        at: Moment,
    ) -> (CpuMode, Place, Range<u64>) {
        let (user, range) = self.place_in(CpuMode::User, space, address, at);
        if user.module.is_some() {
            return (CpuMode::User, user, range);
        }
        let (kernel, other) = self.place_in(CpuMode::Kernel, None, address, at);
        let mode = if kernel.module.is_some() { CpuMode::Kernel } else { CpuMode::Hypervisor };
        (mode, kernel, range.start.max(other.start)..range.end.min(other.end))
    }

    pub(crate) fn comm(&self, comm: CommRef) -> std::borrow::Cow<'_, str> {
        match comm {
            CommRef::Known(id) => self.comms.get(id as usize).map_or("", String::as_str).into(),
            CommRef::Bare(tid) => format!(":{tid}").into(),
        }
    }

    /// Returns the state of thread `tid` at this moment, with the period for which it is valid;
    /// `pid` is the process given by the sample.
    pub(crate) fn span(&self, pid: i32, tid: i32, at: Moment) -> Span {
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
        let replaced = self
            .lives
            .get(index as usize + 1)
            .filter(|l| l.tid == tid)
            .map_or(Moment::END, |l| l.start);
        let from = since.map_or(life.start, |(when, _)| life.start.max(*when));
        Span { pid, tid, moments: from..renamed.min(replaced), named, task }
    }

    /// Returns the last comm of a process: that of its first thread.
    pub(crate) fn process_comm(&self, pid: i32) -> CommRef {
        self.life(pid, Moment::END).map_or(CommRef::Bare(pid), |(_, life)| life.comm(Moment::END))
    }

    /// Returns the tid and the last comm of a thread, as in perf's `pid` column.
    pub(crate) fn thread_label(&self, thread: ThreadRef) -> (i32, CommRef) {
        match thread {
            ThreadRef::Bare(tid) => (tid, CommRef::Bare(tid)),
            ThreadRef::Known(index) => {
                let life = self.lives.get(index as usize);
                life.map_or((-1, CommRef::Bare(-1)), |life| (life.tid, life.comm(Moment::END)))
            }
        }
    }

    /// Returns the last life of each tid whose process is recorded, sorted by tid.
    pub(crate) fn last_lives(&self) -> Vec<&Life> {
        let of_tids = self.lives.chunk_by(|a, b| a.tid == b.tid);
        of_tids.filter_map(|lives| lives.iter().rfind(|life| life.pid.is_some())).collect()
    }

    /// Returns the mappings of a process at the end, sorted by address; one that is partly covered
    /// by later mappings is split into its visible parts.
    pub(crate) fn shown(&self, space: SpaceId) -> Vec<VisiblePart> {
        shown(&self.spaces, space)
    }

    /// Returns whether a space got mappings between these moments, all of them below 4 GiB, as those
    /// of a 32-bit program are. What it took over by a fork counts if it began since then.
    pub(crate) fn is_of_32_bits(&self, space: SpaceId, moments: &Range<Moment>) -> bool {
        const END: u64 = 1 << 32;
        let (mut found, mut space, mut until) = (false, Some(space), moments.end);
        while let Some(of) = space.and_then(|SpaceId(at)| self.spaces.get(at as usize)) {
            for (at, mapping) in &of.mappings {
                if (moments.start..until).contains(at) {
                    found = true;
                    if mapping.end > END {
                        return false;
                    }
                }
            }
            (space, until) = match of.parent {
                Some((parent, at)) if at > moments.start => (Some(parent), until.min(at)),
                _ => (None, until),
            };
        }
        found
    }

    fn life(&self, tid: i32, at: Moment) -> Option<(u32, &Life)> {
        let &(first, count) = self.tids.get(&tid)?;
        let lives = self.lives.get(first as usize..(first + count) as usize)?;
        let index =
            if count == 1 { 0 } else { lives.partition_point(|l| l.start <= at).checked_sub(1)? };
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

/// States of recent threads, for as long as they do not change, each with a `T`; by the low bits of
/// the tid.
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
        pid: i32,
        tid: i32,
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
