//! Reads the records of rec's own streams, whose events all have the same fields.

use recrep_format::abi::RecordType;
use recrep_format::attr::Attr;
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::layout::{SampleIdLayout, SampleLayout};
use recrep_format::record::{Context, RawRecord, Record, Sample};

/// Layouts of a stream's samples and trailers. Any attr of the stream gives them, as all attrs of
/// rec have the fields that are read while it passes.
#[derive(Clone, Debug)]
pub(crate) struct Layouts {
    sample: SampleLayout,
    trailer: SampleIdLayout,
}

/// Returns the ID of a sample's event, which each sample of rec's has at its start; `None` if the
/// record is no sample.
pub(crate) fn event_id(record: &RawRecord<'_>) -> Option<u64> {
    let is_sample = record.header.kind == RecordType::SAMPLE;
    U64s::new(record.body(), Endian::NATIVE).get(0).filter(|_| is_sample)
}

impl Layouts {
    pub(crate) fn of(attr: &Attr) -> Self {
        Self { sample: SampleLayout::of(attr), trailer: SampleIdLayout::of(attr) }
    }

    /// Returns a record as a sample; `None` if it is none.
    #[inline]
    pub(crate) fn sample<'a>(&self, record: &RawRecord<'a>) -> Option<Sample<'a, '_>> {
        let is_sample = record.header.kind == RecordType::SAMPLE;
        is_sample.then(|| Sample::new(*record, &self.sample, Endian::NATIVE))
    }

    pub(crate) fn decode<'a>(
        &self,
        record: &RawRecord<'a>,
    ) -> recrep_format::error::Result<Record<'a>> {
        record.decode(&Context {
            endian: Endian::NATIVE,
            sample: &self.sample,
            trailer: self.trailer,
        })
    }
}
