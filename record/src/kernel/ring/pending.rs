//! What there is to read of an area, lent out, and how far that goes.

/// The records that are there to read, in order: what lies up to the end of the data area, then what wrapped.
#[derive(Debug)]
pub struct Pending<'r> {
    /// The first half.
    pub first: &'r [u8],
    /// The second half; empty where nothing wraps.
    pub second: &'r [u8],
    head: u64,
}

impl<'r> Pending<'r> {
    pub(super) fn new((first, second): (&'r [u8], &'r [u8]), head: u64) -> Self {
        Self { first, second, head }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    /// The mark to give to `Ring::release`.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.head)
    }
}

/// Up to where a ring was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub(super) u64);
