//! Open counters: what they are called, starting and stopping them.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use recrep_format::abi::AttrFlags;
use rustc_hash::FxHashMap;

use crate::kernel::ring::Ring;
use crate::kernel::{Kernel, Place, RingKey};
use crate::messages::error::{Error, Result};
use crate::plan::PlannedEvent;

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
#[derive(Debug, Default)]
pub struct Counters {
    /// The events: the plan's, after what the kernel refused was given up.
    pub events: Vec<PlannedEvent>,
    /// The counters, event by event.
    pub all: Vec<Counter>,
    /// The rings, in the order of their keys.
    pub rings: Vec<Ring>,
    /// Indices into `all`: the counters that have the rings.
    pub owners: Vec<usize>,
    /// Threads of a user (`-u`) that have no counters, as this user may not look into them.
    pub hidden: BTreeSet<u32>,
    /// Threads that started while counters were opened: who has counters by inheritance is not known of them.
    pub late: BTreeSet<u32>,
}

impl Counters {
    /// The ring of a counter.
    #[must_use]
    pub fn ring_of(&self, counter: &Counter) -> RingKey {
        let event = self.events.get(counter.event);
        counter.place.ring(event.is_some_and(|event| event.attr.flags.contains(AttrFlags::WRITE_BACKWARD)))
    }

    /// An event's counters.
    fn of_event(&self, event: usize) -> &[Counter] {
        let start = self.all.partition_point(|counter| counter.event < event);
        let end = self.all.partition_point(|counter| counter.event <= event);
        self.all.get(start..end).unwrap_or_default()
    }

    /// The ids of an event's counters.
    #[must_use]
    pub fn ids(&self, event: usize) -> Vec<u64> {
        self.of_event(event).iter().map(|counter| counter.id).collect()
    }

    /// All counters by their ids.
    #[must_use]
    pub fn by_id(&self) -> FxHashMap<u64, &Counter> {
        self.all.iter().map(|counter| (counter.id, counter)).collect()
    }

    /// The tracepoints among the events, by name.
    #[must_use]
    pub fn tracepoints(&self) -> Vec<&str> {
        self.events.iter().filter_map(|event| event.tracepoint.as_deref()).collect()
    }

    /// The event that carries the side-band.
    #[must_use]
    pub fn tracker(&self) -> Option<&PlannedEvent> {
        self.events.iter().find(|e| e.attr.flags.contains(AttrFlags::COMM))
    }

    /// The id that synthesized records carry: that of the event which tracks.
    #[must_use]
    pub fn tracking_id(&self) -> u64 {
        let tracker = self.events.iter().position(|event| event.attr.flags.contains(AttrFlags::COMM));
        tracker.and_then(|event| self.of_event(event).first()).map_or(0, |counter| counter.id)
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

    /// Starts or stops the counters of one event, or of all that count anything: what only tells of tasks goes on. Gives how
    /// many events there were.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn steer<K: Kernel>(&self, kernel: &K, name: Option<&str>, on: bool) -> Result<usize> {
        let meant = |event: &PlannedEvent| match name {
            Some(name) => event.is_called(name),
            None => !event.is_dummy(),
        };
        let events: Vec<bool> = self.events.iter().map(meant).collect();
        for counter in self.all.iter().filter(|counter| events.get(counter.event) == Some(&true)) {
            let done = if on { kernel.enable(counter.as_fd()) } else { kernel.disable(counter.as_fd()) };
            done.map_err(|e| Error::io(if on { "cannot start a counter" } else { "cannot stop a counter" }, e))?;
        }
        Ok(events.iter().filter(|meant| **meant).count())
    }
}
