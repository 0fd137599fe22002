//! Counts samples by integer keys. No text and no I/O.
//!
//! ```text
//!   piece ─► worker: sample ─► Key ─► its own Histogram ─► partitions ─┐             ┌─► partition 0 ─┐
//!   piece ─► worker: …                                                 ├─► (names) ──┼─► partition 1 ─┼─► Rows
//!   piece ─► worker: …                                                 ┘             └─► …           ─┘
//! ```
//!
//! A key holds only what the query needs, so that samples of one row are merged early. The texts
//! for its numbers are looked up afterwards, once per distinct key (`engine`). `(names)`: before
//! tables are merged, the scan replaces addresses by numbers of functions.

mod histogram;
mod layout;
pub(crate) mod metrics;
mod partition;
mod reads;
mod rows;

pub(crate) use histogram::{Count, Histogram, SampleRows, add_totals};
pub(crate) use layout::Layout;
pub(crate) use partition::{
    Partition, Sum, add_all, by_part, distinct, for_width, joined, merge_equal, merged, push,
};
pub(crate) use reads::{
    CounterKey, CounterTimes, LOWER_VALUES, PieceReads, Reading, Settled, settle_reads, times,
};
pub(crate) use rows::Rows;
