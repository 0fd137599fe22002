//! Constants of the kernel and of perf, under their own names.
//!
//! Source: `include/uapi/linux/perf_event.h` (record types below 64, bits, contexts) and perf's
//! user record types (64 and up). Constants are newtypes that print their own name; a number
//! without a name keeps its value.

mod attr_bits;
mod branch;
mod constants;
mod data_src;
mod ids;
mod memory;
mod record_fields;
mod record_type;
mod registers;
mod sample_bits;
mod weight;

pub(crate) use constants::constants;

pub use attr_bits::*;
pub use branch::*;
pub use data_src::DataSrc;
pub use ids::{Cpu, Pid, Tid};
pub use memory::{Transaction, mem};
pub use record_fields::*;
pub use record_type::*;
pub use registers::{Register, RegisterName, RegsAbi, RegsArch};
pub use sample_bits::*;
pub use weight::{Weight, WeightParts};
