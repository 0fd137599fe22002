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

mod annotate;
mod architecture;
mod aux_areas;
mod branch_history;
mod bundle;
mod c2c_agrees;
mod children_agree;
mod containers;
mod counter_reads;
mod cut_meanwhile;
mod damage;
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
mod firefox;
mod fixtures;
mod folded_agrees;
mod format_examples;
mod functions;
mod hot_shares;
mod inferred;
mod info;
mod keys_agree;
mod known_chains;
mod lost;
mod modes_agree;
mod names_agree;
mod off_cpu;
mod oracle;
mod perf_reads_rec;
mod perf_reads_sessions;
mod pictures;
mod pprof;
mod read_back;
mod readme;
mod rec_callchains;
mod rec_disk_full;
mod rec_ending;
mod rec_events;
mod rec_exit;
mod rec_identity;
mod rec_incompressible;
mod rec_inherited;
mod rec_keeps;
mod rec_killed;
mod rec_links;
mod rec_manual;
mod rec_output;
mod rec_processes;
mod rec_stat;
mod rec_steering;
mod rec_terminal;
mod rec_threads;
mod rec_undisturbed;
mod recipes;
mod rep;
mod rep_agrees;
mod rep_input;
mod rep_stat;
mod rewrite;
mod schemas;
mod script_agrees;
mod script_options_agree;
mod syscalls;
mod system_wide;
mod traces_agree;
mod unprivileged;
mod unwinding;
