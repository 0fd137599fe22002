//! The fuzz targets over their seeds and over damaged variants of them: what CI runs in the place
//! of a fuzzer. And whole files, real ones too.
//!
//! The variants are the same in every run. `RECREP_REPLAY` multiplies their number; a folder in
//! `RECREP_REPLAY_CORPUS` (with a folder of inputs for each target) is replayed too, as it is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "a test says what it did, and fails loudly"
)]

mod corpus;
mod damage;
#[path = "../../fuzz/src/targets.rs"]
mod targets;
#[cfg(feature = "zstd")]
mod unpacked;

use std::path::Path;

#[test]
fn every_target_stands_its_seeds_and_their_damaged_variants() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    for (name, folder, target) in targets::TARGETS {
        damage::replay(name, &seeds.join(folder), *target);
    }
}

#[test]
fn a_corpus_of_inputs_is_stood_too() {
    let Some(corpus) = std::env::var_os("RECREP_REPLAY_CORPUS") else {
        println!("did not run: RECREP_REPLAY_CORPUS is not set");
        return;
    };
    let mut all = 0;
    for (name, _, target) in targets::TARGETS {
        let folder = Path::new(&corpus).join(name);
        // Not every target need have been fuzzed.
        let inputs = if folder.is_dir() { damage::seeds(&folder) } else { Vec::new() };
        inputs.iter().for_each(|(path, bytes)| damage::run(name, path, *target, bytes));
        println!("{name}: {} inputs", inputs.len());
        all += inputs.len();
    }
    assert!(all > 0, "{} has no folder of a target with inputs", Path::new(&corpus).display());
}
