//! Counts of events, as `perf stat` has them: from the values of counters to the printed lines.
//!
//! ```text
//!  Reading: a counter's value, on a CPU or of a thread      (read(2), or STAT and READ records)
//!     │  aggregate: scaled, and summed by thread, CPU, core, socket …
//!     ▼
//!  Row: an event's total in a place ◀── ratios: IPC, faults per second …; metric: those of tables
//!     │  Runs: mean and spread over several runs
//!     ▼
//!  Report: rows, metrics, events and times ──▶ Printer: text, CSV or JSON
//! ```
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use recrep_counts::{Aggregation, Count, Event, Format, Grouping, Printer, Reading, Report};
//!
//! # fn main() -> std::io::Result<()> {
//! let mut report = Report::new("'./app'".to_owned(), vec![Event::named("page-faults")]);
//! // Half of the time on the PMU: 100 is scaled to 200.
//! let count = Count { value: 100, enabled: 2000, running: 1000 };
//! let readings = [Reading { event: 0, cpu: None, thread: None, count }];
//! report.rows = Grouping::default().rows(&report.events, &readings);
//! let mut text = Vec::new();
//! Printer::new(Format::Csv { separator: ",".to_owned() }).print(&report, &mut text)?;
//! assert_eq!(String::from_utf8_lossy(&text), "200,,page-faults,1000,50.00,,\n");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod aggregate;
mod event;
mod metric;
mod place;
mod print;
mod ratios;
mod report;
mod runs;
mod spread;

pub use aggregate::{CpuTopology, Grouping, Reading};
pub use event::{Count, Event, Role};
pub use metric::{
    Counts, Facts, Formula, FormulaError, Measure, MetricInput, TableMetric, Threshold, Times,
    measure,
};
pub use place::{Aggregation, Place, Thread};
pub use print::{Format, Printer};
pub use ratios::add_ratios;
pub use report::{CpuTime, Metric, Quantity, Report, Row};
pub use runs::Runs;
pub use spread::Spread;
