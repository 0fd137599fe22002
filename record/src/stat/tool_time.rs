//! Times that count as events: `duration_time`, `user_time`, `system_time`. The kernel has no such
//! counters, so a dummy stands for each, whose value is set at each reading.
//!
//! ```text
//!   duration_time              since counting began
//!   user_time, system_time     command: its CPU time, once it has ended; before, that of its process so far
//!                              processes, threads: theirs from /proc/PID/task/TID/stat, in clock ticks
//!                              whole CPUs: theirs from /proc/stat, in clock ticks
//! ```

use std::fs;
use std::time::Duration;

use recrep_counts::Count;

use crate::event::{DURATION_TIME, EventSpec, SYSTEM_TIME, TOOL_KIND, USER_TIME};
use crate::kernel::sys;
use crate::tasks::{Target, Task};

/// A time that counts as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolTime {
    Duration,
    User,
    System,
}

/// Times so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ToolTimes {
    pub(super) duration: Duration,
    pub(super) cpu: CpuTimes,
}

/// Times in user space and in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTimes {
    pub(super) user: Duration,
    pub(super) system: Duration,
}

/// CPU time of what is counted, since it began.
#[derive(Debug)]
pub(super) struct CpuClock {
    source: TimeSource,
    before: CpuTimes,
}

/// Where CPU times are read.
#[derive(Debug)]
enum TimeSource {
    Command(Task),
    Tasks(Vec<Task>),
    Machine,
}

impl ToolTime {
    /// Returns the time that an event stands for; `None` if the kernel counts it.
    pub(super) fn of(spec: &EventSpec) -> Option<Self> {
        match spec.config {
            _ if spec.kind != TOOL_KIND => None,
            DURATION_TIME => Some(Self::Duration),
            USER_TIME => Some(Self::User),
            SYSTEM_TIME => Some(Self::System),
            _ => None,
        }
    }
}

impl ToolTimes {
    /// Returns a time as a count of nanoseconds.
    pub(super) fn count(&self, of: ToolTime) -> Count {
        let time = match of {
            ToolTime::Duration => self.duration,
            ToolTime::User => self.cpu.user,
            ToolTime::System => self.cpu.system,
        };
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let enabled = nanoseconds(self.duration).max(1);
        Count { value: nanoseconds(time), enabled, running: enabled }
    }
}

impl CpuTimes {
    fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }

    /// Returns the sums of the children that have been waited for.
    fn of_children() -> Self {
        let (user, system) = sys::children_cpu_time();
        Self { user, system }
    }

    fn of_ticks(user: u64, system: u64) -> Self {
        let rate = rustix::param::clock_ticks_per_second().max(1);
        let time = |ticks: u64| Duration::from_millis(ticks.saturating_mul(1000) / rate);
        Self { user: time(user), system: time(system) }
    }

    /// Returns the times of a thread; of a process's leader, those of all its threads and of the
    /// children that it has waited for. Zero once it has ended.
    fn of_task(task: Task, is_process: bool) -> Self {
        let Task { pid, tid } = task;
        let path = match is_process {
            true => format!("/proc/{pid}/stat"),
            false => format!("/proc/{pid}/task/{tid}/stat"),
        };
        fs::read_to_string(path)
            .ok()
            .and_then(|text| Self::in_stat(&text, is_process))
            .unwrap_or_default()
    }

    /// Reads the text of `/proc/PID/stat`.
    fn in_stat(text: &str, with_children: bool) -> Option<Self> {
        // Fields 14 to 17; the second one is a name in parentheses, which may have any characters.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut next = || fields.next()?.parse::<u64>().ok();
        let (user, system, of_children) = (next()?, next()?, next().zip(next()));
        let (more_user, more_system) = of_children.filter(|_| with_children).unwrap_or_default();
        Some(Self::of_ticks(user.saturating_add(more_user), system.saturating_add(more_system)))
    }

    /// Reads the text of `/proc/stat`.
    fn in_machine_stat(text: &str) -> Option<Self> {
        let mut fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let mut next = || fields.next()?.parse::<u64>().ok();
        let (user, nice, system) = (next()?, next()?, next()?);
        Some(Self::of_ticks(user.saturating_add(nice), system))
    }
}

impl CpuClock {
    /// Returns the clock of a target, which begins now; `command` is the process of the command.
    pub(super) fn new(target: &Target, tasks: &[Task], command: Option<u32>) -> Self {
        let source = match (target, command) {
            (Target::System, _) => TimeSource::Machine,
            (Target::Command, Some(pid)) => TimeSource::Command(Task { pid, tid: pid }),
            _ => TimeSource::Tasks(tasks.to_vec()),
        };
        let before = source.read();
        Self { source, before }
    }

    pub(super) fn elapsed(&self) -> CpuTimes {
        self.source.read().since(self.before)
    }
}

impl TimeSource {
    fn read(&self) -> CpuTimes {
        match self {
            // Once the command has ended, its times are those of the children.
            Self::Command(task) => CpuTimes::of_task(*task, true).plus(CpuTimes::of_children()),
            Self::Tasks(tasks) => tasks
                .iter()
                .map(|task| CpuTimes::of_task(*task, false))
                .fold(CpuTimes::default(), CpuTimes::plus),
            Self::Machine => fs::read_to_string("/proc/stat")
                .ok()
                .and_then(|text| CpuTimes::in_machine_stat(&text))
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_proc() {
        let rate = rustix::param::clock_ticks_per_second();
        let time = |ticks: u64| Duration::from_millis(ticks * 1000 / rate);
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 0 0 100 50 30 20 20 0 1 0 99 1 1\n";
        let found = |with_children| CpuTimes::in_stat(text, with_children).unwrap();
        assert_eq!(found(false), CpuTimes { user: time(100), system: time(50) });
        assert_eq!(found(true), CpuTimes { user: time(130), system: time(70) });
        assert_eq!(CpuTimes::in_stat("7 (a) S", true), None);
        let machine = CpuTimes::in_machine_stat("cpu  100 20 30 400 0 0 0 0 0 0\ncpu0 …\n");
        assert_eq!(machine, Some(CpuTimes { user: time(120), system: time(30) }));
        assert_eq!(CpuTimes::in_machine_stat("intr 1"), None);
    }

    #[test]
    fn times_are_counts_of_nanoseconds() {
        let cpu = CpuTimes { user: Duration::from_nanos(3), system: Duration::from_nanos(4) };
        let times = ToolTimes { duration: Duration::from_nanos(10), cpu };
        let values = [ToolTime::Duration, ToolTime::User, ToolTime::System]
            .map(|of| (times.count(of).value, times.count(of).running));
        assert_eq!(values, [(10, 10), (3, 10), (4, 10)]);
        assert_eq!(ToolTimes::default().count(ToolTime::User).scaled(), Some(0));
    }
}
