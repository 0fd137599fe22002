//! Events that are counted, and the values of their counters.

use recrep_format::abi::{AttrFlags, CacheEvent, EventType, HwCache, HwCacheOp, HwEvent, SwEvent};
use recrep_format::attr::Attr;

/// A counter's value, and how long it counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Value, as read.
    pub value: u64,
    /// Time that the event was enabled, in nanoseconds.
    pub enabled: u64,
    /// Time that it was on the PMU, in nanoseconds.
    pub running: u64,
}

impl Count {
    /// Returns the value extrapolated to the whole time that the event was enabled, by perf's
    /// formula; `None` if the counter never ran.
    pub fn scaled(self) -> Option<u64> {
        match self.running {
            0 => None,
            running if running < self.enabled => {
                let scaled = self.value as f64 * self.enabled as f64 / running as f64;
                #[expect(clippy::cast_possible_truncation, reason = "as perf; saturates")]
                Some(scaled as u64)
            }
            _ => Some(self.value),
        }
    }

    /// Returns what was counted since an earlier reading of the same counter.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            value: self.value.wrapping_sub(earlier.value),
            enabled: self.enabled.saturating_sub(earlier.enabled),
            running: self.running.saturating_sub(earlier.running),
        }
    }
}

/// An event that is counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Name, with modifiers.
    pub name: String,
    /// Unit of its values; empty if they are plain counts.
    pub unit: String,
    /// Factor from its counts to that unit.
    pub scale: f64,
    /// `false` if the machine does not have it.
    pub supported: bool,
    /// Cgroup that it counts.
    pub cgroup: Option<String>,
    /// Index of its group's leader among the events; `None` if it is alone.
    pub group: Option<usize>,
    /// Event that ratios are made of.
    pub role: Role,
    /// Exclusions (user, kernel, …): ratios combine events with the same.
    pub excluded: AttrFlags,
    /// PMU in the high half of a generalized event's `config`; 0 for the default.
    pub pmu: u32,
}

/// Part of an event in ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Nanoseconds of CPU time.
    Clock,
    /// One of the CPU's generalized events.
    Hardware(HwEvent),
    /// Read accesses of a cache.
    Reads(HwCache),
    /// Read misses of a cache.
    ReadMisses(HwCache),
    /// Any other event.
    Other,
}

impl Event {
    /// Creates an event with this name, whose role and unit the attr tells.
    pub fn new(name: String, attr: &Attr) -> Self {
        let role = Role::of(attr);
        let (unit, scale) = if role == Role::Clock { ("msec", 1e-6) } else { ("", 1.0) };
        let generalized = matches!(attr.kind, EventType::HARDWARE | EventType::HW_CACHE);
        Self {
            name,
            unit: unit.to_owned(),
            scale,
            supported: true,
            cgroup: None,
            group: None,
            role,
            excluded: attr.flags
                & (AttrFlags::EXCLUDE_USER
                    | AttrFlags::EXCLUDE_KERNEL
                    | AttrFlags::EXCLUDE_HV
                    | AttrFlags::EXCLUDE_HOST
                    | AttrFlags::EXCLUDE_IDLE),
            pmu: if generalized { u32::try_from(attr.config >> 32).unwrap_or(0) } else { 0 },
        }
    }

    /// Creates an event of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            unit: String::new(),
            scale: 1.0,
            supported: true,
            cgroup: None,
            group: None,
            role: Role::Other,
            excluded: AttrFlags::empty(),
            pmu: 0,
        }
    }
}

impl Role {
    /// Returns the role of an attr's event.
    pub fn of(attr: &Attr) -> Self {
        // The high half may name the PMU.
        let config = attr.config & 0xffff_ffff;
        match attr.kind {
            EventType::SOFTWARE
                if [SwEvent::CPU_CLOCK, SwEvent::TASK_CLOCK].contains(&SwEvent(attr.config)) =>
            {
                Self::Clock
            }
            EventType::HARDWARE => Self::Hardware(HwEvent(config)),
            EventType::HW_CACHE => {
                let event = CacheEvent::of(config);
                match (event.op, event.result.0) {
                    (HwCacheOp::READ, 0) => Self::Reads(event.cache),
                    (HwCacheOp::READ, 1) => Self::ReadMisses(event.cache),
                    _ => Self::Other,
                }
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_is_perfs() {
        let count = |value, enabled, running| Count { value, enabled, running };
        assert_eq!(count(7, 100, 100).scaled(), Some(7));
        assert_eq!(count(7, 300, 200).scaled(), Some(10), "10.5 is cut");
        assert_eq!(count(0, 300, 0).scaled(), None);
        assert_eq!(count(u64::MAX, u64::MAX, 1).scaled(), Some(u64::MAX));
        assert_eq!(count(9, 30, 20).since(count(4, 10, 10)), count(5, 20, 10));
        // A counter of few bits that the kernel counts down.
        assert_eq!(count(1, 0, 0).since(count(u64::MAX, 0, 0)).value, 2);
    }

    #[test]
    fn roles_and_units_are_the_attrs() {
        let role = |kind, config| Role::of(&Attr { kind, config, ..Attr::default() });
        assert_eq!(role(EventType::SOFTWARE, 1), Role::Clock);
        assert_eq!(role(EventType::SOFTWARE, 2), Role::Other);
        assert_eq!(role(EventType::HARDWARE, 4 << 32 | 1), Role::Hardware(HwEvent::INSTRUCTIONS));
        assert_eq!(role(EventType::HW_CACHE, 2), Role::Reads(HwCache::LL));
        assert_eq!(role(EventType::HW_CACHE, 0x1_0002), Role::ReadMisses(HwCache::LL));
        assert_eq!(role(EventType::HW_CACHE, 0x1_0102), Role::Other);
        let attr = Attr { kind: EventType::HARDWARE, config: 4 << 32, ..Attr::default() };
        assert_eq!(Event::new("cpu_atom/cycles/".to_owned(), &attr).pmu, 4);
        let clock = Attr { kind: EventType::SOFTWARE, ..Attr::default() };
        let clock = Event::new("cpu-clock".to_owned(), &clock);
        assert_eq!((clock.unit.as_str(), clock.scale), ("msec", 1e-6));
    }
}
