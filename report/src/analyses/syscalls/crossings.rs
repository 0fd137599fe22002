//! The pass over the samples: workers collect the entries and exits of each thread.

use std::ops::Range;

use indexmap::IndexMap;
use recrep_format::abi::EventType;
use recrep_format::endian::Endian;
use recrep_format::feature::tracing::{EventField, EventFormat, RawFields, Tracing};
use recrep_format::read::File;
use recrep_format::record::RawRecord;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::pair::{self, CallResult, Crossing, Crossings, Side};
use super::tables::CallTables;
use crate::analyses::callers::{Caller, Callers, is_c_library};
use crate::callchain::ChainOrigin;
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::samples::{
    ChainSetup, PieceWorker, SampleFilter, Session, TaskFinder, by_piece, for_each_sample,
};
use crate::timeline::{Moment, SampleContext, SpaceId, Span, Task, ThreadRef};

/// The events of a file that tell of system calls.
#[derive(Debug)]
pub(super) struct SyscallEvents {
    /// By the index of the event in the file.
    events: Vec<Option<SyscallEvent>>,
    endian: Endian,
}

/// An event, and the fields of its raw bytes.
#[derive(Clone, Debug)]
struct SyscallEvent {
    number: SignedField,
    /// Value that the call returns; `None` for entries.
    value: Option<SignedField>,
    /// Name of the only call that it traces; `None` if it traces all.
    name: Option<String>,
}

/// Place of a signed number.
#[derive(Clone, Copy, Debug)]
struct SignedField {
    offset: usize,
    size: usize,
}

impl SignedField {
    fn of(field: &EventField) -> Self {
        Self { offset: field.offset, size: field.size }
    }

    #[inline]
    fn read(self, raw: &RawFields<'_>) -> Option<i64> {
        // The sign is the highest of the field's bits.
        let bits = u32::try_from(self.size).unwrap_or(8).saturating_mul(8);
        let unused = u64::BITS.saturating_sub(bits);
        let value = raw.number(self.offset, self.size)?;
        Some(value.wrapping_shl(unused).cast_signed() >> unused)
    }
}

impl SyscallEvent {
    /// Returns the event of a format, if it is one of system calls.
    fn of(format: &EventFormat) -> Option<Self> {
        let (name, is_exit) = match format.name.strip_prefix("sys_enter") {
            Some(rest) => (rest, false),
            None => (format.name.strip_prefix("sys_exit")?, true),
        };
        let (name, field) = match format.system.as_str() {
            "raw_syscalls" if name.is_empty() => (None, "id"),
            "syscalls" => (Some(name.strip_prefix('_')?.to_owned()), "__syscall_nr"),
            _ => return None,
        };
        // Old kernels call it `nr`.
        let number = SignedField::of(format.field(field).or_else(|| format.field("nr"))?);
        let value = if is_exit { Some(SignedField::of(format.field("ret")?)) } else { None };
        Some(Self { number, value, name })
    }
}

impl SyscallEvents {
    /// Finds the events by their formats; `None` if the file has no such event.
    pub(super) fn of(file: &File<'_>) -> Option<Self> {
        let tracing = file.feature::<Tracing<'_>>()?.ok()?;
        let formats: FxHashMap<u64, SyscallEvent> = tracing
            .events()
            .filter_map(Result::ok)
            .filter_map(|format| Some((format.id, SyscallEvent::of(&format)?)))
            .collect();
        let of_attrs = file.attrs.entries().iter().map(|entry| &entry.attr);
        let mut events: Vec<Option<SyscallEvent>> = of_attrs
            .map(|attr| {
                let is_traced = attr.kind == EventType::TRACEPOINT;
                formats.get(&attr.config).filter(|_| is_traced).cloned()
            })
            .collect();
        // Where all calls are traced, those that have tracepoints of their own, too, would count
        // twice.
        let are_all = |is_exit: bool| {
            let found = events.iter().flatten();
            let mut found = found.filter(|event| event.value.is_some() == is_exit);
            found.any(|event| event.name.is_none())
        };
        if are_all(false) && are_all(true) {
            for event in &mut events {
                if event.as_ref().is_some_and(|event| event.name.is_some()) {
                    *event = None;
                }
            }
        }
        let are_found = events.iter().any(Option::is_some);
        are_found.then_some(Self { events, endian: tracing.endian })
    }

