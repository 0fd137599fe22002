//! Inputs: opens files, standard input and directories, unpacks them, and cuts them at the ends of records.
//!
//! ```text
//!   Source ─► open (map, read, unpack) ─► Input ─► streams ─► split: pieces of whole records, side-band
//! ```
//!
//! `map` is the only module of the package with `unsafe` code.

pub(crate) mod map;
mod open;
pub mod several;
pub mod split;
pub mod streams;
pub mod unpack;

pub use open::{Changed, Input, OpenError, Stream};
