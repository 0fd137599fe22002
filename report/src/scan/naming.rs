//! Replacing addresses by functions after the scan.

use crate::callchain::Frame;
use crate::query::Key;

/// Replaces addresses by functions.
pub trait Naming: Sync {
    /// Returns whether [`Naming::key`] can change keys.
    fn changes(&self) -> bool;
    /// Replaces the addresses in a key.
    fn key(&self, key: Key) -> Key;
    /// Appends the frame with its function to `into`, after the functions that are inlined there.
    fn frames(&self, frame: Frame, into: &mut Vec<Frame>);
}
