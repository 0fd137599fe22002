//! Comparison of two sides of runs: what changed, by how much, and whether chance explains it.
//! Numbers in, numbers out: nothing here reads files or prints.
//!
//! ```text
//!   names of rows ─► matching ─► number of each function, the same on both sides
//!                                     │
//!   Sides: runs, values by row and run┤
//!                                     ▼
//!   common        factor of each run, and what all functions share between the sides
//!     │
//!   normalize     which of that is taken out: the mode, a factor for each run
//!     │
//!   estimate      of each row: change, error, p, interval (distribution: Student's and normal)
//!     │
//!   family        correction for the number of rows, resolution, runs needed
//!     ▼
//!   Comparison ─► moves: code under other names, which is then compared as one
//!              ─► causes: callers marked because of callees, time that moved between neighbours
//!              ─► rules: gates, which hold or are violated
//! ```
//!
//! A row's samples scatter from run to run more than chance explains. How much more is its
//! dispersion, and two sides of five runs tell little of it, so that each row borrows from the
//! typical one. Runs recorded in turn carry the machine's drift in their dispersion; for sides
//! recorded apart nothing tells drift from change, and an error is assumed.
//!
//! Sums are taken in the order of rows and runs, on one core: the same input gives the same bytes.

mod causes;
mod common;
mod comparison;
mod distribution;
mod estimate;
mod family;
pub(crate) mod matching;
mod moves;
mod normalize;
mod result;
pub(crate) mod rules;
mod sides;

pub(crate) use causes::Moved;
pub(crate) use comparison::{Comparison, compare};
pub(crate) use family::Needed;
pub(crate) use moves::RowCallers;
pub(crate) use normalize::Normalization;
pub(crate) use result::{
    Effect, LEAST_RUNS, Normalize, NotComparable, Options, RowChange, Status, Verdict,
};
pub(crate) use sides::{RowFacts, RunValues, SideRun, Sides, Unit};

#[cfg(test)]
mod tests;
