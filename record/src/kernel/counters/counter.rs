//! Open counters: lookup, start and stop.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use recrep_format::abi::AttrFlags;
use recrep_format::attr::Attr;
use rustc_hash::FxHashMap;

use crate::kernel::ring::Ring;
use crate::kernel::{Kernel, Place, RingKey};
use crate::messages::error::{Error, Result};
use crate::plan::PlannedEvent;

/// Number of times that inherited counters are switched on or off, see [`Counters::switch`].
const SWITCHES: usize = 4;

#[derive(Debug)]
pub struct Counter {
    fd: OwnedFd,
    pub id: u64,
    /// Index of its event in the plan.
    pub event: usize,
    /// Thread, CPU and cgroup that it counts.
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

/// All counters, with their events as accepted by the kernel.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events of the plan, without what the kernel refused and rec gave up.
    pub events: Vec<PlannedEvent>,
    /// Counters, ordered by event.
    pub all: Vec<Counter>,
    /// Rings, in the order of their keys.
    pub rings: Vec<Ring>,
    /// Indices into `all` of the counters that own the rings.
    pub owners: Vec<usize>,
    /// Threads of the target user (`-u`) without counters, as rec may not trace them.
    pub hidden: BTreeSet<u32>,
    /// Threads that started while counters were opened: who has counters by inheritance is not
    /// known of them.
    pub late: BTreeSet<u32>,
}

impl Counters {
    pub fn ring_of(&self, counter: &Counter) -> RingKey {
        let event = self.events.get(counter.event);
        counter
            .place
            .ring(event.is_some_and(|event| event.attr.flags.contains(AttrFlags::WRITE_BACKWARD)))
    }

    fn of_event(&self, event: usize) -> &[Counter] {
        let start = self.all.partition_point(|counter| counter.event < event);
        let end = self.all.partition_point(|counter| counter.event <= event);
        self.all.get(start..end).unwrap_or_default()
    }

    pub fn ids(&self, event: usize) -> Vec<u64> {
        self.of_event(event).iter().map(|counter| counter.id).collect()
    }

    pub fn by_id(&self) -> FxHashMap<u64, &Counter> {
        self.all.iter().map(|counter| (counter.id, counter)).collect()
    }

    /// Returns the names of the tracepoints among the events.
    pub fn tracepoints(&self) -> Vec<&str> {
        self.events.iter().filter_map(|event| event.tracepoint.as_deref()).collect()
    }

    /// Returns the tracking event, which carries the side-band.
    pub fn tracker(&self) -> Option<&PlannedEvent> {
        self.events.iter().find(|e| e.attr.flags.contains(AttrFlags::COMM))
    }

    /// Returns the id for synthesized records: one of the tracking event's.
    pub fn tracking_id(&self) -> u64 {
        let tracker = self.first(|event| event.attr.flags.contains(AttrFlags::COMM));
        tracker.map_or(0, |(_, id)| id)
    }

    /// Returns the attr of the first such event, and the id of one of its counters.
    pub(crate) fn first(&self, is_it: impl Fn(&PlannedEvent) -> bool) -> Option<(&Attr, u64)> {
        let place = self.events.iter().position(is_it)?;
        Some((&self.events.get(place)?.attr, self.of_event(place).first()?.id))
    }

    /// Returns whether any event samples the kernel.
    pub fn sees_kernel(&self) -> bool {
        self.events.iter().any(|e| !e.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL))
    }

    /// Starts the counters that are not started by the command's exec.
    pub fn enable<K: Kernel>(&self, kernel: &K) -> Result<()> {
        self.switch(kernel, true, |event| event.attr.flags.contains(AttrFlags::DISABLED))
    }

    /// Starts the counters that the command's exec does not start.
    pub fn enable_others_than_exec<K: Kernel>(&self, kernel: &K) -> Result<()> {
        let flags = AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC;
        self.switch(kernel, true, |event| event.attr.flags & flags == AttrFlags::DISABLED)
    }

    pub fn disable<K: Kernel>(&self, kernel: &K) -> Result<()> {
        self.switch(kernel, false, |_| true)
    }

    /// Starts or stops the counters of one event, or of all events except dummies, which carry only
    /// the side-band. Returns the number of matching events.
    pub fn set_enabled<K: Kernel>(
        &self,
        kernel: &K,
        name: Option<&str>,
        on: bool,
    ) -> Result<usize> {
        let meant = |event: &PlannedEvent| match name {
            Some(name) => event.is_called(name),
            None => !event.is_dummy(),
        };
        self.switch(kernel, on, meant)?;
        Ok(self.events.iter().filter(|event| meant(event)).count())
    }

    /// Starts or stops the counters of these events, and of all who inherited them.
    ///
    /// Inherited counters are switched several times, as the kernel misses some: a new task reads
    /// whether its parent's counter is on, and is only then among those whose counters are switched
    /// with it; where the parent has itself inherited its counters, no lock excludes a switch in
    /// between. Such a task counts nothing, nor do its children. A counter that is on is left alone
    /// when it is switched on, so that this costs little.
    fn switch<K: Kernel>(
        &self,
        kernel: &K,
        on: bool,
        meant: impl Fn(&PlannedEvent) -> bool,
    ) -> Result<()> {
        for pass in 0..SWITCHES {
            for counter in &self.all {
                let Some(event) = self.events.get(counter.event).filter(|event| meant(event))
                else {
                    continue;
                };
                let is_inherited =
                    event.attr.flags.contains(AttrFlags::INHERIT) && counter.place.thread.is_some();
                if pass > 0 && !is_inherited {
                    continue;
                }
                let done = if on {
                    kernel.enable(counter.as_fd())
                } else {
                    kernel.disable(counter.as_fd())
                };
                done.map_err(|e| {
                    Error::io(
                        if on { "cannot start a counter" } else { "cannot stop a counter" },
                        e,
                    )
                })?;
            }
        }
        Ok(())
    }
}
