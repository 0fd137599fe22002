//! Lives of threads: the stretches between which they run.

/// A number in place of none.
pub(crate) const NONE: u32 = u32::MAX;

/// What a thread does from the moment on at which it stops to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StretchKind {
    /// It gave up its CPU.
    Waiting,
    /// The kernel took its CPU away.
    Preempted,
    /// It is new, and did not run yet.
    Starting,
    /// Records are lost.
    Unknown,
}

/// Time between two times of running. There may be many millions of them, so they are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) off: u64,
    /// End: the thread runs again, or the recording is over.
    pub(crate) on: u64,
    /// Time of the sample of the switch; all ones if there is none.
    sample: u64,
    /// Index of the wake among those of the thread.
    pub(crate) wake: u32,
    /// CPU on which the thread runs again.
    pub(crate) cpu: u16,
    pub(crate) kind: StretchKind,
}

const _: () = assert!(size_of::<Stretch>() == 32);

impl Stretch {
    pub(crate) const NO_CPU: u16 = u16::MAX;

    /// Creates a stretch without a wake, given its start and end, the CPU on which the thread runs
    /// then (all ones if not recorded), and the time of its sample.
    pub(crate) fn new(
        [off, on]: [u64; 2],
        kind: StretchKind,
        cpu: u32,
        sample: Option<u64>,
    ) -> Self {
        let cpu = u16::try_from(cpu).unwrap_or(Self::NO_CPU);
        Self { off, on: on.max(off), sample: sample.unwrap_or(u64::MAX), wake: NONE, cpu, kind }
    }

    /// Returns the time of the sample of the switch.
    pub(crate) fn sample(&self) -> Option<u64> {
        (self.sample != u64::MAX).then_some(self.sample)
    }
}

/// Life of a thread as its records tell it, before wakes are assigned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadStretches {
    /// Time from which on it is known what the thread does.
    pub(crate) known: u64,
    /// `true` if it was forked then, and did not run yet.
    pub(crate) is_starting: bool,
    /// Number of the thread that forked it.
    pub(crate) parent: Option<u32>,
    /// CPU on which it ran before the first stretch; all ones if not recorded.
    pub(crate) first_cpu: u32,
    /// Time of its EXIT record; it runs on until it has woken who waits for it.
    pub(crate) exit: Option<u64>,
    pub(crate) stretches: Vec<Stretch>,
}

impl ThreadStretches {
    /// Creates the life of a thread that was found at this time.
    pub(crate) fn known_since(known: u64) -> Self {
        Self { known, first_cpu: u32::MAX, ..Self::default() }
    }

    /// Creates the life of a thread that was forked at this time.
    pub(crate) fn forked(known: u64, parent: Option<u32>) -> Self {
        Self { is_starting: true, parent, ..Self::known_since(known) }
    }
}
