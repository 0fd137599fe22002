//! Library behind `rec`: records events from the kernel's rings into a perf.data file.
//!
//! ```text
//!  command line ───────────── cli ──▶ Config ─┐
//!  event specs ────────────── event ──────────┼─ plan ──▶ Plan: attrs, places, ring size     (no event is opened up to here)
//!  /proc, /sys, tracefs ───── machine ────────┤            │
//!  command, processes, CPUs ─ target ─────────┘            ▼
//!  perf_event_open(2) ◀── kernel (trait; kernel::sys is the real one) ◀── kernel::counters, kernel::fallback
//!      │ rings: kernel::ring
//!      ▼
//!  drain: rounds by one thread, or drain::threads ─▶ output: file or pipe, compression ◀── synthesize: existing tasks and their mappings
//!      │ AUX areas                                   │  output::tally: counts (`rec` prints them last), times, mapped modules
//!      └─────────▶ aux ─────────────────────────────▶│
//!                                                    └─ output::features, output::build_ids: the file's header
//! ```
//!
//! [`session`] runs a recording from beginning to end; where writing fails (a full disk), it lets the command go on, and
//! `output::data_file` completes the file. A module imports only modules that come after it in this order:
//! `cli`, `session`, `synthesize`, `drain`, `aux`, `output`, `kernel`, `plan`, `event`, `machine`, `target`,
//! `messages`. `fake_kernel` replaces the kernel in tests. `unsafe` code is only in [`kernel::sys`] (the syscall),
//! [`kernel::ring`] (the shared memory) and [`target::workload`] (between fork and exec).

pub mod aux;
pub mod cli;
pub mod drain;
pub mod event;
#[cfg(any(test, feature = "fake-kernel"))]
#[doc(hidden)]
pub mod fake_kernel;
pub mod kernel;
pub mod machine;
pub mod messages;
pub mod output;
pub mod plan;
pub mod session;
pub mod synthesize;
pub mod target;
