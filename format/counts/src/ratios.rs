//! Ratios between events that people read first: CPUs utilized, instructions per cycle, misses,
//! rates per second.

use std::collections::BTreeMap;
use std::time::Duration;

use recrep_format::abi::{HwCache, HwEvent};

use super::event::{Event, Role};
use super::place::Place;
use super::report::{Metric, Quantity, Row};

/// Adds to each row its ratios to other events of the same place, group, cgroup and exclusions.
/// `elapsed` is the wall time that was counted.
pub fn add_ratios(rows: &mut [Row], events: &[Event], elapsed: Duration) {
    let mut places: BTreeMap<&Place, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter() {
        places.entry(&row.place).or_default().push(row);
    }
    let elapsed = elapsed.as_nanos() as f64;
    let mut all = Vec::with_capacity(rows.len());
    for row in rows.iter() {
        all.push(match (events.get(row.event), places.get(&row.place)) {
            (Some(event), Some(rows)) if row.is_counted() => {
                Around { row, event, rows, events }.metrics(elapsed)
            }
            _ => Vec::new(),
        });
    }
    for (row, metrics) in rows.iter_mut().zip(all) {
        row.metrics.extend(metrics);
    }
}

/// A row among those of its place.
struct Around<'a> {
    row: &'a Row,
    event: &'a Event,
    rows: &'a [&'a Row],
    events: &'a [Event],
}

impl Around<'_> {
    /// Returns the metrics of the row, by perf's rules.
    fn metrics(&self, elapsed: f64) -> Vec<Metric> {
        let clock = self.total(Role::Clock);
        let metric = match self.event.role {
            Role::Clock => self.per(Some(elapsed), "CPUs utilized", 3),
            Role::Hardware(HwEvent::CPU_CYCLES) => self.per(clock, "GHz", 3),
            Role::Hardware(HwEvent::INSTRUCTIONS) => {
                let cycles = self.per(self.hardware(HwEvent::CPU_CYCLES), "insn per cycle", 2);
                return cycles.into_iter().chain(self.stalled()).collect();
            }
            Role::Hardware(HwEvent::BRANCH_MISSES) => {
                self.percent_of(self.hardware(HwEvent::BRANCH_INSTRUCTIONS), "of all branches")
            }
            Role::Hardware(HwEvent::CACHE_MISSES) => {
                self.percent_of(self.hardware(HwEvent::CACHE_REFERENCES), "of all cache refs")
            }
            Role::Hardware(HwEvent::STALLED_CYCLES_FRONTEND) => {
                self.percent_of(self.hardware(HwEvent::CPU_CYCLES), "frontend cycles idle")
            }
            Role::Hardware(HwEvent::STALLED_CYCLES_BACKEND) => {
                self.percent_of(self.hardware(HwEvent::CPU_CYCLES), "backend cycles idle")
            }
            Role::ReadMisses(cache) => cache_name(cache)
                .and_then(|name| self.percent_of(self.total(Role::Reads(cache)), name)),
            _ => None,
        };
        metric.or_else(|| self.per_second(clock)).into_iter().collect()
    }

    /// Returns the row's part of a total in percent.
    fn percent_of(&self, total: Option<f64>, name: &str) -> Option<Metric> {
        let value = self.row.value;
        let percent = 100.0 * value / total.filter(|total| *total > 0.0 && value > 0.0)?;
        Some(Metric::new(name, percent, Quantity::Percent))
    }

    /// Returns the row's ratio to a total.
    fn per(&self, total: Option<f64>, name: &str, decimals: usize) -> Option<Metric> {
        let ratio = self.row.value / total.filter(|total| *total > 0.0)?;
        Some(Metric::new(name, ratio, Quantity::Number(decimals)))
    }

    /// Returns the row's rate, if it has no other metric.
    fn per_second(&self, clock: Option<f64>) -> Option<Metric> {
        let per_second = 1e9 * self.row.value / clock.filter(|clock| *clock > 0.0)?;
        let is_rated = !matches!(self.event.role, Role::Clock | Role::ReadMisses(_))
            && self.event.role != Role::Hardware(HwEvent::CPU_CYCLES);
        is_rated.then(|| Metric::new("/sec", per_second, Quantity::Rate))
    }

    fn hardware(&self, event: HwEvent) -> Option<f64> {
        self.total(Role::Hardware(event))
    }

    /// Returns the stalled cycles per instruction: of the end that is stalled more.
    fn stalled(&self) -> Option<Metric> {
        let ends = [HwEvent::STALLED_CYCLES_FRONTEND, HwEvent::STALLED_CYCLES_BACKEND];
        let stalled = ends.into_iter().filter_map(|end| self.total(Role::Hardware(end)));
        let most = stalled.fold(0.0, f64::max);
        (most > 0.0 && self.row.value > 0.0).then(|| {
            let ratio = most / self.row.value;
            Metric::new("stalled cycles per insn", ratio, Quantity::Number(2))
        })
    }

    /// Returns the total of the first other event with this role.
    fn total(&self, role: Role) -> Option<f64> {
        let found = self.rows.iter().find(|row| self.is_beside(row.event, role));
        found.filter(|row| row.is_counted()).map(|row| row.value)
    }

    /// Returns whether an event is another one with this role, counted in the same way.
    fn is_beside(&self, event: usize, role: Role) -> bool {
        let Some(other) = self.events.get(event).filter(|_| event != self.row.event) else {
            return false;
        };
        other.role == role
            && other.cgroup == self.event.cgroup
            && other.excluded == self.event.excluded
            && (self.event.group.is_none() || other.group == self.event.group)
            && (role == Role::Clock || other.pmu == self.event.pmu)
    }
}

