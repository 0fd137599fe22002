//! What files say of their limits: what the recording lost, and what a format has no place for.

use crate::pprof::Facts;

/// Returns what a recording lacks.
pub(super) fn lost(facts: &Facts) -> Vec<String> {
    let mut lost = Vec::new();
    if facts.lost_events > 0 {
        lost.push(format!("{} records were lost", facts.lost_events));
    }
    for event in facts.events.iter().filter(|event| event.lost_samples > 0) {
        lost.push(format!("{}: {} samples were lost", event.name, event.lost_samples));
    }
    if facts.incomplete {
        lost.push("the recording is damaged or cut".to_owned());
    }
    lost
}

/// Returns the name of this program and what its file lacks, for formats with a text for the first
/// only.
pub(super) fn exporter(facts: &Facts, limits: &str) -> String {
    let mut parts = vec![concat!("rep ", env!("CARGO_PKG_VERSION")).to_owned(), limits.to_owned()];
    parts.extend(lost(facts));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::EventFacts;

    #[test]
    fn a_file_says_what_was_lost() {
        let events = [("cycles", 3), ("faults", 0)].map(|(name, lost_samples)| EventFacts {
            name: name.into(),
            lost_samples,
            ..EventFacts::default()
        });
        let facts =
            Facts { lost_events: 2, incomplete: true, events: events.into(), ..Facts::default() };
        let text = exporter(&facts, "no times");
        let (_, text) = text.split_once("; ").unwrap();
        let expected = "no times; 2 records were lost; cycles: 3 samples were lost; \
                        the recording is damaged or cut";
        assert_eq!(text, expected);
        assert_eq!(lost(&Facts::default()), [""; 0]);
    }
}
