//! Chains of frames, and how they end.

/// A frame of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// Address of an instruction: the sampled one, one that a signal interrupted, or the first of
    /// the trampoline that a signal handler returns to.
    Exact(u64),
    /// A return address: the call is before it.
    Return(u64),
    /// One frame or more that is not known; the next one is.
    Missing,
}

/// How a chain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// With the outermost frame of its thread.
    Whole,
    /// Before that.
    Cut(Cause),
    /// With as many frames as were asked for.
    Limit,
}

/// Reason why a chain is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The copy of the stack ends before a word that is needed.
    Copy,
    /// The code of this module has no rules.
    NoRules(u32),
    /// Nothing is mapped at an address.
    Unmapped,
    /// The file of this module cannot be read.
    Unreadable(u32),
    /// A word that is needed is not on the stack, or a rule makes no sense.
    Lost,
}
