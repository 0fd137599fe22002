//! Records of what was there before the recording began: the kernel's image and modules, tasks and their mappings.
//!
//! The kernel tells only of changes, so perf's readers expect a recorder to write what `/proc` says first, as the
//! very records that the kernel would have written. They carry time 0: before everything.

mod cgroups;
mod maps;
mod tasks;
mod writer;

pub use cgroups::cgroups;
pub use tasks::{Scope, tasks};
pub use writer::Synthesizer;
