//! Tests that record.

mod builds;
mod recorded;
