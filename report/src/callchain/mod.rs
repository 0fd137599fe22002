//! Callchains: the functions that led to each sample.
//!
//! ```text
//!   sample ─► ChainSources ─► chain ─► FrameFinder (one per worker) ─► chain number in the key
//!              │ recorded                 │  ├ recent: address range ─► function
//!              │ unwound: registers,      │  └ frame_pointers: is the next entry the caller?
//!              └   copied stack           ▼
//!                          Stacks: a tree of frames; those of all workers are joined after the scan
//! ```
//!
//! A sample's key holds the sampled function or address. Only its callers are stored here: many
//! sampled addresses have the same callers. Memory grows with distinct chains of functions, not
//! with samples.
//!
//! A chain as read has the kernel's order: innermost frame first, with a context marker
//! (`PERF_CONTEXT_*`) before the frames of each CPU mode. Without callchains, a chain has one
//! frame: the sampled address. Entries of the branch stack can precede the callers (`history`).

mod branch_info;
mod chains;
mod checks;
mod cumulate;
mod ends;
mod frame_pointers;
mod history;
mod images;
mod place;
mod source;
mod stacks;
mod unwind;

pub(crate) use branch_info::{BranchInfo, is_of_branch};
pub(crate) use chains::{Chains, Node};
pub(crate) use cumulate::{Classified, RowId, Sample};
pub(crate) use ends::{ChainEnds, largest};
pub(crate) use frame_pointers::{ChainChecks, FramePointers, is_entry};
pub(crate) use history::History;
pub(crate) use images::{FrameFields, Images, UNMAPPED};
pub(crate) use place::{FrameFinder, Sampled};
pub(crate) use source::{ChainLimit, ChainOrigin, ChainSources, Deferred, FrameWord};
pub(crate) use source::{RecordedChains, callers, context_marker, deferred_chains};
pub(crate) use source::{for_each_frame, is_sound};
pub(crate) use stacks::{CallSite, ChainRef, Frame, NAMES_AT_ONCE, Stacks, small};
pub(crate) use unwind::StackUnwinder;
