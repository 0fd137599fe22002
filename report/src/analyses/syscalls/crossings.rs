//! The pass over the samples: workers collect the entries and exits of each thread.

use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexMap;
use recrep_format::abi::{EventType, RecordType, SampleType};
use recrep_format::endian::Endian;
use recrep_format::feature::tracing::{EventField, EventFormat, FieldValue, RawFields, Tracing};
use recrep_format::layout::UpTo;
use recrep_format::read::File;
use recrep_format::record::{RawRecord, SampleFields};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::callers::{Caller, Callers};
use super::pair::{Crossing, Side};
use crate::callchain::ChainOrigin;
use crate::engine::session::Session;
use crate::input::unpack::UnpackBuffer;
use crate::scan::SampleFilter;
use crate::timeline::{RecentSpans, SampleContext, ThreadRef};

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
    number: EventField,
    /// Value that the call returns; `None` for entries.
    value: Option<EventField>,
    /// Name of the only call that it traces; `None` if it traces all.
    name: Option<String>,
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
        let number = format.field(field).or_else(|| format.field("nr"))?.clone();
        let value = if is_exit { Some(format.field("ret")?.clone()) } else { None };
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
pub(super) struct Collected {
    /// Process and crossings of each thread, in no order.
    pub(super) threads: FxHashMap<u64, (i32, Vec<Crossing>)>,
    /// Callers, by the numbers in the crossings.
    pub(super) callers: Vec<Caller>,
    /// Names of the calls that have tracepoints of their own, by number.
    pub(super) names: FxHashMap<i32, String>,
    /// Time of the last crossing.
    pub(super) end: u64,
    /// Number of samples without thread, time or the fields of their event.
    pub(super) unusable: u64,
}

impl Collected {
    /// Collects the crossings of a file on all cores. `callers` makes what finds the callers of a
    /// worker's samples, if they are wanted.
    pub(super) fn read<'s>(
        session: &'s Session<'_>,
        events: &SyscallEvents,
        filter: &SampleFilter<'_>,
        callers: &(dyn Fn() -> Option<Callers<'s>> + Sync),
    ) -> Self {
        let (pieces, next) = (&session.split.pieces, AtomicUsize::new(0));
        let workers = rayon::broadcast(|_| {
            let mut worker = Worker {
                session,
                events,
                filter,
                callers: callers(),
                spans: RecentSpans::default(),
                numbers: vec![None; events.events.len()],
                found: Self::default(),
            };
            let mut buffer = UnpackBuffer::default();
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                let records = piece.records(&mut buffer);
                for raw in records.filter(|raw| raw.header.kind == RecordType::SAMPLE) {
                    worker.sample(raw);
                }
            }
            worker.finish()
        });
        let mut all = Self::default();
        let mut numbers = IndexMap::<Caller, u32, FxBuildHasher>::default();
        for worker in workers {
            all.append(worker, &mut numbers);
        }
        all.callers = numbers.into_keys().collect();
        all
    }

    /// Appends what another worker collected; `numbers` has those of the callers of all workers.
    fn append(&mut self, other: Self, numbers: &mut IndexMap<Caller, u32, FxBuildHasher>) {
        let of_other: Vec<u32> = other
            .callers
            .into_iter()
            .map(|caller| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry(caller).or_insert(next)
            })
            .collect();
        for (thread, (pid, mut crossings)) in other.threads {
            for crossing in &mut crossings {
                if let Side::Enter(caller) = &mut crossing.side {
                    *caller = of_other.get(*caller as usize).copied().unwrap_or(0);
                }
            }
            let (known, all) = self.threads.entry(thread).or_default();
            *known = pid;
            all.append(&mut crossings);
        }
        self.names.extend(other.names);
        self.end = self.end.max(other.end);
        self.unusable += other.unusable;
    }
}

struct Worker<'s, 'w> {
    session: &'s Session<'s>,
    events: &'w SyscallEvents,
    filter: &'w SampleFilter<'w>,
    callers: Option<Callers<'s>>,
    spans: RecentSpans<bool>,
    /// Number of the only call that an event traces, by the event's index.
    numbers: Vec<Option<i32>>,
    found: Collected,
}

impl Worker<'_, '_> {
    fn sample(&mut self, raw: RawRecord<'_>) {
        let offset = raw.offset;
        let Some((index, sample)) = self.session.file.attrs.sample(raw) else { return };
        let Some(Some(event)) = self.events.events.get(index.0) else { return };
        let mut fields = SampleFields::default();
        let is_whole = sample.walk(const { UpTo::field(SampleType::RAW) }, &mut fields).is_ok();
        let raw = RawFields { bytes: fields.raw.unwrap_or_default(), endian: self.events.endian };
        let number = signed(&raw, &event.number).and_then(|number| i32::try_from(number).ok());
        let value = event.value.as_ref().map(|field| signed(&raw, field));
        let (Some(number), Some(time), Some(pid), Some(tid), true) =
            (number, sample.time(), sample.pid(), sample.tid(), is_whole && value != Some(None))
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
        let (pid, tid) = (pid.cast_signed(), tid.cast_signed());
        let at = self.session.clock.moment(Some(time), offset);
        let filter = self.filter;
        let (span, is_taken) = self
            .spans
            .get(&self.session.timeline, pid, tid, at, |span| filter.takes_task(&span.task, tid));
        let is_taken = *is_taken && filter.counts_sample(&sample);
        let side = match value {
            Some(value) => Side::Exit(value.unwrap_or(0)),
            None => Side::Enter(match &mut self.callers {
                Some(callers) if is_taken => {
                    let attrs = &self.session.file.attrs;
                    let origin = attrs.get(index).map(|entry| ChainOrigin::of(&entry.attr));
                    let at = SampleContext { space: span.task.space, moment: at };
                    callers.number(&sample, origin.unwrap_or(ChainOrigin::Recorded), at)
                }
                _ => 0,
            }),
        };
        self.found.end = self.found.end.max(time);
        let (known, crossings) = self.found.threads.entry(span.task.thread.pack()).or_default();
        *known = span.task.pid;
        crossings.push(Crossing { time, offset, number, is_taken, side });
    }

    fn finish(self) -> Collected {
        let callers = self.callers.map(Callers::into_found).unwrap_or_default();
        Collected { callers, ..self.found }
    }
}

/// Returns a number with its sign.
fn signed(raw: &RawFields<'_>, field: &EventField) -> Option<i64> {
    match raw.value(field)? {
        FieldValue::Signed(number) => Some(number),
        FieldValue::Unsigned(number) => Some(number.cast_signed()),
        _ => None,
    }
}

/// Returns the thread that a key of [`Collected::threads`] stands for.
pub(super) fn thread_of(key: u64) -> ThreadRef {
    ThreadRef::unpack(key)
}
