//! Intel Branch Trace Store: 24 bytes for each branch.
//!
//! ```text
//!   from u64 | to u64 | flags u64, of which bit 4: predicted
//! ```

use std::fmt;

/// Size of a branch in bytes.
pub const SIZE: usize = 24;

/// A branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch; 0 where a trace begins.
    pub from: u64,
    /// Its target; 0 where a trace ends.
    pub to: u64,
    /// Flags as found.
    pub flags: u64,
}

impl Branch {
    /// Flag of a branch that was predicted.
    pub const PREDICTED: u64 = 1 << 4;

    /// Reads a branch.
    pub fn read(bytes: &[u8; SIZE]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        Self { from: next(), to: next(), flags: next() }
    }

    /// Returns the bytes of the branch.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let words = [self.from, self.to, self.flags];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// Returns whether it is an unused entry.
    pub fn is_empty(self) -> bool {
        self.from == 0 && self.to == 0
    }
}

/// Prints the branch as in perf's dump.
impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.flags & Self::PREDICTED != 0 { "pred" } else { "miss" };
        write!(f, "{:x} -> {:x} {word}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_come_back() {
        let mut bytes = [0; SIZE];
        (bytes[0], bytes[8], bytes[9], bytes[16]) = (0x10, 0x20, 0x01, 0x10);
        let branch = Branch::read(&bytes);
        assert_eq!(branch, Branch { from: 0x10, to: 0x120, flags: 0x10 });
        assert_eq!((branch.to_bytes(), branch.to_string()), (bytes, "10 -> 120 pred".to_owned()));
        assert!(!branch.is_empty() && Branch { flags: 1, ..Branch::default() }.is_empty());
    }
}
