//! Printing of a [`Report`]: text, CSV or JSON.

mod csv;
mod json;
mod text;

use std::io::{self, Write};

use super::{Event, Metric, Quantity, Report, Row};

/// Form of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Columns for people.
    Text {
        /// Separate thousands.
        big_numbers: bool,
    },
    /// perf's columns: `[time] [place [cpus]] value unit event [cgroup] [error] running percent
    /// metric name`.
    Csv {
        /// Separator of the columns.
        separator: String,
    },
    /// A JSON document on one line (`recrep-stat/1`).
    Json,
}

/// Writes one report after the other.
#[derive(Debug)]
pub struct Printer {
    format: Format,
    /// Number of intervals since the last heading.
    intervals: u32,
}

/// Number of intervals after which the heading is repeated.
const INTERVALS_PER_HEADING: u32 = 25;

impl Printer {
    /// Creates a printer.
    pub fn new(format: Format) -> Self {
        Self { format, intervals: 0 }
    }

    /// Writes a report: of the whole measurement, or of an interval.
    ///
    /// # Errors
    /// Returns I/O errors from the writer.
    pub fn print(&mut self, report: &Report, out: &mut impl Write) -> io::Result<()> {
        let mut text = String::new();
        match &self.format {
            Format::Text { big_numbers } => {
                let heads = self.intervals.is_multiple_of(INTERVALS_PER_HEADING);
                text::write(report, *big_numbers, heads, &mut text);
                self.intervals = self.intervals.wrapping_add(1);
            }
            Format::Csv { separator } => csv::write(report, separator, &mut text),
            Format::Json => {
                text = json::text(report)?;
                text.push('\n');
            }
        }
        out.write_all(text.as_bytes())
    }
}

/// What is printed in place of a value that there is not.
fn missing(event: &Event) -> &'static str {
    if event.supported { "<not counted>" } else { "<not supported>" }
}

/// Writes a value in its event's unit: with decimals if the factor to the unit has some, or if it
/// is a small mean of several runs.
fn number(row: &Row, event: &Event) -> String {
    let is_small_mean = row.value.fract() != 0.0 && row.value < 100.0;
    let decimals = if event.scale.fract() == 0.0 && !is_small_mean { 0 } else { 2 };
    format!("{:.decimals$}", row.value * event.scale)
}

/// Returns the texts of a metric's value and name.
fn metric(metric: &Metric) -> (String, String) {
    let Metric { name, value, quantity } = metric;
    match quantity {
        Quantity::Number(decimals) => (format!("{value:.decimals$}"), name.clone()),
        Quantity::Percent => (format!("{value:.2}%"), name.clone()),
        Quantity::Rate => {
            let units = [(1e9, "G"), (1e6, "M"), (1e3, "K")];
            let unit = units.into_iter().find(|(factor, _)| *value >= *factor);
            let (factor, letter) = unit.unwrap_or((1.0, ""));
            (format!("{:.3}", value / factor), format!("{letter}{name}"))
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::stat::{Aggregation, CpuTime, Place, Spread, Thread};

    pub(super) fn row(event: usize, place: Place, value: f64, running: u64) -> Row {
        Row {
            event,
            place,
            cpus: 2,
            value,
            enabled: 3_000_000,
            running,
            spread: None,
            metrics: Vec::new(),
        }
    }

    /// Three events, of which one was multiplexed and one is not there.
    pub(super) fn report() -> Report {
        let clock = Event { unit: "msec".to_owned(), scale: 1e-6, ..Event::named("task-clock") };
        let events = vec![
            clock,
            Event::named("instructions:u"),
            Event { supported: false, ..Event::named("cycles") },
            Event::named("faults"),
        ];
        let mut report = Report::new("'./app 1'".to_owned(), events);
        let mut rows = vec![
            row(0, Place::Whole, 3e6, 3_000_000),
            row(1, Place::Whole, 1_234_567.0, 2_000_000),
            row(2, Place::Whole, 0.0, 0),
            row(3, Place::Whole, 0.0, 0),
        ];
        rows[0].metrics.push(Metric::new("CPUs utilized", 0.75, Quantity::Number(3)));
        rows[1].metrics.push(Metric::new("/sec", 411_522_333.0, Quantity::Rate));
        rows[1].metrics.push(Metric::new("of all", 12.345, Quantity::Percent));
        report.rows = rows;
        report.elapsed = Spread::of(0.004);
        report.cpu_time = Some(CpuTime { user: Spread::of(0.002), sys: Spread::of(0.001) });
        report
    }

    /// Two runs of it.
    pub(super) fn two_runs() -> Report {
        let mut report = report();
        let mut spread = Spread::of(2e6);
        spread.add(4e6);
        report.rows[0].spread = Some(spread);
        report.rows.truncate(1);
        report.elapsed.add(0.008);
        report
    }

    /// Intervals of threads.
    pub(super) fn interval() -> Report {
        let mut report = report();
        report.aggregation = Aggregation::Thread;
        report.interval_end = Some(Duration::from_millis(1500));
        let thread = |tid, comm: &str| Place::Thread(Thread { tid, comm: comm.to_owned() });
        report.rows = vec![
            row(3, thread(7, "sh"), 5.0, 3_000_000),
            row(3, thread(12_345, "\u{1b}[31m,\"app"), 6.0, 3_000_000),
        ];
        report
    }

    pub(super) fn printed(format: Format, report: &Report) -> String {
        let mut out = Vec::new();
        Printer::new(format).print(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rates_have_letters() {
        let rate = |value| metric(&Metric::new("/sec", value, Quantity::Rate));
        assert_eq!(rate(999.0), ("999.000".to_owned(), "/sec".to_owned()));
        assert_eq!(rate(1e3), ("1.000".to_owned(), "K/sec".to_owned()));
        assert_eq!(rate(2.5e10), ("25.000".to_owned(), "G/sec".to_owned()));
    }

    #[test]
    fn small_means_have_decimals() {
        let event = Event::named("faults");
        let texts =
            [3.0, 0.25, 99.5, 100.4].map(|value| number(&row(0, Place::Whole, value, 1), &event));
        assert_eq!(texts, ["3", "0.25", "99.50", "100"]);
    }

    #[test]
    fn headings_come_again() {
        let mut printer = Printer::new(Format::Text { big_numbers: true });
        let mut out = Vec::new();
        for _ in 0..26 {
            printer.print(&interval(), &mut out).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with('#')).count(), 2);
    }
}
