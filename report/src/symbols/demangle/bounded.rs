//! Texts of limited length.

use std::fmt::{self, Write};

/// Maximum length in bytes.
pub(super) const LIMIT: usize = 1 << 16;

/// Writer into a string that fails if the string would exceed [`LIMIT`].
pub(super) struct Bounded<'a>(pub(super) &'a mut String);

impl Write for Bounded<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > LIMIT {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}
