//! The table of a run: which counter belongs to which event, CPU and thread, and the readings.

use std::collections::BTreeSet;

use recrep_counts::{Aggregation, Count, Event, Grouping, Reading, Row, TableMetric, Thread};
use rustc_hash::FxHashMap;

use super::Settings;
use super::events::CountedEvents;
use super::tool_time::{ToolTime, ToolTimes};
use crate::kernel::Kernel;
use crate::kernel::counters::{Counter, Counters, Opened};
use crate::machine::topology;
use crate::messages::Messages;
use crate::messages::error::Result;
use crate::plan::PlannedEvent;
use crate::tasks::Task;

/// Open counters, and what is known of their values.
pub(super) struct Table {
    pub(super) counters: Counters,
    /// Events as they are printed.
    pub(super) events: Vec<Event>,
    pub(super) grouping: Grouping,
    /// Metrics of these events.
    pub(super) metrics: Vec<TableMetric>,
    /// Event and place of each counter.
    cells: Vec<Cell>,
    /// Place of each counter, by its id.
    by_id: FxHashMap<u64, usize>,
    /// Events whose counters are in error, which has been reported.
    failed: BTreeSet<usize>,
}

/// A counter.
struct Cell {
    /// Index of its event as printed.
    event: usize,
    cpu: Option<u32>,
    thread: Option<usize>,
    /// Value at the last reading.
    last: Count,
    /// Value at the end of the interval before.
    before: Count,
    /// The time that is its value; `None` if the kernel counts it, or another counter of the event
    /// has the value.
    time: Option<ToolTime>,
}

/// A counter's value.
pub(super) struct Value<'a> {
    pub(super) counter: &'a Counter,
    /// Index of its thread.
    pub(super) thread: Option<usize>,
    pub(super) count: Count,
}

impl Table {
    pub(super) fn new(
        settings: &Settings,
        chosen: &CountedEvents,
        opened: Opened,
        tasks: &[Task],
    ) -> Self {
        let Opened { counters, left_out } = opened;
        let (events, shown) = events(&counters.events, &left_out, &chosen.set_of, settings);
        let metrics = chosen.metrics.iter().map(|metric| of_shown(metric, &shown)).collect();
        let by_location =
            !matches!(settings.by, Aggregation::Whole | Aggregation::Cpu | Aggregation::Thread);
        let cpus: BTreeSet<u32> =
            counters.all.iter().filter_map(|counter| counter.place.cpu).collect();
        let cpus: Vec<u32> = cpus.into_iter().collect();
        let mut grouping = Grouping {
            by: settings.by,
            unscaled: settings.unscaled,
            threads: tasks.iter().map(|task| thread(*task)).collect(),
            ..Grouping::default()
        };
        if by_location {
            grouping.topology = topology::locations(&settings.machine.sysfs, &cpus);
        }
        let mut places: FxHashMap<u32, usize> =
            tasks.iter().zip(0..).map(|(task, place)| (task.tid, place)).collect();
        let mut times: Vec<Option<ToolTime>> = chosen.specs.iter().map(ToolTime::of).collect();
        let mut cells = Vec::with_capacity(counters.all.len());
        for counter in &counters.all {
            let thread = counter.place.thread.map(|tid| {
                *places.entry(tid).or_insert_with(|| {
                    grouping.threads.push(thread(Task { pid: tid, tid }));
                    grouping.threads.len() - 1
                })
            });
            cells.push(Cell {
                event: shown.get(counter.event).copied().unwrap_or(counter.event),
                cpu: counter.place.cpu,
                thread,
                last: Count::default(),
                before: Count::default(),
                time: times.get_mut(counter.event).and_then(Option::take),
            });
        }
        let by_id = counters.all.iter().zip(0..).map(|(counter, place)| (counter.id, place));
        let by_id = by_id.collect();
        Self { counters, events, grouping, metrics, cells, by_id, failed: BTreeSet::new() }
    }

    /// Reads all counters.
    pub(super) fn read<K: Kernel>(&mut self, kernel: &K, messages: &Messages) -> Result<()> {
        for reading in self.counters.read(kernel)? {
            let Some(place) = self.by_id.get(&reading.id).copied() else { continue };
            let Some(cell) = self.cells.get_mut(place) else { continue };
            if !reading.failed {
                let (enabled, running) = (reading.enabled, reading.running);
                cell.last = Count { value: reading.value, enabled, running };
                continue;
            }
            // It has counted nothing since it failed.
            if self.failed.insert(cell.event) {
                let name = self.events.get(cell.event).map_or("", |event| &event.name);
                messages.warn(format_args!(
                    "{name} has lost its counter: it is pinned (D), and there is no room for it on \
                     the PMU; leave out D, or count fewer events"
                ));
            }
        }
        Ok(())
    }

