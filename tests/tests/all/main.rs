//! The tests that need more than one package, as one program: linking forty took longer than
//! running them.
//!
//! `cargo test -p recrep-tests perf_reads_rec` runs those of one file.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it did and what it skips"
)]

mod architecture;
mod aux_areas;
mod branch_history;
mod c2c_agrees;
mod counter_reads;
mod cut_meanwhile;
mod damaged_variants;
mod dependencies;
mod derived_views;
mod determinism;
mod diff;
mod directory;
mod disassembly;
mod dump;
mod event_tables;
mod evlist;
mod exports;
mod firefox;
mod fixtures;
mod fleet;
mod folded_agrees;
mod format_examples;
mod info;
mod keys_agree;
mod live;
mod modes_agree;
mod names_agree;
mod names_in_parts;
mod pictures;
mod pprof_labels;
mod private;
mod read_back;
mod readme;
mod rec_manual;
mod rep;
mod rep_input;
mod rep_stat;
mod rewrite;
mod schemas;
mod script_agrees;
mod script_rows;
mod share;
mod speedscope;
mod traces;
mod ways;
