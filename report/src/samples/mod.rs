//! The samples of a file: how it is opened, which samples a query selects, and the pass over them.
//!
//! ```text
//!   OpenedInput ─► Session ─┬─► by_piece     workers take pieces; each reads the samples of its own
//!                  filter   └─► positions    places of records, sorted by moment
//! ```
//!
//! What each worker reads samples with is made here, too: [`TaskFinder`] finds threads, and
//! [`ChainReader`] callchains.
//!
//! Reports, listings and analyses differ in what they make of a sample; how they come by it stands
//! here. Truncation and damage are found by `recrep_format::read` and `crate::input::split`;
//! [`Session`] warns of them and decides whether a file is complete.

mod chains;
mod counters;
mod critical_path;
mod damage;
mod filter;
mod order;
mod pass;
mod session;
mod tasks;
mod wakes;

pub(crate) use chains::{ChainReader, ChainSetup, are_hardware_calls, shows_inlined};
pub(crate) use counters::CounterTraits;
pub(crate) use critical_path::CriticalPath;
pub(crate) use filter::SampleFilter;
pub(crate) use order::{RecordPosition, positions, record_at};
pub(crate) use pass::{PieceWorker, by_piece, for_each_sample};
pub(crate) use session::Session;
pub(crate) use tasks::TaskFinder;
pub(crate) use wakes::tells_of_wakes;