    /// Returns whether there are events whose values are times.
    pub(super) fn has_times(&self) -> bool {
        self.cells.iter().any(|cell| cell.time.is_some())
    }

    /// Sets the values of such events.
    pub(super) fn set_times(&mut self, times: &ToolTimes) {
        for cell in &mut self.cells {
            if let Some(time) = cell.time {
                // Clock ticks are coarser than the time of a command that has ended.
                let Count { value, enabled, running } = times.count(time);
                cell.last = Count { value: value.max(cell.last.value), enabled, running };
            }
        }
    }

    /// Returns the value of each counter since the last call, or since the start with `whole`.
    pub(super) fn readings(&mut self, whole: bool) -> Vec<Reading> {
        let mut readings = Vec::with_capacity(self.cells.len());
        for cell in &mut self.cells {
            let count = if whole { cell.last } else { cell.last.since(cell.before) };
            cell.before = cell.last;
            readings.push(Reading { event: cell.event, cpu: cell.cpu, thread: cell.thread, count });
        }
        readings
    }

    /// Returns the rows of these readings.
    pub(super) fn rows(&self, readings: &[Reading]) -> Vec<Row> {
        self.grouping.rows(&self.events, readings)
    }

    /// Returns each counter's value at the last reading.
    pub(super) fn values(&self) -> impl Iterator<Item = Value<'_>> {
        let cells = self.counters.all.iter().zip(&self.cells);
        cells.map(|(counter, cell)| Value { counter, thread: cell.thread, count: cell.last })
    }
}

/// Events of several PMUs that are printed as one.
#[derive(PartialEq, Eq, Hash)]
struct Family {
    /// Name with modifiers.
    name: String,
    cgroup: Option<String>,
    /// Number of their set: the same event of two sets is not added up.
    set: usize,
}

/// Returns a metric of the events that are printed. `shown`: for each planned one its index among
/// them.
fn of_shown(metric: &TableMetric, shown: &[usize]) -> TableMetric {
    let mut metric = metric.clone();
    for input in &mut metric.inputs {
        let mut events: Vec<usize> =
            input.events.iter().filter_map(|planned| shown.get(*planned).copied()).collect();
        events.sort_unstable();
        events.dedup();
        input.events = events;
    }
    metric
}

/// Returns the events as they are printed, and for each planned one its index among them.
fn events(
    planned: &[PlannedEvent],
    left_out: &BTreeSet<usize>,
    set_of: &[usize],
    settings: &Settings,
) -> (Vec<Event>, Vec<usize>) {
    let mut events: Vec<Event> = Vec::new();
    let mut shown: Vec<usize> = Vec::new();
    let mut families: FxHashMap<Family, usize> = FxHashMap::default();
    for (index, plan) in planned.iter().enumerate() {
        let mut event = event(plan);
        event.supported = !left_out.contains(&index);
        event.group = match plan.leader {
            Some(leader) => shown.get(leader).copied(),
            None => {
                let leads = planned.iter().any(|other| other.leader == Some(index));
                leads.then_some(events.len())
            }
        };
        if let Some(family) = plan.family.as_ref().filter(|_| !settings.no_merge) {
            let name = PlannedEvent { name: family.clone(), ..plan.clone() }.full_name();
            let set = set_of.get(index).copied().unwrap_or(0);
            let key = Family { name: name.clone(), cgroup: plan.cgroup.clone(), set };
            let place = families.entry(key).or_insert(events.len());
            let first = events.get_mut(*place);
            if let Some(first) = first.filter(|first| {
                first.unit == event.unit && first.scale.to_bits() == event.scale.to_bits()
            }) {
                first.supported |= event.supported;
                shown.push(*place);
                continue;
            }
            event.name = name;
        }
        shown.push(events.len());
        events.push(event);
    }
    (events, shown)
}

/// Returns the event as it is printed.
pub(super) fn event(plan: &PlannedEvent) -> Event {
    let mut event = Event::new(plan.full_name(), &plan.attr);
    event.cgroup.clone_from(&plan.cgroup);
    if let Some(unit) = plan.unit.as_ref().filter(|unit| !unit.is_empty()) {
        event.unit.clone_from(unit);
    }
    if let Some(scale) = plan.scale.as_ref().and_then(|scale| scale.trim().parse().ok()) {
        event.scale = scale;
    }
    event
}

fn thread(task: Task) -> Thread {
    let comm = std::fs::read_to_string(format!("/proc/{}/task/{}/comm", task.pid, task.tid));
    let comm = comm.unwrap_or_default().trim_end_matches('\n').to_owned();
    Thread { tid: task.tid, comm }
}
