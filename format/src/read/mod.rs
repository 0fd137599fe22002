//! Reading of recordings.
//!
//! ```text
//!   all bytes ─► File ── parts, pipe ── attrs, features, names ── AttrTable
//!                  │ records
//!                Frames: any piece, as it stands    Unpacked: without compressed records
//! ```
//!
//! [`File`] has a whole recording in memory (a mapped file, or a pipe that was read to its end):
//! its parts can be looked at in any order, and its records be framed ([`Frames`]) in pieces, side
//! by side. [`Unpacked`] has the records of compressed data, too.

#[cfg(feature = "zstd")]
mod decompress;
mod file;
mod frames;
mod header;
mod parts;
mod pipe;
mod unpack;

#[cfg(feature = "zstd")]
pub use decompress::Decompressor;
pub use file::{File, Mode};
pub use frames::Frames;
pub use header::{FILE_HEADER_SIZE, FileHeader, Magic, PIPE_HEADER_SIZE, Section};
pub use parts::Warning;
#[cfg(feature = "zstd")]
pub use unpack::{UnpackBuffer, Unpacking};
pub use unpack::{Unpacked, is_compressed, most_of_section, most_unpacked};
