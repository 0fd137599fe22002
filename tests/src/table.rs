//! A histogram as a map, whoever printed it.
//!
//! The key is the list of the sort keys' values as perf spells them, without padding: `["workload", "libc.so.6",
//! "[.] malloc"]`. perf and rep both may print one key in several rows (two symbols of one name at different addresses):
//! the rows are added up.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What was sampled under one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples.
    pub samples: u64,
    /// The sum of their periods.
    pub period: u64,
}

/// One event's histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The event's name.
    pub event: String,
    /// Counts by key.
    pub rows: BTreeMap<Vec<String>, Counts>,
}

impl Table {
    /// An empty histogram.
    pub fn new(event: &str) -> Table {
        Table { event: event.to_owned(), rows: BTreeMap::new() }
    }

    /// Adds one printed row.
    pub fn add(&mut self, key: Vec<String>, samples: u64, period: u64) {
        let counts = self.rows.entry(key).or_default();
        counts.samples += samples;
        counts.period += period;
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.rows.values().map(|counts| counts.samples).sum()
    }

    /// The samples of the keys that `select` takes.
    pub fn samples_where(&self, select: impl Fn(&[String]) -> bool) -> u64 {
        self.rows.iter().filter(|(key, _)| select(key)).map(|(_, counts)| counts.samples).sum()
    }
}

/// Fails with the rows that differ.
#[track_caller]
pub fn assert_same(what: &str, ours: &[Table], perfs: &[Table]) {
    let names = |tables: &[Table]| tables.iter().map(|table| table.event.clone()).collect::<Vec<_>>();
    assert_eq!(names(ours), names(perfs), "{what}: the events that have samples");
    for (ours, perfs) in ours.iter().zip(perfs) {
        assert!(!perfs.rows.is_empty(), "{what}: perf reports nothing, so nothing is compared");
        let keys: std::collections::BTreeSet<_> = ours.rows.keys().chain(perfs.rows.keys()).collect();
        let mut differences = String::new();
        for key in keys {
            let (our, their) = (ours.rows.get(key), perfs.rows.get(key));
            if our != their {
                let _ = writeln!(differences, "  {}: rep {our:?}, perf {their:?}", key.join(" | "));
            }
        }
        assert!(differences.is_empty(), "{what}, event {}:\n{differences}", ours.event);
    }
}
