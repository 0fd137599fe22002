//! Tests that record.

mod builds;
mod moves;
mod recorded;
