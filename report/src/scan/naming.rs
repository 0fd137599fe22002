//! What puts functions in the place of addresses.

use crate::callchain::Frame;
use crate::count::Key;

/// Puts functions in the place of addresses.
pub trait Naming: std::fmt::Debug + Sync {
    /// Whether keys may change.
    fn changes(&self) -> bool;
    /// In a key.
    fn key(&self, key: Key) -> Key;
    /// In a frame of a callchain.
    fn frame(&self, frame: Frame) -> Frame;
    /// The same, with the functions that are inlined there before it.
    fn frames(&self, frame: Frame, into: &mut Vec<Frame>) {
        into.push(self.frame(frame));
    }
}
