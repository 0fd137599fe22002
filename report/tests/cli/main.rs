//! The `rep` command as its users meet it: streams and files in, answers, messages and exit statuses out.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that does not run says so")]

mod answers;
mod common;
mod compressed;
mod corpus;
mod inputs;
mod looks;
mod names;
mod several;
mod stats;
