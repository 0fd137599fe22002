//! A sample to print.

use recrep_format::abi::CpuMode;
use recrep_format::attr::{Attr, AttrIndex};
use recrep_format::record::{RawRecord, Sample, SampleFields};

use super::start::LineStart;
use crate::samples::{Session, TaskFinder};
use crate::timeline::{Moment, Task};

/// A sample with its event and task.
pub(super) struct ScriptSample<'a> {
    pub(super) event: AttrIndex,
    pub(super) attr: &'a Attr,
    pub(super) mode: CpuMode,
    pub(super) sample: Sample<'a, 'a>,
    pub(super) fields: &'a mut SampleFields<'a>,
    /// The task, with the comm as known at its moment.
    pub(super) task: Task,
    pub(super) who: LineStart<'a>,
    pub(super) at: Moment,
}

impl<'a> ScriptSample<'a> {
    /// Returns a sample with its event and task, its fields being read into `fields`; `None` for
    /// one that cannot be read.
    #[inline]
    pub(super) fn of(
        session: &'a Session<'_>,
        tasks: &mut TaskFinder<'_>,
        raw: RawRecord<'a>,
        fields: &'a mut SampleFields<'a>,
    ) -> Option<Self> {
        let (event, sample) = session.file.attrs.sample(raw)?;
        let mode = sample.cpu_mode();
        sample.read(fields).ok()?;
        let attr = &session.file.attrs.get(event)?.attr;
        let at = session.clock.moment(fields.time, raw.offset);
        let ids = fields.tid.map_or([-1, -1], |ids| ids.map(u32::cast_signed));
        let [pid, tid] = ids;
        let (cpu, time) = (fields.cpu.map(|[cpu, _]| cpu), fields.time);
        let (span, _) = tasks.span(pid, tid, at);
        let task = Task { comm: span.comm_so_far(at), ..span.task };
        let comm = session.timeline.comm(task.comm);
        let who =
            LineStart { comm, tid: ids, cpu, time, misc: raw.header.misc, kind: raw.header.kind };
        Some(Self { event, attr, mode, sample, fields, task, who, at })
    }

    pub(super) fn ip(&self) -> u64 {
        self.fields.ip.unwrap_or(0)
    }
}
