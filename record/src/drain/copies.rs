//! Copies of stacks, without the room behind them: for each sample the kernel reserves as much as
//! was asked for, and leaves unwritten what the stack does not have.

use std::sync::Arc;

use recrep_format::abi::SampleType;
use recrep_format::attr::AttrEntry;
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::layout::SampleLayout;
use recrep_format::record::{Body, RawRecord, Record, Sample, SampleFields};
use rustc_hash::FxHashMap;

use crate::output::layouts::event_id;

/// Layouts of the samples that have copies of stacks, by the IDs of their events.
#[derive(Clone, Debug)]
pub(crate) struct StackCopies(Arc<FxHashMap<u64, SampleLayout>>);

impl StackCopies {
    /// Returns the layouts of these events; `None` if no stack is copied.
    pub(crate) fn of(entries: &[AttrEntry]) -> Option<Self> {
        let mut layouts = FxHashMap::default();
        for entry in entries {
            if entry.attr.sample_type.contains(SampleType::STACK_USER) {
                let layout = SampleLayout::of(&entry.attr);
                layouts.extend(entry.ids.iter().map(|id| (*id, layout.clone())));
            }
        }
        (!layouts.is_empty()).then(|| Self(Arc::new(layouts)))
    }

    /// Appends a record; a sample without the room that its stack did not take.
    pub(super) fn append(&self, record: &RawRecord<'_>, to: &mut Encoder) {
        if self.append_trimmed(record, to).is_none() {
            to.bytes(record.bytes);
        }
    }

    /// Returns `None`, with nothing appended, if there is no such room.
    fn append_trimmed(&self, record: &RawRecord<'_>, to: &mut Encoder) -> Option<()> {
        let id = event_id(record)?;
        let mut fields = SampleFields::default();
        Sample::new(*record, self.0.get(&id)?, Endian::NATIVE).read(&mut fields).ok()?;
        let stack = fields.stack_user?;
        let trimmed = stack.trimmed();
        if trimmed == stack {
            return None;
        }
        fields.stack_user = Some(trimmed);
        Record::new(record.header.misc, Body::Sample(Box::new(fields))).encode(to).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::fake_ring::fake_record;
    use recrep_format::attr::Attr;

    fn copies() -> StackCopies {
        let sample_type = SampleType::IDENTIFIER | SampleType::STACK_USER | SampleType::WEIGHT;
        let attr = Attr { size: 128, sample_type, sample_stack_user: 32, ..Attr::default() };
        StackCopies::of(&[AttrEntry { attr, ids: vec![7], name: None }]).unwrap()
    }

    /// Returns what is left of a record with these words.
    fn left(kind: u32, words: &[u64]) -> Vec<u64> {
        let bytes = fake_record(kind, words);
        let record = recrep_format::read::Frames::new(&bytes, 0, Endian::NATIVE).next();
        let mut to = Encoder::new(Endian::NATIVE);
        copies().append(&record.unwrap().unwrap(), &mut to);
        let bytes = to.as_bytes();
        assert_eq!(usize::from(u16::from_ne_bytes([bytes[6], bytes[7]])), bytes.len());
        bytes[8..].chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn what_a_stack_does_not_take_is_left_out() {
        let sample = |dyn_size: u64| left(9, &[7, 32, 1, 2, 3, 4, dyn_size, 99]);
        assert_eq!(sample(32), [7, 32, 1, 2, 3, 4, 32, 99]);
        assert_eq!(sample(16), [7, 16, 1, 2, 16, 99]);
        assert_eq!(sample(9), [7, 16, 1, 2, 9, 99], "words stay whole");
        assert_eq!(sample(0), [7, 0, 99], "without a copy there is no size of it");
    }

    #[test]
    fn other_records_stay_as_they_are() {
        for (kind, words) in [
            (9, &[8, 32, 1, 2, 3, 4, 16, 99][..]),
            (9, &[7, 1 << 40, 1]),
            (3, &[7, 32, 1, 2, 3, 4, 16, 99]),
            (9, &[]),
        ] {
            assert_eq!(left(kind, words), words);
        }
    }
}
