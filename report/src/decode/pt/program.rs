//! The threads of a ring, and the code that they execute.

use std::cell::RefCell;

use recrep_trace::pt::{Task, World};
use rustc_hash::FxHashMap;

use super::info::PtInfo;
use crate::decode::code::{RecordedCode, SpaceMoment};
use crate::decode::queues::TraceQueue;
use crate::decode::recorded::RecordedTraces;
use crate::timeline::{Epoch, Moment};

/// The threads of a ring, and their code, as a part is decoded.
#[derive(Debug)]
pub(super) struct TracedProgram<'a, 'i> {
    code: &'a RecordedCode<'i>,
    traces: &'a RecordedTraces<'i>,
    queue: &'a TraceQueue<'i>,
    info: &'a PtInfo,
    /// The last version, with its number.
    last: Option<(Epoch, u32)>,
    spaces: RefCell<FxHashMap<u32, Option<SpaceMoment>>>,
}

impl<'a, 'i> TracedProgram<'a, 'i> {
    pub(super) fn new(
        code: &'a RecordedCode<'i>,
        traces: &'a RecordedTraces<'i>,
        queue: &'a TraceQueue<'i>,
        info: &'a PtInfo,
    ) -> Self {
        Self { code, traces, queue, info, last: None, spaces: RefCell::default() }
    }
}

impl World for TracedProgram<'_, '_> {
    fn task(&mut self, tsc: u64) -> Task {
        let time = if self.info.has_times { self.info.time(tsc) } else { u64::MAX >> 1 };
        let at = Moment::timed(time, u64::MAX >> 1);
        let tid = match (self.queue.tid, self.queue.cpu) {
            (Some(tid), _) => tid,
            (None, Some(cpu)) => self.traces.running.at(cpu, time).map_or(-1, |owner| owner.tid),
            (None, None) => -1,
        };
        let space = self.traces.timeline.span(-1, tid, at).task.space;
        let number = match &self.last {
            Some((epoch, number)) if epoch.covers(space, at) => *number,
            _ => {
                let epoch = self.traces.timeline.epoch(space, at);
                let number = self.code.number((space, epoch.of.mapped), at);
                self.last = Some((epoch, number));
                number
            }
        };
        Task { space: number, thread: tid.cast_unsigned() }
    }

    fn code(&self, number: u32, address: u64) -> Option<&[u8]> {
        let mut spaces = self.spaces.borrow_mut();
        let at = (*spaces.entry(number).or_insert_with(|| self.code.space(number)))?;
        drop(spaces);
        self.code.at(&self.traces.timeline, at, address)
    }
}
