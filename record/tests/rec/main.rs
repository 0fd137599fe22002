//! `rec`: its command line, and what it records.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

mod bpf;
mod build_ids;
mod cli;
mod common;
mod draining;
mod off_cpu;
mod pager;
mod recording;
mod status;
