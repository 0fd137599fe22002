//! Output of a recording: a file, several in turn (`--switch-output`), a directory of files
//! (`--threads`), or standard output; plain or compressed.
//!
//! ```text
//!   rings ──copy──▶ queue ──▶ writer ─┬──────────────▶ file ─ header at the end ─▶ out.data
//!                  unwind ─▶ (thread) └▶ pack (zstd) ─▶ file                     ─▶ out.data.2026112107080998 …
//!                                                   └─▶ standard output, in pipe mode
//!   ring N ─copy──▶ queue ──▶ writer ────────────────▶ out.data/data.N           (`--threads`: a directory)
//! ```

pub(crate) mod build_ids;
mod data_file;
pub(crate) mod features;
mod files;
pub(crate) mod keep;
pub(crate) mod layouts;
mod pack;
pub(crate) mod place;
mod queue;
mod rotation;
mod silenced;
pub(crate) mod tally;
pub(crate) mod unwind;
mod writer;

pub(crate) use files::Finished;
pub use files::{Layout, Output};
pub(crate) use queue::Written;
pub(crate) use rotation::Names;
