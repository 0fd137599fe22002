//! Reading of the times: collects the records of each thread, on all cores, and has them walked
//! through.

use rayon::prelude::*;
use recrep_format::abi::{RecordType, misc};
use recrep_format::attr::AttrTable;
use recrep_format::record::{Body, RawRecord};
use rustc_hash::{FxHashMap, FxHashSet};

use super::by_thread::{ByThread, ThreadItems};
use super::idle::KnownTasks;
use super::mark::{Mark, ThreadRecord};
use super::wakes::{InterruptWakes, Wake, WakeFields, WakeReader};
use super::walk::{ThreadWalk, WantedTimes};
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
    threads: ByThread<ThreadRecord>,
    /// Times of the first and the last record.
    between: Option<(u64, u64)>,
    switches: u64,
    tasks: KnownTasks,
    wakes: WakeReader,
    /// Execs: time, process and thread.
    execs: Vec<Execution>,
}

/// What a file says of the program that recorded it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    /// Name that it has as a thread; empty if it is not known.
    pub(crate) name: Vec<u8>,
    /// Names that the program which it ran may have as a thread: those of the words of its command
    /// line.
    pub(crate) words: FxHashSet<Vec<u8>>,
}

/// An execution of a program.
#[derive(Clone, Copy, Debug)]
struct Execution {
    time: u64,
    pid: u32,
    tid: u32,
    /// `true` if it has a name of the recorder's command line.
    is_named: bool,
}

/// The program that a recorder ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedProgram {
    /// Time of its exec.
    pub(crate) time: u64,
    /// Number of its first thread.
    pub(crate) tid: i32,
}

/// What is known of a file's threads.
#[derive(Debug, Default)]
pub(crate) struct ThreadFacts {
    pub(crate) threads: Vec<(i32, OffCpuThread)>,
    /// Wakes, by the number of the thread that is woken.
    pub(crate) wakes: FxHashMap<u32, Vec<Wake>>,
    /// Times of the first and the last record.
    pub(crate) between: (u64, u64),
    pub(crate) program: Option<RecordedProgram>,
    pub(crate) unknown_targets: u64,
    /// `true` if wakes by exiting threads are not recorded, so that they are inferred.
    pub(crate) lacks_exits: bool,
    /// `true` if all that ran was recorded.
    pub(crate) is_of_all_cpus: bool,
    /// Numbers of the kernel's threads.
    pub(crate) kernel: FxHashSet<u32>,
}

impl ThreadFacts {
    /// Returns the time from which on samples were taken. Switches of a recording that attached to
    /// its threads are recorded from before that on, while the recorder read what was there.
    pub(crate) fn sampled_since(&self) -> u64 {
        if self.program.is_some() && !self.is_of_all_cpus {
            return self.between.0;
        }
        let wakes = self.wakes.values().flatten().map(|wake| wake.time);
        let runs = self.threads.iter().filter_map(|(_, thread)| thread.runs.first());
        let first_wake = wakes.min();
        let first = runs.map(|run| run.time).chain(first_wake).min();
        first.filter(|_| first_wake.is_some()).unwrap_or(self.between.0)
    }
}

/// What records of threads are read for.
#[derive(Clone, Copy)]
struct ThreadReading<'r> {
    attrs: &'r AttrTable,
    roles: &'r [Role],
    recorder: &'r Recorder,
    /// Fields of the events that tell of wakes, if wakes are read.
    wakes: Option<&'r [Option<WakeFields>]>,
}

