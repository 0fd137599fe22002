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
//! - [`read::File`] has a recording in memory: a mapped file, or a pipe that was read to its end.
//!   Its parts can be looked at in any order. [`File::records`](read::File::records) returns the
//!   records as they stand, [`File::unpacked`](read::File::unpacked) those that were compressed,
//!   too. [`read::Frames`] finds the records in any piece of the data, for several threads.
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
//! The crate forbids unsafe code, knows no operating system, reads from slices, and writes to
//! [`Write`](std::io::Write). Input cannot make it panic:
//! every read is checked, and every error gives the offset of the byte where reading failed.
//!
//! Counts the samples of each thread in a recording on standard input:
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::io::Read;
//!
//! use recrep_format::read::File;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut bytes = Vec::new();
//! std::io::stdin().lock().read_to_end(&mut bytes)?;
//! let file = File::parse(&bytes)?;
//! let mut counts = BTreeMap::new();
//! for record in file.unpacked().records() {
//!     if let Some(tid) = file.attrs.sample(record?).and_then(|(_event, sample)| sample.tid()) {
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
