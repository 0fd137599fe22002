//! Reading: what kind of file it is, its parts, and its records one after another.

mod file;
mod frames;
mod header;
mod pipe;
mod unpack;
mod warning;

pub use file::{File, Mode};
pub use frames::Frames;
pub use header::{FILE_HEADER_SIZE, FileHeader, Magic, PIPE_HEADER_SIZE, Section};
pub use unpack::Unpacker;
pub use warning::Warning;
