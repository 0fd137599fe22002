//! The trailer (`struct sample_id`): who, when and which event, at the end of records that are not samples.

use crate::abi::SampleType;
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::layout::TrailerLayout;
use crate::wire::Wire;

/// The fields of a trailer; each is there when the attr has `sample_id_all` and the bit in `sample_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    /// Process and thread.
    pub tid: Option<[u32; 2]>,
    /// When, in nanoseconds of the perf clock; 0 in synthesized records.
    pub time: Option<u64>,
    /// The event.
    pub id: Option<u64>,
    /// The event that took the sample.
    pub stream_id: Option<u64>,
    /// The CPU, and a reserved word.
    pub cpu: Option<[u32; 2]>,
    /// The event, at the fixed place.
    pub identifier: Option<u64>,
}

impl Wire<'_> for [u32; 2] {
    fn decode(c: &mut Cursor<'_>, what: &'static str) -> Result<Self> {
        Ok([c.u32(what)?, c.u32(what)?])
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        self.iter().for_each(|v| e.u32(*v));
        Ok(())
    }
}

impl Trailer {
    pub(super) fn decode(c: &mut Cursor<'_>, layout: &TrailerLayout) -> Result<Self> {
        fn field<'a, T: Wire<'a>>(
            c: &mut Cursor<'a>,
            layout: &TrailerLayout,
            bit: SampleType,
            what: &'static str,
        ) -> Result<Option<T>> {
            layout.fields.contains(bit).then(|| T::decode(c, what)).transpose()
        }
        Ok(Self {
            tid: field(c, layout, SampleType::TID, "sample_id.tid")?,
            time: field(c, layout, SampleType::TIME, "sample_id.time")?,
            id: field(c, layout, SampleType::ID, "sample_id.id")?,
            stream_id: field(c, layout, SampleType::STREAM_ID, "sample_id.stream_id")?,
            cpu: field(c, layout, SampleType::CPU, "sample_id.cpu")?,
            identifier: field(c, layout, SampleType::IDENTIFIER, "sample_id.identifier")?,
        })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        self.tid.encode(e)?;
        self.time.encode(e)?;
        self.id.encode(e)?;
        self.stream_id.encode(e)?;
        self.cpu.encode(e)?;
        self.identifier.encode(e)
    }

    /// The same values, cut and filled to the fields that `layout` has: what a synthesized record needs.
    #[must_use]
    pub fn shaped(&self, layout: &TrailerLayout) -> Self {
        let has = |bit| layout.fields.contains(bit);
        let word = |bit, value: Option<u64>| has(bit).then(|| value.unwrap_or(0));
        Self {
            tid: has(SampleType::TID).then(|| self.tid.unwrap_or_default()),
            time: word(SampleType::TIME, self.time),
            id: word(SampleType::ID, self.id.or(self.identifier)),
            stream_id: word(SampleType::STREAM_ID, self.stream_id),
            cpu: has(SampleType::CPU).then(|| self.cpu.unwrap_or_default()),
            identifier: word(SampleType::IDENTIFIER, self.identifier.or(self.id)),
        }
    }

    /// Which event the record belongs to: IDENTIFIER, else ID.
    #[must_use]
    pub fn event_id(&self) -> Option<u64> {
        self.identifier.or(self.id)
    }
}
