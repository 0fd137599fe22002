//! Metrics of the tables: expressions of events.

use super::entry::{EventEntry, Standard, scale};
use super::unit::Unit;

/// A metric of the tables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricEntry {
    pub(crate) name: String,
    /// Groups that it is in.
    pub(crate) groups: Vec<String>,
    pub(crate) expression: String,
    /// Condition under which its value is remarkable.
    pub(crate) threshold: Option<String>,
    /// Unit of its value, after the multiplication by `scale`.
    pub(crate) unit: String,
    pub(crate) scale: f64,
    pub(crate) description: Option<String>,
    pub(crate) grouping: Grouping,
    /// Groups whose metrics' events are not grouped when they are asked for by the group's name.
    pub(crate) ungrouped_in: Vec<String>,
    /// PMU of the kind of cores that it is for; `None` if it is for all.
    pub(crate) pmu: Option<String>,
    /// Parts of the machine that it is computed for, one by one: the `?` in the expression.
    pub(crate) parts: Parts,
}

/// Way of grouping the events of a metric on the PMU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Grouping {
    #[default]
    Always,
    Never,
    /// Unless the NMI watchdog takes a counter.
    WithoutWatchdog,
    /// Unless cores have several hardware threads.
    WithoutSmt,
}

/// Parts of a POWER machine that a metric is computed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Parts {
    Chips,
    /// Cores of a chip.
    #[default]
    Cores,
}

/// A metric, and the PMUs that it is for.
#[derive(Clone, Debug)]
pub(super) struct PlacedMetric {
    pub(super) unit: Unit,
    pub(super) metric: MetricEntry,
}

impl EventEntry {
    /// Returns the metric; `None` if the entry has no expression.
    pub(super) fn metric(&self, standard: &Standard) -> Result<Option<PlacedMetric>, String> {
        let base = self.base(standard)?;
        let text = |key: &str| self.text(key).or_else(|| base?.text(key));
        let Some(name) = text("MetricName") else { return Ok(None) };
        let Some(expression) = text("MetricExpr") else { return Ok(None) };
        let names = |key: &str| {
            let names = text(key).unwrap_or("").split(';').map(str::trim);
            names.filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let grouping = match text("MetricConstraint") {
            None => Grouping::Always,
            Some("NO_GROUP_EVENTS_NMI" | "NO_NMI_WATCHDOG" | "NO_THRESHOLD_AND_NMI") => {
                Grouping::WithoutWatchdog
            }
            Some("NO_GROUP_EVENTS_SMT") => Grouping::WithoutSmt,
            // Counts without groups are right too.
            Some(_) => Grouping::Never,
        };
        let parts = match text("AggregationMode") {
            Some("PerChip") => Parts::Chips,
            _ => Parts::Cores,
        };
        let (factor, unit) = text("ScaleUnit").map(scale).unzip();
        let description = text("BriefDescription").or_else(|| text("PublicDescription"));
        let metric = MetricEntry {
            name: name.to_owned(),
            groups: names("MetricGroup"),
            expression: expression.to_owned(),
            threshold: text("MetricThreshold").map(str::to_owned),
            unit: unit.unwrap_or_default(),
            scale: factor.and_then(|factor| factor.parse().ok()).unwrap_or(1.0),
            description: description.map(|text| self.description(text)),
            grouping,
            ungrouped_in: names("MetricgroupNoGroup"),
            pmu: None,
            parts,
        };
        Ok(Some(PlacedMetric { unit: Unit::new(text("Unit"), text("Compat")), metric }))
    }
}

impl MetricEntry {
    /// Returns whether this is its name or that of one of its groups; `all` means every metric,
    /// `No_group` those without a group.
    pub(crate) fn is_meant_by(&self, name: &str) -> bool {
        name == "all"
            || name.eq_ignore_ascii_case(&self.name)
            || (self.groups.is_empty() && name.eq_ignore_ascii_case("No_group"))
            || self.groups.iter().any(|group| name.eq_ignore_ascii_case(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(json: &str) -> Result<Option<PlacedMetric>, String> {
        let entry: EventEntry = serde_json::from_str(json).unwrap();
        let base: EventEntry = serde_json::from_str(
            r#"{"MetricName": "bound", "MetricExpr": "a / b", "MetricGroup": "Base;Topdown"}"#,
        )
        .unwrap();
        entry.metric(&base.standard().into_iter().collect())
    }

    #[test]
    fn fields_of_a_metric() {
        let json = r#"{"MetricName": "Miss", "MetricExpr": "m / l", "MetricGroup": "Cache; Mem;",
            "ScaleUnit": "1e3per_1k", "MetricThreshold": "Miss > 0.1", "BriefDescription": "Misses.",
            "MetricConstraint": "NO_GROUP_EVENTS_NMI", "MetricgroupNoGroup": "Mem"}"#;
        let found = metric(json).unwrap().unwrap().metric;
        assert_eq!(
            (found.groups, found.ungrouped_in),
            (vec!["Cache".into(), "Mem".into()], vec!["Mem".into()])
        );
        assert_eq!((found.scale, &found.unit[..]), (1e3, "per_1k"));
        assert_eq!(found.threshold.as_deref(), Some("Miss > 0.1"));
        assert_eq!(
            (found.grouping, found.description.as_deref()),
            (Grouping::WithoutWatchdog, Some("Misses"))
        );
        // Of a standard metric with an expression of its own.
        let found = metric(r#"{"ArchStdEvent": "BOUND", "MetricExpr": "c"}"#).unwrap().unwrap();
        assert_eq!((&found.metric.name[..], &found.metric.expression[..]), ("bound", "c"));
        assert!(found.metric.is_meant_by("TOPDOWN") && found.metric.is_meant_by("all"));
        assert!(!found.metric.is_meant_by("No_group") && !found.metric.is_meant_by("Top"));
        assert!(metric(r#"{"EventName": "x", "EventCode": "1"}"#).unwrap().is_none());
    }

    #[test]
    fn constraints_say_when_events_are_grouped() {
        let grouping = |constraint: &str| {
            let json = r#"{"MetricName": "x", "MetricExpr": "1", "MetricConstraint": "C"}"#;
            metric(&json.replace("\"C\"", constraint)).unwrap().unwrap().metric.grouping
        };
        for (constraint, expected) in [
            ("null", Grouping::Always),
            ("\"NO_GROUP_EVENTS\"", Grouping::Never),
            ("\"NO_GROUP_EVENTS_NMI\"", Grouping::WithoutWatchdog),
            ("\"NO_GROUP_EVENTS_SMT\"", Grouping::WithoutSmt),
            ("\"OF_A_NEWER_PERF\"", Grouping::Never),
        ] {
            assert_eq!(grouping(constraint), expected, "{constraint}");
        }
    }
}
