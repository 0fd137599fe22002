//! The machine's PMUs, read from sysfs: `/sys/bus/event_source/devices/*`.
//!
//! ```text
//!  cpu/type          perf_event_attr.type
//!  cpu/format/event  config:0-7,32-35            bits of a term's value           format
//!  cpu/events/x      event=0x3c,umask=0x1        named events; x.scale, x.unit
//!  uncore_imc_0/cpumask, cpu_core/cpus           CPUs to open its events on
//!  cs_etm/sinks/x    0x1b2c                      sinks for an AUX area's data
//! ```
//!
//! A PMU of CPU cores is named `cpu` or has a file `cpus`; a hybrid machine has more than one of
//! them. Files are read on demand. The root is a path, so that tests can use directories of other
//! machines.

mod device;
mod format;
pub(crate) mod intel_pt;
pub(crate) mod symbol;

pub(crate) use device::{Alias, Pmu, all};
pub(crate) use format::Format;
