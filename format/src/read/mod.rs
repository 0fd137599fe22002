//! Reading of recordings.
//!
//! - [`Recording`] reads any input front to back: records in the order of the file, or of time
//!   ([`Ordered`]).
//! - [`File`] has a whole file in memory: its parts can be looked at in any order, and its records
//!   be framed ([`Frames`]) in pieces, side by side.

mod blocks;
mod containers;
#[cfg_attr(not(feature = "zstd"), path = "no_zstd.rs")]
mod decompress;
mod file;
mod frames;
mod header;
mod order;
mod parts;
mod pipe;
mod recording;
mod stream;
mod warning;
mod window;

#[cfg(feature = "zstd")]
pub use decompress::Decompressor;
pub use file::{File, Mode};
pub use frames::Frames;
pub use header::{FILE_HEADER_SIZE, FileHeader, Magic, PIPE_HEADER_SIZE, Section};
pub use order::Ordered;
pub use recording::{RecordRef, Recording};
pub use warning::Warning;
pub use window::{Input, Memory, Reader};
