//! Frames, and chains of them as a tree.

pub(crate) mod chains;
pub(crate) mod cumulate;
pub(crate) mod stacks;
