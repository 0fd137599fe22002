//! Samples of Intel PT: branches and instructions of the code that a trace says was executed.
//!
//! ```text
//!   cut    the packets of each ring ─► parts that begin with a PSB, and the time in front of each
//!   program who runs ─► threads and their code
//!   events what is asked for ─► events
//!   sink   steps from block to block ─► samples, gaps
//!   side   PTWRITE, power, transactions, event trace ─► samples
//!   cycles which samples have cycles ─► how many passed since the last that had
//!   count  the same where no order is asked for ─► sums of samples
//! ```
//!
//! What a worker learned of the code, the next part that any worker decodes uses again.

mod ahead;
mod count;
mod cut;
mod cycles;
mod estimate;
mod events;
mod info;
mod period;
mod program;
mod side;
mod sink;
mod stacks;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use recrep_format::endian::Endian;
use recrep_format::read::File;
use recrep_trace::pt::{Clock, CycleSource, Flow, Sink};

use self::ahead::{AheadSink, PartSummary};
use self::count::CountSink;
use self::cut::Part;
use self::cycles::{CycleMarks, CycleMeter};
use self::estimate::RunUpSink;
use self::events::TraceEvents;
use self::info::PtInfo;
use self::period::{InstructionPeriod, Tail};
use self::program::TracedProgram;
use self::sink::PartSink;
use self::stacks::{StackSizes, TracedStacks};
use super::code::RecordedCode;
use super::decoder::{Decoding, TraceDecoder};
use super::gaps::{GapReason, Gaps};
use super::recorded::RecordedTraces;
use super::samples::{DecodedEvents, SampleWriter};
use crate::query::Letter;
use crate::symbols::Resolver;

/// Bytes behind a part that hold the PSB+ of the next one.
const BEHIND: u64 = 4096;

/// Decoder of Intel PT.
#[derive(Debug)]
struct PtDecoder<'i> {
    traces: RecordedTraces<'i>,
    info: PtInfo,
    code: RecordedCode<'i>,
    parts: Vec<Part>,
    /// Stretches in which no PSB is.
    unsynchronized: u64,
    events: TraceEvents,
    /// Records are sums of samples.
    are_sums: bool,
    /// What each part takes from those before it.
    tails: Vec<Tail>,
    marks: Vec<CycleMarks>,
    /// `None` if samples have none.
    stacks: Option<TracedStacks>,
    /// Decoders that know code.
    flows: Mutex<Vec<Flow>>,
}

/// Returns the decoder.
///
/// # Errors
/// Returns the reason if the trace cannot be decoded.
pub(super) fn decoding<'i>(
    mut traces: RecordedTraces<'i>,
    file: &File<'_>,
    resolver: &'i Resolver,
) -> Result<Decoding<'i>, String> {
    let pmu = traces.words.first().copied().unwrap_or(0);
    traces.find_traced(file, pmu);
    let Some(traced) = &traces.traced else {
        return Err(format!("no event of its PMU (number {pmu}) was recorded"));
    };
    let is_untimed = !traces.has_times || traces.options.has(Letter::Timeless);
    let mut info = PtInfo::of_words(&traces.words, traced.attr.config, is_untimed);
    let mut decoded = DecodedEvents::of_traced(traced);
    let (events, sizes) = TraceEvents::add(&mut decoded, &traces, &info);
    let unserved = events.unserved(&traces.options, &info);
    let has_cycles = events.has_ipc || events.cycles.is_some();
    if !has_cycles {
        info.rates.cycles = CycleSource::None;
    }
    let length = if decoded.are_sums() { cut::few(traces.queues.bytes()) } else { cut::PART };
    let rings = traces.queues.all.par_iter().enumerate();
    let cut = rings.map(|(number, queue)| cut::parts(number, queue, info.rates, length));
    let cut: Vec<_> = cut.collect();
    let unsynchronized = cut.iter().map(|(_, unsynchronized)| unsynchronized).sum();
    let code = RecordedCode::new(&traces.modules, resolver);
    let mut decoder = PtDecoder {
        traces,
        info,
        code,
        parts: cut.into_iter().flat_map(|(parts, _)| parts).collect(),
        unsynchronized,
        events,
        are_sums: decoded.are_sums(),
        tails: Vec::new(),
        marks: Vec::new(),
        stacks: None,
        flows: Mutex::default(),
    };
    decoder.read_ahead(sizes);
    if has_cycles {
        decoder.mark_cycles(file.endian);
    }
    Ok(Decoding { decoder: Box::new(decoder), events: decoded, unserved })
}

