//! Output of a recording: a file, several in turn (`--switch-output`), a directory of files
//! (`--threads`), or standard output; plain or compressed.
//!
//! ```text
//!   rings ──copy──▶ queue ──▶ writer ─┬──────────────▶ file ─ header at the end ─▶ out.data
//!                            (thread) └▶ pack (zstd) ─▶ file                     ─▶ out.data.2026112107080998 …
//!                                                   └─▶ standard output, in pipe mode
//!   ring N ─copy──▶ queue ──▶ writer ────────────────▶ out.data/data.N           (`--threads`: a directory)
//! ```

pub mod build_ids;
mod data_file;
pub mod features;
mod files;
pub mod keep;
mod pack;
mod place;
mod queue;
mod rotation;
mod silenced;
pub mod tally;
mod writer;

pub use files::{Finished, Layout, Output};
pub use queue::Written;
pub use rotation::Names;