impl OffCpu {
    /// Reads the context switches of a file.
    pub(crate) fn read(attrs: &AttrTable, pieces: &[Piece<'_>], recorder: &Recorder) -> Self {
        let mut times = Self { roles: roles(attrs), ..Self::default() };
        let reading = ThreadReading { attrs, roles: &times.roles, recorder, wakes: None };
        let mut all = ThreadSwitches::read(reading, pieces);
        // Then running time is what threads ran between samples.
        let wanted = match times.roles.contains(&Role::Cycles) {
            true => WantedTimes::All,
            false => WantedTimes::Sampled,
        };
        let walked = all.walk(wanted);
        times.counts.records = all.switches;
        for (tid, (mut thread, counts)) in walked {
            times.counts.add(counts);
            all.tasks.tell_apart(tid, &mut thread, counts, &mut times.idle);
            times.threads.insert(tid.cast_signed(), thread);
        }
        times
    }

    /// Reads the lives of the threads of a file, and their wakes, which events with these fields
    /// tell of. Of the times there are roles and counts only.
    pub(crate) fn read_lives(
        attrs: &AttrTable,
        pieces: &[Piece<'_>],
        recorder: &Recorder,
        fields: &[Option<WakeFields>],
    ) -> (Self, ThreadFacts, InterruptWakes) {
        let mut times = Self { roles: roles(attrs), ..Self::default() };
        let reading = ThreadReading { attrs, roles: &times.roles, recorder, wakes: Some(fields) };
        let mut all = ThreadSwitches::read(reading, pieces);
        let walked = all.walk(WantedTimes::Lives);
        times.counts.records = all.switches;
        let mut threads = Vec::with_capacity(walked.len());
        for (tid, (thread, counts)) in walked {
            times.counts.add(counts);
            threads.push((tid.cast_signed(), thread));
        }
        let unknown_targets = all.wakes.translate_targets();
        let is_of_cpus = fields.iter().flatten().any(|fields| fields.is_of_cpu);
        let facts = ThreadFacts {
            threads,
            wakes: all.wakes.by_target(),
            between: all.between.unwrap_or_default(),
            program: all.program(),
            unknown_targets,
            lacks_exits: !is_of_cpus,
            is_of_all_cpus: all.tasks.is_of_all_cpus(),
            kernel: all.tasks.into_kernel(),
        };
        (times, facts, all.wakes.in_interrupts())
    }
}

impl ThreadSwitches {
    /// Reads all pieces of a file.
    fn read(reading: ThreadReading<'_>, pieces: &[Piece<'_>]) -> Self {
        // Pieces that follow each other are read into the same lists.
        let parts = pieces.par_iter().fold(
            || (Self::default(), UnpackBuffer::default()),
            |(mut collected, mut buffer), piece| {
                collected.piece(reading, piece.records(&mut buffer));
                (collected, buffer)
            },
        );
        let mut all = Self::default();
        for part in parts.map(|(collected, _)| collected).collect::<Vec<_>>() {
            all.append(part);
        }
        all
    }

    /// Walks through the records of each thread.
    fn walk(&mut self, wanted: WantedTimes) -> Vec<(u32, (OffCpuThread, SwitchCounts))> {
        let end = self.between.map_or(0, |(_, end)| end);
        let all = std::mem::take(&mut self.threads);
        let walked = all.threads().into_par_iter().map_init(Vec::new, |entries, thread| {
            let ThreadItems { tid, pid, slices } = thread;
            entries.clear();
            for entry in slices.into_iter().flatten() {
                let (sample, entry) = entry.split();
                entries.extend(sample);
                entries.push(entry);
            }
            // Equal times stay in file order. Mostly all are in order, which needs no room to sort.
            if !entries.is_sorted_by_key(|entry| entry.time()) {
                entries.sort_by_key(|entry| entry.time());
            }
            (tid, ThreadWalk::of(pid.cast_signed(), entries, end, wanted))
        });
        walked.collect()
    }

    /// Returns the program that the recorder ran: the first one that a process of its own executes,
    /// else the first one of all. Of several recorders at once, it is that with a name of the command
    /// line.
    fn program(&self) -> Option<RecordedProgram> {
        let first = self.execs.iter().min_by_key(|exec| {
            let is_own = self.tasks.is_recorder(exec.pid);
            (!is_own, is_own && !exec.is_named, exec.time, exec.pid, exec.tid)
        })?;
        Some(RecordedProgram { time: first.time, tid: first.tid.cast_signed() })
    }

    /// Reads the records of the piece that follows.
    fn piece<'r>(
        &mut self,
        reading: ThreadReading<'_>,
        records: impl Iterator<Item = RawRecord<'r>>,
    ) {
        let ThreadReading { attrs, recorder, .. } = reading;
        for raw in records {
            self.tasks.record(attrs, &raw, &recorder.name);
            let Some(time) = attrs.time_of(&raw).filter(|time| is_time(*time)) else { continue };
            self.extend_to(time, time);
            match raw.header.kind {
                RecordType::SAMPLE => self.sample(reading, raw, time),
                RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE => self.switch(attrs, &raw, time),
                RecordType::FORK | RecordType::EXIT | RecordType::COMM => {
                    self.record(reading, &raw, time);
                }
                _ => {}
            }
        }
        self.threads.end_piece();
        self.wakes.end_piece();
    }

