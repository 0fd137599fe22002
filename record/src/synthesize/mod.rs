//! Synthesized records of the state before the recording: the kernel's image, modules and BPF
//! programs, tasks and their mappings.
//!
//! The kernel reports changes only, so readers expect a recorder to write the state that `/proc`
//! shows first, as the records that the kernel would have written. They carry time 0: before all
//! others.

mod bpf;
mod cgroups;
mod tasks;
mod writer;

pub(crate) use bpf::BpfCode;
pub(crate) use cgroups::cgroups;
pub(crate) use tasks::{Scope, tasks};
pub(crate) use writer::Synthesizer;
