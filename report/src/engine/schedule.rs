//! Switches and wakings of threads, and when threads began and ended: for exports that show time.
//!
//! ```text
//!   SWITCH, SWITCH_CPU_WIDE records ─┐
//!   else samples of sched:sched_switch ─► switches in order of time
//!   samples of sched_waking, sched_wakeup ─► wakings
//!   FORK, EXIT records ─► lives of threads
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use recrep_format::abi::{RecordType, misc};
use recrep_format::feature::ClockData;
use recrep_format::record::{Body, RawRecord};

use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::profile::recording::known;
use crate::samples::{PieceWorker, Session, by_piece};
pub(crate) use crate::timeline::Activity;
use crate::timeline::Moment;
use crate::tracepoints::{Formats, Tracepoint};

/// Threads over time, as far as records tell.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// In order of time.
    pub(crate) switches: Vec<ThreadSwitch>,
    /// In order of time.
    pub(crate) wakings: Vec<Waking>,
    /// By thread.
    pub(crate) lives: BTreeMap<i32, ThreadLife>,
    pub(crate) clock: Option<RecordedClock>,
}

/// A switch of a thread from a CPU or to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadSwitch {
    pub(crate) time: u64,
    /// CPU; all ones if not recorded.
    pub(crate) cpu: u32,
    /// `true` from the CPU; such a record comes before that of the thread that runs next.
    is_in: bool,
    pub(crate) tid: i32,
    /// `true` if the kernel took the CPU away.
    is_preempted: bool,
    /// Thread that runs next, or ran before; `None` if not recorded.
    pub(crate) other: Option<i32>,
}

impl ThreadSwitch {
    /// Returns what the thread does from the switch on.
    pub(crate) fn activity(&self) -> Activity {
        match (self.is_in, self.is_preempted) {
            (true, _) => Activity::Running,
            (false, true) => Activity::Preempted,
            (false, false) => Activity::Waiting,
        }
    }
}

/// A thread that becomes able to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waking {
    pub(crate) time: u64,
    /// CPU of the thread that wakes it.
    pub(crate) cpu: u32,
    pub(crate) waker: i32,
    pub(crate) tid: i32,
    /// CPU on which it is to run.
    pub(crate) target: u32,
}

/// What is known of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadLife {
    /// Process; -1 if unknown.
    pub(crate) pid: i32,
    pub(crate) name: String,
    /// Times of its fork and its exit, if they were recorded.
    pub(crate) began: Option<u64>,
    pub(crate) ended: Option<u64>,
}

/// The clock of a recording, and its time and the wall clock's at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedClock {
    /// Number of the clock (clock_gettime(2)).
    pub(crate) id: u32,
    pub(crate) time: u64,
    /// Nanoseconds since 1970.
    pub(crate) wall: u64,
}

/// Switches and wakings in the pieces of one worker.
struct SwitchCollector<'s> {
    session: &'s Session<'s>,
    events: &'s [SchedEvent<'s>],
    /// Switches of records.
    recorded: Vec<ThreadSwitch>,
    /// Switches of tracepoints.
    traced: Vec<ThreadSwitch>,
    wakings: Vec<Waking>,
    /// Names that tracepoints have.
    names: BTreeMap<i32, String>,
}

/// What samples of an event tell.
#[derive(Clone, Copy, Debug)]
enum SchedEvent<'s> {
    Nothing,
    Switch(&'s Tracepoint),
    Waking(&'s Tracepoint),
}

impl Schedule {
    /// Reads the schedule of a recording.
    pub(crate) fn read(session: &Session<'_>) -> Self {
        let formats = Formats::read(session.file);
        let events: Vec<SchedEvent<'_>> = session
            .events
            .iter()
            .enumerate()
            .map(|(place, name)| SchedEvent::of(name, formats.event(place)))
            .collect();
        let workers = by_piece(&session.split.pieces, |_| SwitchCollector::new(session, &events));
        let mut schedule = Self { lives: lives(session), ..Self::default() };
        let mut traced = Vec::new();
        for worker in workers {
            schedule.switches.extend(worker.recorded);
            traced.extend(worker.traced);
            schedule.wakings.extend(worker.wakings);
            for (tid, name) in worker.names {
                let life = schedule.lives.entry(tid);
                let life = life.or_insert_with(|| ThreadLife { pid: -1, ..ThreadLife::default() });
                if life.name.is_empty() {
                    life.name = name;
                }
            }
        }
        if schedule.switches.is_empty() {
            schedule.switches = traced;
        }
        schedule.switches.sort_unstable();
        schedule.switches.dedup();
        schedule.wakings.sort_unstable();
        schedule.wakings.dedup();
        let clock = known::<ClockData>(session.file).filter(|clock| clock.wall_clock > 0);
        schedule.clock = clock.map(|clock| RecordedClock {
            id: clock.clockid,
            time: clock.clock,
            wall: clock.wall_clock,
        });
        schedule
    }
}

impl<'s> SchedEvent<'s> {
    fn of(name: &str, format: Option<&'s Tracepoint>) -> Self {
        let name = name.split_once(':').map(|(system, name)| (system, name.split(':').next()));
        match (name, format) {
            (Some(("sched", Some("sched_switch"))), Some(format)) => Self::Switch(format),
            (
                Some(("sched", Some("sched_waking" | "sched_wakeup" | "sched_wakeup_new"))),
                Some(format),
            ) => Self::Waking(format),
            _ => Self::Nothing,
        }
    }
}

impl PieceWorker for SwitchCollector<'_> {
    fn read(&mut self, _: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        for raw in piece.records(buffer) {
            match raw.header.kind {
                RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE => self.record(&raw),
                _ => self.sample(raw),
            }
        }
    }
}

