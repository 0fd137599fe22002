//! The recording run again with shorter running times: what a faster function would gain.
//!
//! ```text
//!   recorded   A ═════off···················on══       B ═══════════════wakes A ══
//!   replayed   A ═════off············on══              B ═══════════wakes A ══
//! ```
//!
//! The stretches of all threads are gone through in the order of their ends. A wait ends as long after
//! its wake as it did, or at once if the wake is before it; a CPU is got when its owner has left it;
//! waits that no recorded thread ended, or one of the kernel's, and preemption keep their lengths. A
//! thread that came last to a barrier, and now comes earlier, waits there for the others. Where the
//! scheduler would put threads, and spinning, are not predicted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Barrier, PathSpan, WaitingThread, Waits};
use crate::timeline::off_cpu::{Run, Stretch, StretchKind};

/// Parts of the running time of threads that are saved.
pub(crate) trait Savings {
    /// Returns the part, from 0 to 1, that is saved of the running time that a CPU sample stands
    /// for; the thread and the sample are given by their indices, of a thread without samples none.
    fn part(&self, thread: u32, run: Option<usize>) -> f64;

    /// Returns whether anything of a thread may be saved.
    fn touches(&self, thread: u32) -> bool;
}

/// State of a thread in the replay.
#[derive(Clone, Debug, Default)]
struct Replayed {
    /// New times of the ends of its stretches, as far as they are replayed.
    ends: Vec<u64>,
    /// Waits at barriers to which it came last: time, and length.
    holds: Vec<(u64, u64)>,
    is_touched: bool,
}

struct Replay<'w, S> {
    waits: &'w Waits,
    savings: &'w S,
    span: PathSpan,
    threads: Vec<Replayed>,
}

impl Waits {
    /// Returns the time at which a span would end; these barriers opened, in order of time.
    pub(crate) fn replay(
        &self,
        span: PathSpan,
        savings: &impl Savings,
        barriers: &[Barrier],
    ) -> u64 {
        let threads = (0..self.threads.len()).map(|index| Replayed {
            ends: Vec::new(),
            holds: Vec::new(),
            is_touched: u32::try_from(index).is_ok_and(|index| savings.touches(index)),
        });
        let mut replay = Replay { waits: self, savings, span, threads: threads.collect() };
        let mut ends = BinaryHeap::with_capacity(self.threads.len());
        for (index, thread) in (0_u32..).zip(&self.threads) {
            ends.extend(thread.stretches.first().map(|first| Reverse((first.on, index))));
        }
        let mut barriers = barriers.iter().filter(|barrier| barrier.time <= span.to).peekable();
        while let Some(mut next) = ends.peek_mut() {
            let Reverse((on, index)) = *next;
            while let Some(barrier) = barriers.next_if(|barrier| barrier.time < on) {
                replay.open(barrier);
            }
            if on > span.to {
                break;
            }
            match replay.end_stretch(index) {
                Some(later) => *next = Reverse((later, index)),
                None => drop(std::collections::binary_heap::PeekMut::pop(next)),
            }
        }
        for barrier in barriers {
            replay.open(barrier);
        }
        replay.time_of(span.thread, span.to)
    }
}

