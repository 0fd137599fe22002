//! `rec`: its command line, and what it records.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

mod cli;
mod common;
mod live;
mod pager;
