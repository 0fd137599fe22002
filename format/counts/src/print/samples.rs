//! Reports for tests of the printing.

use std::time::Duration;

use super::{Format, Printer};
use crate::event::Event;
use crate::metric::{Measure, Threshold};
use crate::place::{Aggregation, Place, Thread};
use crate::report::CpuTime;
use crate::report::{Metric, Quantity, Report, Row};
use crate::spread::Spread;

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

/// The same with metrics of tables: one beyond its threshold, one unknown, one without events.
pub(super) fn measured() -> Report {
    let mut report = report();
    let measure = |name: &str, unit: &str, value, event| Measure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value,
        threshold: None,
        place: Place::Whole,
        cgroup: None,
        event,
    };
    let threshold = Threshold { condition: "stalled > 0.2".to_owned(), met: Some(true) };
    report.metrics = vec![
        measure("constant", "", Some(2.0), None),
        Measure { threshold: Some(threshold), ..measure("stalled", "%", Some(45.678), Some(1)) },
        measure("latency", "ns", None, Some(1)),
    ];
    report
}

pub(super) fn metrics_only(format: Format, report: &Report) -> String {
    let mut out = Vec::new();
    Printer::of_metrics(format).print(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
