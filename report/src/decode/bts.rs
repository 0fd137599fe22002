//! Samples of Intel's Branch Trace Store: one for each branch.
//!
//! The store has no times and no threads. The kernel closes a piece of it with each AUX record,
//! which has the time, and the thread that ran: a piece never holds branches of several.
//!
//! Nor does it say what a branch is: if calls or returns are asked for, that is read in the code.

use std::ops::Range;

use recrep_format::abi::{HwEvent, SampleType};
use recrep_format::attr::Attr;
use recrep_format::read::File;
use recrep_trace::bts::{Branch, SIZE};
use recrep_trace::pt::{self, BranchKind, CodeSize, Instruction, Instructions, Next};
use rustc_hash::FxHashMap;

use super::calls::BranchFilter;
use super::code::{RecordedCode, SpaceMoment};
use super::decoder::{Decoding, TraceDecoder};
use super::gaps::{GapReason, Gaps};
use super::queues::AuxPiece;
use super::recorded::RecordedTraces;
use super::running::Owner;
use super::samples::{DecodedEvent, DecodedEvents, DecodedSample, SampleWriter, is_kernel};
use crate::query::Letter;
use crate::symbols::Resolver;
use crate::timeline::Moment;

/// Usual number of branches in a part.
const PART: usize = 10_000;

/// A part of an AUXTRACE record's data.
#[derive(Debug)]
struct BtsPart {
    queue: usize,
    stretch: usize,
    /// Offsets in the stretch.
    range: Range<u64>,
}

/// Decoder of Intel BTS.
#[derive(Debug)]
struct BtsDecoder<'i> {
    traces: RecordedTraces<'i>,
    parts: Vec<BtsPart>,
    branches: DecodedEvent,
    /// Which branches are samples, and the code in which that is read; `None` if all are.
    filter: Option<(BranchFilter, RecordedCode<'i>)>,
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
    let mut events = DecodedEvents::of_traced(traced);
    let attr = Attr {
        config: HwEvent::BRANCH_INSTRUCTIONS.0,
        sample_period: 1,
        ..traces.attr(SampleType::ADDR, traces.has_times)
    };
    let branches = events.add("branches", attr);
    let unserved = unserved(&traces);
    let is_wanted = traces.options.has(Letter::Branches);
    let parts = if is_wanted { parts(&traces) } else { Vec::new() };
    let filter = BranchFilter::from_options(&traces.options);
    // By default, all branches are listed.
    let has_filter = traces.is_chosen && !filter.is_all();
    let filter = has_filter.then(|| (filter, RecordedCode::new(&traces.modules, resolver)));
    let decoder = BtsDecoder { traces, parts, branches, filter };
    Ok(Decoding { decoder: Box::new(decoder), events, unserved })
}

/// Cuts all data at the ends of branches. They begin anew in each AUXTRACE record: the kernel pads
/// between them.
fn parts(traces: &RecordedTraces<'_>) -> Vec<BtsPart> {
    let mut parts = Vec::new();
    for (queue, ring) in traces.queues.all.iter().enumerate() {
        for (stretch, bytes) in ring.stretches.iter().enumerate() {
            for (start, slice) in bytes.slices() {
                for (number, part) in slice.chunks(PART * SIZE).enumerate() {
                    let begin = start + (number * PART * SIZE) as u64;
                    let range = begin..begin + part.len() as u64;
                    parts.push(BtsPart { queue, stretch, range });
                }
            }
        }
    }
    parts
}

/// Returns the letters for which there are no samples.
fn unserved(traces: &RecordedTraces<'_>) -> Vec<(Letter, &'static str)> {
    let reason = |letter: Letter| match letter {
        Letter::Branches | Letter::Calls | Letter::Returns | Letter::Errors | Letter::Skip => None,
        _ => Some("Intel BTS does not record that"),
    };
    traces.options.letters().filter_map(|letter| Some((letter, reason(letter)?))).collect()
}

