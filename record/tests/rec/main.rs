//! `rec`: its command line, and what it records.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

#[allow(unreachable_pub, reason = "a module of the testkit, which depends on this package")]
#[path = "../../testkit/src/busy_cpus.rs"]
mod busy_cpus;
mod cli;
mod common;
mod live;
mod pager;
