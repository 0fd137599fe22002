//! Reading of the times: collects the records of each thread, on all cores, and has them walked
//! through.

use rayon::prelude::*;
use recrep_format::abi::{RecordType, misc};
use recrep_format::attr::AttrTable;
use recrep_format::record::{Body, RawRecord};
use rustc_hash::FxHashMap;

use super::idle::KnownTasks;
use super::walk::{Mark, ThreadRecord, ThreadWalk};
use super::{Activity, OffCpu, OffCpuThread, Role, SwitchCounts, roles};
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::timeline::clock::is_time;

/// OffCpuThread number of the idle tasks, one for each CPU.
const IDLE: u32 = 0;

/// OffCpuThread number of a task that has exited.
const GONE: u32 = u32::MAX;

/// Records of some pieces.
#[derive(Debug, Default)]
struct ThreadSwitches {
    /// Process and records, by thread.
    threads: FxHashMap<u32, (u32, Vec<ThreadRecord>)>,
    /// Time of the last record.
    end: u64,
    switches: u64,
    tasks: KnownTasks,
}

impl OffCpu {
    /// Reads the context switches of a file that was recorded by a program of this name.
    pub(crate) fn read(attrs: &AttrTable, pieces: &[Piece<'_>], recorder: &[u8]) -> Self {
        let mut times = Self { roles: roles(attrs), ..Self::default() };
        let parts = pieces.par_iter().map_init(UnpackBuffer::default, |buffer, piece| {
            ThreadSwitches::of(attrs, &times, recorder, piece.records(buffer))
        });
        let mut all = ThreadSwitches::default();
        for part in parts.collect::<Vec<_>>() {
            all.append(part);
        }
        let ThreadSwitches { threads, end, switches, tasks } = all;
        // Then running time is what threads ran between samples.
        let shares = times.roles.contains(&Role::Cycles);
        let walked = threads.into_par_iter().map(|(tid, (pid, mut entries))| {
            // Equal times stay in file order.
            entries.sort_by_key(|entry| entry.time);
            (tid, ThreadWalk::of(pid.cast_signed(), &entries, end, shares))
        });
        let walked: Vec<(u32, (OffCpuThread, SwitchCounts))> = walked.collect();
        times.counts.records = switches;
        for (tid, (mut thread, counts)) in walked {
            times.counts.add(counts);
            tasks.tell_apart(tid, &mut thread, counts, &mut times.idle);
            times.threads.insert(tid.cast_signed(), thread);
        }
        times
    }
}

impl ThreadSwitches {
    fn of<'r>(
        attrs: &AttrTable,
        times: &OffCpu,
        recorder: &[u8],
        records: impl Iterator<Item = RawRecord<'r>>,
    ) -> Self {
        let mut collected = Self::default();
        for raw in records {
            collected.tasks.record(attrs, &raw, recorder);
            let Some(time) = attrs.time_of(&raw).filter(|time| is_time(*time)) else { continue };
            collected.end = collected.end.max(time);
            match raw.header.kind {
                RecordType::SAMPLE => collected.sample(attrs, times, raw, time),
                RecordType::SWITCH
                | RecordType::SWITCH_CPU_WIDE
                | RecordType::FORK
                | RecordType::EXIT
                | RecordType::COMM => collected.record(attrs, &raw, time),
                _ => {}
            }
        }
        collected
    }

    fn sample(&mut self, attrs: &AttrTable, times: &OffCpu, raw: RawRecord<'_>, time: u64) {
        let Some((index, sample)) = attrs.sample(raw) else { return };
        let mark = match times.role(index) {
            Role::None => return,
            Role::Switch if sample.waits_at_start() => Mark::SampleAtStart,
            Role::Switch => Mark::Switch,
            Role::Clock | Role::Cycles => Mark::Cpu,
        };
        let (Some(pid), Some(tid)) = (sample.pid(), sample.tid()) else { return };
        let cpu = sample.cpu().unwrap_or(u32::MAX);
        self.push([pid, tid], ThreadRecord { time, offset: raw.offset, cpu, mark });
    }

    fn record(&mut self, attrs: &AttrTable, raw: &RawRecord<'_>, time: u64) {
        let Ok(record) = attrs.decode(raw) else { return };
        let Some(task) = record.trailer.tid else { return };
        let cpu = record.trailer.cpu.map_or(u32::MAX, |[cpu, _]| cpu);
        let entry = |mark| ThreadRecord { time, offset: raw.offset, cpu, mark };
        match record.body {
            Body::Switch | Body::SwitchCpuWide(_) => {
                self.switches += 1;
                let mark = match record.misc {
                    bits if bits & misc::WAITS_AT_START != 0 => Mark::WaitsAtStart,
                    bits if bits & misc::SWITCH_OUT == 0 => Mark::In,
                    bits if bits & misc::SWITCH_OUT_PREEMPT == 0 => Mark::Out(Activity::Waiting),
                    _ => Mark::Out(Activity::Preempted),
                };
                self.push(task, entry(mark));
            }
            Body::Fork(child) => {
                self.push(task, entry(Mark::Alive));
                self.push([child.pid, child.tid], entry(Mark::Begin));
            }
            Body::Exit(_) => self.push(task, entry(Mark::Exit)),
            // The name may be another thread's; the trailer's thread wrote it.
            Body::Comm(_) => self.push(task, entry(Mark::Alive)),
            _ => {}
        }
    }

    fn push(&mut self, [pid, tid]: [u32; 2], entry: ThreadRecord) {
        if tid == IDLE {
            self.tasks.see_idle_task();
        }
        if tid != IDLE && tid != GONE {
            let (known, entries) = self.threads.entry(tid).or_default();
            *known = pid;
            entries.push(entry);
        }
    }

    /// Appends the records of the pieces that follow.
    fn append(&mut self, next: Self) {
        self.end = self.end.max(next.end);
        self.switches += next.switches;
        self.tasks.append(next.tasks);
        for (tid, (pid, mut entries)) in next.threads {
            let (known, all) = self.threads.entry(tid).or_default();
            *known = pid;
            all.append(&mut entries);
        }
    }
}
