//! Metrics and their groups, from the event tables.

use std::collections::BTreeMap;

use super::entries::{EntryKind, ListEntry};
use crate::machine::sources::EventSources;

/// Returns an entry for each metric, by name, then one for each group.
pub(super) fn entries(sources: &EventSources) -> Vec<ListEntry> {
    let mut metrics: BTreeMap<&String, ListEntry> = BTreeMap::new();
    let mut groups: BTreeMap<&String, Vec<String>> = BTreeMap::new();
    for metric in sources.metrics() {
        // Kinds of cores can have metrics of the same name.
        if metrics.contains_key(&metric.name) {
            continue;
        }
        let unit = Some(metric.unit.clone()).filter(|unit| !unit.is_empty());
        let entry = ListEntry {
            unit,
            description: metric.description.clone().or_else(|| Some(String::new())),
            expression: Some(metric.expression.clone()),
            threshold: metric.threshold.clone(),
            groups: metric.groups.clone(),
            ..ListEntry::new(metric.name.clone(), EntryKind::Metric)
        };
        metrics.insert(&metric.name, entry);
        for group in &metric.groups {
            groups.entry(group).or_default().push(metric.name.clone());
        }
    }
    let groups = groups.into_iter().map(|(name, metrics)| ListEntry {
        metrics,
        description: Some(String::new()),
        ..ListEntry::new(name.clone(), EntryKind::MetricGroup)
    });
    metrics.into_values().chain(groups).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::list::entries::find;
    use crate::testkit::sysfs::{CORE, machine};

    #[test]
    fn metrics_and_groups_of_a_table() {
        let (dir, tables) = (machine(CORE), tempfile::tempdir().unwrap());
        std::fs::create_dir(tables.path().join("model")).unwrap();
        let write =
            |path: &str, text: &str| std::fs::write(tables.path().join(path), text).unwrap();
        write("mapfile.csv", "Family-model,Version,Filename,EventType\nTest-6-1,v1,model,core\n");
        write(
            "model/all.json",
            r#"[{"EventName": "OPS", "EventCode": "0xC0"},
                {"MetricName": "Rest", "MetricExpr": "1 - Share", "MetricGroup": "Both"},
                {"MetricName": "Share", "MetricExpr": "OPS / cycles", "MetricGroup": "Both;Mem",
                 "BriefDescription": "A share.", "ScaleUnit": "100%"}]"#,
        );
        let sources = EventSources::new(&dir.path().join("sys"), None)
            .with_tables(tables.path(), Some("Test-6-1"))
            .unwrap();
        let listed = |word: &str| {
            find(&[word.to_owned()], &sources, &|_| true, entries(&sources)).unwrap().0
        };
        let names = |word: &str| listed(word).into_iter().map(|e| e.name).collect::<Vec<_>>();
        assert_eq!(names("metric"), ["Rest", "Share"]);
        assert_eq!(names("metricgroup"), ["Both", "Mem"]);
        assert_eq!(names("share"), ["Share"]);
        let [share] = &listed("Share")[..] else { panic!("one metric") };
        assert_eq!(share.expression.as_deref(), Some("OPS / cycles"));
        assert_eq!((share.unit.as_deref(), share.groups.len()), (Some("%"), 2));
        assert_eq!(listed("Both")[0].metrics, ["Rest", "Share"]);
        let none = EventSources::new(&dir.path().join("sys"), None);
        let error = find(&["metric".to_owned()], &none, &|_| true, entries(&none)).unwrap_err();
        assert!(error.contains("--event-tables DIR"), "{error}");
    }
}
