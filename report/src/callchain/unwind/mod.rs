//! Callchains from copied stacks (`--call-graph dwarf`): unwinds the copy of the user stack with the call frame
//! information of the mapped files.
//!
//! ```text
//!   registers at the sample ─► ip ─► mapping at that moment ─► its file's rules  ─► the caller's registers ─► ip …
//!                                    (timeline)                (once per file)      (from the copied stack)
//! ```
//!
//! Rules to unwind a frame are looked up by the file's own addresses, so that a file is prepared once, even if
//! processes map it at different addresses. The timeline says which file was mapped at the sample's moment. Nothing is kept per
//! sample. As in perf, the address of a caller is that of the last byte of its call instruction: return address − 1.
//!
//! A chain ends at the outermost frame, at an unmapped address, in a file without call frame information, or at the end
//! of the copied stack. In the last case it is truncated, and a larger copy would give more frames.

mod registers;
mod sources;
mod unwinder;

pub(crate) use sources::{ChainSources, Origin, UnwindStats};
pub(crate) use unwinder::StackUnwinder;
