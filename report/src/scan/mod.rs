//! The pass over the samples: each worker takes the next piece until none is left.
//!
//! Most fields of a sample cost a few loads at fixed offsets. A callchain is walked only if the
//! query needs it. Each worker remembers what it looked up in the timeline last, since consecutive
//! samples are mostly of the same threads and addresses. Branches, weights and data sources come
//! after a field of variable size, so they have no fixed offset. If a query needs one of these,
//! samples are parsed from their start up to the last field needed.
//!
//! A sampled address takes these forms, the upper ones in a worker:
//!
//! ```text
//!   ip ─► context, ip ─► image, address in it ─► number of a frame, or both in a word ─► packed key
//!   packed key ─► frame: module, and symbol or address ─► named key
//! ```

mod branches;
mod chains;
mod common;
mod off_cpu;
mod recent;
mod rows;
mod run;
mod short;
mod task;
mod waits;
mod worker;

pub(crate) use rows::{CountedSample, SampleReader};
pub(crate) use run::{Naming, Scanned};
pub(crate) use task::{Dropped, Scan, ThreadTables};
