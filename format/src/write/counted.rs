//! The output of a writer and the number of bytes in it: what file mode and pipe mode have in
//! common.

use std::io::{self, Write};

/// An output that is written front to back from its byte 0, and the place that it has reached.
#[derive(Debug)]
pub(super) struct Counted<W> {
    out: W,
    position: u64,
}

impl<W: Write> Counted<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, position: 0 }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.wrote(bytes.len() as u64);
        Ok(())
    }

    /// Counts bytes that were appended to the output by other means.
    pub(super) fn wrote(&mut self, len: u64) {
        self.position += len;
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
