//! Features of Android's simpleperf: it leaves the names of functions and events in the recording.
//!
//! ```text
//! META_INFO:  (key\0 value\0)…
//! FILE:       (length u32 | path\0 | kind u32 | min_vaddr u64 | count u32 | (start u64 | len u32 | name\0)…
//!                         | files with dex code: count u32 | offset u64 …
//!                         | ELF files and kernel modules: [offset_of_min_vaddr u64], if recorded)…
//! FILE2:      (length u32 | the same as a protocol buffer)…
//! ```
//!
//! Source: `record_file_format.h` and `record_file.proto` in simpleperf.

mod file;
mod info;
mod protobuf;

pub use file::{
    SimpleperfFile, SimpleperfFileKind, SimpleperfFiles, SimpleperfFiles2, SimpleperfSymbol,
};
pub use info::{
    SimpleperfDebugUnwind, SimpleperfDebugUnwindFiles, SimpleperfEtmBranchList, SimpleperfInitMap,
    SimpleperfMetaInfo,
};
