//! Threads over time.
//!
//! A thread number is used again and again; each use is a [`Life`], from one fork of the number to the next. The time
//! before the first fork is a life too, and is all that a thread has which was there before the recording.

use super::space::SpaceId;
use super::{Moment, Timeline};

/// One use of a thread number.
#[derive(Clone, Debug)]
pub(super) struct Life {
    /// From when on; until the next life of the same number.
    pub(super) start: Moment,
    pub(super) tid: i32,
    /// The process; `None` where no record says (only samples do).
    pub(super) pid: Option<i32>,
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
    pid: i32,
    tid: i32,
    from: Moment,
    until: Moment,
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

impl Timeline {
    /// What thread `tid` was at this moment; `pid` is what the sample says of its process.
    #[must_use]
    pub fn thread(&self, pid: i32, tid: i32, at: Moment) -> Task {
        self.span(pid, tid, at).task
    }

    /// The same, and for how long.
    #[must_use]
    pub fn span(&self, pid: i32, tid: i32, at: Moment) -> Span {
        let Some((index, life)) = self.life(tid, at) else {
            let (thread, comm) = (ThreadRef::Bare(tid), CommRef::Unnamed(tid));
            let task = Task { thread, pid, comm, space: self.leaders_space(pid, tid, at) };
            return Span { pid, tid, from: at, until: at, task };
        };
        let task = Task {
            thread: ThreadRef::Known(index),
            pid: life.pid.unwrap_or(pid),
            comm: self.name(life, at),
            space: life.space.or_else(|| self.leaders_space(pid, tid, at)),
        };
        if life.space.is_none() {
            return Span { pid, tid, from: at, until: at, task };
        }
        let names = self.names_of(life);
        let next = names.partition_point(|(when, _)| *when <= at);
        // The first name counts for the time before it too.
        let since = next.checked_sub(1).filter(|last| *last > 0).and_then(|last| names.get(last));
        let renamed = names.get(next.max(1)).map_or(Moment::END, |(when, _)| *when);
        let replaced = self.lives.get(index as usize + 1).filter(|l| l.tid == tid).map_or(Moment::END, |l| l.start);
        let from = since.map_or(life.start, |(when, _)| life.start.max(*when));
        Span { pid, tid, from, until: renamed.min(replaced), task }
    }

    /// The number and last name of a thread, as perf's `pid` column has them.
    #[must_use]
    pub fn thread_label(&self, thread: ThreadRef) -> (i32, CommRef) {
        match thread {
            ThreadRef::Bare(tid) => (tid, CommRef::Unnamed(tid)),
            ThreadRef::Known(index) => {
                let Some(life) = self.lives.get(index as usize) else { return (-1, CommRef::Unnamed(-1)) };
                let last = self.names_of(life).last().map_or(CommRef::Unnamed(life.tid), |&(_, id)| CommRef::Named(id));
                (life.tid, last)
            }
        }
    }

    /// What thread `tid` had been called up to this moment: where a listing goes record by record, a name does
    /// not count before it was given.
    #[must_use]
    pub fn comm_so_far(&self, tid: i32, at: Moment) -> CommRef {
        let named = self.life(tid, at).and_then(|(_, life)| {
            let names = self.names_of(life);
            names.get(names.partition_point(|(when, _)| *when <= at).checked_sub(1)?)
        });
        named.map_or(CommRef::Unnamed(tid), |&(_, id)| CommRef::Named(id))
    }

    fn life(&self, tid: i32, at: Moment) -> Option<(u32, &Life)> {
        let &(first, count) = self.tids.get(&tid)?;
        let lives = self.lives.get(first as usize..(first + count) as usize)?;
        let index = if count == 1 { 0 } else { lives.partition_point(|l| l.start <= at).checked_sub(1)? };
        Some((first + u32::try_from(index).ok()?, lives.get(index)?))
    }

    fn names_of(&self, life: &Life) -> &[(Moment, u32)] {
        let (first, count) = life.names;
        self.names.get(first as usize..(first + count) as usize).unwrap_or_default()
    }

    fn name(&self, life: &Life, at: Moment) -> CommRef {
        let names = self.names_of(life);
        let last = names.partition_point(|(when, _)| *when <= at).saturating_sub(1);
        names.get(last).map_or(CommRef::Unnamed(life.tid), |&(_, id)| CommRef::Named(id))
    }

    /// The memory of a thread that no record places: its leader's.
    fn leaders_space(&self, pid: i32, tid: i32, at: Moment) -> Option<SpaceId> {
        if pid == tid {
            return None;
        }
        self.life(pid, at)?.1.space
    }
}
