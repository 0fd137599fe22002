//! One drain thread.

use std::io::IoSlice;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::bells::{Bell, Bells};
use super::groups::Group;
use super::marks::Marks;
use crate::drain::wait::Waiter;
use crate::drain::{self, Drain, Sink};
use crate::kernel::counters::Counters;
use crate::kernel::ring::Ring;
use crate::messages::error::Result;
use crate::output::Output;
use crate::output::tally::Tally;

/// What all threads share.
pub(super) struct Shared<'a> {
    pub(super) file: Mutex<(&'a mut Output, Marks)>,
    /// How many marks there are in the file.
    pub(super) marks: AtomicU64,
    /// The main thread is to know when the file is so long.
    pub(super) limit: u64,
    pub(super) bells: &'a Bells,
    /// How many threads have no counter left that could wake them.
    pub(super) ended: AtomicUsize,
}

impl<'a> Shared<'a> {
    fn lock(&self) -> MutexGuard<'_, (&'a mut Output, Marks)> {
        // A thread that panicked ends the recording; what it wrote is whole.
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread and its rings.
pub(super) struct Worker<'a, 'r> {
    shared: &'a Shared<'a>,
    index: usize,
    group: &'a Group,
    drain: Drain,
    rings: Vec<&'r mut Ring>,
}

impl<'a, 'r> Worker<'a, 'r> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        (index, group): (usize, &'a Group),
        drain: Drain,
        rings: Vec<&'r mut Ring>,
    ) -> Self {
        Self { shared, index, group, drain, rings }
    }

    /// Drains until the bell rings. Gives what has passed.
    pub(super) fn work(mut self, counters: &Counters) -> (Tally, Result<()>) {
        let done = self.rounds(counters);
        if done.is_err() {
            self.shared.bells.main.ring();
        }
        (self.drain.tally, done)
    }

    fn rounds(&mut self, counters: &Counters) -> Result<()> {
        if let Some(cpus) = &self.group.affinity {
            // CPUs that went offline meanwhile: anywhere will do.
            let _ = rustix::thread::sched_setaffinity(None, cpus);
        }
        let bells = self.shared.bells;
        let Some(own) = bells.own.get(self.index) else { return Ok(()) };
        let owners = self.group.rings.iter().filter_map(|ring| counters.owners.get(*ring).copied());
        let mut waiter = Waiter::of_some(counters, owners, (&bells.stop, own))?;
        let mut ended = false;
        loop {
            // A drain before each wait: what came before the waiter was made does not wake it any more.
            let begun = self.shared.marks.load(Ordering::Acquire);
            let mut batches = Batches { shared: self.shared, index: self.index, begun };
            self.drain.empty(&mut self.rings, &mut batches)?;
            let woken = waiter.wait(!drain::is_pressing(&self.rings))?;
            if woken.stop {
                return Ok(());
            }
            if woken.nudged {
                own.clear();
            }
            if woken.all_ended && !ended {
                ended = true;
                if self.shared.ended.fetch_add(1, Ordering::Relaxed) + 1 == bells.own.len() {
                    bells.main.ring();
                }
            }
        }
    }
}

/// Writes a thread's batches into the file.
struct Batches<'a> {
    shared: &'a Shared<'a>,
    index: usize,
    /// How many marks there were when the drain began.
    begun: u64,
}

impl Sink for Batches<'_> {
    fn batch(&mut self, parts: &[IoSlice<'_>], mark: &[u8], whole: bool) -> Result<u64> {
        if parts.is_empty() && !whole {
            return Ok(0);
        }
        let mut file = self.shared.lock();
        let (output, marks) = &mut *file;
        if whole {
            marks.drained(self.index, self.begun);
        }
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let due = whole && marks.is_due(bytes);
        let written = output.write_parts(parts, if due { mark } else { &[] })?;
        let missing = marks.wrote(bytes, due);
        self.shared.marks.store(marks.number(), Ordering::Release);
        let full = output.length() >= self.shared.limit;
        drop(file);
        let bells = self.shared.bells;
        missing.iter().filter_map(|thread| bells.own.get(*thread)).for_each(Bell::ring);
        if full {
            bells.main.ring();
        }
        Ok(written)
    }
}
