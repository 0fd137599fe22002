//! Time of threads off and on their CPUs, from the records of context switches.
//!
//! ```text
//!   thread   ──running──┤ switch sample, OUT ····waiting···· IN ├──running── sample ──running──┤ OUT ··· IN ├──
//!                         └ the sample of the switch stands         └ stands for the running   └ no sample of its own:
//!                           for OUT to IN                             time since the sample      shown at the nearest
//!                                                                     before                     CPU sample before
//! ```
//!
//! The kernel samples the event `context-switches` while the old thread is still current, just
//! before it writes the SWITCH record (`perf_event_task_sched_out` in its
//! `include/linux/perf_event.h`), so its sample belongs to the thread's next OUT, or to the last
//! one if an IN comes before it. All this is found once, for each thread by itself (`walk`); then
//! it is frozen, and each sample looks up its own time by thread and moment.

mod by_thread;
mod idle;
mod life;
mod mark;
mod parallelism;
mod ran;
mod read;
mod wakes;
mod walk;

pub(crate) use life::{NONE, Stretch, StretchKind, ThreadStretches};
pub(crate) use ran::{RanSpan, RanThread};
pub(crate) use read::{RecordedProgram, Recorder, ThreadFacts};
pub(crate) use wakes::{InterruptWakes, Wake, WakeFields, Waker};

#[cfg(test)]
pub(crate) use mark::{Mark, ThreadRecord};
#[cfg(test)]
pub(crate) use walk::{ThreadWalk, WantedTimes};

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recrep_format::abi::{EventType, HwEvent, SwEvent};
use recrep_format::attr::{Attr, AttrIndex, AttrTable};
use rustc_hash::FxHashMap;

pub(crate) use self::parallelism::{BusyTime, Parallelism};

/// Activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Running,
    /// It gave up its CPU: it slept, or waited for a lock or for data.
    Waiting,
    /// The kernel took its CPU away, although it could have run on.
    Preempted,
    /// It waited, and nothing was to be done: see [`IdleThreads`].
    Idle,
    /// It could run, and had no CPU yet.
    Runnable,
    /// Records are lost, or it was not recorded then.
    Unknown,
}

impl Activity {
    /// Packs it into one word, for packed keys.
    pub(crate) const fn pack(self) -> u64 {
        self as u64
    }

    /// Returns the number of [`Activity::pack`] as a byte.
    pub(crate) const fn byte(self) -> u8 {
        self as u8
    }

    /// Reverses [`Activity::pack`].
    pub(crate) const fn unpack(word: u64) -> Self {
        match word {
            0 => Self::Running,
            1 => Self::Waiting,
            2 => Self::Preempted,
            3 => Self::Idle,
            4 => Self::Runnable,
            _ => Self::Unknown,
        }
    }

    /// Returns the value of the sort key `switch`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Preempted => "preempted",
            Self::Idle => "waiting (idle)",
            Self::Runnable => "runnable",
            Self::Unknown => "unknown",
        }
    }
}

/// A frame that stands in for the stack of a switch without a sample of its own, or for the kernel's
/// part of it. It is mapped like kernel code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StandIn {
    /// No processor uses this address.
    pub(crate) address: u64,
    pub(crate) name: &'static str,
}

impl StandIn {
    /// The callers are the stack of the thread's nearest CPU sample before.
    pub(crate) const NEAREST_SAMPLE: Self = Self { address: 1 << 63, name: "[nearest sample]" };
    /// The thread has no CPU sample before, so there are no callers.
    pub(crate) const NO_SAMPLE: Self = Self { address: (1 << 63) + 1, name: "[no sample]" };
    /// It is not known what the thread did.
    pub(crate) const UNKNOWN: Self = Self { address: (1 << 63) + 2, name: "[unknown]" };
    /// Address of the first one that says what a thread waits for.
    pub(crate) const WAITS: u64 = (1 << 63) + 16;
}

/// Time off the CPU that has a sample of its own. There may be millions of them, so they are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SampledTime {
    /// Time of the sample.
    at: u64,
    /// Length in nanoseconds, times four, plus the [`Activity`], which is not one of the path alone.
    word: u64,
}

const _: () = assert!(size_of::<SampledTime>() == 16);

impl SampledTime {
    fn new(at: u64, length: u64, activity: Activity) -> Self {
        Self { at, word: length << 2 | activity.pack() }
    }
}

