//! What a file has of traces: their bytes, and all that is needed to decode them.

use std::borrow::Cow;

use recrep_format::abi::{AttrFlags, AuxtraceKind, EventType, SampleType};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::feature::{CpuId, FeatureId};
use recrep_format::read::{File, Mode};
use recrep_format::record::{Body, RawRecord};

use super::calls::BranchFilter;
use super::queues::Queues;
use super::running::{Owner, RunningThreads};
use super::time::TimeConverter;
use crate::input::OpenedInput;
use crate::query::{Itrace, SynthOptions};
use crate::symbols::{Modules, Resolver};
use crate::timeline::{Clock, Moment, SideBand, Span, Timeline};

/// Fields that decoded samples have where the traced event has them.
const COMMON_FIELDS: SampleType = SampleType::IP
    .union(SampleType::TID)
    .union(SampleType::TIME)
    .union(SampleType::ADDR)
    .union(SampleType::ID)
    .union(SampleType::STREAM_ID)
    .union(SampleType::CPU)
    .union(SampleType::PERIOD)
    .union(SampleType::IDENTIFIER);

/// Flags that decoded events have where the traced one has them.
const COMMON_FLAGS: AttrFlags = AttrFlags::EXCLUDE_USER
    .union(AttrFlags::EXCLUDE_KERNEL)
    .union(AttrFlags::EXCLUDE_HV)
    .union(AttrFlags::EXCLUDE_HOST)
    .union(AttrFlags::EXCLUDE_GUEST)
    .union(AttrFlags::SAMPLE_ID_ALL);

/// Traces of a file, and all that is needed to decode them.
#[derive(Debug)]
pub(super) struct RecordedTraces<'i> {
    pub kind: AuxtraceKind,
    /// Words of AUXTRACE_INFO.
    pub words: Vec<u64>,
    pub queues: Queues<'i>,
    /// `None` without TIME_CONV.
    pub clock: Option<TimeConverter>,
    pub timeline: Timeline,
    pub modules: Modules,
    pub running: RunningThreads,
    /// Event whose trace it is; `None` if none is of the PMU that wrote the trace.
    pub traced: Option<AttrEntry>,
    /// `true` if any event has times, and so those of the trace have them.
    pub has_times: bool,
    /// Samples that are wanted.
    pub options: SynthOptions,
    /// `true` if the user chose them.
    pub is_chosen: bool,
    /// `true` if records may be sums of samples that differ in time alone.
    pub as_sums: bool,
    /// `true` if samples are to have the instructions and cycles since those before.
    pub has_ipc: bool,
    /// CPUID of the recorded machine.
    pub cpu_id: Option<String>,
}

/// What is read of traces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedTraces<'q> {
    pub itrace: &'q Itrace,
    /// Records may be sums of samples that differ in time alone.
    pub as_sums: bool,
    /// Samples have the instructions and cycles since those before.
    pub has_ipc: bool,
}

impl<'q> WantedTraces<'q> {
    /// Each sample.
    pub(crate) fn each(itrace: &'q Itrace) -> Self {
        Self { itrace, as_sums: false, has_ipc: false }
    }
}

/// Returns whether a file may have traces: others need not be read twice.
pub(super) fn may_have_traces(file: &File<'_>) -> bool {
    /// Number of the first PMU that the kernel numbers at run time, as all that trace are.
    const FIRST_DYNAMIC: EventType = EventType(6);
    let has_index = file.features.iter().any(|(id, _)| *id == FeatureId::AUXTRACE);
    // The features of a pipe are records, and a recorder that was killed wrote none.
    let is_unindexed = file.mode == Mode::Pipe || file.features.is_empty();
    let mut entries = file.attrs.entries().iter();
    has_index || is_unindexed && entries.any(|entry| entry.attr.kind >= FIRST_DYNAMIC)
}

