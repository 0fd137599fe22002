//! Bytes of files that may have symbols.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::input::map::Mapped;

/// Returns the name at `offset` of a table of names, each ended by a zero byte.
pub(super) fn name_at(table: &[u8], offset: usize) -> &[u8] {
    let name = table.get(offset..).unwrap_or_default();
    memchr::memchr(0, name).and_then(|end| name.get(..end)).unwrap_or(name)
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
