//! Barriers, at which threads wait for the last one of them.
//!
//! ```text
//!   recorded   A ════arrives┐····wait····┌════      replayed   A ════arrives┐ wakes B ════
//!              B ════════════════arrives─┘ wakes A              B ═arrives┐··wait··┌════
//! ```
//!
//! The thread that comes last wakes the others, and does not wait. When the recording is run again
//! with other running times, another thread may come last.

use super::{WaitingThread, Waits};
use crate::timeline::off_cpu::{Stretch, StretchKind, Wake};

/// An opening of a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Barrier {
    /// Time of the first wake.
    pub(super) time: u64,
    /// Index of the thread that came last.
    pub(super) waker: u32,
    /// Indices of the threads that waited, each with the time at which it had come.
    pub(super) waiters: Vec<(u32, u64)>,
}

/// A wait at a barrier, by its waker and the time of the wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BarrierWait {
    waker: u32,
    time: u64,
    waiter: u32,
    off: u64,
}

impl Waits {
    /// Returns the openings of barriers, in order of time; `is_at_barrier` says of a wait of a thread
    /// and its wake that they are at one.
    pub(crate) fn barriers(
        &self,
        is_at_barrier: impl Fn(&WaitingThread, &Stretch, &Wake) -> bool,
    ) -> Vec<Barrier> {
        let mut waits: Vec<BarrierWait> = Vec::new();
        for (waiter, thread) in (0..).zip(&self.threads) {
            for stretch in &thread.stretches {
                if stretch.kind == StretchKind::Waiting
                    && let Some(wake) = thread.wake(stretch)
                    && is_at_barrier(thread, stretch, wake)
                    && let Some(waker) = thread.waking_thread(stretch, waiter)
                {
                    waits.push(BarrierWait { waker, time: wake.time, waiter, off: stretch.off });
                }
            }
        }
        waits.sort_unstable();
        let mut barriers: Vec<Barrier> = Vec::new();
        for BarrierWait { waker, time, waiter, off } in waits {
            let open = barriers.last_mut().filter(|last| self.is_same_opening(last, waker, time));
            match open.filter(|last| last.waiters.iter().all(|(thread, _)| *thread != waiter)) {
                Some(open) => open.waiters.push((waiter, off.min(open.time))),
                None => {
                    barriers.push(Barrier { time, waker, waiters: vec![(waiter, off.min(time))] });
                }
            }
        }
        barriers.sort_by_key(|barrier| barrier.time);
        barriers
    }

    /// Returns whether a waker went on waking until this time since it opened a barrier.
    fn is_same_opening(&self, barrier: &Barrier, waker: u32, time: u64) -> bool {
        let Some(thread) = self.thread(waker).filter(|_| barrier.waker == waker) else {
            return false;
        };
        let stopped = |until| thread.stretches.partition_point(|stretch| stretch.off < until);
        stopped(barrier.time) == stopped(time)
    }
}
