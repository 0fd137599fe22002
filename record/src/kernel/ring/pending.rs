//! Borrowed view of an area's unread bytes.

/// Unread bytes in order: those up to the end of the area, then those that wrapped to its beginning.
#[derive(Debug)]
pub struct Pending<'r> {
    /// The first half.
    pub first: &'r [u8],
    /// The second half; empty if nothing wraps.
    pub second: &'r [u8],
    head: u64,
}

impl<'r> Pending<'r> {
    pub(super) fn new((first, second): (&'r [u8], &'r [u8]), head: u64) -> Self {
        Self { first, second, head }
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    /// Returns the mark to pass to `Ring::release`.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.head)
    }
}

/// Position up to which a ring was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub(super) u64);
