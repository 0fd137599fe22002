//! Texts of values and metrics.

use crate::stat::event::Event;
use crate::stat::report::{Metric, Quantity, Row};

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

#[cfg(test)]
mod tests {
    use super::super::samples::row;
    use super::*;
    use crate::stat::place::Place;

    #[test]
    fn rates_have_letters() {
        let rate = |value| metric(&Metric::new("/sec", value, Quantity::Rate));
        assert_eq!(rate(999.0), ("999.000".to_owned(), "/sec".to_owned()));
        assert_eq!(rate(1e3), ("1.000".to_owned(), "K/sec".to_owned()));
        assert_eq!(rate(2.5e10), ("25.000".to_owned(), "G/sec".to_owned()));
    }

    #[test]
    fn small_means_have_decimals() {
        let event = Event::named("faults");
        let texts =
            [3.0, 0.25, 99.5, 100.4].map(|value| number(&row(0, Place::Whole, value, 1), &event));
        assert_eq!(texts, ["3", "0.25", "99.50", "100"]);
    }
}
