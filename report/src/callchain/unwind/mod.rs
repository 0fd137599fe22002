//! Callchains from copied stacks (`--call-graph dwarf`): the frames that lie on a copy of the user stack, found with the call
//! frame information of the files that were mapped.
//!
//! ```text
//!   registers at the sample ─► ip ─► mapping at that moment ─► its file's frames ─► the caller's registers ─► ip …
//!                                    (timeline)                (once per file)      (from the copied stack)
//! ```
//!
//! A frame is looked up in its file's own addresses, so that a file is prepared once, whoever mapped it wherever; which file
//! it is says the timeline, at the sample's moment. Nothing is kept for a sample. Callers are told, as perf tells
//! them, by the last byte of their call instruction: one before the return address.
//!
//! A chain ends at the outermost frame; where nothing is mapped; where a file has no call frame information; or where the copy
//! of the stack does: then it is cut short ([`End::Truncated`]), and a larger copy would have had more.

mod copied;
mod frames;
mod registers;
mod sources;

pub use copied::{Copied, Ends};
pub use frames::{Chain, End, Scratch, Unwinding};
pub use registers::{Registers, UserStack};
pub use sources::{ChainSources, Origin};
