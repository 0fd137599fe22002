//! The life of a process with a JIT, which decides whose code a file has that is named after a pid.

use std::time::{Duration, SystemTime};

/// Precision of the times of files and processes.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// Life of a process with a JIT, as far as the recording shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JitLife {
    /// Times of the recording's first and last sample, by which rec keeps maps.
    pub(crate) sampled: Option<(u64, u64)>,
    /// Time of the day at which it began at the earliest, if that was recorded.
    pub(crate) began: Option<SystemTime>,
    /// Time of the day at which it ended at the latest, if that was recorded.
    pub(crate) ended: Option<SystemTime>,
    /// End of the recording.
    pub(crate) recorded_until: Option<SystemTime>,
    /// `true` if several processes had the pid.
    pub(crate) is_reused: bool,
}

impl JitLife {
    /// Returns the name of the file in which rec kept a list of process `pid`.
    pub(crate) fn kept_name(&self, pid: i32, suffix: &str) -> Option<String> {
        let (first, last) = self.sampled.filter(|_| !self.is_reused)?;
        Some(format!("{first:x}-{last:x}-{pid}.{suffix}"))
    }

    /// Returns whether the process that lives now is the recorded one, given when it was started.
    pub(crate) fn is_living(&self, started: SystemTime) -> bool {
        let is_old = self.recorded_until.is_none_or(|until| started <= until + TICK);
        is_old && self.ended.is_none() && !self.is_reused
    }
}
