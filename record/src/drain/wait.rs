//! Waiting until there is something to do: a ring half full, a signal, a command, a timer that the
//! user asked for, the end of what was attached to. Of rec's own there is one timer, that of the
//! status line; and where files are kept, waiting ends after a tenth of a second: a container that
//! ends takes its files with it, and which they are is in the rings.
//!
//! When half of a ring is full, the kernel wakes pollers of any of its counters. A counter whose
//! threads (inherited ones included) have all ended hangs up; then the next counter of the same
//! ring is polled instead. When no ring has a counter left, all attached tasks have ended.
//!
//! ```text
//!  polled counter of a ring ── HUP ──▶ next counter of the same event ──▶ … none left: ended
//!                           └─ ERR ──▶ next counter of another event ───▶ … none left: unknown
//! ```

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;

use crate::kernel::counters::{Counter, Counters};
use crate::kernel::signals::Signals;
use crate::messages::error::{Error, Result};

const STOP: u64 = u64::MAX;
const CHILD: u64 = u64::MAX - 1;
const USER: u64 = u64::MAX - 2;
const DELAY: u64 = u64::MAX - 3;
const SWITCH: u64 = u64::MAX - 4;
const CONTROL: u64 = u64::MAX - 5;
const NUDGE: u64 = u64::MAX - 6;
const STATUS: u64 = u64::MAX - 7;
/// The first task whose end is waited for.
const ENDS: u64 = 1 << 32;
/// No ring has such a number.
#[cfg(test)]
const NO_RING: u64 = ENDS;

/// Reasons why waiting ended. If all are false, a ring has records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wakeup {
    /// A signal requests the end.
    pub stop: bool,
    pub child: bool,
    /// SIGUSR2 arrived.
    pub user: bool,
    /// It is time to start or stop counting.
    pub delay: bool,
    /// It is time to begin the next file.
    pub switch: bool,
    /// A control command arrived.
    pub control: bool,
    /// It is time for the status line.
    pub status: bool,
    /// Another thread woke this one.
    pub nudged: bool,
    /// All attached threads have ended.
    pub all_ended: bool,
}

/// Descriptors to wait for besides rings and signals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Descriptors<'a> {
    /// Timer of `-D`.
    pub delay: Option<BorrowedFd<'a>>,
    /// Timer of `--switch-output`.
    pub switch: Option<BorrowedFd<'a>>,
    /// Source of control commands.
    pub control: Option<BorrowedFd<'a>>,
    /// The timer of the status line.
    pub status: Option<BorrowedFd<'a>>,
    /// Wakeup by the drain threads, which then wait for the rings.
    pub drainers: Option<BorrowedFd<'a>>,
}

/// Set of descriptors to wait for.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    epoll: OwnedFd,
    counters: &'a Counters,
    /// Per ring, the index of the polled counter; `None` if all have hung up; an index beyond all
    /// counters if none is left that could report the end.
    polled: Vec<Option<usize>>,
    /// Whose end is waited for, and how many have not ended.
    ends: Option<(&'a [OwnedFd], usize)>,
    /// Maximum time to wait.
    at_most: Option<Duration>,
}

impl<'a> Waiter<'a> {
    /// Creates a waiter for signals, the rings of these counters, and other descriptors.
    pub(crate) fn new(
        signals: &Signals,
        counters: &'a Counters,
        descriptors: Descriptors<'_>,
    ) -> Result<Self> {
        let own = [
            (descriptors.delay, DELAY),
            (descriptors.switch, SWITCH),
            (descriptors.control, CONTROL),
            (descriptors.status, STATUS),
            (descriptors.drainers, NUDGE),
        ];
        let own = own.into_iter().filter_map(|(fd, data)| Some((fd?, data)));
        let signals = [(signals.stop(), STOP), (signals.child(), CHILD), (signals.user(), USER)];
        // The kernel reports a ring's wakeup only once, so only one thread may poll it.
        let owners = counters.owners.iter().copied().filter(|_| descriptors.drainers.is_none());
        Self::with(counters, owners, signals.into_iter().chain(own))
    }

    /// Waits for the end of all of these, each of which is readable then, instead of that of the
    /// counters.
    pub(crate) fn until(self, ends: Option<&'a [OwnedFd]>) -> Result<Self> {
        let mut numbered = (ENDS..).zip(ends.into_iter().flatten());
        let added = numbered.try_for_each(|(data, end)| add(&self.epoll, end.as_fd(), data));
        added.map_err(|e| Error::io("cannot wait for the end of the processes", e))?;
        Ok(Self { ends: ends.map(|ends| (ends, ends.len())), ..self })
    }

