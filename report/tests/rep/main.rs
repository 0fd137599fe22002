//! Tests of `rep`. They are one program, because linking five took longer than running them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and prints what it counted or skipped"
)]

mod calls;
mod cli;
mod common;
mod options;
mod symbols;
