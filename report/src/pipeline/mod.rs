//! Connects the other modules: from inputs to a profile.
//!
//! ```text
//!   Input ─► Session (records split, timeline built) ─► counted (samples to rows) ─► report (profile of all inputs)
//!                                                            ▲
//!                                                fetching (debuginfod, on request)
//! ```
//!
//! Truncation and damage are found by `recrep_format::read` and `crate::input::split`; [`session`]
//! warns of them and decides whether a file is complete.

pub mod counted;
pub mod fetching;
pub(crate) mod multiplexed;
pub mod report;
pub mod session;
pub(crate) mod unmatched;
