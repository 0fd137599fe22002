//! The perf.data format: each structure is declared once, for reading and for writing.
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
//! | data: records …    | [header, 8 bytes | fields | trailer: thread, time … (not in samples)]…
//! +--------------------+
//! | feature table      | where each feature is
//! | features           | host name, build IDs, event names, …
//! +--------------------+
//! ```
//!
//! - [`read::Recording`] reads a recording front to back from any [`Read`](std::io::Read): a file,
//!   a pipe, the files of a directory. It holds one record at a time, and decompresses COMPRESSED
//!   records on the way. [`Recording::ordered`](read::Recording::ordered) returns records in order
//!   of time, and holds those whose turn has not come.
//!   [`Recording::of_bytes`](read::Recording::of_bytes) reads bytes that are in memory, without a
//!   copy.
//! - [`read::File`] has a whole file in memory, for random access to its parts. It cuts the data
//!   at the ends of records, for several threads ([`read::Frames`]).
//! - [`attr::AttrTable`] knows the event of each record, and where the record's fields are
//!   ([`layout`]).
//! - [`record::Sample`] reads a sample's fields straight from their places;
//!   [`attr::AttrTable::decode`] makes a typed [`record::Record`] of any record, and
//!   [`record::Record::encode`] writes it as the same bytes.
//! - [`fields::Fields`] gives each field of a record, an attr or a feature its name in the ABI, for
//!   programs that print them all.
//! - [`feature::tracing::Tracing`] decodes the fields in the raw bytes of tracepoints.
//! - [`write::FileWriter`] writes a file from attrs, records and features; [`write::copy`] copies
//!   chosen records of a file.
//!
//! The crate forbids unsafe code, knows no operating system, reads from slices and
//! [`Read`](std::io::Read), and writes to [`Write`](std::io::Write). Input cannot make it panic:
//! every read is checked, and every error gives the offset of the byte where reading failed.
//!
//! Counts the samples of each thread in a recording on standard input:
//!
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! use recrep_format::read::Recording;
//!
//! # fn main() -> recrep_format::error::Result<()> {
//! let mut recording = Recording::new(std::io::stdin().lock())?;
//! let mut counts = BTreeMap::new();
//! while let Some(record) = recording.next_record() {
//!     if let Some(tid) = record?.sample().and_then(|sample| sample.tid()) {
//!         *counts.entry(tid).or_insert(0) += 1;
//!     }
//! }
//! println!("{counts:?}");
//! # Ok(())
//! # }
//! ```
//!
//! The folder `examples` has whole programs.
#![forbid(unsafe_code)]

pub mod abi;
pub mod attr;
pub mod build_id;
pub mod bytes;
pub mod endian;
pub mod error;
pub mod feature;
pub mod fields;
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
