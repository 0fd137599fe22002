//! Lines for programs, in the columns of `perf stat -x`.

use std::fmt::Write as _;

use super::cell::{metric, missing, number};
use crate::stat::event::Event;
use crate::stat::place::{Aggregation, Place};
use crate::stat::report::{Report, Row};

/// Writes a line for each row, and one for each of its metrics after the first.
pub(super) fn write(report: &Report, separator: &str, out: &mut String) {
    let lines = Lines { report, separator };
    for row in &report.rows {
        if let Some(event) = report.events.get(row.event) {
            lines.write(row, event, out);
        }
    }
}

struct Lines<'a> {
    report: &'a Report,
    separator: &'a str,
}

impl Lines<'_> {
    fn write(&self, row: &Row, event: &Event, out: &mut String) {
        let beginning = self.beginning(row);
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
        let mut metrics = row.metrics.iter().map(metric);
        let (value, name) = metrics.next().unwrap_or_default();
        fields.extend([value.trim_end_matches('%').to_owned(), name]);
        self.line(&fields, out);
        for (value, name) in metrics {
            let mut fields = beginning.clone();
            fields.resize(before_metrics, String::new());
            fields.extend([value.trim_end_matches('%').to_owned(), name]);
            self.line(&fields, out);
        }
    }

    /// Returns the time and the place.
    fn beginning(&self, row: &Row) -> Vec<String> {
        let time = self.report.interval_end.map(|end| format!("{:.9}", end.as_secs_f64()));
        let label = self.report.csv_label.map(str::to_owned);
        let mut fields: Vec<String> = time.or(label).into_iter().collect();
        if row.place != Place::Whole {
            fields.push(row.place.to_string());
        }
        let sums = [Aggregation::Node, Aggregation::Socket, Aggregation::Die, Aggregation::Core];
        if sums.contains(&self.report.aggregation) {
            fields.push(row.cpus.to_string());
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

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::samples::{interval, printed, report, row, two_runs};
    use super::*;

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
}
