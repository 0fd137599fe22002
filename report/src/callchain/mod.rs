//! Callchains: who called what was sampled.
//!
//! ```text
//!   sample ─► ChainSource ─► words ─► Interner (one per worker) ─► number in the key
//!                                        │ after the scan, once per distinct chain
//!                                        ▼
//!                        place: addresses ─► (module, address), each once
//!                                        ▼
//!                        resolve: symbols, each once ─► Stacks: chains of frame numbers, the same ones joined
//! ```
//!
//! A sample costs one hash over its chain and one lookup. Its own instruction is in the key anyway, as a function, and
//! what is interned are its callers: few, where instructions are many. What an address means depends on the address space
//! and on what was mapped there at the sample's moment, so a chain is interned together with its space and with how many
//! changes that space and the kernel had seen ([`crate::timeline::Epoch`]): equal words then mean equal frames. Memory
//! grows with distinct chains, not with samples.
//!
//! Chains are kept as the kernel writes them: innermost frame first, with marks (`PERF_CONTEXT_*`) before the frames of
//! each level. A sample of an event without callchains has its own address for a chain. Branches may stand before all of that
//! ([`History`]).

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
pub use intern::{Interner, SpaceEpoch};
pub use place::{FrameFields, UNMAPPED, place};
pub use source::{ChainLimit, ChainSource, HardwareCalls, Recorded, callers, is_sound};
pub use stacks::{ChainRef, Frame, Stacks};
