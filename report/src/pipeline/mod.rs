//! The one place where the rooms are wired together: from inputs to a profile.
//!
//! ```text
//!   Input ─► Session (records split, side-band frozen) ─► counted (samples to rows) ─► report (one profile of all inputs)
//!                                                             ▲
//!                                               fetching (debuginfod, if asked for)
//! ```

pub mod counted;
pub mod fetching;
pub mod report;
pub mod session;
