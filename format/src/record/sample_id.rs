//! The trailer (`struct sample_id`): task, time, CPU and event, at the end of the kernel's records
//! that are not samples.

use crate::abi::{Cpu, Pid, SampleType, Tid};
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::layout::SampleIdLayout;
use crate::wire::Wire;

/// The fields of a trailer (`struct sample_id`); `None` without `sample_id_all` in the attr or the
/// bit in its `sample_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// Process and thread.
    pub tid: Option<[u32; 2]>,
    /// The time, in nanoseconds of the perf clock; 0 in synthesized records.
    pub time: Option<u64>,
    /// The event's id.
    pub id: Option<u64>,
    /// The id of the event's instance, where `id` may be that of its parent.
    pub stream_id: Option<u64>,
    /// The CPU, and a reserved word.
    pub cpu: Option<[u32; 2]>,
    /// The event's id, at a fixed place.
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

impl SampleId {
    pub(super) fn decode(c: &mut Cursor<'_>, layout: &SampleIdLayout) -> Result<Self> {
        fn field<'a, T: Wire<'a>>(
            c: &mut Cursor<'a>,
            layout: &SampleIdLayout,
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

    /// Returns the same values with exactly the fields of `layout`, as synthesized records need
    /// them; missing ones are 0.
    #[must_use]
    pub fn shaped(&self, layout: &SampleIdLayout) -> Self {
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

    /// Returns the id of the event that the record belongs to: IDENTIFIER, else ID.
    pub fn event_id(&self) -> Option<u64> {
        self.identifier.or(self.id)
    }

    /// Returns the process; -1 for a task that has already ended.
    pub fn pid(&self) -> Option<Pid> {
        self.tid.map(|[pid, _]| Pid(pid))
    }

    /// Returns the thread; -1 for a task that has already ended.
    pub fn tid(&self) -> Option<Tid> {
        self.tid.map(|[_, tid]| Tid(tid))
    }

    /// Returns the CPU.
    pub fn cpu(&self) -> Option<Cpu> {
        self.cpu.map(|[cpu, _]| Cpu(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn the_parts_of_its_words() {
        let layout = SampleIdLayout {
            fields: SampleType::TID | SampleType::CPU,
            size: 16,
            time: None,
            event_id: None,
        };
        let bytes = [255, 255, 255, 255, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 0];
        let id = SampleId::decode(&mut Cursor::new(&bytes, 0, Endian::Big), &layout).unwrap();
        assert_eq!(
            (id.pid(), id.tid(), id.cpu(), id.event_id()),
            (Some(Pid::ANY), Some(Tid(9)), Some(Cpu(3)), None)
        );
        assert_eq!(SampleId::default().tid(), None);
    }
}
