//! Bytes of files that may have symbols.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::input::map::Mapped;

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
