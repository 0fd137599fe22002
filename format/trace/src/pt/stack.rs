//! Return addresses, as the processor keeps them to compress returns.

const DEPTH: usize = 64;

/// The last 64 return addresses.
#[derive(Clone, Debug)]
pub(super) struct ReturnStack {
    addresses: [u64; DEPTH],
    /// Where the next one goes.
    top: usize,
    len: usize,
}

impl Default for ReturnStack {
    fn default() -> Self {
        Self { addresses: [0; DEPTH], top: 0, len: 0 }
    }
}

impl ReturnStack {
    /// Pushes an address; the oldest is lost if there are too many.
    #[inline]
    pub(super) fn push(&mut self, address: u64) {
        if let Some(place) = self.addresses.get_mut(self.top % DEPTH) {
            *place = address;
        }
        self.top = (self.top + 1) % DEPTH;
        self.len = (self.len + 1).min(DEPTH);
    }

    /// Returns and removes the youngest address.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<u64> {
        self.len = self.len.checked_sub(1)?;
        self.top = (self.top + DEPTH - 1) % DEPTH;
        self.addresses.get(self.top).copied()
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}
