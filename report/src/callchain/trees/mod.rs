//! Call trees below the rows of a profile.
//!
//! ```text
//!   per file: Stacks, classified samples ─► the rows that each sample counts for, and the first frame for each
//!                                             │ only for displayed rows
//!                                             ▼
//!             items (sample, first frame) ─► grouped by frame, depth by depth ─► nodes (paths compressed)
//! ```
//!
//! Trees are built from data that the scan keeps anyway, when rows are printed, and only for the printed rows. Nodes
//! that are too small to be displayed are never built. Frames of different files are equal if module and function have
//! the same text.

mod all;
mod file;
mod tree;

pub use all::CallTrees;
pub use file::{FileTrees, RowIndex};
pub use tree::{Node, TreeOptions};
