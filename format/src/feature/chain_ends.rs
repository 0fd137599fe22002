//! Callchains that `rec` unwound while it recorded, by how they ended. Its number is far from
//! perf's, which ignores it.

use super::strings::HeaderString;
use crate::abi::constants;
use crate::wire::{List, wire};

wire! {
    /// Callchains that lack outer frames for one reason.
    pub struct CutChains<'a> {
        /// The reason.
        pub cause: ChainCause,
        /// Base name of the module at whose code they end; empty if the reason is none of a module.
        pub module: HeaderString<'a>,
        /// Bytes of a copy, or number of frames, for the reasons that depend on it; else 0.
        pub limit: u64,
        /// Number of callchains.
        pub count: u64,
    }
}

wire! {
    /// Ends of callchains that were unwound (`CHAIN_ENDS`).
    pub owned struct UnwoundChains<'a> {
        /// Number of callchains that are whole.
        pub whole: u64,
        /// Numbers of those that lack outer frames.
        pub cut: List<CutChains<'a>>,
    }
}

constants! {
    /// Reason why a callchain lacks outer frames.
    pub struct ChainCause(u32) {
        /// The copy of the stack ends before a word that is needed.
        COPY = 1;
        /// Code without rules.
        NO_RULES = 2;
        /// More frames than are followed.
        DEPTH = 3;
        /// A word that is needed is nowhere, or a rule makes no sense.
        LOST = 4;
    }
}
