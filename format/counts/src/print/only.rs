//! Ratios and metrics without counts (`--metric-only`): a column for each, a line for each place.

use super::cell::{MetricText, metric};
use crate::place::{Aggregation, Place};
use crate::report::{Metric, Quantity, Report, Row};

/// Least width of a column of text.
const LEAST: usize = 10;

/// Columns and lines.
pub(super) struct Only<'a> {
    report: &'a Report,
    pub(super) columns: Vec<Column>,
    pub(super) lines: Vec<Line>,
    cells: Vec<Cell>,
}

/// A ratio or a metric.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Column {
    event: Option<usize>,
    pub(super) label: String,
}

/// A place.
pub(super) struct Line {
    pub(super) place: Place,
    pub(super) cpus: usize,
}

/// A value, of a column in a place.
struct Cell {
    column: usize,
    place: Place,
    text: String,
}

impl Column {
    pub(super) fn width(&self) -> usize {
        self.label.chars().count().max(LEAST)
    }
}

impl<'a> Only<'a> {
    /// Collects a report's values. `columns` are those of earlier reports, which keep their places.
    pub(super) fn new(report: &'a Report, columns: Vec<Column>) -> Self {
        let mut only = Self { report, columns, lines: Vec::new(), cells: Vec::new() };
        for row in &report.rows {
            only.line(&row.place, row.cpus);
            for ratio in &row.metrics {
                let (text, label) = only.ratio(ratio, row);
                only.cell(Some(row.event), label, &row.place, text);
            }
            for measure in report.metrics_of(row) {
                let text = MetricText::of(measure);
                let label = with_cgroup(text.name, measure.cgroup.as_deref());
                only.cell(measure.event, label, &row.place, text.value);
            }
        }
        for measure in report.metrics_without_row() {
            only.line(&measure.place, 0);
            let text = MetricText::of(measure);
            let label = with_cgroup(text.name, measure.cgroup.as_deref());
            only.cell(None, label, &measure.place, text.value);
        }
        only
    }

    /// Returns the value and the column's name of a ratio. Rates have their event's name, and
    /// always the same unit.
    fn ratio(&self, ratio: &Metric, row: &Row) -> (String, String) {
        let event = self.report.events.get(row.event);
        let cgroup = event.and_then(|event| event.cgroup.as_deref());
        let (text, label) = match (ratio.quantity, event) {
            (Quantity::Rate, Some(event)) => {
                (format!("{:.3}", ratio.value), format!("{}{}", event.name, ratio.name))
            }
            _ => metric(ratio),
        };
        (text, with_cgroup(label, cgroup))
    }

    fn line(&mut self, place: &Place, cpus: usize) {
        match self.lines.iter_mut().find(|line| line.place == *place) {
            Some(line) => line.cpus = line.cpus.max(cpus),
            None => self.lines.push(Line { place: place.clone(), cpus }),
        }
    }

    fn cell(&mut self, event: Option<usize>, label: String, place: &Place, text: String) {
        let column = Column { event, label };
        let known = self.columns.iter().position(|other| *other == column);
        let place = place.clone();
        let column = known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        });
        self.cells.push(Cell { column, place, text });
    }

    /// Returns a line's value in each column; empty where there is none.
    pub(super) fn values(&self, line: &Line) -> Vec<String> {
        let mut values = vec![String::new(); self.columns.len()];
        for cell in self.cells.iter().filter(|cell| cell.place == line.place) {
            if let Some(value) = values.get_mut(cell.column) {
                value.clone_from(&cell.text);
            }
        }
        values
    }

    /// Returns the names of the columns before the values: time and place.
    pub(super) fn first_columns(&self) -> Vec<String> {
        let report = self.report;
        let mut names = Vec::new();
        if report.interval_end.is_some() || report.csv_label.is_some() {
            names.push("time".to_owned());
        }
        match heading(report.aggregation) {
            "" => {}
            name => names.push(name.to_owned()),
        }
        if places_are_sums(report.aggregation) {
            names.push("cpus".to_owned());
        }
        names
    }
}

fn with_cgroup(label: String, cgroup: Option<&str>) -> String {
    match cgroup {
        None => label,
        Some(cgroup) => format!("{label} {cgroup}"),
    }
}

/// Returns the name of the places.
pub(super) fn heading(aggregation: Aggregation) -> &'static str {
    match aggregation {
        Aggregation::Whole => "",
        Aggregation::Node => "node",
        Aggregation::Socket => "socket",
        Aggregation::Die => "die",
        Aggregation::Core => "core",
        Aggregation::Cpu => "cpu",
        Aggregation::Thread => "comm-tid",
    }
}

/// Returns whether the places are sums of CPUs, whose number is printed.
pub(super) fn places_are_sums(aggregation: Aggregation) -> bool {
    !matches!(aggregation, Aggregation::Whole | Aggregation::Cpu | Aggregation::Thread)
}

#[cfg(test)]
mod tests {
    use super::super::samples::measured;
    use super::super::{Format, Printer};

    #[test]
    fn columns_stay_where_they_are() {
        let mut printer = Printer::of_metrics(Format::Csv { separator: ",".to_owned() });
        let mut report = measured();
        report.metrics.clear();
        let mut out = Vec::new();
        let ratios = std::mem::take(&mut report.rows[0].metrics);
        printer.print(&report, &mut out).unwrap();
        report.rows[0].metrics = ratios;
        report.rows[1].metrics.pop();
        printer.print(&report, &mut out).unwrap();
        let expected = "instructions:u/sec,of all
411522333.000,12.35
instructions:u/sec,of all,CPUs utilized
411522333.000,,0.750
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
