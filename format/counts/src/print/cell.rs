//! Texts of values and metrics.

use crate::event::Event;
use crate::metric::Measure;
use crate::report::{Metric, Quantity, Report, Row};

/// What is printed in place of a value that there is not.
pub(super) fn missing(event: &Event) -> &'static str {
    if event.supported { "<not counted>" } else { "<not supported>" }
}

/// Writes a value in its event's unit: with decimals if the factor to the unit has some, or if it
/// is a small mean of several runs.
pub(super) fn number(row: &Row, event: &Event) -> String {
    let is_small_mean = row.value.fract() != 0.0 && row.value < 100.0;
    let decimals = if event.scale.fract() == 0.0 && !is_small_mean { 0 } else { 2 };
    format!("{:.decimals$}", row.value * event.scale)
}

/// Returns the texts of a metric's value and name.
pub(super) fn metric(metric: &Metric) -> (String, String) {
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

/// Returns the texts of the ratios and metrics behind a row.
pub(super) fn metrics(report: &Report, row: &Row) -> Vec<MetricText> {
    let ratios = row.metrics.iter().map(|ratio| {
        let (value, name) = metric(ratio);
        MetricText { value, name, is_remarkable: false }
    });
    ratios.chain(report.metrics_of(row).map(MetricText::of)).collect()
}

/// Texts of a metric.
pub(super) struct MetricText {
    pub(super) value: String,
    /// Unit and name.
    pub(super) name: String,
    /// `true` if the condition of the metric's threshold is met.
    pub(super) is_remarkable: bool,
}

impl MetricText {
    pub(super) fn of(measure: &Measure) -> Self {
        let Measure { name, unit, value, threshold, .. } = measure;
        Self {
            value: value.map_or_else(|| "nan".to_owned(), |value| decimal(value, unit)),
            name: if unit.is_empty() { name.clone() } else { format!("{unit}  {name}") },
            is_remarkable: threshold.as_ref().is_some_and(|it| it.met == Some(true)),
        }
    }
}

/// Writes a metric's value with perf's decimals: one if it has a unit, otherwise two. Below 1 it
/// has three digits, so that it does not become 0.
fn decimal(value: f64, unit: &str) -> String {
    const MOST: f64 = 12.0;
    let decimals = if unit.is_empty() { 2 } else { 1 };
    let magnitude = value.abs().log10().floor();
    if value == 0.0 || magnitude >= 0.0 {
        return format!("{value:.decimals$}");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 3 to 12")]
    let decimals = (2.0 - magnitude).min(MOST) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::super::samples::row;
    use super::*;
    use crate::place::Place;

    #[test]
    fn rates_have_letters() {
        let rate = |value| metric(&Metric::new("/sec", value, Quantity::Rate));
        assert_eq!(rate(999.0), ("999.000".to_owned(), "/sec".to_owned()));
        assert_eq!(rate(1e3), ("1.000".to_owned(), "K/sec".to_owned()));
        assert_eq!(rate(2.5e10), ("25.000".to_owned(), "G/sec".to_owned()));
    }

    #[test]
    fn small_metrics_are_not_zero() {
        for (value, unit, text) in [
            (45.678, "%", "45.7"),
            (1.0, "", "1.00"),
            (0.0, "%", "0.0"),
            (0.045_678, "%", "0.0457"),
            (-0.5, "", "-0.500"),
            (1e-30, "", "0.000000000000"),
            (1e9, "B", "1000000000.0"),
        ] {
            assert_eq!(decimal(value, unit), text);
        }
    }

    #[test]
    fn small_means_have_decimals() {
        let event = Event::named("faults");
        let texts =
            [3.0, 0.25, 99.5, 100.4].map(|value| number(&row(0, Place::Whole, value, 1), &event));
        assert_eq!(texts, ["3", "0.25", "99.50", "100"]);
    }
}
