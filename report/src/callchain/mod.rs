//! Callchains: the functions that led to each sample.
//!
//! ```text
//!   sample ─► ChainSource ─► words ─► Interner (one per worker) ─► chain number in the key
//!                                        │ after the scan, once per distinct chain
//!                                        ▼
//!                        place: each distinct address ─► (module, address)
//!                                        ▼
//!                        symbols: each distinct address ─► function ─► Stacks: distinct chains of frame numbers
//! ```
//!
//! A sample costs one hash over its chain and one lookup. The key already holds the sampled instruction, as a function,
//! so only the callers are interned: there are many distinct instructions, but few distinct lists of callers. The
//! meaning of an address depends on the address space and on its mappings at the time of the sample. A chain is
//! therefore interned together with its space and the number of mapping changes that the space and the kernel had seen
//! by then ([`crate::timeline::Epoch`]): equal words then mean equal frames. Memory grows with distinct chains, not
//! with samples.
//!
//! Chains keep the kernel's order: innermost frame first, with a context marker (`PERF_CONTEXT_*`) before the frames of
//! each CPU mode. The chain of a sample whose event has no callchains is the sample's own address. Entries of the
//! branch stack can precede the callers ([`History`]).

mod branch_info;
mod cumulate;
mod deferred;
pub mod folded;
mod history;
mod intern;
mod place;
mod source;
mod stacks;
pub mod trees;
pub mod unwind;

pub use branch_info::{BranchInfo, is_of_branch};
pub use cumulate::{Classified, FrameColumns, RowId, Sample};
pub use deferred::Deferred;
pub use history::History;
pub use intern::Interner;
pub use place::{FrameFields, UNMAPPED, place};
pub use source::{ChainLimit, ChainSource, HardwareCalls, Recorded, callers, is_sound};
pub use stacks::{ChainRef, Frame, Stacks};
