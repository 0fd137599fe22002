//! Inputs: opens files, standard input and directories, unpacks them, and cuts them at the ends of
//! records.
//!
//! ```text
//!   Source ─► open (map, read, unpack) ─► Input ─► streams ─► split: pieces of whole records, side-band
//! ```
//!
//! `map` is the only module of the package with `unsafe` code.

mod compressed;
pub(crate) mod map;
mod open;
mod others;
mod pprof;
pub(crate) mod several;
pub(crate) mod split;
pub(crate) mod streams;
pub(crate) mod unpack;

pub use open::Input;
pub(crate) use open::{Changed, OpenError, Stream};
pub(crate) use several::{each, retry_if_changed};
pub(crate) use streams::{Keep, OpenedInput};
