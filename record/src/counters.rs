//! The counters: every event on every CPU (for every thread that is attached to), and a ring for each CPU.
//!
//! ```text
//!             CPU 0          CPU 1
//!  event 0    fd ─ ring 0    fd ─ ring 1      the first counter of a CPU has the ring,
//!  event 1    fd ─▶ ring 0   fd ─▶ ring 1     the others are sent there (PERF_EVENT_IOC_SET_OUTPUT)
//! ```

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use recrep_format::abi::{AttrFlags, ReadFormat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::fallback::{self, Circumstances, GivenUp, Step};
use crate::kernel::{Kernel, Place};
use crate::machine::Machine;
use crate::messages::Messages;
use crate::plan::{Plan, PlannedEvent};
use crate::ring::Ring;
use crate::target::Target;

/// An open counter.
#[derive(Debug)]
pub struct Counter {
    fd: OwnedFd,
    /// The id in its records.
    pub id: u64,
    /// Which event of the plan it counts.
    pub event: usize,
    /// Where.
    pub place: Place,
}

impl Counter {
    pub(crate) fn new(fd: OwnedFd, id: u64, event: usize, place: Place) -> Self {
        Self { fd, id, event, place }
    }
}

impl AsFd for Counter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// All counters, and the events as the kernel took them.
#[derive(Debug)]
pub struct Counters {
    /// The events: the plan's, after what the kernel refused was given up.
    pub events: Vec<PlannedEvent>,
    /// The counters, event by event.
    pub all: Vec<Counter>,
    /// The rings, one for each CPU.
    pub rings: Vec<Ring>,
    /// Indices into `all`: the counters that have the rings.
    pub owners: Vec<usize>,
}

/// Opens what the plan says, for `threads` (none: for whatever runs on the CPUs).
///
/// # Errors
/// A refusal that nothing could be given up for, in words.
pub fn open<K: Kernel>(
    kernel: &K,
    plan: &Plan,
    threads: &[Option<u32>],
    (target, machine): (&Target, &Machine),
    messages: &Messages,
) -> Result<Counters> {
    let with = Circumstances { target, paranoid: machine.paranoid };
    let places: Vec<_> =
        threads.iter().flat_map(|thread| plan.cpus.iter().map(|cpu| Place { thread: *thread, cpu: *cpu })).collect();
    let mut counters = Counters { events: plan.events.clone(), all: Vec::new(), rings: Vec::new(), owners: Vec::new() };
    allow_files(plan.events.len() * places.len());
    for (index, event) in counters.events.iter_mut().enumerate() {
        let before = counters.all.len();
        for place in &places {
            let settled = counters.all.len() > before;
            let fd = match open_one(kernel, event, *place, settled, with, messages)? {
                Some(fd) => fd,
                None => continue,
            };
            let id = kernel.id(fd.as_fd()).map_err(|e| Error::io("cannot ask a counter for its id", e))?;
            counters.all.push(Counter::new(fd, id, index, *place));
        }
        if counters.all.len() == before {
            return Err(Error::Failed(fallback_message(event, with)));
        }
        messages.explain(|| explain(event, counters.all.len() - before));
    }
    counters.map_rings(kernel, plan, messages)?;
    Ok(counters)
}

/// Opens one counter. Until the first counter of an event is open, the event gives up what the kernel refuses;
/// after that, only threads that ended and CPUs that went offline meanwhile are passed over.
fn open_one<K: Kernel>(
    kernel: &K,
    event: &mut PlannedEvent,
    place: Place,
    settled: bool,
    with: Circumstances<'_>,
    messages: &Messages,
) -> Result<Option<OwnedFd>> {
    let mut trial = event.clone();
    let mut given_up = Vec::new();
    loop {
        let errno = match kernel.open(&trial.attr, place) {
            Ok(fd) => {
                given_up.iter().for_each(|what: &GivenUp| messages.note(what.note(event, &trial, with)));
                *event = trial;
                return Ok(Some(fd));
            }
            Err(errno) => errno,
        };
        let thread_ended = errno == Errno::SRCH && matches!(with.target, Target::Processes(_) | Target::Threads(_));
        let cpu_went = errno == Errno::NODEV && settled;
        if thread_ended || cpu_went {
            return Ok(None);
        }
        match fallback::next(&trial, errno, with) {
            Step::Retry { event: less, given_up: what } if !settled => {
                trial = *less;
                given_up.extend(what);
            }
            Step::Retry { .. } => {
                let why = crate::error::why_words(&errno.into());
                let cpu = place.cpu;
                return Err(Error::Failed(format!(
                    "cannot count {} on CPU {cpu} as on the CPUs before it: {why}; leave that CPU out with -C",
                    trial.full_name()
                )));
            }
            Step::GiveUp(advice) => return Err(Error::Failed(advice)),
        }
    }
}

fn fallback_message(event: &PlannedEvent, with: Circumstances<'_>) -> String {
    match fallback::next(event, Errno::SRCH, with) {
        Step::GiveUp(advice) => advice,
        Step::Retry { .. } => format!("cannot count {}: there is nothing to count it for", event.full_name()),
    }
}

fn explain(event: &PlannedEvent, counters: usize) -> String {
    let attr = &event.attr;
    let rate = match attr.frequency() {
        Some(hz) => format!("{hz} Hz"),
        None => format!("every {}", attr.sample_period),
    };
    format!(
        "event {}: type {}, config {:#x}, {rate}, sample_type {:?}, read_format {:?}, flags {:?}, precise_ip {}, {counters} counters",
        event.full_name(),
        attr.kind.0,
        attr.config,
        attr.sample_type,
        attr.read_format,
        attr.flags,
        attr.flags.precise_ip(),
    )
}

/// Raises the soft limit on open files where the counters need it.
fn allow_files(counters: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = counters as u64 + 64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        let soft = limit.maximum.map_or(needed, |hard| hard.min(needed));
        // If this fails, so will the opening of a counter, which says what to do.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum: limit.maximum });
    }
}

