//! Values of metrics in places, from the rows of their events.

use super::expr::Counts;
use super::formula::Formula;
use super::measured::{Measure, Threshold};
use crate::place::Place;
use crate::report::Row;

/// A metric of event tables, and the events that it is computed from.
#[derive(Clone, Debug, PartialEq)]
pub struct TableMetric {
    /// Name.
    pub name: String,
    /// Unit of the value, after the multiplication by `scale`; empty if it has none.
    pub unit: String,
    /// Factor from the formula's value to that unit.
    pub scale: f64,
    /// Formula.
    pub formula: Formula,
    /// Condition under which the value is remarkable, as the table has it.
    pub threshold: Option<String>,
    /// Events in the formula.
    pub inputs: Vec<MetricInput>,
    /// Cgroup that its events count.
    pub cgroup: Option<String>,
}

/// An event in a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricInput {
    /// Name in the formula.
    pub name: String,
    /// Indices of the report's events that are added up for it.
    pub events: Vec<usize>,
    /// Number of PMUs that count it.
    pub sources: usize,
}

/// Times that formulas can use, in seconds; `None` if they are unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// `duration_time`
    pub elapsed: Option<f64>,
    /// `user_time`
    pub user: Option<f64>,
    /// `system_time`
    pub sys: Option<f64>,
}

/// Computes the metrics in the places of their events. A place without some of the events has
/// an unknown value.
pub fn measure(metrics: &[TableMetric], rows: &[Row], times: Times) -> Vec<Measure> {
    let mut all_places: Vec<Place> = Vec::new();
    for row in rows {
        if !all_places.contains(&row.place) {
            all_places.push(row.place.clone());
        }
    }
    if all_places.is_empty() {
        all_places.push(Place::Whole);
    }
    let mut measures = Vec::new();
    for metric in metrics {
        let shown = metric.inputs.iter().flat_map(|input| &input.events).min().copied();
        let has_row = |place: &&Place| {
            let is_own = |row: &Row| Some(row.event) == shown && row.place == **place;
            shown.is_none() || rows.iter().any(is_own)
        };
        for place in all_places.iter().filter(has_row) {
            let counts = PlaceCounts { metric, rows, place, times };
            measures.push(counts.measure(shown));
        }
    }
    measures
}

/// Counts of a metric's events in a place.
struct PlaceCounts<'a> {
    metric: &'a TableMetric,
    rows: &'a [Row],
    place: &'a Place,
    times: Times,
}

impl PlaceCounts<'_> {
    fn measure(&self, shown: Option<usize>) -> Measure {
        let metric = self.metric;
        let threshold = metric.threshold.as_ref().map(|condition| Threshold {
            condition: condition.clone(),
            met: metric.formula.is_remarkable(self),
        });
        Measure {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            value: metric.formula.value(self).map(|value| value * metric.scale),
            threshold,
            place: self.place.clone(),
            cgroup: metric.cgroup.clone(),
            event: shown,
        }
    }

    fn input(&self, event: &str) -> Option<&MetricInput> {
        self.metric.inputs.iter().find(|input| input.name == event)
    }
}

impl Counts for PlaceCounts<'_> {
    fn count(&self, event: &str) -> Option<f64> {
        match event {
            "duration_time" => return self.times.elapsed,
            "user_time" => return self.times.user,
            "system_time" => return self.times.sys,
            _ => {}
        }
        let input = self.input(event)?;
        let is_counted = |row: &&Row| {
            row.place == *self.place && row.is_counted() && input.events.contains(&row.event)
        };
        let values = self.rows.iter().filter(is_counted).map(|row| row.value);
        values.reduce(|sum, value| sum + value)
    }

    fn sources(&self, event: &str) -> Option<f64> {
        self.input(event).map(|input| input.sources as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Facts;

    struct NoFacts;

    impl Facts for NoFacts {
        fn literal(&self, _: &str) -> Option<f64> {
            None
        }

        fn has_event(&self, _: &str) -> bool {
            false
        }

        fn is_cpu(&self, _: &str) -> Option<bool> {
            None
        }

        fn metric(&self, _: &str) -> Option<String> {
            None
        }
    }

    fn metric(expression: &str, inputs: &[(&str, &[usize])]) -> TableMetric {
        let input = |(name, events): &(&str, &[usize])| MetricInput {
            name: (*name).to_owned(),
            events: events.to_vec(),
            sources: 2,
        };
        let formula = Formula::new("m", expression, &NoFacts).unwrap();
        TableMetric {
            name: "m".to_owned(),
            unit: "%".to_owned(),
            scale: 100.0,
            formula: formula.with_threshold("m", "m > 0.4", &NoFacts).unwrap(),
            threshold: Some("m > 0.4".to_owned()),
            inputs: inputs.iter().map(input).collect(),
            cgroup: None,
        }
    }

    fn row(event: usize, cpu: u32, value: f64, running: u64) -> Row {
        Row {
            event,
            place: Place::Cpu(cpu),
            cpus: 1,
            value,
            enabled: 10,
            running,
            spread: None,
            metrics: Vec::new(),
        }
    }

    #[test]
    fn a_value_for_each_place() {
        let rows = [row(0, 0, 5.0, 5), row(0, 1, 1.0, 5), row(1, 0, 10.0, 5), row(1, 1, 9.0, 0)];
        let ratio = metric("a / b", &[("a", &[0]), ("b", &[1])]);
        let measures = measure(&[ratio], &rows, Times::default());
        let found = measures.iter().map(|m| (m.place.clone(), m.value, m.event));
        let expected = [(Place::Cpu(0), Some(50.0), Some(0)), (Place::Cpu(1), None, Some(0))];
        assert_eq!(found.collect::<Vec<_>>(), expected, "of CPU 1 one was not counted");
        let met = measures.iter().map(|m| m.threshold.as_ref().unwrap().met);
        assert_eq!(met.collect::<Vec<_>>(), [Some(true), None]);
    }

    #[test]
    fn several_events_are_added_up() {
        let rows = [row(0, 0, 4.0, 5), row(1, 0, 2.0, 5)];
        let sum = metric("a / source_count(a)", &[("a", &[0, 1])]);
        assert_eq!(measure(&[sum], &rows, Times::default())[0].value, Some(300.0));
    }

    #[test]
    fn times_are_no_events() {
        let times = Times { elapsed: Some(2.0), user: None, sys: Some(0.5) };
        let share = metric("system_time / duration_time", &[]);
        let found = &measure(std::slice::from_ref(&share), &[], times)[0];
        assert_eq!((found.value, found.event, &found.place), (Some(25.0), None, &Place::Whole));
        assert_eq!(measure(&[metric("user_time", &[])], &[], times)[0].value, None);
    }
}
