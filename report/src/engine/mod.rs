//! Answers queries: from inputs to a profile.
//!
//! ```text
//!   Input ─► Session ─► Scan (all cores) ─► Labeller ─► Profile
//!            setup      samples to keys     naming      of all inputs
//!              └─ fetching (debuginfod, on request)
//! ```

mod ancestors;
pub(crate) mod counted;
pub(crate) mod counts;
mod cumulated;
pub(crate) mod facts;
pub(crate) mod fetching;
mod labeller;
mod labels;
mod module_uses;
pub(crate) mod multiplexed;
pub(crate) mod report;
mod setup;
pub(crate) mod signs;
pub(crate) mod unmatched;

pub(crate) use labeller::{Labeller, loaded, numbers};