impl Counters {
    /// The ids of an event's counters.
    #[must_use]
    pub fn ids(&self, event: usize) -> Vec<u64> {
        self.all.iter().filter(|c| c.event == event).map(|c| c.id).collect()
    }

    /// The event that carries the side-band.
    #[must_use]
    pub fn tracker(&self) -> Option<&PlannedEvent> {
        self.events.iter().find(|e| e.attr.flags.contains(AttrFlags::COMM))
    }

    /// The id that synthesized records carry: that of the event which tracks.
    #[must_use]
    pub fn tracking_id(&self) -> u64 {
        let tracks = |c: &&Counter| self.events.get(c.event).is_some_and(|e| e.attr.flags.contains(AttrFlags::COMM));
        self.all.iter().find(tracks).map_or(0, |c| c.id)
    }

    /// Whether any event samples the kernel.
    #[must_use]
    pub fn sees_kernel(&self) -> bool {
        self.events.iter().any(|e| !e.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL))
    }

    /// Starts the counters that wait for it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn enable<K: Kernel>(&self, kernel: &K) -> Result<()> {
        for counter in &self.all {
            let waits = self.events.get(counter.event).is_some_and(|e| e.attr.flags.contains(AttrFlags::DISABLED));
            if waits {
                kernel.enable(counter.as_fd()).map_err(|e| Error::io("cannot start a counter", e))?;
            }
        }
        Ok(())
    }

    /// Stops all counters.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn disable<K: Kernel>(&self, kernel: &K) -> Result<()> {
        self.all.iter().try_for_each(|c| kernel.disable(c.as_fd()).map_err(|e| Error::io("cannot stop a counter", e)))
    }

    /// The counters that lost samples, and how many; where the kernel counts that.
    ///
    /// # Errors
    /// A counter that cannot be read.
    pub fn lost<K: Kernel>(&self, kernel: &K) -> Result<Vec<(&Counter, u64)>> {
        let mut all = Vec::new();
        for counter in &self.all {
            let counts = self.events.get(counter.event).is_some_and(|e| e.attr.read_format.contains(ReadFormat::LOST));
            if counts {
                // ID | LOST: value, id, lost.
                let mut numbers = [0; 3];
                kernel
                    .read(counter.as_fd(), &mut numbers)
                    .map_err(|e| Error::io("cannot read how many samples a counter lost", e))?;
                let [_, _, lost] = numbers;
                all.extend((lost > 0).then_some((counter, lost)));
            }
        }
        Ok(all)
    }

    fn map_rings<K: Kernel>(&mut self, kernel: &K, plan: &Plan, messages: &Messages) -> Result<()> {
        self.owners = plan.cpus.iter().filter_map(|cpu| self.all.iter().position(|c| c.place.cpu == *cpu)).collect();
        let mut pages = plan.ring_pages;
        loop {
            match self.try_map(kernel, pages) {
                Ok(rings) => self.rings = rings,
                Err(Errno::PERM) if pages > 1 => {
                    pages /= 2;
                    continue;
                }
                Err(errno) => return Err(Error::Failed(unmappable(errno, pages))),
            }
            break;
        }
        if pages != plan.ring_pages {
            messages.note(format_args!(
                "rings of {pages} pages instead of {}: more is beyond this user's budget for locked memory; raise \
                 kernel.perf_event_mlock_kb or ulimit -l",
                plan.ring_pages
            ));
        }
        messages.explain(|| format!("rings: {} of {pages} pages", self.rings.len()));
        self.redirect(kernel)
    }

    fn try_map<K: Kernel>(&self, kernel: &K, pages: usize) -> Result<Vec<Ring>, Errno> {
        self.owners.iter().filter_map(|i| self.all.get(*i)).map(|owner| kernel.map(owner.as_fd(), pages)).collect()
    }

    /// Sends the records of every counter that has no ring to the ring of its CPU.
    fn redirect<K: Kernel>(&self, kernel: &K) -> Result<()> {
        let owners: Vec<_> = self.owners.iter().filter_map(|i| self.all.get(*i)).collect();
        for counter in &self.all {
            let owner = owners.iter().find(|o| o.place.cpu == counter.place.cpu);
            if let Some(owner) = owner.filter(|o| o.id != counter.id) {
                kernel.redirect(counter.as_fd(), owner.as_fd()).map_err(|e| {
                    Error::io(format!("cannot send a counter's records to the ring of CPU {}", counter.place.cpu), e)
                })?;
            }
        }
        Ok(())
    }
}

fn unmappable(errno: Errno, pages: usize) -> String {
    let why = match errno {
        Errno::PERM => {
            "not even one page is left of this user's budget for locked memory; raise kernel.perf_event_mlock_kb \
                        or ulimit -l, or end another recording"
                .to_owned()
        }
        Errno::NOMEM => "there is not that much memory in one piece; ask for less with -m".to_owned(),
        other => crate::error::why_words(&other.into()),
    };
    format!("cannot map rings of {pages} pages: {why}")
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