impl<'i> RecordedTraces<'i> {
    /// Reads the traces of an input; `None` if it has none, or does not say what they are.
    pub(super) fn read(
        opened: &OpenedInput<'i>,
        options: SynthOptions,
        wanted: WantedTraces<'_>,
        resolver: &Resolver,
    ) -> Option<Self> {
        let OpenedInput { input, file, streams } = opened;
        let split = streams.split(file.endian);
        let (mut info, mut clock) = (None, None);
        for raw in &split.side_band {
            match file.attrs.decode(raw).map(|record| record.body) {
                Ok(Body::AuxtraceInfo(found)) => {
                    info = Some((found.kind, found.private.iter().collect::<Vec<u64>>()));
                }
                Ok(Body::TimeConv(found)) => clock = Some(TimeConverter::of_record(&found)),
                _ => {}
            }
        }
        let (kind, words) = info?;
        let payload = |raw: &RawRecord<'_>| {
            let at = raw.offset + raw.bytes.len() as u64;
            match streams.borrowed(at, raw.payload.len()) {
                Some(bytes) => Cow::Borrowed(bytes),
                None => Cow::Owned(raw.payload.to_vec()),
            }
        };
        let moments = Clock::new(&file.attrs, file.mode, &split);
        let mut side_band = SideBand::read(file, &split.side_band, &moments, input.written());
        let is_chosen = matches!(wanted.itrace, Itrace::Chosen(_));
        let reads_code = match kind {
            AuxtraceKind::INTEL_PT => true,
            AuxtraceKind::INTEL_BTS => !BranchFilter::from_options(&options).is_all(),
            _ => false,
        };
        if reads_code && is_chosen {
            side_band.add_jit_code(resolver);
        }
        let mut entries = file.attrs.entries().iter();
        let has_times = entries.any(|e| e.attr.sample_type.contains(SampleType::TIME));
        let cpu_id = file.feature::<CpuId<'_>>().and_then(Result::ok);
        Some(Self {
            kind,
            words,
            queues: Queues::read(&file.attrs, &split.side_band, payload),
            clock: clock.filter(TimeConverter::is_known),
            timeline: Timeline::build(std::mem::take(&mut side_band.changes)),
            modules: side_band.modules,
            running: RunningThreads::read(&file.attrs, &split.pieces),
            traced: None,
            has_times,
            is_chosen,
            // Of a sum, some may be left out.
            as_sums: wanted.as_sums && options.skipped == 0,
            has_ipc: wanted.has_ipc,
            options,
            cpu_id: cpu_id.map(|CpuId(text)| text.to_text().into_owned()),
        })
    }

    /// Sets the traced event: the first one of the PMU with this number.
    pub(super) fn find_traced(&mut self, file: &File<'_>, pmu: u64) {
        let mut entries = file.attrs.entries().iter();
        self.traced = entries.find(|entry| u64::from(entry.attr.kind.0) == pmu).cloned();
    }

    /// Returns the attr of decoded samples with these fields beside those that the traced event
    /// has.
    pub(super) fn attr(&self, fields: SampleType, has_times: bool) -> Attr {
        let traced = self.traced.as_ref().map(|entry| entry.attr.clone()).unwrap_or_default();
        let mut sample_type = traced.sample_type & COMMON_FIELDS | fields;
        sample_type |= SampleType::IP | SampleType::TID | SampleType::PERIOD;
        sample_type.set(SampleType::TIME, has_times);
        Attr {
            kind: EventType::HARDWARE,
            size: traced.size,
            sample_type,
            flags: traced.flags & COMMON_FLAGS,
            read_format: traced.read_format,
            ..Attr::default()
        }
    }

    /// Returns a finder of the processes of threads.
    pub(super) fn owners(&self) -> OwnerFinder<'_> {
        OwnerFinder { timeline: &self.timeline, last: None }
    }
}

/// Finds the processes of threads. Consecutive samples are mostly of the same thread.
pub(super) struct OwnerFinder<'t> {
    timeline: &'t Timeline,
    last: Option<Span>,
}

impl OwnerFinder<'_> {
    /// Returns a thread with the process that it is of at this time.
    pub(super) fn owner(&mut self, tid: i32, time: u64) -> Owner {
        // After all records with this time.
        let at = Moment::timed(time, u64::MAX >> 1);
        let last = self.last.take().filter(|span| span.covers(-1, tid, at));
        let span = last.unwrap_or_else(|| self.timeline.span(-1, tid, at));
        let owner = Owner { pid: span.task.pid, tid };
        self.last = Some(span);
        owner
    }

    /// Returns the time of the next record that changes a thread, its process or what is mapped
    /// there.
    pub(super) fn unchanged_until(&self, pid: i32, tid: i32, time: u64) -> u64 {
        let at = Moment::timed(time, u64::MAX >> 1);
        let spans = [-1, pid].map(|pid| self.timeline.span(pid, tid, at));
        let epochs = spans.each_ref().map(|span| self.timeline.epoch(span.task.space, at));
        let ends = spans.iter().map(|span| &span.moments).chain(epochs.iter().map(|e| &e.moments));
        ends.map(|moments| moments.end.time()).min().unwrap_or(u64::MAX)
    }
}
