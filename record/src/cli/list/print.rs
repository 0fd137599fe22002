//! Output of the list, as text or as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::entries::{EntryKind, ListEntry};

/// Column at which the text after a name begins.
const COLUMN: usize = 40;

/// Formats the list as text: one line per event, grouped by kind below a title.
pub(super) fn text(entries: &[ListEntry]) -> String {
    let (mut text, mut kind) = (String::new(), None);
    for entry in entries {
        if kind != Some(entry.kind) {
            let gap = if kind.is_some() { "\n" } else { "" };
            let _ = writeln!(text, "{gap}{}", title(entry.kind));
            kind = Some(entry.kind);
        }
        let more = match (&entry.terms, entry.aliases.is_empty()) {
            _ if !entry.metrics.is_empty() => entry.metrics.join(" "),
            _ if !entry.groups.is_empty() => entry.groups.join(" "),
            (Some(terms), _) => terms.clone(),
            (None, false) => format!("or {}", entry.aliases.join(", ")),
            (None, true) => String::new(),
        };
        let unit = entry.unit.as_ref().map(|unit| format!(" ({unit})")).unwrap_or_default();
        let line = format!("  {:COLUMN$} {more}{unit}", entry.name);
        let _ = writeln!(text, "{}", line.trim_end());
        if let Some(description) = entry.description.as_ref().filter(|text| !text.is_empty()) {
            let _ = writeln!(text, "      {description}");
        }
        if let Some(expression) = &entry.expression {
            let _ = writeln!(text, "      = {expression}");
        }
        for (name, kind) in &entry.fields {
            let _ = writeln!(text, "    {name}: {kind}");
        }
    }
    text
}

fn title(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Hardware => "Hardware",
        EntryKind::Software => "Software",
        EntryKind::Cache => "Caches",
        EntryKind::Pmu => "PMUs",
        EntryKind::Tracepoint => "Tracepoints",
        EntryKind::Metric => "Metrics",
        EntryKind::MetricGroup => "Metric groups",
    }
}

/// Formats the list as JSON.
pub(super) fn json(entries: &[ListEntry]) -> String {
    #[derive(Serialize)]
    struct List<'a> {
        schema: &'static str,
        events: &'a [ListEntry],
    }
    // Strings and lists of strings can always be serialized.
    let mut text = serde_json::to_string_pretty(&List { schema: "recrep-list/1", events: entries })
        .unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<ListEntry> {
        let entry = |name: &str, kind| ListEntry::new(name.to_owned(), kind);
        vec![
            ListEntry {
                aliases: vec!["faults".to_owned()],
                ..entry("page-faults", EntryKind::Software)
            },
            ListEntry {
                terms: Some("event=4".to_owned()),
                unit: Some("MiB".to_owned()),
                ..entry("imc/cas/", EntryKind::Pmu)
            },
            ListEntry {
                description: Some("Counts.".to_owned()),
                ..entry("cpu/a/", EntryKind::Pmu)
            },
            ListEntry {
                fields: vec![("prio".to_owned(), "int".to_owned())],
                ..entry("a:b", EntryKind::Tracepoint)
            },
            ListEntry {
                groups: vec!["Both".to_owned(), "Mem".to_owned()],
                unit: Some("%".to_owned()),
                description: Some("Share.".to_owned()),
                expression: Some("a / b".to_owned()),
                ..entry("share", EntryKind::Metric)
            },
            ListEntry {
                metrics: vec!["share".to_owned()],
                ..entry("Both", EntryKind::MetricGroup)
            },
        ]
    }

    #[test]
    fn as_text() {
        let name = |name: &str| format!("  {name:COLUMN$}");
        let expected = format!(
            "Software\n{} or faults\n\nPMUs\n{} event=4 (MiB)\n  cpu/a/\n      \
             Counts.\n\nTracepoints\n  a:b\n    prio: int\n\nMetrics\n{} Both Mem (%)\n      Share.\n      \
             = a / b\n\nMetric groups\n{} share\n",
            name("page-faults"),
            name("imc/cas/"),
            name("share"),
            name("Both")
        );
        assert_eq!(text(&entries()), expected);
    }

    #[test]
    fn as_json() {
        let list: serde_json::Value = serde_json::from_str(&json(&entries())).unwrap();
        assert_eq!(list["schema"], "recrep-list/1");
        assert_eq!(list["events"][0]["aliases"][0], "faults");
        assert_eq!(list["events"][1]["kind"], "pmu");
        assert_eq!(list["events"][3]["fields"][0][1], "int");
    }
}
