//! Drain threads: those of `--threads`, and the one that drains while the main thread is busy with
//! `/proc`, with starting counters and the command, and with the end of a file.
//!
//! ```text
//!  ring of CPU 0 ─ thread 0 ─▶ queue ─▶ writer ─▶ data.0
//!  ring of CPU 1 ─ thread 1 ─▶ queue ─▶ writer ─▶ data.1       main: signals, commands, timers, sizes
//!  …
//!
//!  ring of CPU 0 ─ thread 0 ─┐
//!  ring of CPU 1 ─ thread 1 ─┼─ marks ─▶ queue ─▶ writer ─▶ standard output
//!  …                         ┘
//! ```
//!
//! `--threads` writes a directory, as perf record does: a file for each ring. The threads then
//! share nothing. A stream (`-o -`) is one file: a batch is copied into its queue in one piece
//! under a lock, outside of which are walking over records, giving room back, compressing and
//! writing.
//!
//! The threads live while there is nothing to do but drain: any event that wakes the main thread
//! ends them, so that it has the rings to itself, and they are started again afterwards. Rings are
//! lent to them, so the compiler checks this. AUX areas are read by one thread, with all rings, so
//! `--threads` is refused with them.
//!
//! # Rounds stay true
//!
//! The mark FINISHED_ROUND promises that no record after mark n+1 is older than one before mark n.
//! Mark n+1 is queued when each thread has, since mark n was queued, begun and ended a drain that
//! left none of its rings with anything (`marks`). Take a record that is after mark n+1, of the
//! ring of thread T. T's drain between the marks did not find it (or it would be before mark n+1),
//! so the kernel had not written it when that drain looked at the ring, which was after mark n was
//! queued. All records before mark n had been written to their rings by then, so they are not
//! younger. As with one thread, this assumes that the kernel needs less than a round from a record's
//! timestamp to its place in the ring.
//!
//! The files of a directory have no marks, as with perf record: each is in order of time, and
//! readers merge them. Nor are there marks while synthesized records are written, which readers are
//! to see before the samples among them.
//!
//! A thread whose CPUs are idle drains nothing, which would delay the mark for ever. So when as
//! many bytes have been written since the last mark as would have woken all threads on an evenly
//! loaded machine, the missing threads are woken.

mod groups;
mod marks;
mod worker;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread::{self, Builder, ScopedJoinHandle};

use crate::drain::Drain;
use crate::kernel::counters::Counters;
use crate::kernel::ring::Ring;
use crate::machine::Machine;
use crate::messages::error::{Error, Result};
use crate::output::Output;
use crate::plan::config::Split;
use groups::RingGroup;
use marks::Marks;
use worker::{Before, DrainState, Wakers, Worker};

#[derive(Debug)]
pub(crate) struct Drainers {
    groups: Vec<RingGroup>,
    wakers: Wakers,
}

/// Output of the drain threads, and how they write to it.
pub(crate) struct DrainOutput<'a> {
    pub output: &'a Output,
    /// [`Drainers::fd`] is readable when it is so long.
    pub limit: Option<u64>,
    /// `true` if the ends of rounds are marked.
    pub rounds: bool,
    /// Work of the first thread before each drain; returns whether it should be done again soon.
    pub before: Option<Before<'a>>,
}

impl Drainers {
    pub(crate) fn one(counters: &Counters) -> Result<Self> {
        let rings = (0..counters.owners.len()).collect();
        Ok(Self { groups: vec![RingGroup { rings, affinity: None }], wakers: Wakers::new(1)? })
    }

    /// Assigns rings to threads, without starting them.
    pub(crate) fn new(split: &Split, counters: &Counters, machine: &Machine) -> Result<Self> {
        let owners = counters.owners.iter().filter_map(|owner| counters.all.get(*owner));
        let cpus: Vec<_> = owners.map(|owner| owner.place.cpu).collect();
        let groups = groups::groups(split, &cpus, machine)?;
        let wakers = Wakers::new(groups.len())?;
        Ok(Self { groups, wakers })
    }

