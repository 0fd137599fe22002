//! Branches that repeat.

use super::common::{group, json, recorded, row, rows};
use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{BranchEntry, BranchFlags, BranchSampleType};
use recrep_format::endian::Endian;

const TEXT: u64 = 0x40_0000;
const BRANCH: BranchEntry = BranchEntry { from: TEXT, to: TEXT + 0x10, flags: BranchFlags(1) };

fn branches() -> BranchSampleType {
    BranchSampleType::USER | BranchSampleType::ANY
}

#[test]
fn equal_branches_are_in_what_is_mapped_at_their_moment() {
    let sample = || SampleSpec::at(TEXT).branches(&[BRANCH, BRANCH]);
    let stream = Stream::new(Endian::Little).event(Event::new("branches:u").branches(branches()));
    let stream = stream.task(7, 7).at(10).map("/no/such/a", TEXT, 0x1000, 0).at(20).sample(sample());
    let stream = stream.at(30).map("/no/such/b", TEXT, 0x1000, 0x10).at(40).sample(sample());
    let stream = stream.task(8, 8).at(15).map("/no/such/a", TEXT, 0x1000, 0).at(50).sample(sample());
    let stream = stream.task(9, 9).at(60).sample(sample());
    let (_place, file) = recorded(&stream);
    let of = |key: &str| rows(&json(&["-b", "-s", key], &file), 0);
    assert_eq!(of("dso_from"), [row("a", 4, 4), row("[unknown]", 2, 2), row("b", 2, 2)]);
    assert_eq!(of("pid,mispredict").len(), 3);
    let to = json(&["-b", "-s", "symbol_to"], &file);
    let to: Vec<&str> =
        to["events"][0]["rows"].as_array().unwrap().iter().filter_map(|row| row["key"]["symbol_to"].as_str()).collect();
    assert_eq!(to, ["a+0x10", "0x0000000000400010", "b+0x20"]);
}

/// The counter readings of a sample say how often each of its branches counts.
#[test]
fn branches_of_a_group_count_for_each_member() {
    let sample = SampleSpec::at(TEXT).branches(&[BRANCH, BRANCH]);
    let (_place, file) = recorded(&group(|event| event.branches(branches()), &sample));
    let answer = json(&["-b", "-s", "comm"], &file);
    assert_eq!(rows(&answer, 0), [row("app", 6, 6)]);
    assert_eq!(rows(&answer, 1), [row("app", 4, 4)]);
}
