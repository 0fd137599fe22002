//! The fuzz targets of traces over their seeds and over damaged variants of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "a test says what it did, and fails loudly"
)]

#[path = "../../tests/replay/damage.rs"]
mod damage;
#[path = "../../fuzz/src/trace.rs"]
mod trace;

use std::path::Path;

fn replay(name: &str, target: damage::Target) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(name);
    damage::replay(name, &seeds, target);
}

#[test]
fn packets_of_spe_stand_their_seeds_and_their_damaged_variants() {
    replay("spe", trace::spe);
}

#[test]
fn branches_stand_their_seeds_and_their_damaged_variants() {
    replay("bts", trace::bts);
}

#[test]
fn traces_of_pt_stand_their_seeds_and_their_damaged_variants() {
    replay("pt", trace::pt);
}
