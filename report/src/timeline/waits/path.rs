//! The critical path: from the end of a span back along those who were waited for.
//!
//! ```text
//!   A  ══running══╗wait····················╔══running══ end
//!                 ┊                runnable║
//!   B  ──────────────wait····╔══running════╝ wakes A
//!                            ║
//!   C  ═══════running════════╝ wakes B
//! ```
//!
//! Each step covers the time down to the next one, so the pieces add up to the span. A thread that
//! waits for a CPU waits for the thread that has it. The path does not return to a thread when its
//! wait began: what it did meanwhile could have taken longer without harm. There are two exceptions. A thread of the kernel
//! serves: what that did before somebody waited for it was for others, so there the path returns to
//! the thread that waited, where its wait began. And a thread that got a CPU while another one already waited
//! for it delays that one by what it runs there, whenever that is: why it ran just then does not matter, so
//! the path returns where it got the CPU.
//!
//! A wait that a clock or a device ended is on the path if somebody waited for what came of it. Where that
//! one began to wait only after the clock, and for a part of the time only, its own way there was nearly as
//! long, and has no such wait: the path returns to it, where its wait began. A watcher that stops others once
//! a second is not why they took that second.

use std::collections::VecDeque;

use super::{PathSpan, WaitingThread, Waits};
use crate::timeline::off_cpu::{NONE, Stretch, StretchKind};

/// What a thread does in a piece of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PieceKind {
    Running,
    /// It could run, and has no CPU yet.
    Runnable,
    /// The kernel took its CPU away, and no recorded thread had it.
    Preempted,
    /// It waits for something that no recorded thread ended.
    Waiting,
    /// Nothing is known: records are lost, or it was not recorded then.
    Unknown,
}

/// A piece of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CriticalPiece {
    /// Index of the thread.
    pub(crate) thread: u32,
    pub(crate) kind: PieceKind,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Index of the stretch of the thread in which it is, if it is in one.
    stretch: u32,
    /// Of a running piece: index of the thread that it wakes at its end, and of that one's stretch.
    wakes: (u32, u32),
}

impl CriticalPiece {
    /// Returns its length in nanoseconds.
    pub(crate) const fn length(&self) -> u64 {
        self.to - self.from
    }

    /// Returns the part of it between two moments, including both ends.
    pub(crate) fn clip(&self, from: u64, to: u64) -> Option<Self> {
        let (from, to) = (self.from.max(from), self.to.min(to));
        (from < to).then_some(Self { from, to, ..*self })
    }

    /// Returns the index of the stretch of the thread in which it is.
    pub(crate) fn stretch(&self) -> Option<usize> {
        (self.stretch != NONE).then_some(self.stretch as usize)
    }

    /// Returns the index of the thread that is woken at its end, and of its stretch.
    pub(crate) fn wakes(&self) -> Option<(u32, usize)> {
        let (thread, stretch) = self.wakes;
        (thread != NONE).then_some((thread, stretch as usize))
    }
}

/// A wait for a thread or its CPU that the path went through.
#[derive(Clone, Copy, Debug)]
struct PassedWait {
    thread: u32,
    /// Its start.
    since: u64,
    length: u64,
    /// Number of pieces behind it.
    pieces: usize,
}

/// State of the walk.
struct PathWalk<'w> {
    waits: &'w Waits,
    from: u64,
    /// Number of stretches of each thread that begin before the time that is reached.
    cursors: Vec<usize>,
    /// Pieces, the last one first.
    pieces: Vec<CriticalPiece>,
    at: u64,
    thread: u32,
    /// Thread and stretch that the current thread woke at this time.
    woke: (u32, u32),
    /// Number of changes of thread at this time.
    jumps: usize,
    /// On a thread of the kernel: the thread that waited for it, and the start of that wait.
    served: Option<(u32, u64)>,
    /// On a thread that had a CPU: the thread that waited for that, and since when.
    kept_waiting: Option<(u32, u64)>,
    /// The last waits that it went through, the latest time first.
    passed: VecDeque<PassedWait>,
}

