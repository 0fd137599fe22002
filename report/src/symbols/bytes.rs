//! Bytes of files that may have symbols.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::input::map::Mapped;

/// Returns the name at `offset` of a table of names, each ended by a zero byte.
pub(super) fn name_at(table: &[u8], offset: usize) -> &[u8] {
    let name = table.get(offset..).unwrap_or_default();
    memchr::memchr(0, name).and_then(|end| name.get(..end)).unwrap_or(name)
}

/// Returns the hexadecimal number at the start of a line, and the text after the space that follows it.
pub(super) fn hexadecimal(line: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = line.split_at_checked(memchr::memchr(b' ', line)?)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    Some((u64::from_str_radix(digits, 16).ok()?, rest.get(1..)?))
}

/// Bytes of a file: a copy, or mapped.
#[derive(Clone, Debug)]
pub(super) enum Bytes {
    Copied(Arc<Vec<u8>>),
    Mapped(Arc<Mapped>, Range<usize>),
}

impl Bytes {
    /// Returns the offset in the file from which mapped bytes may be others than those that were mapped.
    pub(super) fn lost(&self) -> Option<u64> {
        match self {
            Self::Copied(_) => None,
            Self::Mapped(map, _) => map.lost(),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Mapped(map, range) => map.bytes().get(range.clone()).unwrap_or_default(),
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Copied(Arc::new(bytes))
    }
}
