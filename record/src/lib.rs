//! The recorder behind `rec`: from the kernel's rings to a perf.data file.
//!
//! ```text
//!  command line ── args ──▶ Config ─┐
//!  event specs ─── event ───────────┼─ plan ──▶ Plan: attrs, CPUs, ring size      (pure up to here)
//!  /proc, /sys ─── machine ─────────┘            │
//!                                                ▼
//!  kernel (trait; sys is the real one) ◀── counters ── fallback: (attr, errno) → next attr or advice
//!        │ rings                                 │
//!        ▼                                       ▼
//!  ring ── drain (in rounds) or drainers (threads) ──▶ output ◀── synthesize (tasks and mappings from before)
//!       AUX areas ── auxtrace ──▶ ┘
//!             └ tally: counts, times,     ◀── features, buildid (header features)
//!               modules that were mapped
//! ```
//!
//! [`session`] runs a recording; every other module is one of its parts. No module depends on reporting.
//! `unsafe` lives in [`sys`] (the syscall), [`ring`] (the shared memory) and [`workload`] (between fork and exec).

pub mod args;
pub mod auxtrace;
pub mod buildid;
pub mod cgroup;
pub mod config;
pub mod control;
pub mod counters;
mod cpus;
pub mod drain;
pub mod drainers;
pub mod dry_run;
pub mod error;
pub mod event;
#[cfg(any(test, feature = "fake-kernel"))]
#[doc(hidden)]
pub mod fake_kernel;
pub mod fallback;
pub mod features;
pub mod kernel;
pub mod list;
pub mod machine;
pub mod messages;
pub mod output;
pub mod plan;
pub mod pmu;
pub mod registers;
pub mod ring;
pub mod sampling;
pub mod session;
pub mod signals;
pub mod synthesize;
pub mod sys;
pub mod tally;
pub mod target;
pub mod timer;
pub mod topology;
pub mod tracepoint;
pub mod wait;
pub mod workload;