    /// Returns the descriptor that becomes readable when the file reaches `limit`, all counters
    /// have ended, or a thread failed.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.wakers.main.as_fd()
    }

    /// Returns the rings of each thread.
    pub(crate) fn rings(&self) -> Vec<Vec<usize>> {
        self.groups.iter().map(|group| group.rings.clone()).collect()
    }

    fn rings_by_thread<'a>(&self, rings: &'a mut [Ring]) -> Vec<Vec<&'a mut Ring>> {
        let mut free: Vec<_> = rings.iter_mut().map(Some).collect();
        let groups = self.groups.iter();
        groups
            .map(|group| {
                group.rings.iter().filter_map(|ring| free.get_mut(*ring)?.take()).collect()
            })
            .collect()
    }

    /// Drains by threads as long as `meanwhile` takes, which is to wait for [`fd`](Self::fd) too.
    /// Returns what that gives, and whether all counters have ended.
    pub(crate) fn run<'a, T>(
        &self,
        counters: &Counters,
        drain: &mut Drain,
        rings: &'a mut [Ring],
        to: DrainOutput<'a>,
        meanwhile: impl FnOnce() -> Result<T>,
    ) -> Result<(T, bool)> {
        // Half of all rings, as the kernel wakes a thread when half of a ring is full.
        let enough = rings.iter().map(|ring| ring.size() as u64).sum::<u64>() / 2;
        let shared = DrainState {
            output: to.output,
            rounds: (to.rounds && (!to.output.is_split() || to.output.spaces().is_some()))
                .then(|| Mutex::new(Marks::new(self.groups.len(), enough))),
            limit: to.limit.unwrap_or(u64::MAX),
            wakers: &self.wakers,
            marks: 0.into(),
            ended: 0.into(),
        };
        let mut before = to.before;
        let alone = self.groups.len() == 1;
        let workers = self.groups.iter().enumerate().zip(self.rings_by_thread(rings));
        let workers: Vec<_> = workers
            .map(|((index, group), rings)| {
                let (drain, before) = (drain.twin(alone), before.take());
                Worker { shared: &shared, index, group, drain, rings, before }
            })
            .collect();
        let (outcome, ends) = thread::scope(|scope| {
            let threads = workers
                .into_iter()
                .map(|w| Builder::new().spawn_scoped(scope, move || w.work(counters)));
            let threads: Vec<_> = threads.collect();
            // If a thread did not start, waiting would leave its rings undrained.
            let outcome = threads.iter().all(io::Result::is_ok).then(meanwhile);
            self.wakers.stop.wake();
            (outcome, threads.into_iter().map(end).collect::<Vec<_>>())
        });
        self.wakers.stop.clear();
        self.wakers.main.clear();
        let mut failed = None;
        for (twin, done) in ends {
            if let Some(twin) = twin {
                drain.absorb(twin);
            }
            failed = failed.or(done.err());
        }
        match (failed, outcome) {
            (Some(error), _) => Err(error),
            (None, outcome) => {
                let all_ended = shared.ended.load(Ordering::Relaxed) == self.groups.len();
                outcome
                    .unwrap_or_else(|| Err(no_thread(&"none")))
                    .map(|outcome| (outcome, all_ended))
            }
        }
    }
}

/// Returns a thread's counts and its result.
fn end(
    thread: io::Result<ScopedJoinHandle<'_, (Drain, Result<()>)>>,
) -> (Option<Drain>, Result<()>) {
    match thread.map(ScopedJoinHandle::join) {
        Ok(Ok((drain, done))) => (Some(drain), done),
        // The panic has already printed its message.
        Ok(Err(_)) => (None, Err(no_thread(&"it panicked"))),
        Err(why) => (None, Err(no_thread(&why))),
    }
}

fn no_thread(why: &dyn std::fmt::Display) -> Error {
    Error::Failed(format!(
        "a drain thread does not run ({why}); make room for one more thread (ulimit -u)"
    ))
}

#[cfg(test)]
mod tests;