impl<S: Savings> Replay<'_, S> {
    /// Replays the next stretch of a thread, and returns the end of the one after it.
    fn end_stretch(&mut self, index: u32) -> Option<u64> {
        let thread = self.waits.thread(index)?;
        let place = self.threads.get(index as usize)?.ends.len();
        let stretch = thread.stretches.get(place)?;
        let end = self.new_end(index, thread, stretch, place);
        self.threads.get_mut(index as usize)?.ends.push(end);
        thread.stretches.get(place + 1).map(|next| next.on)
    }

    /// Opens a barrier when all have come: until then the thread waits that came last in the
    /// recording.
    fn open(&mut self, barrier: &Barrier) {
        let Barrier { time, waker, waiters } = barrier;
        let come = waiters.iter().map(|(thread, at)| self.time_of(*thread, *at));
        let later = come.max().unwrap_or(0).saturating_sub(self.time_of(*waker, *time));
        if let Some(state) = self.threads.get_mut(*waker as usize).filter(|_| later > 0) {
            state.holds.push((*time, later));
        }
    }

    fn new_end(&self, index: u32, thread: &WaitingThread, stretch: &Stretch, place: usize) -> u64 {
        let (off, on) = (stretch.off, stretch.on);
        let woken = self.new_wake(index, thread, stretch);
        // A thread that is new stops nothing.
        let stopped = match stretch.kind {
            StretchKind::Starting => woken.unwrap_or(off),
            _ => self.time_of_run(index, thread, place, off),
        };
        let since = thread.runnable_since(stretch).unwrap_or(on).max(off);
        if let Some(handover) = thread.handover(place) {
            let left = self.time_of(handover.owner, handover.time);
            let could_run = match stretch.kind {
                StretchKind::Waiting => stopped.max(woken.unwrap_or(stopped + (since - off))),
                _ => stopped,
            };
            return could_run.max(left + (on - handover.time));
        }
        match (stretch.kind, woken) {
            (StretchKind::Waiting, Some(woken)) if since <= off => stopped.max(woken) + (on - off),
            // It is woken before it waits.
            (StretchKind::Waiting, Some(woken)) if woken <= stopped => stopped,
            (StretchKind::Waiting, Some(woken)) => woken + (on - since),
            _ => stopped + (on - off),
        }
    }

    /// Returns the new time of the wake that a recorded thread ended a stretch with.
    fn new_wake(&self, index: u32, thread: &WaitingThread, stretch: &Stretch) -> Option<u64> {
        let serves =
            |waker: &u32| self.waits.thread(*waker).is_some_and(|waker| thread.is_served_by(waker));
        let waker = thread.waking_thread(stretch, index).filter(|waker| !serves(waker));
        match (stretch.kind, waker, thread.wake(stretch)) {
            (StretchKind::Starting, None, _) => {
                thread.parent().map(|parent| self.time_of(parent, stretch.off))
            }
            (_, Some(waker), Some(wake)) => Some(self.time_of(waker, wake.time)),
            _ => None,
        }
    }

    /// Returns the new time of a moment of a thread.
    fn time_of(&self, index: u32, time: u64) -> u64 {
        let (Some(thread), Some(state)) =
            (self.waits.thread(index), self.threads.get(index as usize))
        else {
            return time;
        };
        // The moment is mostly after all stretches that are replayed, or a little before.
        let mut place = state.ends.len();
        while let Some(before) = place.checked_sub(1)
            && thread.stretches.get(before).is_some_and(|stretch| stretch.on > time)
        {
            place = before;
        }
        match thread.stretches.get(place).filter(|stretch| stretch.off < time) {
            // It does not run: the rest keeps its length.
            Some(stretch) => {
                self.time_of_run(index, thread, place, stretch.off) + (time - stretch.off)
            }
            None => self.time_of_run(index, thread, place, time),
        }
    }

    /// Returns the new time of a moment at which a thread runs, after so many stretches.
    fn time_of_run(&self, index: u32, thread: &WaitingThread, place: usize, time: u64) -> u64 {
        let state = self.threads.get(index as usize);
        let before = place.checked_sub(1);
        let recorded = before.and_then(|at| thread.stretches.get(at)).map(|stretch| stretch.on);
        let new = before.and_then(|at| state?.ends.get(at)).copied();
        let since = recorded.unwrap_or(0);
        let holds = state.iter().flat_map(|state| state.holds.iter().rev());
        let held = holds.take_while(|(at, _)| *at >= since).filter(|(at, _)| *at <= time);
        let held: u64 = held.map(|(_, length)| length).sum();
        let (Some(recorded), Some(new)) = (recorded, new) else {
            let saved = self.saved(index, thread, thread.known, time);
            return time.saturating_sub(saved) + held;
        };
        let length = time.saturating_sub(recorded);
        (new + length + held).saturating_sub(self.saved(index, thread, recorded, time).min(length))
    }

    /// Returns what is saved between two moments of a thread between which it runs.
    fn saved(&self, index: u32, thread: &WaitingThread, from: u64, to: u64) -> u64 {
        let is_touched = self.threads.get(index as usize).is_some_and(|state| state.is_touched);
        let (from, to) = (from.max(self.span.from), to.min(self.span.to));
        if !is_touched || from >= to {
            return 0;
        }
        let runs: &[Run] = &thread.runs;
        let Some(last) = runs.len().checked_sub(1) else {
            return part_of(to - from, self.savings.part(index, None));
        };
        let (mut since, mut saved) = (from, 0);
        let mut place = runs.partition_point(|run| run.time <= from).min(last);
        while since < to {
            let run = runs.get(place).filter(|_| place < last);
            let until = run.map_or(to, |run| run.time.min(to));
            saved += part_of(until.saturating_sub(since), self.savings.part(index, Some(place)));
            since = until.max(since);
            place = (place + 1).min(last);
        }
        saved
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a time, which is no longer than that"
)]
fn part_of(time: u64, part: f64) -> u64 {
    (time as f64 * part).round() as u64
}
