//! In the place of the decompressor where the crate is built without `zstd`: there is none.

use crate::error::{Error, Result};

/// A decompressor, of which there are none.
#[derive(Debug)]
pub(super) enum Decompressor {}

impl Decompressor {
    /// Returns an error: COMPRESSED records are returned as they are.
    pub(super) fn new() -> Result<Self> {
        Err(Error::invalid(0, "COMPRESSED", "built without the feature zstd"))
    }

    /// Never called.
    pub(super) fn step(&mut self, _: &mut &[u8], _: u64, _: &mut [u8]) -> Result<(usize, bool)> {
        match *self {}
    }
}