impl PtDecoder<'_> {
    /// Decodes a part.
    fn run(&self, part: &Part, sink: &mut impl Sink) {
        self.run_range(part, part.range.clone(), &part.before, sink);
    }

    /// Decodes a range of the stretch of a part, behind this time.
    fn run_range(&self, part: &Part, range: Range<u64>, before: &Clock, sink: &mut impl Sink) {
        let Some(queue) = self.traces.queues.all.get(part.queue) else { return };
        let Some(stretch) = queue.stretches.get(part.stretch) else { return };
        let bytes = stretch.bytes(range.start..range.end + BEHIND);
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let known = self.flows.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut flow = known.unwrap_or_default();
        let mut program = TracedProgram::new(&self.code, &self.traces, queue, &self.info);
        flow.run(&bytes, length, before.clone(), &mut program, sink);
        self.flows.lock().unwrap_or_else(PoisonError::into_inner).push(flow);
    }

    /// Returns the last time stamp in front of a part, if estimates may have set it ahead.
    fn last_before(&self, part: &Part) -> Option<u64> {
        let (start, before) = part.run_up.as_ref()?;
        let mut sink = RunUpSink::new(before.now());
        self.run_range(part, *start..part.range.start, before, &mut sink);
        Some(sink.last())
    }

    /// Finds what each part needs of those before it.
    fn read_ahead(&mut self, sizes: StackSizes) {
        let period = self.events.period;
        let period = period.filter(|period| *period != InstructionPeriod::Instructions(1));
        if period.is_none() && sizes == StackSizes::NONE {
            return;
        }
        let found = self.parts.par_iter().map(|part| {
            let mut sink = AheadSink::new(&self.info, period, sizes, part.before.now());
            self.run(part, &mut sink);
            sink.into_summary()
        });
        let (mut tail, mut ring, mut runs) = (Tail::default(), 0, Vec::new());
        for (part, summary) in self.parts.iter().zip(found.collect::<Vec<PartSummary>>()) {
            if part.queue != ring {
                (tail, ring) = (Tail::default(), part.queue);
            }
            self.tails.push(tail);
            tail = tail.followed_by(summary.tail);
            runs.push(summary.runs);
        }
        if sizes != StackSizes::NONE {
            self.stacks = Some(TracedStacks::join(sizes, &self.parts, runs, self.info.has_times));
        }
    }

    /// Finds the last samples with cycles in front of each part: which they are depends on what is read ahead.
    fn mark_cycles(&mut self, endian: Endian) {
        let parts = self.parts.par_iter().enumerate();
        let found = parts.map(|(number, part)| {
            let (mut samples, mut gaps) =
                (SampleWriter::leaving_out(u64::MAX, endian), Gaps::default());
            let mut sink = self.sink(number, part, &mut samples, &mut gaps);
            let before = part.before.cycles();
            sink.cycles = Some(CycleMeter::of_part(before, self.events.are_cycles_approximate));
            self.run(part, &mut sink);
            sink.cycles.map(CycleMeter::into_marks).unwrap_or_default()
        });
        let (mut marks, mut ring) = (CycleMarks::default(), 0);
        for (part, found) in self.parts.iter().zip(found.collect::<Vec<CycleMarks>>()) {
            if part.queue != ring {
                (marks, ring) = (CycleMarks::default(), part.queue);
            }
            self.marks.push(marks);
            marks = marks.followed_by(found);
        }
    }

    /// Returns the sink of a part.
    fn sink<'s>(
        &'s self,
        number: usize,
        part: &Part,
        samples: &'s mut SampleWriter,
        gaps: &'s mut Gaps,
    ) -> PartSink<'s> {
        let tail = self.tails.get(number).copied().unwrap_or_default();
        let (owners, now) = (self.traces.owners(), part.before.now());
        PartSink::new(&self.events, &self.info, samples, gaps, owners, tail, now)
    }
}

impl TraceDecoder for PtDecoder<'_> {
    fn parts(&self) -> Vec<usize> {
        let size = |part: &Part| usize::try_from(part.range.end - part.range.start).unwrap_or(0);
        self.parts.iter().map(size).collect()
    }

    fn begins(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.first).collect()
    }

    fn decode(&self, part: usize, samples: &mut SampleWriter, gaps: &mut Gaps) {
        let (number, stacks) = (part, self.stacks.as_ref().map(|stacks| stacks.at_part(part)));
        if part == 0 {
            for _ in 0..self.unsynchronized {
                gaps.add(GapReason::BadPacket);
            }
        }
        let Some(part) = self.parts.get(part) else { return };
        let Some(queue) = self.traces.queues.all.get(part.queue) else { return };
        let mut sink = self.sink(number, part, samples, gaps);
        (sink.cpu, sink.stacks) = (queue.cpu, stacks);
        let marks = self.marks.get(number);
        sink.cycles =
            marks.map(|marks| CycleMeter::new(*marks, self.events.are_cycles_approximate));
        let start = queue.stretches.get(part.stretch).map_or(0, |stretch| stretch.start);
        sink.offset = start + part.range.start;
        if sink.estimate.is_timed()
            && let Some(last) = self.last_before(part)
        {
            sink.estimate.follow(last);
        }
        match self.are_sums {
            true => self.run(part, &mut CountSink::new(sink)),
            false => self.run(part, &mut sink),
        }
    }
}