    pub(crate) fn at_most(self, at_most: Option<Duration>) -> Self {
        Self { at_most, ..self }
    }

    /// Creates a waiter for the rings of these counters, and for the wakeups that end the thread or
    /// only wake it.
    pub(crate) fn for_thread(
        counters: &'a Counters,
        owners: impl Iterator<Item = usize>,
        stop: impl AsFd,
        nudge: impl AsFd,
    ) -> Result<Self> {
        Self::with(counters, owners, [(stop.as_fd(), STOP), (nudge.as_fd(), NUDGE)].into_iter())
    }

    fn with<'f>(
        counters: &'a Counters,
        owners: impl Iterator<Item = usize>,
        own: impl Iterator<Item = (BorrowedFd<'f>, u64)>,
    ) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(unwaitable)?;
        for (fd, data) in own {
            add(&epoll, fd, data).map_err(unwaitable)?;
        }
        let mut polled = Vec::new();
        for (ring, owner) in (0u64..).zip(owners) {
            if let Some(counter) = counters.all.get(owner) {
                add_counter(&epoll, counters, counter, ring).map_err(unwaitable)?;
            }
            polled.push(Some(owner));
        }
        Ok(Self { epoll, counters, polled, ends: None, at_most: None })
    }

    /// Waits; without `block`, only checks.
    pub(crate) fn wait(&mut self, block: bool) -> Result<Wakeup> {
        let mut events = Vec::with_capacity(64);
        let limit = if block { self.at_most } else { Some(Duration::ZERO) };
        let timeout = limit.and_then(|limit| limit.try_into().ok());
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(unwaitable(e)),
        }
        let mut woken = Wakeup::default();
        for event in &events {
            // The kernel's struct is packed, so its fields cannot be borrowed.
            let (data, flags) = (event.data, event.flags);
            match data.u64() {
                STOP => woken.stop = true,
                CHILD => woken.child = true,
                USER => woken.user = true,
                DELAY => woken.delay = true,
                SWITCH => woken.switch = true,
                CONTROL => woken.control = true,
                STATUS => woken.status = true,
                NUDGE => woken.nudged = true,
                end if end >= ENDS => self.ended(end),
                ring if flags.contains(epoll::EventFlags::HUP) => self.hung_up(ring)?,
                // A pinned event that did not fit on its PMU, or a PMU that was removed: the
                // counter stays in this state.
                ring if flags.contains(epoll::EventFlags::ERR) => self.failed(ring)?,
                _ => {}
            }
        }
        woken.all_ended = match self.ends {
            Some((_, left)) => left == 0,
            None => !self.polled.is_empty() && self.polled.iter().all(Option::is_none),
        };
        Ok(woken)
    }

    /// Stops waiting for control commands, after the sender closed its end.
    pub(crate) fn forget(&self, control: BorrowedFd<'_>) {
        // It was added, so it can be taken away.
        let _ = epoll::delete(&self.epoll, control);
    }

    /// Stops watching a process that ended: its descriptor stays readable.
    fn ended(&mut self, data: u64) {
        let Some((ends, left)) = &mut self.ends else { return };
        let index = usize::try_from(data - ENDS).unwrap_or(usize::MAX);
        if let Some(end) = ends.get(index) {
            // It was added, so it can be taken away.
            let _ = epoll::delete(&self.epoll, end);
            *left -= 1;
        }
    }

    /// Polls the next counter of a ring, after one hung up.
    fn hung_up(&mut self, ring: u64) -> Result<()> {
        // Counters of other events end together with their threads, so counters of one event are
        // enough.
        self.replace(ring, |gone, next| next.event == gone.event, None)
    }

    /// Polls another event of a ring, after a counter failed, whose threads may still run.
    fn failed(&mut self, ring: u64) -> Result<()> {
        self.replace(ring, |gone, next| next.event != gone.event, Some(usize::MAX))
    }

    /// Replaces a counter that reports nothing more with the next one on the same CPU that is
    /// `wanted`; sets `otherwise` if there is none.
    fn replace(
        &mut self,
        ring: u64,
        wanted: impl Fn(&Counter, &Counter) -> bool,
        otherwise: Option<usize>,
    ) -> Result<()> {
        let slot = usize::try_from(ring).ok().and_then(|ring| self.polled.get_mut(ring));
        let Some((slot, old)) = slot.and_then(|slot| slot.map(|old| (slot, old))) else {
            return Ok(());
        };
        let all = &self.counters.all;
        let Some(gone) = all.get(old) else {
            *slot = otherwise;
            return Ok(());
        };
        epoll::delete(&self.epoll, gone.as_fd()).map_err(unwaitable)?;
        let same_ring = self.counters.ring_of(gone);
        let next = all.iter().enumerate().skip(old + 1).find(|(_, counter)| {
            self.counters.ring_of(counter) == same_ring && wanted(gone, counter)
        });
        *slot = otherwise;
        if let Some((index, counter)) = next {
            add_counter(&self.epoll, self.counters, counter, ring).map_err(unwaitable)?;
            *slot = Some(index);
        }
        Ok(())
    }
}

