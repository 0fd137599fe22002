//! From samples to counted keys: integers only, no text and no IO.
//!
//! ```text
//!   piece ─► worker: sample ─► Key ─► its own Histogram ─► partitions ─┐             ┌─► partition 0 ─┐
//!   piece ─► worker: …                                                 ├─► functions ┼─► partition 1 ─┼─► Rows
//!   piece ─► worker: …                                                 ┘             └─► …           ─┘
//! ```
//!
//! A key holds what the question needs and nothing else, so that samples that would end in one row meet early. What text
//! stands for a number is found out afterwards, once for each distinct key ([`crate::table`]).

mod histogram;
mod key;
mod layout;
pub mod metrics;
mod partition;
mod reads;
mod rows;

pub use histogram::{Count, Histogram, SampleRows, add_totals};
pub use key::{CacheLine, End, Field, Key, Meta, NO_KEY};
pub use layout::Layout;
pub use partition::{PARTITIONS, Partition, Sum, merged, partition_of};
pub use reads::{PieceReads, Reads};
pub use rows::Rows;
