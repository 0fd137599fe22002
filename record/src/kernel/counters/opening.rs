//! Opening of counters: each event on each of its CPUs and threads, with fallbacks for what the
//! kernel refuses.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use recrep_console::units;
use recrep_format::abi::AttrFlags;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::io::Errno;

use super::counter::{Counter, Counters};
use super::opener::{Attempt, Cgroups, Opener, Opening};
use crate::kernel::fallback::{self, Circumstances, Fallback};
use crate::kernel::{Kernel, Place};
use crate::machine::Machine;
use crate::messages::Messages;
use crate::messages::error::{Error, Result};
use crate::plan::{Plan, PlannedEvent};
use crate::tasks::Target;

/// Lists the threads to open counters for, anew each time (none: whatever runs on the CPUs).
pub(crate) type ListThreads<'a> = dyn FnMut() -> Vec<Option<u32>> + 'a;

/// Maximum number of times that threads are listed. Who keeps starting threads does so in threads
/// that have counters by then, which the new ones inherit.
const LISTINGS: usize = 5;

/// Opens what the plan says, with its rings, for `threads`.
pub(crate) fn open<K: Kernel>(
    kernel: &K,
    plan: &Plan,
    threads: &mut ListThreads<'_>,
    target: &Target,
    machine: &Machine,
    messages: &Messages,
) -> Result<Counters> {
    let with = Circumstances::new(target, machine);
    let mut opened = open_counters(kernel, plan, threads, with, messages)?;
    opened.remove_left_out();
    let mut counters = opened.counters;
    counters.map_rings(kernel, plan, messages)?;
    Ok(counters)
}

/// Open counters, and the events that there are none of.
pub(crate) struct Opened {
    pub(crate) counters: Counters,
    /// Indices of the events that the kernel refused, and that can be gone on without.
    pub(crate) left_out: BTreeSet<usize>,
}

impl Opened {
    /// Removes the events that there are no counters of. They come after all that lead groups,
    /// whose places stay.
    pub(crate) fn remove_left_out(&mut self) {
        for index in std::mem::take(&mut self.left_out).into_iter().rev() {
            self.counters.events.remove(index);
            for counter in self.counters.all.iter_mut().filter(|counter| counter.event > index) {
                counter.event -= 1;
            }
        }
    }
}

/// Opens what the plan says, without rings, for `threads`; and, as threads may start between their
/// listing and the opening, for those that are listed afterwards, until there are no new ones.
pub(crate) fn open_counters<K: Kernel>(
    kernel: &K,
    plan: &Plan,
    threads: &mut ListThreads<'_>,
    with: Circumstances<'_>,
    messages: &Messages,
) -> Result<Opened> {
    let mut opener = Opener {
        kernel,
        plan,
        with,
        messages,
        cgroups: Cgroups::open(plan)?,
        counters: Counters { events: plan.events.clone(), ..Counters::default() },
        leads: plan.events.iter().filter_map(|event| event.leader).collect(),
        leaders: FxHashMap::default(),
        left_out: BTreeSet::new(),
        told: Vec::new(),
    };
    let first = threads();
    opener.add(&first, false)?;
    let mut known: FxHashSet<_> = first.into_iter().collect();
    for _ in 1..LISTINGS {
        let new: Vec<_> = threads().into_iter().filter(|thread| known.insert(*thread)).collect();
        if new.is_empty() {
            break;
        }
        let needed = opener.counters.all.len() + files(plan, new.len());
        if allow_files(needed) < needed {
            messages.warn(format_args!(
                "threads that started just now are not recorded, unless a recorded one started \
                 them ({}): there are more counters than files may be open; raise the hard limit \
                 (ulimit -Hn)",
                new.len()
            ));
            break;
        }
        opener.counters.late.extend(new.iter().flatten());
        opener.add(&new, true)?;
    }
    let mut counters = opener.counters;
    counters.all.sort_by_key(|counter| counter.event);
    Ok(Opened { counters, left_out: opener.left_out })
}

