//! Metrics of the event tables (`-M`): their choice, and the events that they need.
//!
//! ```text
//!  -M NAMES ──▶ wanted: metrics of the tables, their formulas (facts: the machine and the target)
//!                  │ names of events
//!                  ▼
//!               sets: EventSpecs, in weak groups; shared by the metrics that they suffice for
//!                  │
//!                  ▼
//!               recrep_counts::TableMetric, with the places of its events
//! ```

mod facts;
mod request;
mod sets;
mod wanted;

pub(crate) use facts::Facts;
pub(crate) use request::{MetricRequest, choose};
