//! Records of what was there before the recording began: the kernel's image, modules and BPF
//! programs, tasks and their mappings.
//!
//! The kernel tells only of changes, so perf's readers expect a recorder to write what `/proc` says
//! first, as the very records that the kernel would have written. They carry time 0: before
//! everything.

mod bpf;
mod cgroups;
mod tasks;
mod writer;

pub(crate) use bpf::BpfCode;
pub(crate) use cgroups::cgroups;
pub(crate) use tasks::{Scope, tasks};
pub(crate) use writer::Synthesizer;
