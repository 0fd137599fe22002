//! Call trees below the rows of a profile.
//!
//! ```text
//!   Stacks, samples of a file ─┐
//!   of the other files ────────┴─► for each sample its rows, and its first frame in each of them
//!                                             │ only for displayed rows
//!                                             ▼
//!             items (sample, first frame) ─► grouped by frame, depth by depth ─► nodes (paths compressed)
//! ```
//!
//! Trees are built when rows are printed, only for those rows, from data that the scan keeps anyway. Nodes
//! that are too small to be displayed are never built. Frames of different files are equal if module and function have
//! the same text.

mod all;
mod tree;

pub(crate) use all::{CallTrees, RowIndex, Shows};
pub(crate) use tree::{Node, TreeOptions, frame_name, function};
