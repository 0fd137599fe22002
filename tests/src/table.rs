//! A histogram as a map, whoever printed it.
//!
//! The key is the list of the sort keys' values as perf spells them, without padding:
//! `["workload", "libc.so.6", "[.] malloc"]`. perf and rep both may print one key in several rows
//! (two symbols of one name at different addresses): the rows are added up.
//!
//! One thing is compared less exactly than it is told: the entries of procedure linkage tables,
//! `[.] malloc@plt`. perf before 6.3 names them by their position among the relocations, which is
//! wrong wherever these are in another order, and knows neither `.plt.got` nor the table's head,
//! `[.] .plt`. So under a key where either has such an entry, these and the samples without a
//! symbol are added up. Later versions of perf agree with rep on each. Functions of the C library have
//! the shortest of their names (see [`aliases`](crate::aliases)).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::aliases::with_shortest_names;

/// Counts under one key.
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
    pub fn add(&mut self, mut key: Vec<String>, samples: u64, period: u64) {
        for symbol in key.iter_mut().filter(|text| text.starts_with("[.] ")) {
            *symbol = with_shortest_names(symbol);
        }
        let counts = self.rows.entry(key).or_default();
        counts.samples += samples;
        counts.period += period;
    }

    /// The same by some of its keys: those at these places.
    #[must_use]
    pub fn by(&self, places: &[usize]) -> Table {
        let mut table = Table::new(&self.event);
        for (key, counts) in &self.rows {
            table.add(
                places.iter().map(|&place| key[place].clone()).collect(),
                counts.samples,
                counts.period,
            );
        }
        table
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.rows.values().map(|counts| counts.samples).sum()
    }

    /// The rows of the keys that `select` takes.
    #[must_use]
    pub fn rows_where(&self, select: impl Fn(&[String]) -> bool) -> Table {
        let mut table = Table::new(&self.event);
        table.rows.extend(
            self.rows
                .iter()
                .filter(|(key, _)| select(key))
                .map(|(key, counts)| (key.clone(), *counts)),
        );
        table
    }

    /// The samples of the keys that `select` takes.
    pub fn samples_where(&self, select: impl Fn(&[String]) -> bool) -> u64 {
        self.rows_where(select).samples()
    }
}

/// Fails with the rows that differ.
#[track_caller]
pub fn assert_same(what: &str, ours: &[Table], perfs: &[Table]) {
    let names =
        |tables: &[Table]| tables.iter().map(|table| table.event.clone()).collect::<Vec<_>>();
    assert_eq!(names(ours), names(perfs), "{what}: the events that have samples");
    for (ours, perfs) in ours.iter().zip(perfs) {
        assert!(!perfs.rows.is_empty(), "{what}: perf reports nothing, so nothing is compared");
        let linked: BTreeSet<&[String]> =
            ours.rows.keys().chain(perfs.rows.keys()).filter_map(|key| plt(key)).collect();
        let (ours, perfs) = (ours.with_plt_as_one(&linked), perfs.with_plt_as_one(&linked));
        let keys: BTreeSet<_> = ours.rows.keys().chain(perfs.rows.keys()).collect();
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

/// Returns whether perf, in some version, may give this name to an entry of a linkage table. Before
/// 6.3 it takes a table that lies behind `.fini` for a part of `_fini`, whose symbol has no size.
#[must_use]
pub fn is_plt(name: &str) -> bool {
    name.ends_with("@plt") || [".plt", "_fini"].contains(&name)
}

/// Returns the part before the symbol of a key that ends with an entry of a procedure linkage
/// table.
fn plt(key: &[String]) -> Option<&[String]> {
    let (symbol, before) = key.split_last()?;
    symbol.strip_prefix("[.] ").is_some_and(is_plt).then_some(before)
}

impl Table {
    /// The same, where what stands before the symbol is in `linked` with entries of linkage tables
    /// and unknown symbols added up.
    fn with_plt_as_one(&self, linked: &BTreeSet<&[String]>) -> Table {
        let mut table = Table::new(&self.event);
        for (key, counts) in &self.rows {
            let mut key = key.clone();
            if let Some((symbol, before)) = key.split_last_mut()
                && linked.contains(&*before)
                && symbol
                    .strip_prefix("[.] ")
                    .is_some_and(|name| is_plt(name) || name.starts_with("0x"))
            {
                "[.] @plt or unknown".clone_into(symbol);
            }
            table.add(key, counts.samples, counts.period);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &str, u64)]) -> [Table; 1] {
        let mut table = Table::new("cpu-clock");
        for &(dso, symbol, samples) in rows {
            table.add(vec![dso.to_owned(), symbol.to_owned()], samples, samples);
        }
        [table]
    }

    #[test]
    fn linkage_tables_are_compared_as_one_with_what_is_unknown() {
        let ours =
            table(&[("ls", "[.] free@plt", 2), ("ls", "[.] .plt", 1), ("sh", "[.] main", 1)]);
        let perfs = table(&[
            ("ls", "[.] @plt", 1),
            ("ls", "[.] 0x0000000000000002", 2),
            ("sh", "[.] main", 1),
        ]);
        assert_same("symbol", &ours, &perfs);
    }

    #[test]
    #[should_panic(expected = "sh | [.] 0x0000000000000001: rep Some")]
    fn a_symbol_that_only_perf_knows_is_a_difference() {
        let ours = table(&[("ls", "[.] free@plt", 2), ("sh", "[.] 0x0000000000000001", 1)]);
        let perfs = table(&[("ls", "[.] free@plt", 2), ("sh", "[.] main", 1)]);
        assert_same("symbol", &ours, &perfs);
    }
}
