//! `rep`, its command line and its tables of options. One program: linking five took longer than running them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it counted and what it skips"
)]

mod calls;
mod cli;
mod options;
mod script_options;
mod symbols;
