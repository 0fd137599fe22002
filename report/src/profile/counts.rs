//! Values of counters in a recording, beside its samples.

use serde::Serialize;

/// Total of an event, without scale and unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct EventCount {
    /// Value, scaled to the time that the counters were enabled.
    pub value: u64,
    pub enabled_ns: u64,
    /// Time that the counters were on the PMU.
    pub running_ns: u64,
}

/// Values of a thread's counters when it exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadCounts {
    pub pid: u32,
    pub tid: u32,
    /// Index of an event, and its scaled value.
    pub values: Vec<(usize, u64)>,
}

impl EventCount {
    /// Adds the total of another input.
    pub(crate) fn add(&mut self, other: Self) {
        self.value = self.value.saturating_add(other.value);
        self.enabled_ns = self.enabled_ns.saturating_add(other.enabled_ns);
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
    }
}
