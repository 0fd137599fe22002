//! Samples of Intel PT: branches and instructions of the code that a trace says was executed.
//!
//! ```text
//!   cut    the packets of each ring ─► parts that begin with a PSB, and the time in front of each
//!   code   address at a time ─► code of the recorded files
//!   sink   steps from block to block ─► samples, gaps
//!   count  the same where no order is asked for ─► sums of samples
//! ```
//!
//! What a worker learned of the code, the next part that any worker decodes uses again.

mod ahead;
mod code;
mod count;
mod cut;
mod estimate;
mod info;
mod period;
mod sink;
mod stacks;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use recrep_format::abi::{BranchSampleType, HwEvent, SampleType};
use recrep_format::attr::Attr;
use recrep_format::read::File;
use recrep_trace::pt::{Clock, Flow, Sink};

use self::ahead::{AheadSink, PartSummary};
use self::code::{RecordedCode, TracedProgram};
use self::count::CountSink;
use self::cut::Part;
use self::estimate::RunUpSink;
use self::info::PtInfo;
use self::period::{InstructionPeriod, Instructions, Tail};
use self::sink::{PartSink, TraceEvents};
use self::stacks::{StackSizes, TracedStacks};
use super::decoder::{Decoding, TraceDecoder};
use super::gaps::{GapReason, Gaps};
use super::recorded::RecordedTraces;
use super::samples::{DecodedEvents, SampleWriter};
use crate::callchain::ChainOrigin;
use crate::query::{Letter, PeriodUnit, SynthOptions};
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
    let info = PtInfo::of_words(&traces.words, traced.attr.config, is_untimed);
    let mut decoded = DecodedEvents::of_traced(traced);
    let options = &traces.options;
    let period = instruction_period(&traces, &info);
    if traces.as_sums && needs_no_order(options, period) {
        decoded.sum_samples();
    }
    let mut attr = traces.attr(SampleType::ADDR, info.has_times);
    let is_of_cpus = traces.queues.all.iter().any(|queue| queue.cpu.is_some());
    attr.sample_type.set(SampleType::CPU, is_of_cpus && attr.sample_type.contains(SampleType::CPU));
    let branches = options.has(Letter::Branches).then(|| {
        let config = HwEvent::BRANCH_INSTRUCTIONS.0;
        decoded.add("branches", Attr { config, sample_period: 1, ..attr.clone() })
    });
    // Only branches have an address that they lead to, and no stacks, as in perf.
    attr.sample_type.remove(SampleType::ADDR);
    let sizes = period.map_or(StackSizes::NONE, |_| stack_sizes(options));
    if sizes.frames > 0 {
        attr.sample_type |= SampleType::CALLCHAIN;
        attr.flags |= ChainOrigin::TRACED;
    }
    if sizes.branches > 0 {
        attr.sample_type |= SampleType::BRANCH_STACK;
        attr.branch_sample_type = BranchSampleType::HW_INDEX;
    }
    let instructions = period.map(|period| {
        let config = HwEvent::INSTRUCTIONS.0;
        let sample_period = options.period.max(1);
        let event = decoded.add("instructions", Attr { config, sample_period, ..attr.clone() });
        Instructions { event, period }
    });
    let events = TraceEvents {
        branches,
        instructions,
        has_calls: options.has(Letter::Calls),
        has_returns: options.has(Letter::Returns),
    };
    let unserved = unserved(&traces, period.is_some());
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
        stacks: None,
        flows: Mutex::default(),
    };
    decoder.read_ahead(sizes);
    Ok(Decoding { decoder: Box::new(decoder), events: decoded, unserved })
}

/// Returns the distance between samples of instructions, if they are wanted and can be had.
fn instruction_period(traces: &RecordedTraces<'_>, info: &PtInfo) -> Option<InstructionPeriod> {
    let options = &traces.options;
    if !options.has(Letter::Instructions) {
        return None;
    }
    let period = options.period.max(1);
    match options.unit {
        PeriodUnit::Instructions => Some(InstructionPeriod::Instructions(period)),
        PeriodUnit::Nanoseconds if info.has_times => Some(InstructionPeriod::Nanoseconds(period)),
        _ => None,
    }
}

/// Returns the sizes of the stacks of samples.
fn stack_sizes(options: &SynthOptions) -> StackSizes {
    StackSizes {
        frames: if options.has(Letter::Callchains) { options.frames } else { 0 },
        branches: if options.has(Letter::LastBranches) { options.branches } else { 0 },
    }
}

/// Returns whether samples are the same in any order: branches, or each instruction. Both have
/// times of their own.
fn needs_no_order(options: &SynthOptions, period: Option<InstructionPeriod>) -> bool {
    let is_each = period == Some(InstructionPeriod::Instructions(1))
        && stack_sizes(options) == StackSizes::NONE;
    if options.has(Letter::Branches) { period.is_none() } else { is_each }
}

/// Returns the letters for which there are no samples.
fn unserved(traces: &RecordedTraces<'_>, has_instructions: bool) -> Vec<(Letter, &'static str)> {
    use Letter::{
        AddedCallchains, AddedLastBranches, Branches, Callchains, Calls, Errors, FirstLevel,
        Instructions, LastBranches, LastLevel, Log, Memory, Quick, Remote, Returns, Skip, Timeless,
        Tlb,
    };
    let reason = |letter: Letter| match letter {
        Branches | Calls | Returns | Errors | Timeless => None,
        Quick => Some("all of the trace is decoded"),
        Log => Some("rep dump --packets shows the packets"),
        Instructions if has_instructions => None,
        Instructions => Some("their period must be in instructions, such as i1000i"),
        Callchains | LastBranches if has_instructions => None,
        Callchains | LastBranches => Some("only samples of instructions have them"),
        AddedCallchains | AddedLastBranches | Skip => Some("rep does not make them of Intel PT"),
        FirstLevel | LastLevel | Tlb | Remote | Memory => Some("Intel PT does not record that"),
        _ => Some("rep does not decode them"),
    };
    traces.options.letters().filter_map(|letter| Some((letter, reason(letter)?))).collect()
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
        let period = self.events.instructions.map(|instructions| instructions.period);
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
}

impl TraceDecoder for PtDecoder<'_> {
    fn parts(&self) -> Vec<usize> {
        let size = |part: &Part| usize::try_from(part.range.end - part.range.start).unwrap_or(0);
        self.parts.iter().map(size).collect()
    }

    fn decode(&self, part: usize, samples: &mut SampleWriter, gaps: &mut Gaps) {
        let tail = self.tails.get(part).copied().unwrap_or_default();
        let stacks = self.stacks.as_ref().map(|stacks| stacks.at_part(part));
        if part == 0 {
            for _ in 0..self.unsynchronized {
                gaps.add(GapReason::BadPacket);
            }
        }
        let Some(part) = self.parts.get(part) else { return };
        let Some(queue) = self.traces.queues.all.get(part.queue) else { return };
        let owners = self.traces.owners();
        let now = part.before.now();
        let mut sink = PartSink::new(&self.events, &self.info, samples, gaps, owners, tail, now);
        (sink.cpu, sink.stacks) = (queue.cpu, stacks);
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
