//! Reading of recordings.
//!
//! - [`Recording`] reads any input front to back: records in the order of the file, or of time
//!   ([`Ordered`]).
//! - [`File`] has a whole file in memory: its parts can be looked at in any order, and its records
//!   be framed ([`Frames`]) in pieces, side by side.
//!
//! ```text
//!   Input: Reader, Memory                       File: all bytes
//!     │  window moves forward                     │  any piece
//!   Stream ──┐                                  Frames
//!     │      ├── frames::frame ── one record ─────┤
//!     │      └── parts, pipe ── attrs, features, names ── AttrTable
//!   Recording, Ordered
//! ```
//!
//! What a record, a section or a feature is, both find by the same functions. What is around them
//! differs for a reason: [`File`] gives several threads pieces of one slice, and only compares
//! sizes where it walks; a stream waits for input, unpacks what is compressed on
//! the way, and keeps records that wait for their turn.

mod blocks;
mod containers;
#[cfg(feature = "zstd")]
mod decompress;
mod file;
mod frames;
mod header;
mod order;
mod parts;
mod pipe;
mod record_ref;
mod recording;
mod stream;
mod window;

#[cfg(feature = "zstd")]
pub use decompress::Decompressor;
pub use file::{File, Mode};
pub use frames::Frames;
pub use header::{FILE_HEADER_SIZE, FileHeader, Magic, PIPE_HEADER_SIZE, Section};
pub use order::Ordered;
pub use parts::Warning;
pub use record_ref::RecordRef;
pub use recording::Recording;
pub use window::{Input, Memory, Reader};
