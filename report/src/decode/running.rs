//! The thread that ran on each CPU at any time: whose a trace of a CPU is.

use rayon::prelude::*;
use recrep_format::abi::{RecordType, misc};
use recrep_format::attr::AttrTable;
use recrep_format::record::{Body, RawRecord};
use rustc_hash::FxHashMap;

use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;

/// A thread with its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub pid: i32,
    pub tid: i32,
}

impl Owner {
    /// Nobody: the thread is not known.
    pub(crate) const UNKNOWN: Self = Self { pid: -1, tid: -1 };
}

/// Threads that began to run, by CPU and in order of time.
#[derive(Debug, Default)]
pub(crate) struct RunningThreads(FxHashMap<u32, Vec<(u64, Owner)>>);

impl RunningThreads {
    /// Reads the context switches of the file, and the starts of traces.
    pub(crate) fn read(attrs: &AttrTable, pieces: &[Piece<'_>]) -> Self {
        let found = pieces.par_iter().map_init(UnpackBuffer::default, |buffer, piece| {
            let records = piece.records(buffer);
            records.filter_map(|raw| switch(attrs, &raw)).collect::<Vec<_>>()
        });
        let mut all: FxHashMap<u32, Vec<(u64, Owner)>> = FxHashMap::default();
        for (cpu, time, owner) in found.collect::<Vec<_>>().into_iter().flatten() {
            all.entry(cpu).or_default().push((time, owner));
        }
        for switches in all.values_mut() {
            // Equal times stay in file order.
            switches.sort_by_key(|(time, _)| *time);
        }
        Self(all)
    }

    /// Returns the thread that ran on a CPU at this time, if it is known.
    pub(crate) fn at(&self, cpu: u32, time: u64) -> Option<Owner> {
        let switches = self.0.get(&cpu)?;
        let next = switches.partition_point(|(at, _)| *at <= time);
        switches.get(next.checked_sub(1)?).map(|(_, owner)| *owner)
    }
}

/// Returns CPU, time and thread of a record that says which thread runs from then on.
fn switch(attrs: &AttrTable, raw: &RawRecord<'_>) -> Option<(u32, u64, Owner)> {
    let kinds = [RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE, RecordType::ITRACE_START];
    if !kinds.contains(&raw.header.kind) {
        return None;
    }
    let record = attrs.decode(raw).ok()?;
    let (time, [cpu, _]) = (record.trailer.time?, record.trailer.cpu?);
    let is_out = record.misc & misc::SWITCH_OUT != 0;
    let [pid, tid] = match &record.body {
        Body::ItraceStart(start) => [start.pid, start.tid],
        Body::SwitchCpuWide(next) if is_out => [next.next_prev_pid, next.next_prev_tid],
        _ if !is_out => record.trailer.tid?,
        _ => return None,
    };
    Some((cpu, time, Owner { pid: pid.cast_signed(), tid: tid.cast_signed() }))
}
