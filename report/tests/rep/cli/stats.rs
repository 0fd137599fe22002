//! `--stats`: counts of records and samples, and nothing else.

use super::common::{json, list, recorded, rep, two_events};
use recrep_format::endian::Endian;

#[test]
fn the_counts_are_those_of_the_whole_report() {
    let (_place, file) = recorded(&two_events(Endian::Little, 5));
    let (stats, report) = (json(&["--stats"], &file), json(&[], &file));
    assert_eq!(stats["inputs"], report["inputs"]);
    for (counted, full) in list(&stats["events"]).iter().zip(list(&report["events"])) {
        for number in ["name", "samples", "period", "lost_samples", "sort"] {
            assert_eq!(counted[number], full[number]);
        }
        assert!(!list(&full["rows"]).is_empty());
    }
}

#[test]
fn sort_keys_are_ignored() {
    let (_place, file) = recorded(&two_events(Endian::Little, 5));
    // A report by a field that no event has is refused, once the formats of the events were read.
    let with = |words: &[&str]| rep().args(words).args(["--sort", "nosuchfield"]).arg(&file).output().unwrap();
    assert_eq!(with(&[]).status.code(), Some(2));
    assert_eq!(with(&["--stats"]).status.code(), Some(0));
}
