//! Threads over time.
//!
//! A thread number is used again and again; each use is a [`Life`], from one fork of the number to the next. The time
//! before the first fork is a life too, and is all that a thread has which was there before the recording.

use super::moment::Moment;
use super::space::SpaceId;

/// One use of a thread number.
#[derive(Clone, Debug)]
pub(super) struct Life {
    /// From when on; until the next life of the same number.
    pub(super) start: Moment,
    pub(super) tid: i32,
    /// The process; `None` where no record says (only samples do).
    pub(super) pid: Option<i32>,
    /// The thread that it comes from; `None` where no fork says.
    pub(super) parent: Option<i32>,
    /// Its memory; `None` where no record says.
    pub(super) space: Option<SpaceId>,
    /// Its names in `Timeline::names`.
    pub(super) names: (u32, u32),
}

/// A comm: an interned name, or what a thread without one is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommRef {
    /// One that a record gave.
    Named(u32),
    /// `:tid`
    Unnamed(i32),
}

impl CommRef {
    /// As one number, for packed keys.
    #[must_use]
    #[inline]
    pub fn pack(self) -> u64 {
        match self {
            Self::Named(id) => u64::from(id),
            Self::Unnamed(tid) => 1 << 63 | u64::from(tid.cast_unsigned()),
        }
    }

    /// The reverse of [`CommRef::pack`].
    #[must_use]
    pub fn unpack(packed: u64) -> Self {
        let low = u32::try_from(packed & u64::from(u32::MAX)).unwrap_or(0);
        if packed >> 63 == 1 { Self::Unnamed(low.cast_signed()) } else { Self::Named(low) }
    }
}

/// A thread: a life that is known from records, or only a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadRef {
    /// One that the side-band knows.
    Known(u32),
    /// One that only samples name.
    Bare(i32),
}

impl ThreadRef {
    /// As one number, for packed keys.
    #[must_use]
    #[inline]
    pub fn pack(self) -> u64 {
        match self {
            Self::Known(life) => u64::from(life),
            Self::Bare(tid) => 1 << 63 | u64::from(tid.cast_unsigned()),
        }
    }

    /// The reverse of [`ThreadRef::pack`].
    #[must_use]
    pub fn unpack(packed: u64) -> Self {
        let low = u32::try_from(packed & u64::from(u32::MAX)).unwrap_or(0);
        if packed >> 63 == 1 { Self::Bare(low.cast_signed()) } else { Self::Known(low) }
    }
}

/// What a thread was at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Which thread.
    pub thread: ThreadRef,
    /// The process it belongs to.
    pub pid: i32,
    /// Its name.
    pub comm: CommRef,
    /// Its memory; `None` where nothing is known of it.
    pub space: Option<SpaceId>,
}

/// A stretch of time in which nothing about a thread changes, as one process's samples see it.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) from: Moment,
    pub(super) until: Moment,
    /// What the thread is in it.
    pub task: Task,
}

impl Span {
    /// Whether it answers for this thread at this moment.
    #[must_use]
    #[inline]
    pub fn covers(&self, pid: i32, tid: i32, at: Moment) -> bool {
        self.tid == tid && self.pid == pid && self.from <= at && at < self.until
    }
}
