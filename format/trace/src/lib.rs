//! Traces that processors write into AUX areas.
//!
//! - [`pt`]: Intel Processor Trace, its packets and the flow of control that they describe.
//! - [`spe`]: Arm's Statistical Profiling Extension.
//! - [`bts`]: Intel Branch Trace Store.
//!
//! Nothing here does I/O. A trace may be damaged or hostile: no input makes this panic, and each packet takes bounded work.

#![forbid(unsafe_code)]

pub mod bts;
pub mod pt;
pub mod spe;
