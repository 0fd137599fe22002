//! Tests that record.

use super::*;

mod against_perf;
