//! The fuzz target `unwind` over its seeds and over damaged variants of them.
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
#[path = "../../fuzz/src/unwind.rs"]
mod unwind;

use std::path::Path;

#[test]
fn unwinding_stands_its_seeds_and_their_damaged_variants() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/unwind");
    damage::replay("unwind", &seeds, unwind::unwind);
}
