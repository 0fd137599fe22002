//! Answers queries: from inputs to a profile.
//!
//! ```text
//!   report ─► gather ─► counted: Session ─► Scan ─► Tally ─► Labeller ─► Profile
//!             inputs             opened     how     counted  named       of all inputs
//!                └─ fetching (debuginfod, on request)
//! ```

mod ancestors;
mod checks;
pub(crate) mod counted;
pub(crate) mod counts;
mod critical_path;
mod cumulated;
pub(crate) mod described;
pub(crate) mod facts;
pub(crate) mod fetching;
mod frame_texts;
pub(crate) mod gather;
mod input_profile;
mod interpreters;
mod labeller;
mod labels;
mod module_uses;
pub(crate) mod multiplexed;
pub(crate) mod report;
pub(crate) mod schedule;
pub(crate) mod signs;
mod spinning;
pub(crate) mod unmatched;
pub(crate) mod what_if;

pub(crate) use frame_texts::FrameTexts;
pub(crate) use labeller::{Labeller, ModuleSymbols, loaded, numbers};
