//! Waiting until there is something to do: a ring half full, a signal, the end of what was attached to. Never a timer.
//!
//! The kernel wakes whoever polls any counter of a ring when half of the ring is filled. A counter whose threads have all
//! ended (the inherited ones too) hangs up; then the next counter of the same ring is polled in its place, so that
//! when no ring has one left, nothing that was attached to runs any more.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::signals::Signals;

const STOP: u64 = u64::MAX;
const CHILD: u64 = u64::MAX - 1;

/// Why waiting ended. All false: a ring has something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// A signal asked for the end.
    pub stop: bool,
    /// A child died.
    pub child: bool,
    /// All threads attached to have ended.
    pub all_ended: bool,
}

/// What is waited for.
#[derive(Debug)]
pub struct Waiter<'a> {
    epoll: OwnedFd,
    counters: &'a Counters,
    /// For each ring, which counter is polled; `None` when all have hung up.
    polled: Vec<Option<usize>>,
}

impl<'a> Waiter<'a> {
    /// Waits for signals and for the rings of these counters.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn new(signals: &Signals, counters: &'a Counters) -> Result<Self> {
        let make = || -> Result<Self, Errno> {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            add(&epoll, signals.stop(), STOP)?;
            add(&epoll, signals.child(), CHILD)?;
            let mut waiter = Self { epoll, counters, polled: Vec::new() };
            for (ring, owner) in (0u64..).zip(&counters.owners) {
                if let Some(counter) = counters.all.get(*owner) {
                    add(&waiter.epoll, counter.as_fd(), ring)?;
                }
                waiter.polled.push(Some(*owner));
            }
            Ok(waiter)
        };
        make().map_err(|e| Error::io("cannot wait for the rings", e))
    }

    /// Waits; or only looks, unless `block`.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn wait(&mut self, block: bool) -> Result<Woken> {
        let mut events = Vec::with_capacity(64);
        let timeout = (!block).then(rustix::event::Timespec::default);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(Error::io("cannot wait for the rings", e)),
        }
        let mut woken = Woken::default();
        for event in &events {
            // The kernel's struct is packed.
            let (data, flags) = (event.data, event.flags);
            match data.u64() {
                STOP => woken.stop = true,
                CHILD => woken.child = true,
                ring if flags.contains(epoll::EventFlags::HUP) => self.hung_up(ring)?,
                _ => {}
            }
        }
        woken.all_ended = self.polled.iter().all(Option::is_none);
        Ok(woken)
    }

    /// Polls the next counter of a ring whose counter hung up.
    fn hung_up(&mut self, ring: u64) -> Result<()> {
        let slot = usize::try_from(ring).ok().and_then(|ring| self.polled.get_mut(ring));
        let Some((slot, old)) = slot.and_then(|slot| slot.map(|old| (slot, old))) else { return Ok(()) };
        let all = &self.counters.all;
        let swap = || -> Result<Option<usize>, Errno> {
            let Some(gone) = all.get(old) else { return Ok(None) };
            epoll::delete(&self.epoll, gone.as_fd())?;
            // Other events of the same threads end with them: those of the first are enough.
            let same = |c: &crate::counters::Counter| c.event == gone.event && c.place.cpu == gone.place.cpu;
            let next = all.iter().enumerate().skip(old + 1).find(|(_, c)| same(c));
            if let Some((_, counter)) = next {
                add(&self.epoll, counter.as_fd(), ring)?;
            }
            Ok(next.map(|(index, _)| index))
        };
        *slot = swap().map_err(|e| Error::io("cannot wait for the rings", e))?;
        Ok(())
    }
}

fn add(epoll: &OwnedFd, fd: BorrowedFd<'_>, data: u64) -> Result<(), Errno> {
    epoll::add(epoll, fd, epoll::EventData::new_u64(data), epoll::EventFlags::IN)
}
