//! Waits of threads and who ended them; the critical path through them.
//!
//! ```text
//!   A ──running──┤off ······waiting·············│·runnable·│on ──running──
//!                                               │
//!   B ──running───────────────── sched_waking A ┘ ──running──
//! ```
//!
//! A thread's life is a list of stretches between which it runs. The wake of a stretch is the first
//! one of the thread from its switch sample on until it runs; else the last one since it ran before,
//! which found it going to sleep and counts from the switch on. A thread that is new is runnable
//! from `sched_wakeup_new` on, and its parent woke it. Nothing here reads files: [`Waits::of`] takes
//! the lives of all threads and their wakes ([`ThreadFacts`](super::off_cpu::ThreadFacts)).

mod barriers;
mod build;
mod owners;
mod path;
mod replay;
mod shares;
mod spans;
#[cfg(test)]
mod tests;

pub(crate) use barriers::Barrier;
pub(crate) use path::{CriticalPiece, PieceKind};
pub(crate) use replay::Savings;
pub(crate) use shares::PathShares;
pub(crate) use spans::PathSpan;

use rustc_hash::{FxHashMap, FxHashSet};

use super::off_cpu::{NONE, RecordedProgram, Run, Stretch, StretchKind, Wake, Waker};

/// A thread in one life: a number that several had is that of several threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingThread {
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    /// Time from which on it is known what it does.
    pub(crate) known: u64,
    pub(crate) exit: Option<u64>,
    /// Index of the thread that forked it.
    parent: u32,
    /// CPU on which it ran before the first stretch.
    first_cpu: u16,
    /// `true` if it is the kernel's.
    is_kernel: bool,
    /// In order of time, without overlaps.
    pub(crate) stretches: Vec<Stretch>,
    /// In order of time, but for inferred ones, which are last.
    pub(crate) wakes: Vec<Wake>,
    /// CPU samples.
    pub(crate) runs: Vec<Run>,
    /// Stretches that ended when another thread left the CPU, by index.
    late: Vec<(u32, Handover)>,
}

/// A CPU that one thread leaves and another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    /// Time at which the first one left.
    pub(crate) time: u64,
    /// Index of the thread that left.
    pub(crate) owner: u32,
}

impl WaitingThread {
    /// Returns the wake of a stretch.
    pub(crate) fn wake(&self, stretch: &Stretch) -> Option<&Wake> {
        self.wakes.get(stretch.wake as usize)
    }

    /// Returns the thread that forked it.
    pub(crate) fn parent(&self) -> Option<u32> {
        (self.parent != NONE).then_some(self.parent)
    }

    /// Returns the time from which on the thread could have run, if a wake or its kind says it.
    pub(crate) fn runnable_since(&self, stretch: &Stretch) -> Option<u64> {
        match stretch.kind {
            StretchKind::Waiting => self.wake(stretch).map(|wake| wake.time.max(stretch.off)),
            StretchKind::Preempted | StretchKind::Starting => Some(stretch.off),
            StretchKind::Unknown => None,
        }
    }

    /// Returns the recorded thread that woke this one from a stretch, if it was no interrupt.
    pub(crate) fn waking_thread(&self, stretch: &Stretch, own: u32) -> Option<u32> {
        let wake = self.wake(stretch).filter(|wake| !wake.is(Wake::INTERRUPT))?;
        match wake.waker() {
            Waker::Thread(waker) if waker != own => Some(waker),
            _ => None,
        }
    }

    /// Returns whether one of the kernel's threads serves this one when it wakes it.
    fn is_served_by(&self, waker: &Self) -> bool {
        waker.is_kernel && !self.is_kernel
    }

    /// Returns who had the CPU that a stretch ended on.
    pub(crate) fn handover(&self, stretch: usize) -> Option<Handover> {
        let wanted = u32::try_from(stretch).ok()?;
        let at = self.late.binary_search_by_key(&wanted, |(stretch, _)| *stretch).ok()?;
        self.late.get(at).map(|(_, handover)| *handover)
    }
}

/// Threads of a file with their waits.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// By number and time.
    pub(crate) threads: Vec<WaitingThread>,
    /// Indices of the threads with a number.
    by_tid: FxHashMap<i32, std::ops::Range<u32>>,
    /// Times of the first and the last record.
    pub(crate) between: (u64, u64),
    /// The program that the recorder ran.
    pub(crate) program: Option<RecordedProgram>,
    /// `true` if any wake was recorded.
    pub(crate) has_wakes: bool,
    /// Number of wakes whose target could not be found out, in a namespace of processes.
    pub(crate) unknown_targets: u64,
}

impl Waits {
    /// Returns the index of the thread that has a number at a time; before its first life, that.
    pub(crate) fn index(&self, tid: i32, time: u64) -> Option<u32> {
        let range = self.by_tid.get(&tid)?;
        let lives = self.threads.get(range.start as usize..range.end as usize)?;
        let before = lives.partition_point(|life| life.known <= time);
        Some(range.start + u32::try_from(before.saturating_sub(1)).ok()?)
    }

    /// Says of the wakes with samples at these offsets that no interrupt was their waker.
    pub(crate) fn clear_interrupts(&mut self, offsets: &FxHashSet<u64>) {
        for wake in self.threads.iter_mut().flat_map(|thread| &mut thread.wakes) {
            let is_own = wake.sample().is_some_and(|offset| offsets.contains(&offset));
            if is_own && wake.is(Wake::INTERRUPT) {
                wake.clear_interrupt();
            }
        }
    }

    pub(crate) fn thread(&self, index: u32) -> Option<&WaitingThread> {
        self.threads.get(index as usize)
    }
}
