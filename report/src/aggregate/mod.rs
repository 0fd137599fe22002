//! From samples to counted keys: integers only, no text and no IO.
//!
//! ```text
//!   piece ─► worker: sample ─► Key (packed integers) ─► its own Histogram ─► functions for addresses ─┐
//!   piece ─► worker: …                                                                                ├─► merge
//!   piece ─► worker: …                                                                                ┘
//! ```
//!
//! A key holds what the question needs and nothing else, so that samples that would end in one row meet early. What text
//! stands for a number is found out afterwards, once for each distinct key ([`crate::label`]).

mod histogram;
mod key;
mod layout;
mod reads;

pub use histogram::{Count, Histogram, Row};
pub use key::{CacheLine, End, Field, Key, Meta, NO_KEY};
pub use layout::Layout;
pub use reads::{PieceReads, Reads};
