//! Call trees below the rows of a profile.
//!
//! ```text
//!   per file: Stacks, classified samples ─► which rows a sample counts for, and from which frame on
//!                                             │ only for the rows that are shown
//!                                             ▼
//!             items (sample, first frame) ─► grouped by frame, level by level ─► nodes (paths compressed)
//! ```
//!
//! Trees are made of what is there anyway, when rows are printed, for those rows only; parts that are too small to be
//! shown are not made at all. Frames of several files are the same where module and function read the same.

mod all;
mod file;
mod names;
mod tree;

pub use all::CallTrees;
pub use file::{FileTrees, RowPlace};
pub use tree::{Node, Wanted};
