//! What writing in file mode and in pipe mode have in common: an output and the place that it has
//! reached.

use std::io::{self, Write};

use crate::bytes::Encoder;
use crate::endian::Endian;

/// A recording that is written front to back, from byte 0 of its output:
/// [`FileWriter`](super::FileWriter) or [`PipeWriter`](super::PipeWriter).
#[derive(Debug)]
pub struct Writer<W, M> {
    pub(super) out: W,
    pub(super) endian: Endian,
    position: u64,
    /// What the mode keeps up to the end.
    pub(super) mode: M,
}

impl<W: Write, M> Writer<W, M> {
    /// Begins an output with what stands before the records.
    pub(super) fn begin(out: W, before: &Encoder, mode: M) -> io::Result<Self> {
        let mut writer = Self { out, endian: before.endian(), position: 0, mode };
        writer.write(before.as_bytes())?;
        Ok(writer)
    }

    /// Appends records, whole or in pieces, as they came from a ring or an encoder.
    ///
    /// # Errors
    /// Returns I/O errors from the output.
    pub fn write(&mut self, records: &[u8]) -> io::Result<()> {
        self.out.write_all(records)?;
        self.wrote(records.len() as u64);
        Ok(())
    }

    /// Counts `len` bytes of records that were appended to the output by other means, such as a
    /// vectored write.
    pub fn wrote(&mut self, len: u64) {
        self.position += len;
    }

    /// Returns the place of the next record, in bytes from the start of the output.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the output, to write to it by other means.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }
}
