//! What opens counters: it asks for one, and for less where the kernel refuses it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use recrep_format::abi::{AttrFlags, EventType};
use recrep_format::attr::Attr;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::io::Errno;

use super::counter::Counters;
use crate::kernel::fallback::{self, Circumstances, Fallback, GivenUp};
use crate::kernel::{Kernel, Place};
use crate::messages::Messages;
use crate::messages::error::{Error, Result};
use crate::plan::{Plan, PlannedEvent};
use crate::tasks::Target;

/// Maximum number of times that a counter is asked for again after EINTR.
const MOST_INTERRUPTIONS: usize = 10;

/// State of opening: what it takes, and what is open by now.
pub(super) struct Opener<'a, K> {
    pub(super) kernel: &'a K,
    pub(super) plan: &'a Plan,
    pub(super) with: Circumstances<'a>,
    pub(super) messages: &'a Messages,
    pub(super) cgroups: Cgroups,
    pub(super) counters: Counters,
    /// The events that lead groups.
    pub(super) leads: FxHashSet<usize>,
    /// Their counters, by event and place.
    pub(super) leaders: FxHashMap<(usize, Place), usize>,
    /// The events that the recording goes on without.
    pub(super) left_out: BTreeSet<usize>,
    /// Notes that were printed, each once.
    pub(super) told: Vec<String>,
}

/// Open directories of the events' cgroups.
pub(super) struct Cgroups(pub(super) HashMap<String, File>);

impl Cgroups {
    pub(super) fn open(plan: &Plan) -> Result<Self> {
        let names = plan.events.iter().filter_map(|event| event.cgroup.clone());
        Ok(Self(
            names
                .map(|name| {
                    let file = crate::tasks::cgroup::open(&name)?;
                    Ok((name, file))
                })
                .collect::<Result<_>>()?,
        ))
    }
}

/// Place of a counter to open, and what the event's earlier counters have settled.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    pub(super) place: Place,
    /// Flags that start the leader, for an event that leaves the group.
    pub(super) starts: AttrFlags,
    /// `true` if the event already has a counter, so that its attr is final.
    pub(super) settled: bool,
}

/// An event as it is asked for next, and what was given up for it.
struct AskedEvent {
    event: PlannedEvent,
    given_up: Vec<GivenUp>,
}

/// Result of asking for a counter.
pub(super) enum Attempt {
    /// Contains notes on what was given up.
    Opened(OwnedFd, Vec<String>),
    /// The thread has ended, or the CPU went offline.
    Gone,
    /// The recording goes on without its event.
    LeftOut,
    /// The thread belongs to the target user (`-u`), but rec may not trace it. Contains the
    /// message.
    Hidden(String),
}