/// Time of a thread without a sample of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsampled {
    pub at: u64,
    /// Length in nanoseconds.
    pub length: u64,
    /// CPU on which the thread had run; all ones if not recorded.
    pub cpu: u32,
    pub activity: Activity,
}

/// A CPU sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) time: u64,
    pub(crate) offset: u64,
    /// Nanoseconds that the thread ran since its sample before; of the last one also those after
    /// it.
    pub(crate) share: u64,
}

/// Times of a thread, each list in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OffCpuThread {
    pub(crate) pid: i32,
    sampled: Vec<SampledTime>,
    unsampled: Vec<Unsampled>,
    pub(crate) runs: Vec<Run>,
    /// From the first record of each thread that had this number to the last one.
    alive: Vec<[u64; 2]>,
    /// Lives of the threads with this number, if they are collected.
    pub(crate) lives: Vec<ThreadStretches>,
}

impl OffCpuThread {
    /// Gives all times off the CPU another activity, and returns their sum.
    fn set_activity(&mut self, activity: Activity) -> u64 {
        let mut sum = 0_u64;
        for SampledTime { at, word } in &mut self.sampled {
            sum = sum.saturating_add(*word >> 2);
            *word = SampledTime::new(*at, *word >> 2, activity).word;
        }
        for one in self.unsampled.iter_mut().filter(|one| one.activity != Activity::Running) {
            sum = sum.saturating_add(one.length);
            one.activity = activity;
        }
        sum
    }

    /// Returns the index of the first unsampled time from this moment on.
    fn unsampled_from(&self, time: u64) -> usize {
        self.unsampled.partition_point(|one| one.at < time)
    }
}

/// Numbers of switches, for warnings and hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchCounts {
    /// Number of SWITCH records with a thread and a time.
    pub records: u64,
    /// Number of switches whose length is unknown, because the record of the switch in or out is
    /// missing.
    pub unpaired: u64,
    /// Number of threads that were off their CPUs when the recording ended.
    pub unfinished: u64,
    /// Number of times off the CPU.
    pub stretches: u64,
    /// Number of these without a sample of their own.
    pub unsampled: u64,
    /// Number of threads that did not run at all.
    pub never_ran: u64,
}

impl SwitchCounts {
    fn add(&mut self, other: Self) {
        self.records += other.records;
        self.unpaired += other.unpaired;
        self.unfinished += other.unfinished;
        self.stretches += other.stretches;
        self.unsampled += other.unsampled;
        self.never_ran += other.never_ran;
    }
}

/// Threads of a recording of all CPUs that have nothing to do: those of the kernel, those of the
/// recorder, and those that did not run at all. Their waits are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdleThreads {
    pub(crate) threads: u64,
    /// Sum of their waits in nanoseconds.
    pub(crate) time: u64,
    /// Those of programs other than the recorder, which did not run at all, by name.
    pub(crate) never_ran: BTreeMap<String, u64>,
}

impl IdleThreads {
    /// Returns what they are, for a sentence: the names of programs with the most threads first.
    pub(crate) fn described(&self) -> String {
        const SHOWN: usize = 8;
        let mut programs: Vec<(&String, u64)> =
            self.never_ran.iter().map(|(name, count)| (name, *count)).collect();
        programs.sort_by_key(|(_, count)| Reverse(*count));
        let names = programs.iter().take(SHOWN).map(|(name, count)| match count {
            1 => (*name).clone(),
            count => format!("{count} {name}"),
        });
        let mut names: Vec<String> = names.collect();
        names.extend((programs.len() > SHOWN).then(|| "…".to_owned()));
        match names.is_empty() {
            true => "threads of the kernel and the recorder".to_owned(),
            false => format!(
                "threads of the kernel, the recorder, and those that did not run in the whole \
                 recording ({})",
                names.join(", ")
            ),
        }
    }
}

/// Times of all threads of a file.
#[derive(Debug, Default)]
pub(crate) struct OffCpu {
    /// Roles of the events.
    pub roles: Vec<Role>,
    pub counts: SwitchCounts,
    /// Threads whose waits are told apart.
    pub idle: IdleThreads,
    threads: FxHashMap<i32, OffCpuThread>,
}

