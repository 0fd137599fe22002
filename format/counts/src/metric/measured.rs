//! Values of metrics, as they are printed.

use crate::place::Place;

/// Value of a [`TableMetric`](super::TableMetric) in a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Name of the metric.
    pub name: String,
    /// Unit of the value; empty if it has none.
    pub unit: String,
    /// Value; `None` if it is unknown: an event was not counted, or a divisor is zero.
    pub value: Option<f64>,
    /// Condition under which the value is remarkable.
    pub threshold: Option<Threshold>,
    /// Place.
    pub place: Place,
    /// Cgroup that was counted.
    pub cgroup: Option<String>,
    /// Index of the event whose row shows it; `None` if it is computed without events.
    pub event: Option<usize>,
}

/// Condition under which a value is remarkable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Expression, as the table has it.
    pub condition: String,
    /// Whether it is met; `None` if that is unknown.
    pub met: Option<bool>,
}
