//! Frames that stand in for stacks that were not recorded.

/// A frame that stands in for the stack of a switch without a sample of its own. It is mapped like kernel code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn {
    /// The callers are the stack of the thread's nearest CPU sample before.
    NearestSample,
    /// The thread has no CPU sample before, so there are no callers.
    NoSample,
}

/// First address, which no processor uses.
const FIRST: u64 = 1 << 63;

impl StandIn {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::NearestSample, Self::NoSample];

    /// Returns the address of the frame.
    pub const fn address(self) -> u64 {
        FIRST + self as u64
    }

    /// Returns the name of the frame.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NearestSample => "[nearest sample]",
            Self::NoSample => "[no sample]",
        }
    }
}
