//! Connects the modules below: from inputs to a profile.
//!
//! ```text
//!   Input ─► Session (records split, side-band frozen) ─► counted (samples to rows) ─► report (profile of all inputs)
//!                                                            ▲
//!                                                fetching (debuginfod, on request)
//! ```
//!
//! [`session`] also decides whether a file is complete, and warns of truncation and damage; `recrep_format::read` and
//! [`crate::input::split`] find them.

pub mod counted;
pub mod fetching;
mod off_cpu;
pub mod report;
pub mod session;
