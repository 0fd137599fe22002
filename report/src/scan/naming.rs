//! Replacing addresses by functions.

use crate::callchain::Frame;
use crate::count::Key;

/// Replaces addresses by functions.
pub trait Naming: std::fmt::Debug + Sync {
    /// Returns whether [`Naming::key`] can change keys.
    fn changes(&self) -> bool;
    /// Loads what the functions of these modules, by their numbers, need.
    fn preload(&self, _modules: &[bool]) {}
    /// Replaces the addresses in a key.
    fn key(&self, key: Key) -> Key;
    /// Replaces the address in a frame of a callchain.
    fn frame(&self, frame: Frame) -> Frame;
    /// Appends the frame with its function to `into`, after the functions that are inlined there.
    fn frames(&self, frame: Frame, into: &mut Vec<Frame>) {
        into.push(self.frame(frame));
    }
}
