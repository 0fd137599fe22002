//! Counters: one per event and CPU (and attached thread), with one ring per CPU.
//!
//! ```text
//!             CPU 0          CPU 1
//!  event 0    fd ─ ring 0    fd ─ ring 1      the first counter of a CPU owns the ring,
//!  event 1    fd ─▶ ring 0   fd ─▶ ring 1     the others are redirected to it (PERF_EVENT_IOC_SET_OUTPUT)
//! ```
//!
//! Without CPUs (`--per-thread`), each thread has a ring. Counters that write backwards have
//! separate rings, and an event with an AUX area owns the ring that the area belongs to.

mod counter;
mod mapping;
mod opener;
mod opening;
mod reading;

pub(crate) use counter::{Counter, Counters};
pub(crate) use opening::{Opened, allow_files, files, files_of, open, open_counters};
pub(crate) use reading::Reading;

#[cfg(test)]
mod tests;