impl Waits {
    /// Returns the pieces of the critical path through a span, in order of time.
    pub(crate) fn path(&self, span: PathSpan) -> Vec<CriticalPiece> {
        let mut walk = PathWalk {
            waits: self,
            from: span.from,
            cursors: self.threads.iter().map(|thread| thread.stretches.len()).collect(),
            pieces: Vec::new(),
            at: span.to,
            thread: span.thread,
            woke: (NONE, NONE),
            jumps: 0,
            served: None,
            kept_waiting: None,
            passed: VecDeque::new(),
        };
        while walk.at > walk.from {
            walk.step();
        }
        walk.pieces.reverse();
        walk.pieces
    }
}

impl<'w> PathWalk<'w> {
    fn step(&mut self) {
        if let Some((thread, since)) = self.served.take_if(|(_, since)| self.at <= *since) {
            return self.jump(since, thread);
        }
        let Some(thread) = self.waits.thread(self.thread) else {
            return self.piece(self.from, PieceKind::Unknown, NONE);
        };
        let cursor = self.cursor(thread);
        let before = cursor.checked_sub(1);
        let Some((place, stretch)) = before.and_then(|at| Some((at, thread.stretches.get(at)?)))
        else {
            return self.begin(thread);
        };
        if stretch.on < self.at {
            return self.piece(stretch.on, PieceKind::Running, NONE);
        }
        if self.jumps > self.cursors.len() {
            return self.piece(stretch.off, PieceKind::Unknown, NONE);
        }
        self.off(thread, stretch, place);
    }

    /// Returns the number of stretches of the current thread that begin before this time.
    fn cursor(&mut self, thread: &WaitingThread) -> usize {
        let Some(cursor) = self.cursors.get_mut(self.thread as usize) else { return 0 };
        // The path may have returned to a later time.
        while thread.stretches.get(*cursor).is_some_and(|stretch| stretch.off < self.at) {
            *cursor += 1;
        }
        while let Some(before) = cursor.checked_sub(1)
            && thread.stretches.get(before).is_some_and(|stretch| stretch.off >= self.at)
        {
            *cursor = before;
        }
        *cursor
    }

    /// Goes on from the time before a thread's first stretch.
    fn begin(&mut self, thread: &WaitingThread) {
        self.kept_waiting = None;
        if thread.known < self.at {
            return self.piece(thread.known, PieceKind::Running, NONE);
        }
        match thread.parent() {
            Some(parent) if self.jumps <= self.cursors.len() => self.jump(self.at, parent),
            _ => self.piece(self.from, PieceKind::Unknown, NONE),
        }
    }

    /// Goes on from a time off the CPU.
    fn off(&mut self, thread: &'w WaitingThread, stretch: &Stretch, place: usize) {
        let number = u32::try_from(place).unwrap_or(NONE);
        let handover = thread.handover(place).filter(|_| stretch.on == self.at);
        let kept_waiting = self.kept_waiting.take().filter(|(_, since)| *since < self.at);
        if let Some(handover) = handover
            && kept_waiting.is_none_or(|(_, since)| since <= handover.time)
        {
            let own = thread.runnable_since(stretch).map(|since| (self.thread, since));
            self.piece(handover.time, PieceKind::Runnable, number);
            if let Some((_, since)) = own {
                self.pass(since);
            }
            self.jump(handover.time, handover.owner);
            return self.kept_waiting = kept_waiting.or(own);
        }
        if let Some((waiting, _)) = kept_waiting {
            return self.jump(self.at, waiting);
        }
        match stretch.kind {
            StretchKind::Unknown => self.piece(stretch.off, PieceKind::Unknown, number),
            StretchKind::Preempted => self.piece(stretch.off, PieceKind::Preempted, number),
            StretchKind::Starting => {
                self.piece(stretch.off, PieceKind::Runnable, number);
                let woken = self.thread;
                match thread.waking_thread(stretch, woken).or(thread.parent()) {
                    Some(parent) => {
                        self.jump(stretch.off, parent);
                        self.woke = (woken, number);
                    }
                    None => self.piece(self.from, PieceKind::Unknown, NONE),
                }
            }
            StretchKind::Waiting => {
                let since = thread.runnable_since(stretch).filter(|since| *since <= self.at);
                if let Some(since) = since {
                    self.piece(since, PieceKind::Runnable, number);
                    let waker = thread.waking_thread(stretch, self.thread);
                    if let Some(waker) = waker.filter(|waker| self.follows(thread, *waker)) {
                        let woken = self.thread;
                        self.serve(thread, waker, stretch.off);
                        self.pass(stretch.off);
                        self.jump(since, waker);
                        return self.woke = (woken, number);
                    }
                    if self.returns(since, since - stretch.off) {
                        return;
                    }
                }
                self.piece(stretch.off, PieceKind::Waiting, number);
            }
        }
    }

