//! A sample to print, and its event.

use std::borrow::Cow;

use recrep_format::abi::CpuMode;
use recrep_format::attr::{Attr, AttrIndex};
use recrep_format::record::{RawRecord, Sample, SampleFields};

use super::fields::Fields;
use crate::pipeline::session::Session;
use crate::timeline::{Moment, RecentSpans, Task};

/// The event of a sample, and what is printed of it.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) index: AttrIndex,
    pub(super) attr: &'a Attr,
    pub(super) fields: &'a Fields,
}

/// A sample with its task and comm.
pub(super) struct Found<'a> {
    pub(super) mode: CpuMode,
    pub(super) misc: u16,
    pub(super) sample: Sample<'a, 'a>,
    pub(super) fields: &'a mut SampleFields<'a>,
    pub(super) task: Task,
    pub(super) tid: [i32; 2],
    pub(super) comm: Cow<'a, str>,
    pub(super) at: Moment,
}

impl<'a> Found<'a> {
    /// Returns a sample with its task, its fields being read into `fields`; `None` for one of a guest, or one that cannot
    /// be read.
    #[inline]
    pub(super) fn of(
        session: &'a Session<'_>,
        spans: &mut RecentSpans<()>,
        raw: RawRecord<'a>,
        fields: &'a mut SampleFields<'a>,
    ) -> Option<(AttrIndex, Self)> {
        let (index, sample) = session.file.attrs.sample(raw)?;
        let mode = sample.cpu_mode();
        if mode.is_guest() {
            return None;
        }
        sample.read(fields).ok()?;
        let at = session.clock.moment(fields.time, raw.offset);
        let tid = fields.tid.map_or([-1, -1], |tid| tid.map(u32::cast_signed));
        let (span, ()) = spans.get(&session.timeline, tid.into(), at, |_| ());
        let comm = session.timeline.comm(span.comm_so_far(at));
        Some((index, Self { mode, misc: raw.header.misc, sample, fields, task: span.task, tid, comm, at }))
    }

    pub(super) fn cpu(&self) -> Option<u32> {
        self.fields.cpu.map(|[cpu, _]| cpu)
    }

    pub(super) fn ip(&self) -> u64 {
        self.fields.ip.unwrap_or(0)
    }
}