impl<K: Kernel> Opener<'_, K> {
    /// Opens every event for these threads; `late`: after others, for which the events are settled.
    fn add(&mut self, threads: &[Option<u32>], late: bool) -> Result<()> {
        let places = self
            .plan
            .events
            .iter()
            .map(|event| places(event, self.plan, threads, &self.cgroups))
            .collect::<Vec<_>>();
        allow_files(self.counters.all.len() + places.iter().map(Vec::len).sum::<usize>());
        'events: for (index, places) in places.iter().enumerate() {
            let before = self.counters.all.len();
            let Some(mut event) = self.counters.events.get(index).cloned() else { continue };
            if late && (!is_of_threads(&event) || self.left_out.contains(&index)) {
                continue;
            }
            let starts = self.counters.starts(&event);
            if event.leader.is_some_and(|leader| self.left_out.contains(&leader)) {
                // The rest of a group without its leader counts alone.
                event.leader = None;
                event.attr.flags |= starts;
            }
            let mut hidden = None;
            for place in places {
                let settled = late || self.counters.all.len() > before;
                match self.attempt(&mut event, Opening { place: *place, starts, settled })? {
                    Attempt::Opened(fd, notes) => {
                        self.note_once(notes);
                        self.keep(fd, &event, index, *place)?;
                    }
                    Attempt::Gone => {}
                    Attempt::LeftOut => {
                        self.left_out.insert(index);
                        continue 'events;
                    }
                    Attempt::Hidden(why) => {
                        self.counters.hidden.extend(place.thread);
                        hidden.get_or_insert(why);
                    }
                }
            }
            let opened = self.counters.all.len() - before;
            if opened == 0 && !late {
                return Err(Error::Failed(
                    hidden.unwrap_or_else(|| fallback_message(&event, self.with)),
                ));
            }
            self.messages.explain(|| explain(&event, opened));
            if let Some(slot) = self.counters.events.get_mut(index) {
                *slot = event;
            }
        }
        Ok(())
    }

    /// Prints notes, each once.
    fn note_once(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.told.contains(&note) {
                self.messages.note(&note);
                self.told.push(note);
            }
        }
    }

    /// Keeps an open counter of an event, filtered as the event asks.
    fn keep(
        &mut self,
        fd: OwnedFd,
        event: &PlannedEvent,
        index: usize,
        place: Place,
    ) -> Result<()> {
        filter(self.kernel, fd.as_fd(), event)?;
        let id = self
            .kernel
            .id(fd.as_fd())
            .map_err(|e| Error::io("cannot read the id of a counter", e))?;
        if self.leads.contains(&index) {
            self.leaders.insert((index, place), self.counters.all.len());
        }
        self.counters.all.push(Counter::new(fd, id, index, place));
        Ok(())
    }
}

/// Returns whether an event is opened for each thread.
fn is_of_threads(event: &PlannedEvent) -> bool {
    event.cgroup.is_none() && !event.system_wide
}

/// Returns the number of counters, and so of files, that the plan takes for this many threads.
pub(crate) fn files(plan: &Plan, threads: usize) -> usize {
    plan.events.iter().map(|event| files_of(event, plan, threads)).sum()
}

/// Returns the number of an event's counters for this many threads.
pub(crate) fn files_of(event: &PlannedEvent, plan: &Plan, threads: usize) -> usize {
    let per_thread = plan.per_thread && !event.system_wide;
    let cpus = if per_thread { 1 } else { event.cpus.as_ref().unwrap_or(&plan.cpus).len() };
    if is_of_threads(event) { cpus.saturating_mul(threads) } else { cpus }
}