fn cache_name(cache: HwCache) -> Option<&'static str> {
    Some(match cache {
        HwCache::L1D => "of all L1-dcache accesses",
        HwCache::L1I => "of all L1-icache accesses",
        HwCache::LL => "of all LL-cache accesses",
        HwCache::DTLB => "of all dTLB cache accesses",
        HwCache::ITLB => "of all iTLB cache accesses",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::{Grouping, Reading};
    use crate::event::Count;

    fn metrics(events: &[(Role, u64)], change: impl Fn(&mut [Event])) -> Vec<Vec<(String, f64)>> {
        let mut all: Vec<Event> =
            events.iter().map(|(role, _)| Event { role: *role, ..Event::named("x") }).collect();
        change(&mut all);
        let readings: Vec<_> = (0..)
            .zip(events)
            .map(|(event, (_, value))| {
                let count = Count { value: *value, enabled: 10, running: 10 };
                Reading { event, cpu: None, thread: None, count }
            })
            .collect();
        let mut rows = Grouping::default().rows(&all, &readings);
        add_ratios(&mut rows, &all, Duration::from_secs(1));
        let pairs = |row: Row| row.metrics.into_iter().map(|m| (m.name, m.value)).collect();
        rows.into_iter().map(pairs).collect()
    }

    #[test]
    fn ratios_of_the_default_events() {
        let found = metrics(
            &[
                (Role::Clock, 500_000_000),
                (Role::Other, 50),
                (Role::Hardware(HwEvent::CPU_CYCLES), 1_000_000_000),
                (Role::Hardware(HwEvent::INSTRUCTIONS), 2_500_000_000),
                (Role::Hardware(HwEvent::BRANCH_INSTRUCTIONS), 100),
                (Role::Hardware(HwEvent::BRANCH_MISSES), 5),
                (Role::Hardware(HwEvent::STALLED_CYCLES_BACKEND), 500_000_000),
                (Role::Reads(HwCache::L1D), 40),
                (Role::ReadMisses(HwCache::L1D), 10),
                (Role::ReadMisses(HwCache::LL), 10),
            ],
            |_| {},
        );
        let expected: [&[(&str, f64)]; 10] = [
            &[("CPUs utilized", 0.5)],
            &[("/sec", 100.0)],
            &[("GHz", 2.0)],
            &[("insn per cycle", 2.5), ("stalled cycles per insn", 0.2)],
            &[("/sec", 200.0)],
            &[("of all branches", 5.0)],
            &[("backend cycles idle", 50.0)],
            &[("/sec", 80.0)],
            &[("of all L1-dcache accesses", 25.0)],
            &[],
        ];
        for (found, expected) in found.iter().zip(expected) {
            let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn only_events_that_belong_together() {
        let pair = [
            (Role::Hardware(HwEvent::CPU_CYCLES), 10),
            (Role::Hardware(HwEvent::INSTRUCTIONS), 20),
        ];
        assert_eq!(metrics(&pair, |_| {})[1], [("insn per cycle".to_owned(), 2.0)]);
        let apart: [fn(&mut Event); 3] = [
            |event| event.cgroup = Some("a".to_owned()),
            |event| event.group = Some(1),
            |event| event.pmu = 4,
        ];
        for change in apart {
            assert!(metrics(&pair, |events| change(&mut events[1]))[1].is_empty());
        }
    }
}
