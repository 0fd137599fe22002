//! Synthesized records of the state before the recording: the kernel's image, modules and BPF
//! programs, tasks and their mappings, threads that wait.
//!
//! The kernel reports changes only, so readers expect a recorder to write the state that `/proc`
//! shows first, as the records that the kernel would have written. They carry time 0: before all
//! others. Only those of waits ([`Waits`]) carry the time at which the recording begins.

mod bpf;
mod cgroups;
mod kernel_stack;
mod tasks;
mod waits;
mod writer;

pub(crate) use bpf::BpfCode;
pub(crate) use cgroups::cgroups;
pub(crate) use tasks::{Scope, tasks};
pub(crate) use waits::{SwitchEvents, Waits};
pub(crate) use writer::Synthesizer;