impl<K: Kernel> Opener<'_, K> {
    /// Opens one counter. Until the first counter of an event is open, fallbacks change the event's
    /// attr. After that, the attr is final, and only ended threads, hidden threads (`-u`) and CPUs
    /// that went offline are skipped.
    pub(super) fn attempt(&self, event: &mut PlannedEvent, at: Opening) -> Result<Attempt> {
        let mut trial = AskedEvent { event: event.clone(), given_up: Vec::new() };
        let mut interruptions = 0;
        loop {
            let leader = self.leader(&trial.event, at.place);
            let errno = match self.kernel.open(&attr(&trial.event), at.place, leader) {
                Ok(fd) => {
                    let notes = trial.given_up.iter();
                    let notes = notes.map(|what| what.note(event, &trial.event, self.with));
                    let attempt = Attempt::Opened(fd, notes.collect());
                    *event = trial.event;
                    return Ok(attempt);
                }
                Err(errno) => errno,
            };
            // A signal may have come; but the kernel says so too where asking again does not help.
            if errno == Errno::INTR && interruptions < MOST_INTERRUPTIONS {
                interruptions += 1;
            } else if let Some(attempt) = self.refused(&mut trial, errno, at)? {
                return Ok(attempt);
            }
        }
    }

    /// Returns the counter of the event's leader at a place.
    fn leader(&self, event: &PlannedEvent, place: Place) -> Option<BorrowedFd<'_>> {
        let leader = self.leaders.get(&(event.leader?, place))?;
        self.counters.all.get(*leader).map(AsFd::as_fd)
    }

    /// Makes the trial ask for less after the kernel refused it; returns how the attempt ended where
    /// there is nothing less to ask for.
    fn refused(
        &self,
        trial: &mut AskedEvent,
        errno: Errno,
        at: Opening,
    ) -> Result<Option<Attempt>> {
        let Opening { place, starts, settled } = at;
        let (with, messages) = (self.with, self.messages);
        let thread_ended = errno == Errno::SRCH && with.target.is_attached();
        let cpu_went = errno == Errno::NODEV && settled;
        if thread_ended || cpu_went {
            return Ok(Some(Attempt::Gone));
        }
        let event = &mut trial.event;
        // A weak group that does not fit on its PMU is split.
        let is_weak = event.weak && event.leader.is_some();
        if is_weak && matches!(errno, Errno::INVAL | Errno::BADF) && !settled {
            event.leader = None;
            // It no longer has a leader that starts it.
            event.attr.flags |= starts;
            return Ok(None);
        }
        match fallback::next(event, errno, with) {
            Fallback::Retry { event: less, given_up: what } if !settled => {
                trial.event = *less;
                if what == Some(GivenUp::Cycles) {
                    trial.given_up.retain(|what| *what == GivenUp::Kernel);
                }
                trial.given_up.extend(what);
                Ok(None)
            }
            Fallback::LeaveOut(what) if !settled => {
                messages.note(what);
                Ok(Some(Attempt::LeftOut))
            }
            Fallback::NotSupported if !settled => {
                messages.explain(|| {
                    let why = crate::messages::error::why_words(&errno.into());
                    format!("event {}: not supported here: {why}", event.full_name())
                });
                Ok(Some(Attempt::LeftOut))
            }
            // Counters for other threads of the user could be opened, so the thread is the reason,
            // not the event.
            Fallback::Retry { .. } | Fallback::LeaveOut(_) | Fallback::NotSupported
                if unnamed(errno, place, with) =>
            {
                Ok(Some(Attempt::Hidden(String::new())))
            }
            Fallback::Retry { .. } | Fallback::LeaveOut(_) | Fallback::NotSupported => {
                Err(refused_here(event, errno, place))
            }
            Fallback::GiveUp(advice) if unnamed(errno, place, with) => {
                Ok(Some(Attempt::Hidden(advice)))
            }
            Fallback::GiveUp(advice) => {
                Err(Error::Failed(self.diagnosed(event, errno, at).unwrap_or(advice)))
            }
        }
    }

    /// Returns what the kernel refuses of an event, if trying shows it.
    fn diagnosed(&self, event: &PlannedEvent, errno: Errno, at: Opening) -> Option<String> {
        if errno != Errno::INVAL || at.settled {
            return None;
        }
        let takes = |attr: &Attr, grouped: bool| {
            let leader = if grouped { self.leader(event, at.place) } else { None };
            self.kernel.open(attr, at.place, leader).is_ok()
        };
        fallback::diagnose(event, self.with, takes)
    }
}

/// Returns the error of an event that the kernel took on other CPUs.
fn refused_here(event: &PlannedEvent, errno: Errno, place: Place) -> Error {
    let why = crate::messages::error::why_words(&errno.into());
    let cpu = place.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    Error::Failed(format!(
        "cannot count {} on {cpu}, unlike on the CPUs before it: {why}; exclude that CPU with -C",
        event.full_name()
    ))
}

/// Returns whether the kernel refused a thread that was selected by `-u`, not by its id.
fn unnamed(errno: Errno, place: Place, with: Circumstances<'_>) -> bool {
    let refused = matches!(errno, Errno::ACCESS | Errno::PERM) && place.thread.is_some();
    refused && matches!(with.target, Target::User(_))
}

/// Returns the attr for the kernel: for a probe, that of its tracepoint, or with the pointer to the
/// path or name in `event`.
fn attr(event: &PlannedEvent) -> Cow<'_, Attr> {
    let Some(probe) = &event.probe else { return Cow::Borrowed(&event.attr) };
    let attr = event.attr.clone();
    Cow::Owned(match (probe.tracepoint, &probe.target) {
        (Some(id), _) => {
            Attr { kind: EventType::TRACEPOINT, config: id, config1: 0, config2: 0, ..attr }
        }
        (None, Some(target)) => {
            Attr { config1: target.as_ptr().expose_provenance() as u64, ..attr }
        }
        (None, None) => attr,
    })
}