/// Adds a counter to the epoll set. For an overwritten ring only hang-ups are polled, as it is not
/// drained when full.
fn add_counter(
    epoll: &OwnedFd,
    counters: &Counters,
    counter: &Counter,
    ring: u64,
) -> Result<(), Errno> {
    let backward = counters.ring_of(counter).backward;
    let flags = if backward { epoll::EventFlags::empty() } else { epoll::EventFlags::IN };
    epoll::add(epoll, counter.as_fd(), epoll::EventData::new_u64(ring), flags)
}

fn unwaitable(errno: Errno) -> Error {
    Error::io("cannot wait for the rings", errno)
}

fn add(epoll: &OwnedFd, fd: BorrowedFd<'_>, data: u64) -> Result<(), Errno> {
    epoll::add(epoll, fd, epoll::EventData::new_u64(data), epoll::EventFlags::IN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Place;
    use std::io::{PipeReader, PipeWriter, pipe};

    /// Returns counters of one ring, from pairs `(event, descriptor)`.
    fn counters(all: Vec<(usize, OwnedFd)>) -> Counters {
        let place = Place { thread: Some(1), cpu: Some(0), cgroup: None };
        let all = all.into_iter().map(|(event, fd)| Counter::new(fd, 1, event, place)).collect();
        Counters { all, owners: vec![0], ..Counters::default() }
    }

    /// Returns a descriptor whose poll reports nothing until the writer is closed, and then a
    /// hang-up.
    fn hangs_up_with() -> (OwnedFd, PipeWriter) {
        let (reader, writer) = pipe().unwrap();
        (reader.into(), writer)
    }

    /// Returns a descriptor whose poll for reading reports nothing until the reader is closed, and
    /// then an error.
    fn fails_with() -> (OwnedFd, PipeReader) {
        let (reader, writer) = pipe().unwrap();
        (writer.into(), reader)
    }

    #[test]
    fn all_ended_when_the_last_counter_of_a_ring_hung_up() {
        let signals = Signals::install().unwrap();
        let (first, one) = hangs_up_with();
        let (second, two) = hangs_up_with();
        let counters = counters(vec![(0, first), (0, second)]);
        let mut waiter = Waiter::new(&signals, &counters, Descriptors::default()).unwrap();
        assert!(!waiter.wait(false).unwrap().all_ended);
        drop(one);
        assert!(!waiter.wait(true).unwrap().all_ended);
        assert!(!waiter.wait(false).unwrap().all_ended);
        drop(two);
        assert!(waiter.wait(true).unwrap().all_ended);
    }

    #[test]
    fn a_counter_that_failed_is_not_polled_again_and_its_threads_have_not_ended() {
        let signals = Signals::install().unwrap();
        let (first, one) = fails_with();
        let (second, two) = hangs_up_with();
        let counters = counters(vec![(0, first), (1, second)]);
        let mut waiter = Waiter::new(&signals, &counters, Descriptors::default()).unwrap();
        drop(one);
        assert!(!waiter.wait(true).unwrap().all_ended);
        assert_eq!(waiter.polled, [Some(1)]);
        drop(two);
        assert!(waiter.wait(true).unwrap().all_ended);
    }

    #[test]
    fn where_no_counter_is_left_that_could_tell_nothing_has_ended() {
        let signals = Signals::install().unwrap();
        let (only, reader) = fails_with();
        let counters = counters(vec![(0, only)]);
        let mut waiter = Waiter::new(&signals, &counters, Descriptors::default()).unwrap();
        drop(reader);
        assert!(!waiter.wait(true).unwrap().all_ended);
        let mut events = Vec::with_capacity(4);
        let now = rustix::event::Timespec::default();
        epoll::wait(&waiter.epoll, rustix::buffer::spare_capacity(&mut events), Some(&now))
            .unwrap();
        assert!(
            events.iter().all(|e| e.data.u64() >= NO_RING),
            "it would be woken again and again"
        );
    }
}
