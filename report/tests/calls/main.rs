//! Callchains and the branches before samples, of a program whose functions are known.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
mod history;
mod recorded;