/// Returns the places at which an event is counted.
fn places(
    event: &PlannedEvent,
    plan: &Plan,
    threads: &[Option<u32>],
    cgroups: &Cgroups,
) -> Vec<Place> {
    let cpus: Vec<Option<u32>> = match plan.per_thread && !event.system_wide {
        true => vec![None],
        false => event.cpus.as_ref().unwrap_or(&plan.cpus).iter().map(|cpu| Some(*cpu)).collect(),
    };
    let cgroup = event.cgroup.as_ref().and_then(|name| cgroups.0.get(name));
    let cgroup = cgroup.map(AsRawFd::as_raw_fd);
    let threads = if is_of_threads(event) { threads } else { &[None] };
    threads
        .iter()
        .flat_map(|thread| cpus.iter().map(|cpu| Place { thread: *thread, cpu: *cpu, cgroup }))
        .collect()
}

impl Counters {
    /// Returns the flags that start the leader of an event's group.
    fn starts(&self, event: &PlannedEvent) -> AttrFlags {
        let leader = event.leader.and_then(|leader| self.events.get(leader));
        leader.map_or(AttrFlags::empty(), |it| {
            it.attr.flags & (AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC)
        })
    }
}

/// Sets the event's filter on a counter.
fn filter<K: Kernel>(kernel: &K, counter: BorrowedFd<'_>, event: &PlannedEvent) -> Result<()> {
    let Some(text) = &event.filter else { return Ok(()) };
    let refused = |why: &str| {
        Error::Failed(format!("cannot set the filter '{text}' on {}: {why}", event.full_name()))
    };
    let filter =
        CString::new(&text[..]).map_err(|_| refused("it contains a zero byte; remove it"))?;
    kernel.set_filter(counter, &filter).map_err(|errno| match (errno, &event.tracepoint) {
        (Errno::INVAL, Some(tracepoint)) => refused(&format!(
            "the kernel cannot parse it; use fields of the tracepoint (see rec list {tracepoint}), \
             for example: common_pid != 1 && (prio < 120 || comm ~ \"sh*\")"
        )),
        (errno, _) => refused(&crate::messages::error::why_words(&errno.into())),
    })
}

fn fallback_message(event: &PlannedEvent, with: Circumstances<'_>) -> String {
    match fallback::next(event, Errno::SRCH, with) {
        Fallback::GiveUp(advice) => advice,
        Fallback::Retry { .. } | Fallback::LeaveOut(_) | Fallback::NotSupported => {
            format!("cannot count {}: there is nothing to count it for", event.full_name())
        }
    }
}

fn explain(event: &PlannedEvent, counters: usize) -> String {
    let attr = &event.attr;
    // Without those of `precise_ip`, which have no names.
    let flags = AttrFlags::all() & attr.flags;
    let rate = match attr.frequency() {
        Some(hz) => format!("{hz} Hz"),
        None => format!("every {}", attr.sample_period),
    };
    format!(
        "event {}: type {}, config {:#x}, {rate}, sample_type {}, read_format {}, flags {}, \
         precise_ip {}, {counters} counters",
        event.full_name(),
        attr.kind.0,
        attr.config,
        units::bit_names(attr.sample_type.iter_names()),
        units::bit_names(attr.read_format.iter_names()),
        units::bit_names(flags.iter_names()),
        attr.flags.precise_ip(),
    )
}

/// Files that rec has open beside counters, at most.
const OTHER_FILES: u64 = 64;

/// Raises the limits on open files where so many counters need it, as far as this user may. Returns
/// how many may be open then.
pub(crate) fn allow_files(counters: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = counters as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        // Raising the hard limit needs CAP_SYS_RESOURCE.
        let hard = limit.maximum.map(|hard| hard.max(needed));
        let raised = Rlimit { current: Some(needed), maximum: hard };
        let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
        // If both fail, so will the opening of a counter, which says what to do.
        let _ = setrlimit(Resource::Nofile, raised).or_else(|_| setrlimit(Resource::Nofile, most));
    }
    let soft = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(soft.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX)
}