impl<'s> SwitchCollector<'s> {
    fn new(session: &'s Session<'s>, events: &'s [SchedEvent<'s>]) -> Self {
        Self {
            session,
            events,
            recorded: Vec::new(),
            traced: Vec::new(),
            wakings: Vec::new(),
            names: BTreeMap::new(),
        }
    }

    fn record(&mut self, raw: &RawRecord<'_>) {
        let Ok(record) = self.session.file.attrs.decode(raw) else { return };
        let (Some([_, tid]), Some(time)) = (record.trailer.tid, record.trailer.time) else {
            return;
        };
        // No switch: the recorder found the thread waiting.
        if record.misc & misc::WAITS_AT_START != 0 {
            return;
        }
        let other = match record.body {
            Body::SwitchCpuWide(switch) => Some(switch.next_prev_tid.cast_signed()),
            _ => None,
        };
        self.recorded.push(ThreadSwitch {
            time,
            cpu: record.trailer.cpu.map_or(u32::MAX, |[cpu, _]| cpu),
            is_in: record.misc & misc::SWITCH_OUT == 0,
            tid: tid.cast_signed(),
            is_preempted: record.misc & misc::SWITCH_OUT_PREEMPT != 0,
            other,
        });
    }

    fn sample(&mut self, raw: RawRecord<'_>) {
        let Some((index, sample)) = self.session.file.attrs.sample(raw) else { return };
        let event = self.events.get(index.0).copied().unwrap_or(SchedEvent::Nothing);
        if matches!(event, SchedEvent::Nothing) {
            return;
        }
        let (Some(time), Ok(Some(bytes))) = (sample.time(), sample.raw()) else { return };
        let cpu = sample.cpu().unwrap_or(u32::MAX);
        match event {
            SchedEvent::Nothing => {}
            SchedEvent::Switch(format) => self.traced_switch(format, bytes, time, cpu),
            SchedEvent::Waking(format) => {
                let Some(tid) = self.task(format, ["pid", "comm"], bytes) else { return };
                let target = format.number("target_cpu", bytes);
                let target = target.and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(cpu);
                let waker = sample.tid().map_or(-1, u32::cast_signed);
                self.wakings.push(Waking { time, cpu, waker, tid, target });
            }
        }
    }

    fn traced_switch(&mut self, format: &Tracepoint, bytes: &[u8], time: u64, cpu: u32) {
        /// Bits of a state that say what the thread waits for.
        const WAITS: u64 = 0xff;
        let before = self.task(format, ["prev_pid", "prev_comm"], bytes);
        let next = self.task(format, ["next_pid", "next_comm"], bytes);
        let (Some(before), Some(next)) = (before, next) else { return };
        let is_preempted = format.number("prev_state", bytes).unwrap_or(0) & WAITS == 0;
        let out =
            ThreadSwitch { time, cpu, is_in: false, tid: before, is_preempted, other: Some(next) };
        self.traced.push(out);
        let (is_in, tid, other) = (true, next, Some(before));
        self.traced.push(ThreadSwitch { is_in, tid, other, is_preempted: false, ..out });
    }

    /// Returns a thread of a tracepoint, given the fields of its number and its name.
    fn task(&mut self, format: &Tracepoint, fields: [&str; 2], bytes: &[u8]) -> Option<i32> {
        let [number, name] = fields;
        let tid = i32::try_from(format.number(number, bytes)?).ok()?;
        self.names.entry(tid).or_insert_with(|| {
            let name = format.field_text(name, bytes).map(String::from_utf8_lossy);
            name.map_or_else(String::new, Cow::into_owned)
        });
        Some(tid)
    }
}

/// Returns the threads that records tell of: of a number that several had, the last one.
fn lives(session: &Session<'_>) -> BTreeMap<i32, ThreadLife> {
    let mut all: BTreeMap<i32, ThreadLife> = session
        .timeline
        .last_lives()
        .into_iter()
        .map(|life| {
            let name = session.timeline.comm(life.comm(Moment::END)).into_owned();
            let pid = life.pid.unwrap_or(-1);
            (life.tid, ThreadLife { pid, name, began: None, ended: None })
        })
        .collect();
    for raw in &session.split.side_band {
        if !matches!(raw.header.kind, RecordType::FORK | RecordType::EXIT) {
            continue;
        }
        let Ok(record) = session.file.attrs.decode(raw) else { continue };
        let (task, is_fork) = match record.body {
            Body::Fork(task) => (task, true),
            Body::Exit(task) => (task, false),
            _ => continue,
        };
        // Synthesized records have no time.
        let Some(life) = all.get_mut(&task.tid.cast_signed()).filter(|_| task.time > 0) else {
            continue;
        };
        match is_fork {
            true => (life.began, life.ended) = (Some(task.time), None),
            false => life.ended = Some(task.time),
        }
    }
    all
}
