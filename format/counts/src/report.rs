//! What is printed: totals of events in places, with their ratios, and times.

use std::time::Duration;

use super::event::Event;
use super::metric::Measure;
use super::place::{Aggregation, Place};
use super::spread::Spread;

/// Total of an event in a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the event.
    pub event: usize,
    /// Place.
    pub place: Place,
    /// Number of CPUs whose counters are in the total.
    pub cpus: usize,
    /// Sum of the counters' scaled values; of several runs the mean.
    pub value: f64,
    /// Sum of the times that the counters were enabled, in nanoseconds.
    pub enabled: u64,
    /// Sum of the times that they were on the PMU, in nanoseconds.
    pub running: u64,
    /// Spread over several runs.
    pub spread: Option<Spread>,
    /// Ratios to other events.
    pub metrics: Vec<Metric>,
}

impl Row {
    /// Returns whether any of its counters ran.
    pub fn is_counted(&self) -> bool {
        self.running > 0
    }

    /// Returns the percentage of the enabled time that the counters were on the PMU.
    pub fn percent_running(&self) -> f64 {
        match self.running == self.enabled {
            true => 100.0,
            false => 100.0 * self.running as f64 / self.enabled as f64,
        }
    }
}

/// Everything that is printed: of a whole measurement, or of one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What was counted: `'./app'`, `process id '7'`.
    pub target: String,
    /// Events, in the order of the command line.
    pub events: Vec<Event>,
    /// Kind of the rows' places.
    pub aggregation: Aggregation,
    /// Totals, in the order of printing.
    pub rows: Vec<Row>,
    /// Metrics of event tables.
    pub metrics: Vec<Measure>,
    /// End of the interval, since the start of counting; `None` for a whole measurement.
    pub interval_end: Option<Duration>,
    /// Word that begins the lines of a whole measurement in CSV, where intervals came before it.
    pub csv_label: Option<&'static str>,
    /// Seconds of wall time, of each run.
    pub elapsed: Spread,
    /// Seconds of CPU time of the command, in each run.
    pub cpu_time: Option<CpuTime>,
}

/// CPU time of the command, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// In user mode.
    pub user: Spread,
    /// In the kernel.
    pub sys: Spread,
}

impl Report {
    /// Returns the metrics that are shown behind a row.
    pub(super) fn metrics_of<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = &'a Measure> {
        let is_of_row =
            |measure: &&Measure| measure.event == Some(row.event) && measure.place == row.place;
        self.metrics.iter().filter(is_of_row)
    }

    /// Returns the metrics that are computed without events.
    pub(super) fn metrics_without_row(&self) -> impl Iterator<Item = &Measure> {
        self.metrics.iter().filter(|measure| measure.event.is_none())
    }

    /// Creates a report of these events, without rows and times.
    pub fn new(target: String, events: Vec<Event>) -> Self {
        Self {
            target,
            events,
            aggregation: Aggregation::Whole,
            rows: Vec::new(),
            metrics: Vec::new(),
            interval_end: None,
            csv_label: None,
            elapsed: Spread::default(),
            cpu_time: None,
        }
    }
}

/// A number derived from counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name, that reads on from the value: `CPUs utilized`, `of all branches`.
    pub name: String,
    /// Value.
    pub value: f64,
    /// How the value is written.
    pub quantity: Quantity,
}

/// How a [`Metric`]'s value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A number with this many decimals.
    Number(usize),
    /// A percentage.
    Percent,
    /// A number per second; written with K, M or G.
    Rate,
}

impl Metric {
    /// Creates a metric.
    pub fn new(name: &str, value: f64, quantity: Quantity) -> Self {
        Self { name: name.to_owned(), value, quantity }
    }
}
