//! Symbols, lines and their explanations, with programs that are compiled here.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod common;
mod explained;
mod fetched;
mod lines;
mod listed;
mod proven;
mod server;
mod sources;
