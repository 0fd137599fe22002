//! One drain thread, and the descriptors by which threads wake each other.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::groups::RingGroup;
use super::marks::Marks;
use crate::drain::wait::Waiter;
use crate::drain::{self, Drain, Sink};
use crate::kernel::counters::Counters;
use crate::kernel::ring::Ring;
use crate::messages::error::{Error, Result};
use crate::output::Output;
use crate::output::tally::Counts;

pub(super) struct DrainState<'a> {
    pub(super) output: &'a Output,
    /// Held while a batch is queued, where rounds are marked.
    pub(super) rounds: Option<Mutex<Marks>>,
    pub(super) marks: AtomicU64,
    /// File length at which the main thread is woken.
    pub(super) limit: u64,
    pub(super) wakers: &'a Wakers,
    /// Number of threads whose counters have all ended.
    pub(super) ended: AtomicUsize,
}

pub(super) struct Worker<'a, 'r> {
    pub(super) shared: &'a DrainState<'a>,
    /// Number of the thread, from 0.
    pub(super) index: usize,
    pub(super) group: &'a RingGroup,
    pub(super) drain: Drain,
    pub(super) rings: Vec<&'r mut Ring>,
    pub(super) before: Option<Before<'r>>,
}

/// Work of a thread before each drain. Returns whether it should be done again soon.
pub(crate) type Before<'a> = &'a mut (dyn FnMut() -> Result<bool> + Send);

impl Worker<'_, '_> {
    /// Drains until it is stopped. Returns the counts.
    pub(super) fn work(mut self, counters: &Counters) -> (Drain, Result<()>) {
        let done = self.rounds(counters);
        if done.is_err() {
            self.shared.wakers.main.wake();
        }
        (self.drain, done)
    }

    fn rounds(&mut self, counters: &Counters) -> Result<()> {
        if let Some(cpus) = &self.group.affinity {
            // If the CPUs went offline meanwhile, any CPU will do.
            let _ = rustix::thread::sched_setaffinity(None, cpus);
        }
        let wakers = self.shared.wakers;
        let Some(own) = wakers.own.get(self.index) else { return Ok(()) };
        let owners = self.group.rings.iter().filter_map(|ring| counters.owners.get(*ring).copied());
        let mut waiter = Waiter::for_thread(counters, owners, &wakers.stop, own)?
            .at_most(self.drain.tally.round());
        let mut ended = false;
        loop {
            // A drain precedes each wait, as records written before the waiter existed do not wake
            // it.
            let begun = self.shared.marks.load(Ordering::Acquire);
            let mut batches =
                Batches { shared: self.shared, index: self.index, rings: &self.group.rings, begun };
            let again = self.before.as_mut().map_or(Ok(false), |before| before())?;
            self.drain.round(&mut self.rings, &mut batches, false)?;
            let woken = waiter.wait(!again && !drain::is_pressing(&self.rings))?;
            if woken.stop {
                return Ok(());
            }
            if woken.nudged {
                own.clear();
            }
            if woken.all_ended && !ended {
                ended = true;
                if self.shared.ended.fetch_add(1, Ordering::Relaxed) + 1 == wakers.own.len() {
                    wakers.main.wake();
                }
            }
        }
    }
}

/// Queues a thread's batches.
struct Batches<'a> {
    shared: &'a DrainState<'a>,
    index: usize,
    /// The numbers of the thread's rings.
    rings: &'a [usize],
    /// Number of marks when the drain began.
    begun: u64,
}

impl Batches<'_> {
    /// Queues a batch, with the mark behind it if that ends a round. Returns the threads to wake.
    fn marked(
        &self,
        marks: &Mutex<Marks>,
        ring: usize,
        parts: &[IoSlice<'_>],
        counts: Counts,
        mark: Option<&[u8]>,
    ) -> Result<Vec<usize>> {
        // A thread that panicked ends the recording; what it queued is whole.
        let mut marks = marks.lock().unwrap_or_else(PoisonError::into_inner);
        if mark.is_some() {
            marks.drained(self.index, self.begun);
        }
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let mark = mark.filter(|_| marks.is_due(bytes));
        self.shared.output.write_rings(ring, parts, mark.unwrap_or_default(), counts)?;
        if mark.is_some() {
            self.shared.output.end_round();
        }
        let missing = marks.wrote(bytes, mark.is_some());
        self.shared.marks.store(marks.number(), Ordering::Release);
        Ok(missing)
    }
}

impl Sink for Batches<'_> {
    fn is_split(&self) -> bool {
        self.shared.output.is_split()
    }

    fn batch(
        &mut self,
        ring: usize,
        parts: &[IoSlice<'_>],
        mark: Option<&[u8]>,
        counts: Counts,
    ) -> Result<()> {
        let output = self.shared.output;
        let ring = self.rings.get(ring).copied().unwrap_or_default();
        let missing = match &self.shared.rounds {
            Some(marks) if mark.is_some() || !parts.is_empty() => {
                self.marked(marks, ring, parts, counts, mark)?
            }
            Some(_) => Vec::new(),
            None => output.write_rings(ring, parts, &[], counts).map(|()| Vec::new())?,
        };
        let wakers = self.shared.wakers;
        for thread in missing {
            if let Some(waker) = wakers.own.get(thread) {
                waker.wake();
            }
        }
        if output.length() >= self.shared.limit {
            wakers.main.wake();
        }
        Ok(())
    }
}

/// Wakeup descriptors of a recording.
#[derive(Debug)]
pub(super) struct Wakers {
    /// Tells all threads to end.
    pub(super) stop: Waker,
    pub(super) main: Waker,
    pub(super) own: Vec<Waker>,
}

impl Wakers {
    pub(super) fn new(threads: usize) -> Result<Self> {
        let own = (0..threads).map(|_| Waker::new()).collect::<Result<_>>()?;
        Ok(Self { stop: Waker::new()?, main: Waker::new()?, own })
    }
}

/// Descriptor that is readable from `wake` until `clear`.
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Waker {
    fn new() -> Result<Self> {
        let made: Result<OwnedFd, Errno> =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        made.map(Self).map_err(|e| {
            Error::io("cannot create a descriptor for waking the threads that drain", e)
        })
    }

    pub(super) fn wake(&self) {
        // Fails only on overflow of its 64-bit counter.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(super) fn clear(&self) {
        // Fails with EAGAIN if it was not rung.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
