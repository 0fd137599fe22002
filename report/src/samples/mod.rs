//! The samples of a file: how it is opened, which samples a query selects, and the pass over them.
//!
//! ```text
//!   OpenedInput ─► Session ─┬─► by_piece     workers take pieces; each reads the samples of its own
//!                  filter   └─► positions    places of records, sorted by moment
//! ```
//!
//! Reports, listings and analyses differ in what they make of a sample; how they come by it stands
//! here. Truncation and damage are found by `recrep_format::read` and `crate::input::split`;
//! [`Session`] warns of them and decides whether a file is complete.

mod counters;
mod filter;
mod order;
mod pass;
mod session;

pub(crate) use counters::{counted_by_thread, scaled};
pub(crate) use filter::SampleFilter;
pub(crate) use order::{RecordPosition, positions, record_at};
pub(crate) use pass::{PieceWorker, by_piece, for_each_sample};
pub(crate) use session::{Session, is_named};