impl OffCpu {
    #[inline]
    pub(crate) fn role(&self, event: AttrIndex) -> Role {
        self.roles.get(event.0).copied().unwrap_or_default()
    }

    /// Returns the time off the CPU that a sample of `context-switches` stands for; `None` if it is
    /// unknown.
    pub(crate) fn stretch(&self, tid: i32, time: u64) -> Option<(u64, Activity)> {
        let sampled = &self.threads.get(&tid)?.sampled;
        let index = sampled.binary_search_by_key(&time, |stretch| stretch.at).ok()?;
        let SampledTime { word, .. } = *sampled.get(index)?;
        Some((word >> 2, Activity::unpack(word & 3)))
    }

    /// Returns what the CPU sample at this offset in the file stands for: the nanoseconds that the
    /// thread ran since its sample before (of the last one also those after it), and the times
    /// without samples of their own, until the thread's next CPU sample. `None` if its thread is
    /// not looked at.
    pub(crate) fn run(&self, tid: i32, time: u64, offset: u64) -> Option<(u64, &[Unsampled])> {
        let thread = self.threads.get(&tid)?;
        let index =
            thread.runs.binary_search_by_key(&(time, offset), |run| (run.time, run.offset)).ok()?;
        let share = thread.runs.get(index)?.share;
        let next = thread.runs.get(index + 1).map(|next| thread.unsampled_from(next.time));
        let until = next.unwrap_or(thread.unsampled.len());
        Some((share, thread.unsampled.get(thread.unsampled_from(time)..until).unwrap_or_default()))
    }

    /// Iterates over pid, tid and times of the threads that have times before their first CPU
    /// sample.
    pub(crate) fn before_samples(&self) -> impl Iterator<Item = (i32, i32, &[Unsampled])> {
        self.threads.iter().filter_map(|(tid, thread)| {
            let first = thread
                .runs
                .first()
                .map_or(thread.unsampled.len(), |run| thread.unsampled_from(run.time));
            let before = thread.unsampled.get(..first).filter(|before| !before.is_empty())?;
            Some((thread.pid, *tid, before))
        })
    }
}

/// Meaning of an event's samples for the times of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing that is time.
    #[default]
    None,
    /// Switches of threads from their CPUs.
    Switch,
    /// Running time: the samples' periods in nanoseconds.
    Clock,
    /// Running time: what the thread ran since its sample before.
    Cycles,
}

/// Finds the first event of context switches and the event that measures running time: the first
/// clock; else cycles, on each kind of core; else the first other event of the hardware.
fn roles(attrs: &AttrTable) -> Vec<Role> {
    let attrs: Vec<&Attr> = attrs.entries().iter().map(|entry| &entry.attr).collect();
    let first = |is: fn(&Attr) -> bool| attrs.iter().position(|attr| is(attr));
    let (switches, clock, cycles) = (first(is_switches), first(is_clock), first(is_cycles));
    let roles = attrs.iter().enumerate().map(|(place, attr)| match Some(place) {
        place if place == switches => Role::Switch,
        place if place == clock => Role::Clock,
        _ if clock.is_some() => Role::None,
        _ if is_cycles(attr) => Role::Cycles,
        place if cycles.is_none() && place == first(is_hardware) => Role::Cycles,
        _ => Role::None,
    });
    roles.collect()
}

fn is_software(attr: &Attr, event: SwEvent) -> bool {
    attr.kind == EventType::SOFTWARE && attr.config == event.0
}

/// Returns whether an event counts switches of threads from their CPUs.
pub(crate) fn is_switches(attr: &Attr) -> bool {
    is_software(attr, SwEvent::CONTEXT_SWITCHES)
}

fn is_clock(attr: &Attr) -> bool {
    is_software(attr, SwEvent::CPU_CLOCK) || is_software(attr, SwEvent::TASK_CLOCK)
}

/// Returns whether an event counts cycles; the upper half of its config may have the PMU of a kind
/// of cores.
fn is_cycles(attr: &Attr) -> bool {
    attr.kind == EventType::HARDWARE && attr.config & u64::from(u32::MAX) == HwEvent::CPU_CYCLES.0
}

fn is_hardware(attr: &Attr) -> bool {
    let other = [EventType::SOFTWARE, EventType::TRACEPOINT, EventType::BREAKPOINT];
    !other.contains(&attr.kind) && attr.sample_period > 0
}