    fn extend_to(&mut self, first: u64, last: u64) {
        let (from, to) = self.between.unwrap_or((first, last));
        self.between = Some((from.min(first), to.max(last)));
    }

    fn sample(&mut self, reading: ThreadReading<'_>, raw: RawRecord<'_>, time: u64) {
        let Some((index, sample)) = reading.attrs.sample(raw) else { return };
        let mark = match reading.roles.get(index.0).copied().unwrap_or_default() {
            Role::None => {
                let fields = reading.wakes.and_then(|events| events.get(index.0)?.as_ref());
                if let Some(fields) = fields {
                    self.wakes.sample(fields, &sample, time);
                }
                return;
            }
            Role::Switch if sample.waits_at_start() => Mark::SampleAtStart,
            Role::Switch => Mark::Switch,
            Role::Clock | Role::Cycles => Mark::Cpu,
        };
        let (Some(pid), Some(tid)) = (sample.pid(), sample.tid()) else { return };
        self.push([pid, tid], ThreadRecord::new(time, raw.offset, sample.cpu(), mark));
    }

    fn switch(&mut self, attrs: &AttrTable, raw: &RawRecord<'_>, time: u64) {
        let Ok(trailer) = attrs.trailer(raw) else { return };
        let Some(task) = trailer.tid else { return };
        self.switches += 1;
        let mark = match raw.header.misc {
            bits if bits & misc::WAITS_AT_START != 0 => Mark::WaitsAtStart,
            bits if bits & misc::SWITCH_OUT == 0 => Mark::In,
            bits if bits & misc::SWITCH_OUT_PREEMPT == 0 => Mark::Out(Activity::Waiting),
            _ => Mark::Out(Activity::Preempted),
        };
        let cpu = trailer.cpu.map(|[cpu, _]| cpu);
        self.push(task, ThreadRecord::new(time, raw.offset, cpu, mark));
    }

    fn record(&mut self, reading: ThreadReading<'_>, raw: &RawRecord<'_>, time: u64) {
        let Ok(record) = reading.attrs.decode(raw) else { return };
        let Some(task) = record.trailer.tid else { return };
        let cpu = record.trailer.cpu.map(|[cpu, _]| cpu);
        let entry = |mark| ThreadRecord::new(time, raw.offset, cpu, mark);
        match record.body {
            Body::Fork(child) => {
                let [_, parent] = task;
                self.push(task, entry(Mark::Alive));
                let begin = ThreadRecord::new(time, parent.into(), cpu, Mark::Begin);
                self.push([child.pid, child.tid], begin);
                self.wakes.forks.push((time, parent, child.tid));
            }
            Body::Exit(_) => self.push(task, entry(Mark::Exit)),
            // The name may be another thread's; the trailer's thread wrote it.
            Body::Comm(comm) => {
                if record.misc & misc::COMM_EXEC != 0 {
                    let [pid, tid] = task;
                    let is_named = reading.recorder.words.contains(comm.comm.as_bytes());
                    self.execs.push(Execution { time, pid, tid, is_named });
                }
                self.push(task, entry(Mark::Alive));
            }
            _ => {}
        }
    }

    fn push(&mut self, [pid, tid]: [u32; 2], entry: ThreadRecord) {
        if tid == IDLE {
            self.tasks.see_idle_task();
        }
        if tid == IDLE || tid == GONE {
            return;
        }
        if let Mark::Out(_) = entry.mark()
            && let Some(last) = self.threads.last_mut(tid)
            && let Some(both) = last.with_out(entry)
        {
            *last = both;
        } else {
            self.threads.push([pid, tid], entry);
        }
    }

    /// Appends the records of the pieces that follow.
    fn append(&mut self, next: Self) {
        if let Some((first, last)) = next.between {
            self.extend_to(first, last);
        }
        self.wakes.append(next.wakes);
        self.execs.extend(next.execs);
        self.switches += next.switches;
        self.tasks.append(next.tasks);
        self.threads.append(next.threads);
    }
}
