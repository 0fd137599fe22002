//! Text with a limit.

use std::fmt::{self, Write};

/// The longest text that a name may become.
pub(super) const LIMIT: usize = 1 << 16;

/// A text that refuses to grow past [`LIMIT`].
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