    /// Returns whether entries and exits are recorded.
    pub(super) fn have_both_sides(&self) -> bool {
        let has =
            |is_exit| self.events.iter().flatten().any(|event| event.value.is_some() == is_exit);
        has(false) && has(true)
    }
}

/// Crossings of all threads.
#[derive(Default)]
pub(super) struct CollectedCrossings {
    pub(super) threads: Vec<CrossingThread>,
    /// Callers, by the numbers in the crossings.
    pub(super) callers: Vec<Caller>,
    /// Names of the calls that have tracepoints of their own, by number.
    pub(super) names: FxHashMap<i32, String>,
    /// Time of the last crossing.
    pub(super) end: u64,
    /// Number of samples without thread, time or the fields of their event.
    pub(super) unusable: u64,
}

/// A thread and its crossings.
pub(super) struct CrossingThread {
    pub(super) thread: ThreadRef,
    pub(super) pid: i32,
    pub(super) crossings: Crossings,
}

/// Crossings of a thread in a piece.
struct PieceThread {
    /// Index of the piece.
    piece: usize,
    thread: ThreadRef,
    pid: i32,
    crossings: Vec<Crossing>,
}

impl CollectedCrossings {
    /// Collects the crossings of a file on all cores, with their callers if `chains` are read.
    pub(super) fn read(
        session: &Session<'_>,
        events: &SyscallEvents,
        filter: &SampleFilter<'_>,
        chains: Option<&ChainSetup<'_>>,
    ) -> Self {
        let workers = by_piece(&session.split.pieces, |_| CrossingWorker {
            session,
            events,
            filter,
            callers: chains.map(|chains| Callers::new(session, chains, is_passing)),
            tables: CallTables::new(session),
            tasks: TaskFinder::new(&session.timeline, Some(filter)),
            numbers: vec![None; events.events.len()],
            threads: Vec::new(),
            of_piece: FxHashMap::default(),
            last: LastThread::default(),
            found: Self::default(),
        });
        let mut all = Self::default();
        let mut numbers = IndexMap::<Caller, u32, FxBuildHasher>::default();
        let mut parts = Vec::new();
        for CrossingWorker { mut threads, callers, found: worker, .. } in workers {
            let callers = callers.map(Callers::into_found).unwrap_or_default();
            let of_worker: Vec<u32> = callers
                .into_iter()
                .map(|caller| {
                    let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                    *numbers.entry(caller).or_insert(next)
                })
                .collect();
            if !of_worker.is_empty() {
                let crossings =
                    threads.iter_mut().flat_map(|part: &mut PieceThread| &mut part.crossings);
                for Crossing { caller, .. } in crossings {
                    *caller = of_worker.get(*caller as usize).copied().unwrap_or(0);
                }
            }
            parts.append(&mut threads);
            all.names.extend(worker.names);
            all.end = all.end.max(worker.end);
            all.unusable += worker.unusable;
        }
        all.callers = numbers.into_keys().collect();
        parts.sort_by_key(|part| (part.thread, part.piece));
        for PieceThread { thread, pid, crossings, .. } in parts {
            match all.threads.last_mut().filter(|last| last.thread == thread) {
                Some(last) => last.crossings.pieces.push(crossings),
                None => {
                    let crossings = Crossings { pieces: vec![crossings] };
                    all.threads.push(CrossingThread { thread, pid, crossings });
                }
            }
        }
        all
    }
}

/// Returns whether a function only passes calls on.
fn is_passing(caller: &Caller) -> bool {
    is_c_library(&caller.module)
}

struct CrossingWorker<'s> {
    session: &'s Session<'s>,
    events: &'s SyscallEvents,
    filter: &'s SampleFilter<'s>,
    callers: Option<Callers<'s>>,
    tables: CallTables<'s>,
    tasks: TaskFinder<'s>,
    /// Number of the only call that an event traces, by the event's index.
    numbers: Vec<Option<i32>>,
    threads: Vec<PieceThread>,
    /// Places in `threads` of the threads in the piece at hand.
    of_piece: FxHashMap<ThreadRef, usize>,
    last: LastThread,
    found: CollectedCrossings,
}

