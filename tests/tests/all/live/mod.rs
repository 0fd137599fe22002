//! Tests that watch a live machine: they record what runs here, or count it, by the kernel's clock.
//!
//! Where a file has a few such tests beside others, they stand in a module `live` of that file. So
//! `live::` is in the name of each test that records, which [`recrep_tests::run::start`] checks.

mod annotate;
mod bundle;
mod children_agree;
mod containers;
mod damage;
mod functions;
mod hot_shares;
mod inferred;
mod jit_dumps;
mod known_chains;
mod lost;
mod off_cpu;
mod oracle;
mod perf_reads_rec;
mod perf_reads_sessions;
mod pprof;
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
mod rec_output;
mod rec_processes;
mod rec_stat;
mod rec_steering;
mod rec_terminal;
mod rec_threads;
mod rec_undisturbed;
mod recipes;
mod rep_agrees;
mod script_options_agree;
mod share;
mod syscalls;
mod system_wide;
mod traces_agree;
mod unprivileged;
mod unwinding;
mod waits;
