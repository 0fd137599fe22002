//! Callchains: the functions that led to each sample.
//!
//! ```text
//!   sample ─► read ────────► chain ─► find: FrameFinder (one per worker) ─► chain number in the key
//!              │ recorded              │  ├ recent: address range ─► function
//!              │ unwound: registers,   │  └ checks: is the next entry the caller?
//!              └   copied stack        ▼
//!   rules                    tree: Stacks of frames; those of all workers are joined after the scan
//!   of modules: how a frame is unwound, what the frame pointer is
//! ```
//!
//! A sample's key holds the sampled function or address. Only its callers are stored here: many
//! sampled addresses have the same callers. Memory grows with distinct chains of functions, not
//! with samples.
//!
//! A chain as read has the kernel's order: innermost frame first, with a context marker
//! (`PERF_CONTEXT_*`) before the frames of each CPU mode. Without callchains, a chain has one
//! frame: the sampled address. Entries of the branch stack can precede the callers (`history`).

mod find;
mod read;
mod rules;
mod tree;

pub(crate) use find::finder::{FrameFinder, Sampled};
pub(crate) use find::images::{FrameFields, Images, UNMAPPED};
pub(crate) use read::branch_info::{BranchInfo, is_of_branch};
pub(crate) use read::causes::{RecordedCauses, largest};
pub(crate) use read::ends::ChainEnds;
pub(crate) use read::history::History;
pub(crate) use read::source::{ChainLimit, ChainOrigin, ChainSources};
pub(crate) use read::source::{Deferred, RecordedChains, deferred_chains};
pub(crate) use read::words::{
    FrameWord, RETURNS, UNWOUND, callers, context_marker, for_each_frame, is_sound, is_user_marker,
};
pub(crate) use rules::frame_pointers::{ChainChecks, FramePointers, is_entry};
pub(crate) use rules::unwind::{StackUnwinder, registers};
pub(crate) use tree::chains::{Chains, Node};
pub(crate) use tree::cumulate::{Classified, RowId, Sample};
pub(crate) use tree::stacks::{
    CallSite, ChainRef, Frame, MISSING, NAMES_AT_ONCE, Stacks, Step, small,
};
