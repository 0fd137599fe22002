//! What a recording returns.

use crate::abi::RecordType;
use crate::attr::{AttrEntry, AttrIndex, AttrTable};
use crate::error::Result;
use crate::record::{RawRecord, Record, Sample};

/// A record of a [`Recording`](super::Recording), and what is needed to decode it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecordRef<'r> {
    /// The record.
    pub raw: RawRecord<'r>,
    /// The attrs that are known when it is returned.
    pub attrs: &'r AttrTable,
    /// Number of the stream it is from: 0 for the data, then the files of a directory in their
    /// order.
    pub stream: usize,
}

impl<'r> RecordRef<'r> {
    /// Returns the type.
    #[inline]
    pub fn kind(&self) -> RecordType {
        self.raw.header.kind
    }

    /// Returns the event that the record belongs to.
    #[inline]
    pub fn event(&self) -> Option<(AttrIndex, &'r AttrEntry)> {
        let index = self.attrs.event_of(&self.raw)?;
        Some((index, self.attrs.get(index)?))
    }

    /// Returns the time in nanoseconds of the perf clock, if the record has one. Synthesized
    /// records have 0 or all ones in its place, which is no time.
    #[inline]
    pub fn time(&self) -> Option<u64> {
        self.attrs.time_of(&self.raw).filter(|time| !matches!(*time, 0 | u64::MAX))
    }

    /// Returns the record as a sample, read lazily; `None` for records of other types, and for
    /// samples whose event is unknown ([`kind`](Self::kind) is SAMPLE then).
    #[inline]
    pub fn sample(&self) -> Option<Sample<'r, 'r>> {
        self.attrs.sample(self.raw).map(|(_, sample)| sample)
    }

    /// Decodes the record. A sample of an unknown event has no fields then.
    ///
    /// # Errors
    /// Returns an error if it is too short for what it says; the records after it can be read.
    pub fn decode(&self) -> Result<Record<'r>> {
        self.attrs.decode(&self.raw)
    }
}
