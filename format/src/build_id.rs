//! Build IDs: the identity of an ELF file, up to 20 bytes.

use std::fmt;

/// A build ID (the GNU note of an ELF file): 1 to 20 bytes. It prints as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl BuildId {
    /// The longest that the format has room for (SHA-1).
    pub const MAX: usize = 20;

    /// A build ID of these bytes; longer ones are cut as perf cuts them. `None` when there are none.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let len = bytes.len().min(Self::MAX);
        let mut id = Self { bytes: [0; Self::MAX], len: u8::try_from(len).ok()? };
        id.bytes.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        (len > 0).then_some(id)
    }

    /// The bytes that count.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// All 20 bytes, zeroes after the ones that count.
    #[must_use]
    pub fn padded(&self) -> [u8; Self::MAX] {
        self.bytes
    }

    /// Reads hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if !digits.len().is_multiple_of(2) || digits.len() > 2 * Self::MAX {
            return None;
        }
        let hex = digits.iter().all(u8::is_ascii_hexdigit);
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = digits.as_chunks::<2>().0.iter().map(byte).collect();
        if hex { Self::new(&bytes?) } else { None }
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_both_ways() {
        let id = BuildId::new(&[0xab, 0x01]).unwrap();
        assert_eq!(id.to_string(), "ab01");
        assert_eq!(BuildId::from_hex("ab01"), Some(id));
        assert_eq!(BuildId::from_hex("ab0"), None);
        assert_eq!(BuildId::from_hex("+b01"), None);
        assert_eq!(BuildId::from_hex(""), None);
        assert_eq!(BuildId::new(&[7; 32]).unwrap().as_bytes(), [7; 20]);
    }
}
