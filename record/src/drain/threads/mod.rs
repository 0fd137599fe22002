//! Drain threads (`--threads`): each has some of the rings, waits for them alone, and writes into the one file.
//!
//! ```text
//!  rings of CPU 0 ─ thread 0 ─┐
//!  rings of CPU 1 ─ thread 1 ─┼─ Mutex ─▶ Output          main: signals, commands, timers, sizes
//!  …                          ┘
//! ```
//!
//! The threads live while nothing but draining is to be done: whatever wakes the main thread ends them, so that it has the
//! rings and the file for itself, and they begin anew afterwards. Rings are lent to them, so that this is the only way.
//! A batch is written in one piece under the lock; walking over records and giving room back are outside of it. Compressing
//! (`-z`) is inside, as the file has one stream. AUX areas are read by the main thread alone, which has no time for that
//! meanwhile: they are refused together with threads.
//!
//! # Rounds stay true
//!
//! The mark FINISHED_ROUND promises that no record after mark n+1 is older than one before mark n. Mark n+1 is written when
//! each thread has, since mark n was in the file, begun and ended a drain that left none of its rings with anything
//! (`marks`). Take a record that is after mark n+1, of the ring of thread T. T's drain between the marks did not find it (or
//! it would be before mark n+1), so the kernel had not written it when that drain looked at the ring, which was after mark n
//! was written. All records before mark n had been written by then, so they are not younger. As with one thread, what is
//! taken for granted is that the kernel needs less than a round from a record's timestamp to its place in the ring.
//!
//! A thread whose CPU is idle drains nothing, so that no mark could be written: when as much has been written since the
//! last one as would have woken all threads on a machine that is equally busy, those that are missing are woken.

mod bells;
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
use crate::output::tally::Tally;
use crate::plan::config::Split;
use bells::Bells;
use groups::Group;
use marks::Marks;
use worker::{Shared, Worker};

/// The threads, as they are to be.
#[derive(Debug)]
pub struct Drainers {
    groups: Vec<Group>,
    bells: Bells,
}

impl Drainers {
    /// Who drains which ring. Nobody is started yet.
    ///
    /// # Errors
    /// CPUs that no ring is of; the system's refusal.
    pub fn new(split: &Split, counters: &Counters, machine: &Machine) -> Result<Self> {
        let owners = counters.owners.iter().filter_map(|owner| counters.all.get(*owner));
        let cpus: Vec<_> = owners.map(|owner| owner.place.cpu).collect();
        let groups = groups::groups(split, &cpus, machine)?;
        let bells = Bells::new(groups.len())?;
        Ok(Self { groups, bells })
    }

    /// How many threads there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Readable when a thread has something to say: the file has reached `limit`, all counters have ended, or it failed.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.bells.main.as_fd()
    }

    /// Drains by threads as long as `meanwhile` takes, which is to wait for [`fd`](Self::fd) too. Gives what that gives, and
    /// whether all counters have ended.
    ///
    /// # Errors
    /// What `meanwhile` or a thread gives.
    pub fn run<T>(
        &self,
        counters: &Counters,
        (drain, rings): (&mut Drain, &mut [Ring]),
        (output, limit): (&mut Output, Option<u64>),
        meanwhile: impl FnOnce() -> Result<T>,
    ) -> Result<(T, bool)> {
        // About half of the threads' rings: what wakes them.
        let enough = rings.iter().map(|ring| ring.size() as u64).sum::<u64>() / 2;
        let shared = Shared {
            file: Mutex::new((output, Marks::new(self.groups.len(), enough))),
            limit: limit.unwrap_or(u64::MAX),
            bells: &self.bells,
            marks: 0.into(),
            ended: 0.into(),
        };
        let mut free: Vec<_> = rings.iter_mut().map(Some).collect();
        let own = |group: &Group| group.rings.iter().filter_map(|ring| free.get_mut(*ring)?.take()).collect();
        let rings: Vec<Vec<&mut Ring>> = self.groups.iter().map(own).collect();
        let workers = self.groups.iter().enumerate().zip(rings);
        let workers: Vec<_> = workers.map(|(who, rings)| Worker::new(&shared, who, drain.twin(), rings)).collect();
        let (outcome, ends) = thread::scope(|scope| {
            let threads = workers.into_iter().map(|w| Builder::new().spawn_scoped(scope, move || w.work(counters)));
            let threads: Vec<_> = threads.collect();
            // Rings that nobody drains are not to be waited for.
            let outcome = threads.iter().all(io::Result::is_ok).then(meanwhile);
            self.bells.stop.ring();
            (outcome, threads.into_iter().map(end).collect::<Vec<_>>())
        });
        self.bells.stop.clear();
        self.bells.main.clear();
        let mut failed = None;
        for (tally, done) in ends {
            tally.into_iter().for_each(|tally| drain.tally.absorb(tally));
            failed = failed.or(done.err());
        }
        match (failed, outcome) {
            (Some(error), _) => Err(error),
            (None, outcome) => {
                let all_ended = shared.ended.load(Ordering::Relaxed) == self.groups.len();
                outcome.unwrap_or_else(|| Err(no_thread(&"none"))).map(|outcome| (outcome, all_ended))
            }
        }
    }
}

/// What became of a thread: what it counted, and what went wrong.
fn end(thread: io::Result<ScopedJoinHandle<'_, (Tally, Result<()>)>>) -> (Option<Tally>, Result<()>) {
    match thread.map(ScopedJoinHandle::join) {
        Ok(Ok((tally, done))) => (Some(tally), done),
        // It has said itself why it panicked.
        Ok(Err(_)) => (None, Err(no_thread(&"it panicked"))),
        Err(why) => (None, Err(no_thread(&why))),
    }
}

fn no_thread(why: &dyn std::fmt::Display) -> Error {
    Error::Failed(format!("a drain thread does not run ({why}); leave --threads out"))
}

#[cfg(test)]
mod tests;
