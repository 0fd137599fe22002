//! Printing of a [`Report`]: text, CSV or JSON.

mod cell;
mod csv;
mod json;
mod only;
#[cfg(test)]
mod samples;
mod text;

use std::io::{self, Write};

use crate::report::Report;
use only::Column;

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
    /// Print ratios and metrics without the counts.
    metrics_only: bool,
    /// Columns of these so far.
    columns: Vec<Column>,
    /// Number of intervals since the last heading.
    intervals: u32,
}

/// Number of intervals after which the heading is repeated.
const INTERVALS_PER_HEADING: u32 = 25;

impl Printer {
    /// Creates a printer.
    pub fn new(format: Format) -> Self {
        Self { format, metrics_only: false, columns: Vec::new(), intervals: 0 }
    }

    /// Creates a printer of ratios and metrics, without the counts (`--metric-only`).
    pub fn of_metrics(format: Format) -> Self {
        Self { metrics_only: true, ..Self::new(format) }
    }

    /// Writes a report: of the whole measurement, or of an interval.
    ///
    /// # Errors
    /// Returns I/O errors from the writer.
    pub fn print(&mut self, report: &Report, out: &mut impl Write) -> io::Result<()> {
        let mut text = String::new();
        let heads = self.intervals.is_multiple_of(INTERVALS_PER_HEADING);
        match &self.format {
            Format::Text { .. } if self.metrics_only => {
                text::write_metrics(report, heads, &mut self.columns, &mut text);
            }
            Format::Text { big_numbers } => text::write(report, *big_numbers, heads, &mut text),
            Format::Csv { separator } if self.metrics_only => {
                csv::write_metrics(report, separator, &mut self.columns, &mut text);
            }
            Format::Csv { separator } => csv::write(report, separator, &mut text),
            Format::Json => {
                text = json::text(report, self.metrics_only)?;
                text.push('\n');
            }
        }
        self.intervals = self.intervals.wrapping_add(1);
        out.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::samples::interval;
    use super::*;

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
