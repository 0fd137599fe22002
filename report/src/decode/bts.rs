//! Samples of Intel's Branch Trace Store: one for each branch.
//!
//! The store has no times and no threads. The kernel closes a piece of it with each AUX record,
//! which has the time, and the thread that ran: a piece never holds branches of several.

use std::ops::Range;

use recrep_format::abi::{HwEvent, SampleType};
use recrep_format::attr::Attr;
use recrep_format::read::File;
use recrep_trace::bts::{Branch, SIZE};

use super::decoder::{Decoding, TraceDecoder};
use super::gaps::{GapReason, Gaps};
use super::queues::AuxPiece;
use super::recorded::RecordedTraces;
use super::running::Owner;
use super::samples::{DecodedEvent, DecodedEvents, DecodedSample, SampleWriter};
use crate::query::Letter;

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
}

/// Returns the decoder.
///
/// # Errors
/// Returns the reason if the trace cannot be decoded.
pub(super) fn decoding<'i>(
    mut traces: RecordedTraces<'i>,
    file: &File<'_>,
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
    // Of calls and returns alone, nothing is better than all branches.
    let is_filtered = unserved.iter().any(|(letter, _)| letter.filters_branches());
    let is_wanted = traces.options.has(Letter::Branches) && !is_filtered;
    let parts = if is_wanted { parts(&traces) } else { Vec::new() };
    let decoder = BtsDecoder { traces, parts, branches };
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
        Letter::Branches | Letter::Errors => None,
        letter if letter.filters_branches() => {
            // By default, all branches are listed.
            traces.is_chosen.then_some("branches of Intel BTS are not told apart by kind")
        }
        _ => Some("Intel BTS does not record that"),
    };
    traces.options.letters().filter_map(|letter| Some((letter, reason(letter)?))).collect()
}

impl TraceDecoder for BtsDecoder<'_> {
    fn parts(&self) -> Vec<usize> {
        let size = |part: &BtsPart| usize::try_from(part.range.end - part.range.start).unwrap_or(0);
        self.parts.iter().map(size).collect()
    }

    fn decode(&self, part: usize, samples: &mut SampleWriter, gaps: &mut Gaps) {
        let Some(part) = self.parts.get(part) else { return };
        let Some(queue) = self.traces.queues.all.get(part.queue) else { return };
        let Some(stretch) = queue.stretches.get(part.stretch) else { return };
        let bytes = stretch.bytes(part.range.clone());
        let (branches, rest) = bytes.as_chunks::<SIZE>();
        let mut owners = self.traces.owners();
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