/// The thread of the sample before.
#[derive(Default)]
struct LastThread {
    /// pid and tid.
    ids: [i32; 2],
    /// Times at which all this surely holds.
    times: Range<u64>,
    space: Option<SpaceId>,
    /// `true` if the filters select it.
    is_taken: bool,
    /// `true` if its program is of 32 bits.
    is_of_32_bits: bool,
    /// Its place among the threads.
    place: usize,
}

impl PieceWorker for CrossingWorker<'_> {
    fn read(&mut self, number: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        self.of_piece.clear();
        self.last = LastThread::default();
        for_each_sample(piece, buffer, |raw| self.sample(number, raw));
    }
}

impl CrossingWorker<'_> {
    #[inline]
    fn sample(&mut self, piece: usize, raw: RawRecord<'_>) {
        let offset = raw.offset;
        let Some((index, sample)) = self.session.file.attrs.sample(raw) else { return };
        let Some(Some(event)) = self.events.events.get(index.0) else { return };
        let bytes = sample.raw().ok().flatten().unwrap_or_default();
        let raw = RawFields { bytes, endian: self.events.endian };
        let number = event.number.read(&raw).and_then(|number| i32::try_from(number).ok());
        let value = event.value.map(|field| field.read(&raw));
        let (Some(number), Some(time), Some(pid), Some(tid), true) =
            (number, sample.time(), sample.pid(), sample.tid(), value != Some(None))
        else {
            self.found.unusable += 1;
            return;
        };
        if let (Some(name), Some(known)) = (&event.name, self.numbers.get_mut(index.0))
            && known.is_none()
        {
            *known = Some(number);
            self.found.names.insert(number, name.clone());
        }
        let ids = [pid.cast_signed(), tid.cast_signed()];
        let session = self.session;
        let moment = || session.clock.moment(Some(time), offset);
        if self.last.ids != ids || !self.last.times.contains(&time) {
            self.last = self.thread(piece, ids, moment());
        }
        let is_taken = self.last.is_taken && self.filter.counts_sample(&sample);
        let (side, result) = match value {
            Some(value) => (Side::Exit, CallResult::of(value.unwrap_or(0))),
            None => (Side::Enter, CallResult::default()),
        };
        let caller = match &mut self.callers {
            Some(callers) if is_taken && side == Side::Enter => {
                let attrs = &session.file.attrs;
                let origin = attrs.get(index).map(|entry| ChainOrigin::of(&entry.attr));
                let at = SampleContext { space: self.last.space, moment: moment() };
                callers.number(&sample, origin.unwrap_or(ChainOrigin::Recorded), at, None)
            }
            _ => 0,
        };
        self.found.end = self.found.end.max(time);
        let is_exit = side == Side::Exit;
        let number = self.tables.number(number, &sample, is_exit, self.last.is_of_32_bits);
        let crossing = Crossing { time, number, caller, duration: 0, result, side, is_taken };
        if let Some(thread) = self.threads.get_mut(self.last.place) {
            pair::push(&mut thread.crossings, crossing);
        }
    }

    /// Finds a thread in the piece at hand.
    #[inline(never)]
    fn thread(&mut self, piece: usize, ids: [i32; 2], at: Moment) -> LastThread {
        let [pid, tid] = ids;
        let (Span { task, moments, .. }, is_taken) = self.tasks.span(pid, tid, at);
        let Task { thread, pid, space, .. } = *task;
        let is_taken = *is_taken;
        let times = self.session.clock.times_within(moments);
        let is_of_32_bits = self.tables.is_of_32_bits(pid, space, at);
        let threads = &mut self.threads;
        let place = *self.of_piece.entry(thread).or_insert_with(|| {
            threads.push(PieceThread { piece, thread, pid, crossings: Vec::new() });
            threads.len() - 1
        });
        LastThread { ids, times, space, is_taken, is_of_32_bits, place }
    }
}
