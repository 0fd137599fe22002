//! Text for people, in perf's columns.

use std::fmt::Write as _;

use recrep_console::units::grouped_digits;

use super::cell::{MetricText, metrics, missing, number};
use super::only::{Column, Only, heading, places_are_sums};
use crate::event::Event;
use crate::place::Place;
use crate::report::{Report, Row};
use crate::spread::Spread;

/// Width of the values.
const VALUE: usize = 18;
/// Width of a metric's value.
const METRIC: usize = 8;
/// Width of a metric with its name, where something follows.
const METRICS: usize = 36;
/// Least width of the events' names.
const NAME: usize = 24;

/// Writes a report; `heads` says whether an interval has the heading of the columns.
pub(super) fn write(report: &Report, big_numbers: bool, heads: bool, out: &mut String) {
    let table = Table::new(report, big_numbers);
    if report.interval_end.is_none() {
        title(report, out);
    } else if heads {
        table.heading(out);
    }
    for row in &report.rows {
        if let Some(event) = report.events.get(row.event) {
            table.row(row, event, out);
        }
    }
    for measure in report.metrics_without_row() {
        table.without_row(&MetricText::of(measure), &measure.place, out);
    }
    if report.interval_end.is_none() {
        times(report, out);
    }
}

/// Writes the metrics alone: a line for each place, below the names. `known` are the columns of the
/// report before.
pub(super) fn write_metrics(
    report: &Report,
    heads: bool,
    known: &mut Vec<Column>,
    out: &mut String,
) {
    let before = known.len();
    let only = Only::new(report, std::mem::take(known));
    if report.interval_end.is_none() {
        title(report, out);
    }
    let table = Table::new(report, false);
    let mut names = String::new();
    let has_new = only.columns.len() > before;
    let has_heading = heads || has_new || report.interval_end.is_none();
    if report.interval_end.is_some() {
        let _ = write!(names, "#{:>15} ", "time");
    }
    names.push_str(&table.place_heading());
    for column in &only.columns {
        let _ = write!(names, " {:>1$}", clean(&column.label), column.width());
    }
    if has_heading {
        out.push_str(&names);
        out.push('\n');
    }
    for line in &only.lines {
        let mut text = table.time.clone();
        table.put_place(&line.place, line.cpus, &mut text);
        for (column, value) in only.columns.iter().zip(only.values(line)) {
            let _ = write!(text, " {value:>0$}", column.width());
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    if report.interval_end.is_none() {
        times(report, out);
    }
    *known = only.columns;
}

fn title(report: &Report, out: &mut String) {
    let runs = match report.elapsed.runs() {
        0 | 1 => String::new(),
        runs => format!(" ({runs} runs)"),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "\n Performance counter stats for {}{runs}:\n", clean(&report.target));
}

/// Widths of the columns, and what all lines have in common.
struct Table<'a> {
    report: &'a Report,
    big_numbers: bool,
    /// Time at the beginning of each line.
    time: String,
    place: usize,
    unit: usize,
    name: usize,
    cgroup: usize,
}

fn widest(widths: impl Iterator<Item = usize>) -> usize {
    widths.max().unwrap_or(0)
}

impl<'a> Table<'a> {
    fn new(report: &'a Report, big_numbers: bool) -> Self {
        let events = &report.events;
        let cgroups = events.iter().filter_map(|event| event.cgroup.as_deref());
        Self {
            report,
            big_numbers,
            time: report
                .interval_end
                .map_or_else(String::new, |end| format!("{:>16.9} ", end.as_secs_f64())),
            place: widest(report.rows.iter().map(|row| width(&shown(&row.place))))
                .max(width(heading(report.aggregation))),
            unit: widest(events.iter().map(|event| width(&event.unit))),
            name: widest(events.iter().map(|event| width(&event.name))).max(NAME),
            cgroup: widest(cgroups.map(width)),
        }
    }

    /// Returns the heading of the places.
    fn place_heading(&self) -> String {
        match heading(self.report.aggregation) {
            "" => String::new(),
            name if places_are_sums(self.report.aggregation) => {
                format!("{name:<0$} cpus ", self.place)
            }
            name => format!("{name:<0$} ", self.place),
        }
    }

    fn heading(&self, out: &mut String) {
        let places = self.place_heading();
        let unit = match self.unit {
            0 => String::new(),
            width => format!("{:<width$} ", fit("unit", width)),
        };
        let _ = writeln!(out, "#{:>15} {places}{:>VALUE$} {unit}events", "time", "counts");
    }

    fn row(&self, row: &Row, event: &Event, out: &mut String) {
        let mut line = self.time.clone();
        self.put_place(&row.place, row.cpus, &mut line);
        let value = match row.is_counted() {
            true => number(row, event),
            false => missing(event).to_owned(),
        };
        let value = if self.big_numbers { grouped_digits(&value) } else { value };
        let _ = write!(line, "{value:>VALUE$} ");
        if self.unit > 0 {
            let _ = write!(line, "{:<1$} ", event.unit, self.unit);
        }
        let _ = write!(line, "{:<1$}", clean(&event.name), self.name);
        if self.cgroup > 0 {
            let cgroup = event.cgroup.as_deref().unwrap_or_default();
            let _ = write!(line, " {:<1$}", clean(cgroup), self.cgroup);
        }
        let before = width(&line);
        let metrics = metrics(self.report, row);
        let mut metrics = metrics.iter().map(column);
        let first = metrics.next().unwrap_or_default();
        let _ = write!(line, "{first:<METRICS$}{}", remarks(row));
        out.push_str(line.trim_end());
        out.push('\n');
        for metric in metrics {
            let _ = writeln!(out, "{:before$}{metric}", "");
        }
    }

    /// Writes a metric that no event's row has.
    fn without_row(&self, metric: &MetricText, place: &Place, out: &mut String) {
        let mut line = self.time.clone();
        self.put_place(place, 0, &mut line);
        let unit = if self.unit > 0 { self.unit + 1 } else { 0 };
        let cgroup = if self.cgroup > 0 { self.cgroup + 1 } else { 0 };
        let blank = VALUE + 1 + unit + self.name + cgroup;
        let _ = writeln!(out, "{line}{:blank$}{}", "", column(metric));
    }

    fn put_place(&self, place: &Place, cpus: usize, line: &mut String) {
        let text = shown(place);
        let _ = match place {
            Place::Whole => Ok(()),
            Place::Thread(_) => write!(line, "{text:>0$} ", self.place),
            Place::Cpu(_) => write!(line, "{text:<0$} ", self.place),
            _ => write!(line, "{text:<0$} {cpus:>4} ", self.place),
        };
    }
}

/// Returns the column of a metric.
fn column(metric: &MetricText) -> String {
    let mark = if metric.is_remarkable { " (!)" } else { "" };
    format!(" # {:>METRIC$} {}{mark}", metric.value, clean(&metric.name))
}

/// Returns the spread over runs, and the share of time on the PMU, where there is something to say.
fn remarks(row: &Row) -> String {
    let mut text = String::new();
    if let Some(spread) = row.spread.filter(|spread| spread.percent_error() != 0.0) {
        let _ = write!(text, "  ( +-{:>6.2}% )", spread.percent_error());
    }
    if row.is_counted() && row.running != row.enabled {
        let _ = write!(text, "  ({:.2}%)", row.percent_running());
    }
    text
}

/// Writes the wall time, and the command's CPU time.
fn times(report: &Report, out: &mut String) {
    let _ = writeln!(out);
    time(report.elapsed, "elapsed", out);
    if let Some(cpu) = report.cpu_time {
        let _ = writeln!(out);
        time(cpu.user, "user", out);
        time(cpu.sys, "sys", out);
    }
    let _ = writeln!(out);
}

fn time(spread: Spread, name: &str, out: &mut String) {
    let name = if name == "elapsed" { "seconds time elapsed" } else { &format!("seconds {name}") };
    let Some((low, high)) = spread.interval().filter(|_| spread.error() > 0.0) else {
        let _ = writeln!(out, " {:>17.9} {name}", spread.mean());
        return;
    };
    // Two digits more than the error has zeroes.
    let error = spread.error();
    let decimals = (0..9usize).find(|digits| error * 10f64.powf(*digits as f64) >= 1.0);
    let decimals = decimals.unwrap_or(9) + 2;
    let _ = writeln!(
        out,
        " {:>17.decimals$} +- {error:.decimals$} {name}  ( +-{:>6.2}% )  95 %: {low:.decimals$} to \
         {high:.decimals$}",
        spread.mean(),
        spread.percent_error()
    );
}

fn shown(place: &Place) -> String {
    clean(&place.to_string())
}

/// Replaces control characters, which could change what a terminal shows.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn fit(text: &str, width: usize) -> &str {
    text.get(..width).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::samples::{interval, measured, metrics_only, printed, report, row, two_runs};
    use super::*;
    use crate::place::Aggregation;

    const TEXT: Format = Format::Text { big_numbers: true };

    #[test]
    fn a_whole_measurement() {
        let expected = "
 Performance counter stats for './app 1':

              3.00 msec task-clock               #    0.750 CPUs utilized
         1,234,567      instructions:u           #  411.522 M/sec                     (66.67%)
                                                 #   12.35% of all
   <not supported>      cycles
     <not counted>      faults

       0.004000000 seconds time elapsed

       0.002000000 seconds user
       0.001000000 seconds sys

";
        assert_eq!(printed(TEXT, &report()), expected);
        let plain = printed(Format::Text { big_numbers: false }, &report());
        assert_eq!(plain, expected.replace("1,234,567", "  1234567"));
    }

    #[test]
    fn several_runs_have_a_spread() {
        let text = printed(TEXT, &two_runs());
        assert!(text.contains("'./app 1' (2 runs):"), "{text}");
        assert!(text.contains("CPUs utilized             ( +- 33.33% )\n"), "{text}");
        let elapsed = "           0.00600 +- 0.00200 seconds time elapsed  ( +- 33.33% )  95 %: \
                       0.00000 to 0.03141\n";
        assert!(text.contains(elapsed), "{text}");
    }

    #[test]
    fn intervals_by_thread() {
        let expected = "
#           time comm-tid                     counts unit events
     1.500000000             sh-7                  5      faults
     1.500000000 \u{fffd}[31m,\"app-12345                  6      faults
";
        assert_eq!(format!("\n{}", printed(TEXT, &interval())), expected);
    }

    #[test]
    fn places_with_their_cpus_and_cgroups() {
        let mut report = report();
        report.aggregation = Aggregation::Core;
        report.events[3].cgroup = Some("/a".to_owned());
        report.rows = vec![row(3, Place::Core(0, 0, 11), 5.0, 3_000_000)];
        let text = printed(TEXT, &report);
        let line = "S0-D0-C11    2                  5      faults                   /a\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn metrics_of_tables() {
        let text = printed(TEXT, &measured());
        let lines = "
                                                 #   12.35% of all
                                                 #     45.7 %  stalled (!)
                                                 #      nan ns  latency
   <not supported>      cycles
     <not counted>      faults
                                                 #     2.00 constant
";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn metrics_alone() {
        let expected = "
 Performance counter stats for './app 1':

 CPUs utilized instructions:u/sec     of all %  stalled ns  latency   constant
         0.750      411522333.000     12.35%       45.7         nan       2.00

       0.004000000 seconds time elapsed
";
        let text = metrics_only(TEXT, &measured());
        assert!(text.starts_with(expected), "{text}");
        let mut report = interval();
        report.rows[0].metrics.clone_from(&measured().rows[0].metrics);
        let expected = "
#           time comm-tid          CPUs utilized
     1.500000000             sh-7          0.750
     1.500000000 \u{fffd}[31m,\"app-12345
";
        assert_eq!(format!("\n{}", metrics_only(TEXT, &report)), expected);
    }
}
