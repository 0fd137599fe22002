//! Lines for programs, in the columns of `perf stat -x`.

use std::fmt::Write as _;

use super::cell::{MetricText, metrics, missing, number};
use super::only::{Column, Only, places_are_sums};
use crate::event::Event;
use crate::place::Place;
use crate::report::{Report, Row};

/// Writes a line for each row, and one for each of its metrics after the first.
pub(super) fn write(report: &Report, separator: &str, out: &mut String) {
    let lines = Lines { report, separator };
    for row in &report.rows {
        if let Some(event) = report.events.get(row.event) {
            lines.write(row, event, out);
        }
    }
    for measure in report.metrics_without_row() {
        lines.without_row(&MetricText::of(measure), &measure.place, out);
    }
}

/// Writes the metrics alone: a line for each place. The names of the columns come first, and
/// again when there is a new one; `known` are those of the report before.
pub(super) fn write_metrics(
    report: &Report,
    separator: &str,
    known: &mut Vec<Column>,
    out: &mut String,
) {
    let lines = Lines { report, separator };
    let before = known.len();
    let only = Only::new(report, std::mem::take(known));
    if only.columns.len() > before {
        let mut names = only.first_columns();
        names.extend(only.columns.iter().map(|column| column.label.clone()));
        lines.line(&names, out);
    }
    for place in &only.lines {
        let mut fields = lines.beginning(&place.place, place.cpus);
        let values = only.values(place);
        fields.extend(values.iter().map(|value| value.trim_end_matches('%').to_owned()));
        lines.line(&fields, out);
    }
    *known = only.columns;
}

struct Lines<'a> {
    report: &'a Report,
    separator: &'a str,
}

impl Lines<'_> {
    fn write(&self, row: &Row, event: &Event, out: &mut String) {
        let beginning = self.beginning(&row.place, row.cpus);
        let mut fields = beginning.clone();
        fields.push(match row.is_counted() {
            true => number(row, event),
            false => missing(event).to_owned(),
        });
        fields.extend([event.unit.clone(), event.name.clone()]);
        if self.report.events.iter().any(|event| event.cgroup.is_some()) {
            fields.push(event.cgroup.clone().unwrap_or_default());
        }
        if self.report.elapsed.runs() > 1 {
            let percent = row.spread.map_or(0.0, |spread| spread.percent_error());
            fields.push(format!("{percent:.2}%"));
        }
        fields.push(row.running.to_string());
        fields.push(format!("{:.2}", row.percent_running()));
        let before_metrics = fields.len();
        let metrics = metrics(self.report, row);
        let mut metrics = metrics.iter();
        match metrics.next() {
            Some(first) => fields.extend(columns(first)),
            None => fields.extend([String::new(), String::new()]),
        }
        self.line(&fields, out);
        for metric in metrics {
            let mut fields = beginning.clone();
            fields.resize(before_metrics, String::new());
            fields.extend(columns(metric));
            self.line(&fields, out);
        }
    }

    /// Writes a metric that no event's row has.
    fn without_row(&self, metric: &MetricText, place: &Place, out: &mut String) {
        let mut fields = self.beginning(place, 0);
        let has_cgroups = self.report.events.iter().any(|event| event.cgroup.is_some());
        let columns_of_counts =
            5 + usize::from(has_cgroups) + usize::from(self.report.elapsed.runs() > 1);
        fields.resize(fields.len() + columns_of_counts, String::new());
        fields.extend(columns(metric));
        self.line(&fields, out);
    }

    /// Returns the time and the place.
    fn beginning(&self, place: &Place, cpus: usize) -> Vec<String> {
        let time = self.report.interval_end.map(|end| format!("{:.9}", end.as_secs_f64()));
        let label = self.report.csv_label.map(str::to_owned);
        let mut fields: Vec<String> = time.or(label).into_iter().collect();
        if *place != Place::Whole {
            fields.push(place.to_string());
        }
        if places_are_sums(self.report.aggregation) {
            fields.push(cpus.to_string());
        }
        fields
    }

    /// Writes a line. A field with the separator, quotes or control characters is quoted.
    fn line(&self, fields: &[String], out: &mut String) {
        for (place, field) in fields.iter().enumerate() {
            if place > 0 {
                out.push_str(self.separator);
            }
            let plain = !field.contains(self.separator)
                && !field.contains(|c: char| c == '"' || c.is_control());
            let _ = match plain {
                true => write!(out, "{field}"),
                false => write!(out, "\"{}\"", field.replace('"', "\"\"")),
            };
        }
        out.push('\n');
    }
}

/// Returns the columns of a metric.
fn columns(metric: &MetricText) -> [String; 2] {
    [metric.value.trim_end_matches('%').to_owned(), metric.name.clone()]
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::samples::{interval, measured, metrics_only, printed, report, row, two_runs};
    use super::*;
    use crate::place::Aggregation;

    fn csv(separator: &str, report: &Report) -> String {
        printed(Format::Csv { separator: separator.to_owned() }, report)
    }

    #[test]
    fn a_whole_measurement() {
        let expected = "3.00,msec,task-clock,3000000,100.00,0.750,CPUs utilized
1234567,,instructions:u,2000000,66.67,411.522,M/sec
,,,,,12.35,of all
<not supported>,,cycles,0,0.00,,
<not counted>,,faults,0,0.00,,
";
        assert_eq!(csv(",", &report()), expected);
        assert_eq!(csv(";", &report()), expected.replace(',', ";"));
    }

    #[test]
    fn runs_intervals_and_places() {
        let runs = "3.00,msec,task-clock,33.33%,3000000,100.00,0.750,CPUs utilized\n";
        assert_eq!(csv(",", &two_runs()), runs);
        let intervals = "1.500000000,sh-7,5,,faults,3000000,100.00,,
1.500000000,\"\u{1b}[31m,\"\"app-12345\",6,,faults,3000000,100.00,,
";
        assert_eq!(csv(",", &interval()), intervals);
        let labelled = Report { csv_label: Some("summary"), ..report() };
        assert!(csv(",", &labelled).starts_with("summary,3.00,msec,"));
        let mut report = report();
        report.aggregation = Aggregation::Socket;
        report.events[0].cgroup = Some("/a".to_owned());
        report.rows = vec![row(3, Place::Socket(1), 5.0, 3_000_000)];
        assert_eq!(csv(",", &report), "S1,2,5,,faults,,3000000,100.00,,\n");
    }

    #[test]
    fn metrics_of_tables() {
        let expected = "3.00,msec,task-clock,3000000,100.00,0.750,CPUs utilized
1234567,,instructions:u,2000000,66.67,411.522,M/sec
,,,,,12.35,of all
,,,,,45.7,%  stalled
,,,,,nan,ns  latency
<not supported>,,cycles,0,0.00,,
<not counted>,,faults,0,0.00,,
,,,,,2.00,constant
";
        assert_eq!(csv(",", &measured()), expected);
        let expected = "CPUs utilized,instructions:u/sec,of all,%  stalled,ns  latency,constant
0.750,411522333.000,12.35,45.7,nan,2.00
";
        let format = Format::Csv { separator: ",".to_owned() };
        assert_eq!(metrics_only(format, &measured()), expected);
    }
}
