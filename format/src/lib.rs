//! The perf.data format: everything in a file, read and written from one declaration.
//!
//! ```text
//! file mode                                      pipe mode
//! +--------------------+ 0                       +------------------+ 0
//! | header, 104 bytes  | magic, where parts are  | magic, size = 16 |
//! +--------------------+                         +------------------+
//! | ids of the attrs   |                         | records …        | attrs and features come as records
//! +--------------------+                         +------------------+
//! | attrs              | perf_event_attr + where its ids are
//! +--------------------+
//! | data: records …    | [header 8 | fields | trailer]…
//! +--------------------+
//! | feature table      | where each feature is
//! | features           | host name, build IDs, event names, …
//! +--------------------+
//! ```
//!
//! - [`read::File`] finds the parts; [`read::Frames`] walks the records of any piece of the data.
//! - [`attrs::AttrTable`] knows which event a record belongs to, and where its fields are ([`layout`]).
//! - [`record::Sample`] reads a sample's fields straight from their places; [`attrs::AttrTable::decode`] makes a typed
//!   [`record::Record`] of any record, and [`record::Record::encode`] gives the same bytes back.
//! - [`feature::tracing::Tracing`] tells the fields in the raw bytes of tracepoints.
//! - [`write::FileWriter`] writes a file from attrs, records and features; [`write::copy`] copies one with some of its records.
//!
//! The crate forbids unsafe code, knows no operating system, and does no I/O beyond `Write` and slices. Input cannot make it
//! panic: every read is checked, and every error says at which byte.
//!
//! ```
//! use recrep_format::read::File;
//!
//! fn ips(bytes: &[u8]) -> recrep_format::error::Result<Vec<u64>> {
//!     let file = File::parse(bytes)?;
//!     let samples = file.records().filter_map(|raw| file.attrs.sample(raw.ok()?));
//!     Ok(samples.filter_map(|(_event, sample)| sample.ip()).collect())
//! }
//! # assert!(ips(b"not perf.data").is_err());
//! ```
#![forbid(unsafe_code)]

pub mod abi;
pub mod attr;
pub mod attrs;
pub mod build_id;
pub mod bytes;
pub mod endian;
pub mod error;
pub mod feature;
pub mod layout;
pub mod read;
pub mod record;
pub mod wire;
pub mod write;

pub(crate) use wire::wire;

/// The examples in the README, compiled as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
