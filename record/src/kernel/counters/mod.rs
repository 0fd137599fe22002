//! The counters: every event on every CPU (for every thread that is attached to), and a ring for each CPU.
//!
//! ```text
//!             CPU 0          CPU 1
//!  event 0    fd ─ ring 0    fd ─ ring 1      the first counter of a CPU has the ring,
//!  event 1    fd ─▶ ring 0   fd ─▶ ring 1     the others are sent there (PERF_EVENT_IOC_SET_OUTPUT)
//! ```
//!
//! Where counters have no CPU (`--per-thread`) each thread has a ring; what writes backwards has rings of its own, and an
//! event with an AUX area owns the ring that the area belongs to.

mod counter;
mod mapping;
mod opening;
mod reading;

pub use counter::{Counter, Counters};
pub use opening::{Threads, allow_files, files, files_of, open};
pub use reading::Reading;

#[cfg(test)]
mod tests;