    /// Returns whether the path goes on with the waker of a thread. What a thread of the kernel does
    /// for others than the one that waits for it is not waited for.
    fn follows(&self, thread: &WaitingThread, waker: u32) -> bool {
        let served = self.served.and_then(|(served, _)| self.waits.thread(served));
        let (Some(served), Some(waker)) = (served, self.waits.thread(waker)) else { return true };
        !thread.is_kernel || waker.is_kernel || waker.pid == served.pid
    }

    /// Takes note of who waited for a thread of the kernel, if the path goes on with one.
    fn serve(&mut self, thread: &WaitingThread, waker: u32, since: u64) {
        match self.waits.thread(waker) {
            Some(waker) if thread.is_served_by(waker) => self.served = Some((self.thread, since)),
            Some(waker) if waker.is_kernel => {}
            _ => self.served = None,
        }
    }

    /// Takes note of a wait of the current thread that ends at this time.
    fn pass(&mut self, since: u64) {
        /// Waits that the path may return to.
        const KEPT: usize = 16;
        self.passed.truncate(KEPT - 1);
        let length = self.at.saturating_sub(since);
        let pieces = self.pieces.len();
        self.passed.push_front(PassedWait { thread: self.thread, since, length, pieces });
    }

    /// Returns to a thread that began to wait after a clock or a device ended the wait which comes next, of
    /// this length, if it waited for a small part of that only.
    fn returns(&mut self, woken: u64, length: u64) -> bool {
        /// Pieces that may be taken back.
        const PIECES: usize = 64;
        /// Part of the length of the next wait.
        const PART: u64 = 32;
        if self.served.is_some() {
            return false;
        }
        let found = self.passed.iter().enumerate().filter(|(_, passed)| {
            passed.since >= woken
                && passed.length.saturating_mul(PART) < length
                && self.pieces.len() - passed.pieces <= PIECES
        });
        let Some((place, passed)) = found.max_by_key(|(_, passed)| passed.since) else {
            return false;
        };
        let PassedWait { thread, since, .. } = *passed;
        self.passed.drain(..=place);
        while self.pieces.pop_if(|piece| piece.to <= since).is_some() {}
        if let Some(last) = self.pieces.last_mut() {
            last.from = last.from.max(since);
        }
        self.kept_waiting = None;
        self.jump(since, thread);
        self.jumps = 0;
        true
    }

    /// Goes on with another thread at this time.
    fn jump(&mut self, time: u64, thread: u32) {
        self.at = time;
        self.thread = thread;
        self.jumps += 1;
        self.woke = (NONE, NONE);
    }

    /// Adds the piece from this time on, if it has a length, and goes on from there.
    fn piece(&mut self, from: u64, kind: PieceKind, stretch: u32) {
        let least = self.served.map_or(self.from, |(_, since)| since.max(self.from));
        let (from, to) = (from.clamp(least.min(self.at), self.at), self.at);
        let wakes = std::mem::replace(&mut self.woke, (NONE, NONE));
        if from < to {
            self.pieces.push(CriticalPiece { thread: self.thread, kind, from, to, stretch, wakes });
            (self.at, self.jumps) = (from, 0);
        }
    }
}
