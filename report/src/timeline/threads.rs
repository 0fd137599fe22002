//! Threads over time.
//!
//! The kernel reuses tids; each use is a [`Life`], from one fork with that tid to the next. The time before the first
//! fork is a life too: the only one of a thread that existed before the recording.

use std::ops::Range;

use super::{Moment, SpaceId};

/// One use of a tid.
#[derive(Clone, Debug)]
pub struct Life {
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
    pub fn comm(&self, at: Moment) -> CommRef {
        let last = self.names.partition_point(|(when, _)| *when <= at).saturating_sub(1);
        self.names.get(last).map_or(CommRef::Bare(self.tid), |&(_, id)| CommRef::Known(id))
    }
}

/// Reference to what records tell of a thread, by its number, or only the tid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskRef {
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
    pub fn pack(self) -> u64 {
        match self {
            Self::Known(number) => u64::from(number),
            Self::Bare(tid) => 1 << 63 | u64::from(tid.cast_unsigned()),
        }
    }

    /// Reverses [`TaskRef::pack`].
    pub fn unpack(packed: u64) -> Self {
        let low = u32::try_from(packed & u64::from(u32::MAX)).unwrap_or(0);
        if packed >> 63 == 1 { Self::Bare(low.cast_signed()) } else { Self::Known(low) }
    }
}

/// State of a thread at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub thread: ThreadRef,
    pub pid: i32,
    pub comm: CommRef,
    /// Address space; `None` if unknown.
    pub space: Option<SpaceId>,
}

impl Task {
    /// A task of which nothing is known.
    pub const UNKNOWN: Self = Self { thread: ThreadRef::Bare(-1), pid: -1, comm: CommRef::Bare(-1), space: None };
}

/// A period in which the state of a thread does not change, as seen by samples with one pid and tid.
#[derive(Clone, Debug)]
pub struct Span {
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub moments: Range<Moment>,
    /// Moment of its first comm.
    pub(super) named: Moment,
    pub task: Task,
}

impl Span {
    /// Returns whether this span is valid for this thread at this moment.
    #[inline]
    pub fn covers(&self, pid: i32, tid: i32, at: Moment) -> bool {
        self.tid == tid && self.pid == pid && self.moments.contains(&at)
    }

    /// Returns the comm as known at this moment of the span. For listings in record order, in which a comm does not
    /// apply to the time before it.
    #[inline]
    pub fn comm_so_far(&self, at: Moment) -> CommRef {
        if at < self.named { CommRef::Bare(self.tid) } else { self.task.comm }
    }
}
