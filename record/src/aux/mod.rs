//! AUX area tracing: from the CPU's tracing hardware into the file.
//!
//! ```text
//!   hardware ──▶ AUX area ──(aux_head)──▶ areas ──▶ AUXTRACE record + bytes  ┐
//!   kernel ────▶ data ring: AUX (offset, size, flags), ITRACE_START, …  ─────┴▶ file, with their offsets in the feature AUXTRACE
//!                                             info ──▶ TIME_CONV, ID_INDEX, AUXTRACE_INFO, before all of it
//! ```
//!
//! `plan::aux` derives the areas' settings and the attrs from the command line. A session uses
//! [`Areas`] in this order:
//!
//! 1. [`Areas::open`] maps an area beside each ring whose owner has one; without such events it is
//!    empty and does nothing.
//! 2. [`Areas::write_head`] before the records: in each file anew.
//! 3. [`Areas::drain`] *before* each round over the data rings. `aux_head` is then loaded before
//!    `data_head`, so that what is in the file as trace is described by an AUX record of the same
//!    round (the model check in `ring` shows it).
//! 4. [`Areas::pause`] and [`Areas::resume`] around the last round of a file that another one
//!    follows.
//! 5. [`Areas::snapshot`] where areas are overwritten: at SIGUSR2, and at the end if asked for.
//! 6. [`Areas::stop`] when counters are stopped for good, before the last drain; [`add_index`] at
//!    the end of each file.
//!
//! The kernel stops a counter whose area is full, so the counters of an area are enabled again
//! after each drain.

mod areas;
mod head;
mod info;
mod kind;
mod pmu_values;
mod snapshot;
mod spe_cpus;

pub(crate) use areas::{Areas, add_index};

#[cfg(test)]
mod tests;