impl TraceDecoder for BtsDecoder<'_> {
    fn parts(&self) -> Vec<usize> {
        let size = |part: &BtsPart| usize::try_from(part.range.end - part.range.start).unwrap_or(0);
        self.parts.iter().map(size).collect()
    }

    fn begins(&self) -> Vec<u64> {
        let begin = |part: &BtsPart| {
            let queue = self.traces.queues.all.get(part.queue)?;
            let offset = queue.stretches.get(part.stretch)?.start + part.range.start;
            Some(queue.piece_at(offset)?.time)
        };
        self.parts.iter().map(|part| begin(part).unwrap_or(0)).collect()
    }

    fn decode(&self, part: usize, samples: &mut SampleWriter, gaps: &mut Gaps) {
        let Some(part) = self.parts.get(part) else { return };
        let Some(queue) = self.traces.queues.all.get(part.queue) else { return };
        let Some(stretch) = queue.stretches.get(part.stretch) else { return };
        let bytes = stretch.bytes(part.range.clone());
        let (branches, rest) = bytes.as_chunks::<SIZE>();
        let mut owners = self.traces.owners();
        let mut kinds =
            self.filter.as_ref().map(|(filter, code)| KindFilter::new(self, *filter, code));
        let mut offset = stretch.start + part.range.start;
        for branch in branches.iter().map(Branch::read) {
            let piece = queue.piece_at(offset);
            offset += SIZE as u64;
            if branch.is_empty() {
                continue;
            }
            let time = piece.map_or(0, |piece| piece.time);
            let owner = match (piece, queue.tid) {
                (Some(AuxPiece { owner, .. }), _) if owner.tid > 0 => *owner,
                (_, Some(tid)) => owners.owner(tid, time),
                _ => Owner::UNKNOWN,
            };
            if let Some(kinds) = &mut kinds
                && !kinds.has(&branch, owner, time, gaps)
            {
                continue;
            }
            let sample = DecodedSample {
                ip: branch.from,
                pid: owner.pid,
                tid: owner.tid,
                time,
                addr: branch.to,
                cpu: queue.cpu,
                period: 1,
                ..DecodedSample::default()
            };
            samples.put(self.branches, &sample);
        }
        if !rest.is_empty() {
            gaps.add(GapReason::CutRecord);
        }
    }
}

/// Finds the branches of a kind.
struct KindFilter<'d, 'i> {
    decoder: &'d BtsDecoder<'i>,
    filter: BranchFilter,
    code: &'d RecordedCode<'i>,
    /// The thread and the time of the last branch, and where its code is looked up.
    last: Option<(Owner, u64, SpaceMoment)>,
    /// Instructions at addresses there.
    known: FxHashMap<u64, Option<Instruction>>,
}

impl<'d, 'i> KindFilter<'d, 'i> {
    fn new(decoder: &'d BtsDecoder<'i>, filter: BranchFilter, code: &'d RecordedCode<'i>) -> Self {
        Self { decoder, filter, code, last: None, known: FxHashMap::default() }
    }

    /// Returns whether a branch of a thread is a sample. One whose instruction is not known is a gap.
    fn has(&mut self, branch: &Branch, owner: Owner, time: u64, gaps: &mut Gaps) -> bool {
        let Branch { from, to, .. } = *branch;
        let kind = if from == 0 {
            BranchKind::Begin
        } else if to == 0 {
            BranchKind::Asynchronous
        } else {
            let Some(instruction) = self.instruction(from, owner, time) else {
                gaps.add(GapReason::of_missing_code(from));
                return false;
            };
            match instruction.next {
                Next::Indirect(BranchKind::SystemCall) => BranchKind::SystemCall,
                _ if is_kernel(to) && !is_kernel(from) => BranchKind::Asynchronous,
                Next::Direct(kind, _) | Next::Indirect(kind) => kind,
                Next::Conditional(_) => BranchKind::Conditional,
                // A signal, or another way out of the program: no instruction branched.
                Next::Following | Next::Invalid => return false,
            }
        };
        self.filter.has(&pt::Branch { from, to, kind, len: 0 })
    }

    /// Returns the instruction at an address.
    fn instruction(&mut self, address: u64, owner: Owner, time: u64) -> Option<Instruction> {
        let at = match self.last {
            Some((of, then, at)) if (of, then) == (owner, time) => at,
            _ => {
                self.known.clear();
                let at = Moment::timed(time, u64::MAX >> 1);
                let timeline = &self.decoder.traces.timeline;
                let at = (timeline.span(owner.pid, owner.tid, at).task.space, at);
                self.last = Some((owner, time, at));
                at
            }
        };
        let Self { decoder, code, known, .. } = self;
        *known.entry(address).or_insert_with(|| {
            let bytes = code.at(&decoder.traces.timeline, at, address)?;
            // Calls and returns of 32-bit code are the same bytes.
            Instructions::new(bytes, address, CodeSize::Bits64).next()
        })
    }
}
