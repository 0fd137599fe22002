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

    /// Returns a build ID of these bytes; longer ones are cut as perf cuts them. `None` when there are none.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let len = bytes.len().min(Self::MAX);
        let mut id = Self { bytes: [0; Self::MAX], len: u8::try_from(len).ok()? };
        id.bytes.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        (len > 0).then_some(id)
    }

    /// Returns the bytes that count.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// Returns all 20 bytes, zeroes after the ones that count.
    #[must_use]
    pub fn padded(&self) -> [u8; Self::MAX] {
        self.bytes
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
    fn it_prints_in_hexadecimal() {
        let id = BuildId::new(&[0xab, 0x01]).unwrap();
        assert_eq!((id.to_string().as_str(), format!("{id:?}").as_str()), ("ab01", "BuildId(ab01)"));
    }

    #[test]
    fn it_has_20_bytes_at_most_and_one_at_least() {
        assert_eq!(BuildId::new(&[7; 32]).unwrap().as_bytes(), [7; 20]);
        assert_eq!(BuildId::new(&[]), None);
        assert_eq!(BuildId::new(&[7]).unwrap().padded()[..2], [7, 0]);
    }
}
