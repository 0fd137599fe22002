//! Branches that repeat.

use super::common::{BRANCHES, branch, group, json, list, recorded, row, rows};
use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::endian::Endian;

const TEXT: u64 = 0x40_0000;

/// Returns a sample with the same mispredicted branch twice.
fn twice() -> SampleSpec {
    SampleSpec::at(TEXT).branches(&[branch(TEXT, TEXT + 0x10, 1); 2])
}

#[test]
fn equal_branches_are_in_what_is_mapped_at_their_moment() {
    let stream = Stream::new(Endian::Little).event(Event::new("branches:u").branches(BRANCHES));
    let stream = stream.task(7, 7).at(10).map("/no/such/a", TEXT, 0x1000, 0).at(20).sample(twice());
    let stream = stream.at(30).map("/no/such/b", TEXT, 0x1000, 0x10).at(40).sample(twice());
    let stream = stream.task(8, 8).at(15).map("/no/such/a", TEXT, 0x1000, 0).at(50).sample(twice());
    let stream = stream.task(9, 9).at(60).sample(twice());
    let (_place, file) = recorded(&stream);
    let of = |key: &str| rows(&json(&["-b", "-s", key], &file), 0);
    assert_eq!(of("dso_from"), [row("a", 4, 4), row("[unknown]", 2, 2), row("b", 2, 2)]);
    assert_eq!(of("pid,mispredict").len(), 3);
    let to = json(&["-b", "-s", "symbol_to"], &file);
    let to = list(&to["events"][0]["rows"]).iter().map(|row| &row["key"]["symbol_to"]);
    assert_eq!(to.collect::<Vec<_>>(), ["a+0x10", "0x0000000000400010", "b+0x20"]);
}

/// The counter readings of a sample say how often each of its branches counts.
#[test]
fn branches_of_a_group_count_for_each_member() {
    let (_place, file) = recorded(&group(|event| event.branches(BRANCHES), &twice()));
    let answer = json(&["-b", "-s", "comm"], &file);
    assert_eq!(rows(&answer, 0), [row("app", 6, 6)]);
    assert_eq!(rows(&answer, 1), [row("app", 4, 4)]);
}
