//! Sums of counters, by the place that they count.

use std::collections::BTreeMap;

use super::event::{Count, Event};
use super::place::{Aggregation, Place, Thread};
use super::report::Row;

/// Location of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTopology {
    /// Number of its processor package.
    pub socket: u32,
    /// Number of its die in the package.
    pub die: u32,
    /// Number of its core in the package.
    pub core: u32,
    /// Number of its NUMA node.
    pub node: u32,
}

/// The value of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Index of its event.
    pub event: usize,
    /// CPU; `None` for any.
    pub cpu: Option<u32>,
    /// Index of its thread in [`Grouping::threads`]; `None` for any.
    pub thread: Option<usize>,
    /// Value.
    pub count: Count,
}

/// How counters are summed.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    /// Kind of the places.
    pub by: Aggregation,
    /// Locations of the CPUs.
    pub topology: BTreeMap<u32, CpuTopology>,
    /// Threads that are counted.
    pub threads: Vec<Thread>,
    /// Take the values as they are, even if a counter was on the PMU for a part of the time only
    /// (`--no-scale`).
    pub unscaled: bool,
}

/// A sum, and the CPUs in it.
#[derive(Default)]
struct Sum {
    value: u64,
    enabled: u64,
    running: u64,
    cpus: Vec<u32>,
}

impl Grouping {
    /// Returns the sums of the readings: by event, then place, if the places are CPUs or threads,
    /// otherwise by place, then event. An event that the machine does not have is in every place.
    pub fn rows(&self, events: &[Event], readings: &[Reading]) -> Vec<Row> {
        let mut sums: BTreeMap<(Place, usize), Sum> = BTreeMap::new();
        for reading in readings {
            let sum = sums.entry((self.place(reading), reading.event)).or_default();
            sum.add(reading, self.unscaled);
        }
        let mut places: Vec<Place> = sums.keys().map(|(place, _)| place.clone()).collect();
        places.dedup();
        if places.is_empty() && self.by == Aggregation::Whole {
            places.push(Place::Whole);
        }
        for place in &places {
            for event in (0..).zip(events).filter(|(_, event)| !event.supported) {
                sums.entry((place.clone(), event.0)).or_default();
            }
        }
        let rows = sums.into_iter().map(|((place, event), sum)| sum.row(event, place));
        let mut rows: Vec<Row> = rows.collect();
        if matches!(self.by, Aggregation::Cpu | Aggregation::Thread) {
            // Places stay in their order.
            rows.sort_by_key(|row| row.event);
        }
        rows
    }

    fn place(&self, reading: &Reading) -> Place {
        // A CPU of unknown location is a core of its own.
        let cpu = reading.cpu.unwrap_or(0);
        let at = self.topology.get(&cpu).copied();
        let at = at.unwrap_or(CpuTopology { core: cpu, ..CpuTopology::default() });
        match self.by {
            Aggregation::Whole => Place::Whole,
            Aggregation::Node => Place::Node(at.node),
            Aggregation::Socket => Place::Socket(at.socket),
            Aggregation::Die => Place::Die(at.socket, at.die),
            Aggregation::Core => Place::Core(at.socket, at.die, at.core),
            Aggregation::Cpu => Place::Cpu(cpu),
            Aggregation::Thread => {
                let thread = reading.thread.and_then(|thread| self.threads.get(thread));
                Place::Thread(thread.cloned().unwrap_or_default())
            }
        }
    }
}

impl Sum {
    fn add(&mut self, reading: &Reading, unscaled: bool) {
        let Count { value, enabled, running } = reading.count;
        let value = if unscaled { value } else { reading.count.scaled().unwrap_or(0) };
        self.value = self.value.saturating_add(value);
        self.enabled = self.enabled.saturating_add(enabled);
        self.running = self.running.saturating_add(running);
        if let Some(cpu) = reading.cpu
            && !self.cpus.contains(&cpu)
        {
            self.cpus.push(cpu);
        }
    }

    fn row(self, event: usize, place: Place) -> Row {
        Row {
            event,
            place,
            cpus: self.cpus.len(),
            value: self.value as f64,
            enabled: self.enabled,
            running: self.running,
            spread: None,
            metrics: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(event: usize, cpu: u32, value: u64, running: u64) -> Reading {
        let count = Count { value, enabled: 100, running };
        Reading { event, cpu: Some(cpu), thread: Some(cpu as usize / 2), count }
    }

    /// Two hardware threads on each of two cores in each of two sockets.
    fn grouping(by: Aggregation) -> Grouping {
        let at = |cpu| CpuTopology { socket: cpu / 4, die: 0, core: cpu % 4 / 2, node: cpu / 4 };
        let topology = (0..8).map(|cpu| (cpu, at(cpu))).collect();
        let threads = ["a", "b", "c", "d"].map(|comm| Thread { tid: 7, comm: comm.to_owned() });
        Grouping { by, topology, threads: threads.to_vec(), unscaled: false }
    }

    fn texts(by: Aggregation) -> Vec<String> {
        let events = [Event::named("x"), Event { supported: false, ..Event::named("y") }];
        let readings: Vec<_> =
            (0..8).map(|cpu| reading(0, cpu, 1 << cpu, if cpu == 7 { 50 } else { 100 })).collect();
        let rows = grouping(by).rows(&events, &readings);
        let texts = rows.iter().map(|row| {
            let Row { event, place, cpus, value, enabled, running, .. } = row;
            format!("{event} {place} {cpus} {value} {enabled} {running}")
        });
        texts.collect()
    }

    #[test]
    fn sums_by_place() {
        assert_eq!(texts(Aggregation::Whole), ["0  8 383 800 750", "1  0 0 0 0"]);
        assert_eq!(
            texts(Aggregation::Socket),
            ["0 S0 4 15 400 400", "1 S0 0 0 0 0", "0 S1 4 368 400 350", "1 S1 0 0 0 0"]
        );
        assert_eq!(texts(Aggregation::Node)[2], "0 N1 4 368 400 350");
        assert_eq!(texts(Aggregation::Die)[2], "0 S1-D0 4 368 400 350");
        assert_eq!(texts(Aggregation::Core)[6], "0 S1-D0-C1 2 320 200 150");
        let cpus = texts(Aggregation::Cpu);
        assert_eq!(
            (cpus[7].as_str(), cpus[15].as_str()),
            ("0 CPU7 1 256 100 50", "1 CPU7 0 0 0 0")
        );
        let threads = texts(Aggregation::Thread);
        assert_eq!((threads.len(), threads[1].as_str()), (8, "0 b-7 2 12 200 200"));
    }

    #[test]
    fn nothing_to_read_still_has_rows() {
        let events = [Event { supported: false, ..Event::named("x") }];
        let rows = Grouping::default().rows(&events, &[]);
        assert_eq!((rows.len(), rows[0].is_counted()), (1, false));
        let never = reading(0, 1, 5, 0);
        let row = &Grouping::default().rows(&[Event::named("x")], &[never])[0];
        assert_eq!((row.value, row.is_counted(), row.percent_running()), (0.0, false, 0.0));
        let unscaled = Grouping { unscaled: true, ..Grouping::default() };
        assert_eq!(unscaled.rows(&[Event::named("x")], &[reading(0, 1, 5, 50)])[0].value, 5.0);
    }
}
