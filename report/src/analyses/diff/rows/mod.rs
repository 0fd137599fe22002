//! Rows of both sides, and their comparison.
//!
//! ```text
//!   events    of both sides
//!   labels    what rows are called
//!   grouped   counted rows of each run, matched across builds ─► compare's Sides
//!   chains    callchains of all runs as rows
//!   causes    callees that changed, time that moved, rows that are one piece of code
//!   compared  rows and their comparison, those that are one piece of code as one
//! ```

mod causes;
mod chains;
mod compared;
mod events;
mod grouped;
mod labels;

pub(super) use causes::{Causes, JoinedRows};
pub(super) use compared::{Compared, Comparing, described};
pub(super) use events::{DiffEvent, events};
pub(super) use grouped::{Grouped, Grouping, add_module};
pub(super) use labels::EventLabels;
