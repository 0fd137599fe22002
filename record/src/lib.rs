//! Library behind `rec`: records events from the kernel's rings into a perf.data file.
//!
//! ```text
//!  command line ───────────── cli ──▶ Config ─┐     (rec stat: Settings ─▶ stat: counters that are read, without rings)
//!  event specs ────────────── event ──────────┼─ plan ──▶ Plan: attrs, CPUs, ring sizes      (until here no event has been opened)
//!  /proc, /sys, tracefs ───── machine ────────┤            │
//!  command, processes, CPUs ─ tasks ──────────┘            ▼
//!  perf_event_open(2) ◀── kernel (trait; kernel::sys has the real one) ◀── kernel::counters, kernel::fallback, kernel::probes
//!      │ rings: kernel::ring
//!      ▼
//!  drain: one thread in rounds, or drain::threads ─▶ output: file or pipe, compression ◀── synthesize: existing tasks and their mappings
//!      │ AUX areas                                   │  output::tally: counts (`rec` prints them last), times, mapped modules
//!      │                                             ├─ output::unwind: copies of stacks become callchains
//!      └─────────▶ aux ─────────────────────────────▶│
//!                                                    └─ output::features, output::build_ids: the features
//! ```
//!
//! [`session`] runs a recording from beginning to end; if the disk is full, the recorded program
//! runs on, and `output::data_file` makes a valid file of what was written. A module imports only
//! modules that come after it in this order: `cli`, `stat`, `session`, `synthesize`, `drain`, `aux`,
//! `output`, `kernel`, `plan`, `event`, `machine`, `tasks`, `messages`. The package in
//! `record/testkit` has the fakes that stand in for the kernel in tests. `unsafe` code is only in `kernel::sys` (the syscall), `kernel::ring` (the
//! shared memory) and `tasks::workload` (between fork and exec).

#![allow(missing_docs, reason = "a program's crate: comments say what names and types do not")]

mod aux;
pub mod cli;
mod drain;
mod event;
mod kernel;
mod machine;
pub mod messages;
mod output;
mod plan;
pub mod session;
mod stat;
mod synthesize;
mod tasks;

pub use event::{EventSpec, PmuUse};
pub use kernel::probes::guard;
pub use kernel::sys::Perf;

/// What the fakes of the tests implement and map, and the parts of the drain that the example
/// `scale` measures.
#[doc(hidden)]
pub mod parts {
    pub use crate::drain::{Drain, Rounds};
    pub use crate::kernel::bpf::BpfProgram;
    pub use crate::kernel::ring::{AuxRing, Clock, Ring, SharedMemory, SharedWord};
    pub use crate::kernel::{Kernel, Place};
    pub use crate::output::tally::Tally;
    pub use crate::output::{Layout, Output};
}

// Unit tests have the fakes as a module, since those of the package implement the traits of the
// library that was compiled without tests.
#[cfg(test)]
extern crate self as recrep_record;
#[cfg(test)]
#[doc(hidden)]
#[path = "../testkit/src/lib.rs"]
pub mod testkit;
