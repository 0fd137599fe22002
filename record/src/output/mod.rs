//! Where a recording goes: a file made safely, or standard output; plain or compressed; in one file or in several.
//!
//! ```text
//!   rings ──(writev)────────────▶ file ─ header at the end ─▶ out.data
//!     └────▶ pack (zstd) ───────▶ file                      ─▶ out.data.2026112107080998 …
//!                          └────▶ standard output, in pipe mode
//! ```

pub mod build_ids;
pub mod features;
mod file;
mod pack;
mod place;
mod rotation;
pub mod tally;

pub use file::{Finished, Output};
pub use rotation::Names;
