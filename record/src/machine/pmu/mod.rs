//! The machine's PMUs, as sysfs tells them: `/sys/bus/event_source/devices/*`.
//!
//! ```text
//!  cpu/type          the number for perf_event_attr.type
//!  cpu/format/event  config:0-7,32-35            where a term's value goes        format
//!  cpu/events/x      event=0x3c,umask=0x1        names for terms; x.scale, x.unit
//!  uncore_imc_0/cpumask, cpu_core/cpus           the CPUs to open its events on
//!  cs_etm/sinks/x    0x1b2c                      where an AUX area's data may go
//! ```
//!
//! A PMU of the cores is called `cpu` or has a file `cpus`; more than one of them make a hybrid machine. Only what is asked
//! for is read. The root is a path, so that tests have trees of other machines.

mod device;
mod format;
pub mod glob;
pub mod intel_pt;
pub mod symbol;

pub use device::{Alias, Pmu, all};
pub use format::Format;

#[cfg(test)]
pub(crate) mod fake;
