//! The kernel's and perf's own numbers, under their own names.
//!
//! Source: `include/uapi/linux/perf_event.h` (record types below 64, bits, contexts) and perf's user record types
//! (64 and up). Constants are newtypes that print their own name; a number without a name keeps its value.

mod attr_bits;
mod branch;
mod data_src;
mod record_type;
mod sample_bits;

pub use attr_bits::*;
pub use branch::{BranchEntry, BranchFlags};
pub use data_src::DataSrc;
pub use record_type::*;
pub use sample_bits::*;
