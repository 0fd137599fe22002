//! Samples of Arm's Statistical Profiling Extension: each record is one operation, and becomes a
//! sample of each event that it is one of.
//!
//! A scan of the packets of each ring finds the ends of records, at which traces are cut into
//! parts; what a record's sample takes from records before it (the thread, the time, its number) is
//! kept for the beginning of each part.

mod cut;
mod info;
mod source;

use rayon::prelude::*;
use recrep_format::abi::{HwEvent, SampleType};
use recrep_format::attr::Attr;
use recrep_format::read::File;
use recrep_trace::spe::{Record, RecordReader, events, operations};

use self::cut::{Before, Packets, RingParts, SpePart};
use self::info::{CpuSources, SpeInfo};
use super::decoder::{Decoding, TraceDecoder};
use super::gaps::{GapReason, Gaps};
use super::queues::TraceQueue;
use super::recorded::{OwnerFinder, RecordedTraces};
use super::running::Owner;
use super::samples::{DecodedEvent, DecodedEvents, DecodedSample, SampleWriter};
use crate::query::{Letter, PeriodUnit, SynthOptions};

/// Letters with their events: name and bits of a record's events, of which one is set in the
/// records that are samples of it; 0 for memory accesses.
const EVENTS: [(Letter, &str, u64); 9] = [
    (Letter::FirstLevel, "l1d-miss", events::L1D_REFILL),
    (Letter::FirstLevel, "l1d-access", events::L1D_ACCESS),
    (Letter::LastLevel, "llc-miss", events::LLC_MISS),
    (Letter::LastLevel, "llc-access", events::LLC_ACCESS),
    (Letter::Tlb, "tlb-miss", events::TLB_WALK),
    (Letter::Tlb, "tlb-access", events::TLB_ACCESS),
    (Letter::Branches, "branch-miss", events::MISPREDICTED),
    (Letter::Remote, "remote-access", events::REMOTE_ACCESS),
    (Letter::Memory, "memory", 0),
];

/// An event with the records that are samples of it.
#[derive(Clone, Copy, Debug)]
struct RecordEvent {
    event: DecodedEvent,
    letter: Letter,
    /// Bits of the record's events.
    events: u64,
}

impl RecordEvent {
    fn has(&self, record: &Record) -> bool {
        match self.letter {
            Letter::Memory => record.operations & operations::MEMORY != 0,
            _ => record.events & self.events != 0,
        }
    }
}

/// Decoder of Arm SPE.
#[derive(Debug)]
struct SpeDecoder<'i> {
    traces: RecordedTraces<'i>,
    parts: Vec<SpePart>,
    events: Vec<RecordEvent>,
    /// Event of instructions, and the number of records for each of its samples.
    instructions: Option<(DecodedEvent, u64)>,
    cpus: CpuSources,
    /// `true` if records say which thread they are of.
    has_contexts: bool,
}

/// Returns the decoder.
///
/// # Errors
/// Returns the reason if the trace cannot be decoded.
pub(super) fn decoding<'i>(
    mut traces: RecordedTraces<'i>,
    file: &File<'_>,
) -> Result<Decoding<'i>, String> {
    let info = SpeInfo::of_words(&traces.words);
    traces.find_traced(file, info.pmu);
    let Some(traced) = &traces.traced else {
        return Err(format!("no event of its PMU (number {}) was recorded", info.pmu));
    };
    if traces.has_times && traces.clock.is_none() {
        return Err("the file does not say how its times are counted (TIME_CONV)".to_owned());
    }
    let mut decoded = DecodedEvents::of_traced(traced);
    let attr = attr(&traces);
    let options = &traces.options;
    let mut recorded = Vec::new();
    for (letter, name, events) in EVENTS.into_iter().filter(|(letter, ..)| options.has(*letter)) {
        let event = decoded.add(name, attr.clone());
        recorded.push(RecordEvent { event, letter, events });
    }
    let instructions = counts_instructions(options).then(|| {
        let (config, period) = (HwEvent::INSTRUCTIONS.0, options.period.max(1));
        let attr = Attr { config, sample_period: period, ..attr.clone() };
        (decoded.add("instructions", attr), period)
    });
    let unserved = unserved(options);
    let cpus = CpuSources::new(&info, traces.cpu_id.as_deref());
    let rings = traces.queues.all.par_iter().enumerate();
    let rings: Vec<RingParts> =
        rings.map(|(number, queue)| RingParts::cut(number, queue)).collect();
    let decoder = SpeDecoder {
        has_contexts: traces.has_times && rings.iter().any(|ring| ring.has_contexts),
        parts: rings.into_iter().flat_map(|ring| ring.parts).collect(),
        traces,
        events: recorded,
        instructions,
        cpus,
    };
    Ok(Decoding { decoder: Box::new(decoder), events: decoded, unserved })
}

/// Returns the attr of all events.
fn attr(traces: &RecordedTraces<'_>) -> Attr {
    let mut fields = SampleType::ADDR | SampleType::WEIGHT | SampleType::DATA_SRC;
    let traced = traces.traced.as_ref().map(|entry| entry.attr.sample_type).unwrap_or_default();
    fields |= traced & SampleType::PHYS_ADDR;
    traces.attr(fields, traces.has_times)
}

/// Returns whether samples of instructions are wanted that SPE can give.
fn counts_instructions(options: &SynthOptions) -> bool {
    options.has(Letter::Instructions) && options.unit == PeriodUnit::Instructions
}

/// Returns the letters for which SPE has no samples.
fn unserved(options: &SynthOptions) -> Vec<(Letter, &'static str)> {
    let reason = |letter: Letter| match letter {
        Letter::Instructions if counts_instructions(options) => None,
        Letter::Instructions => {
            Some("Arm SPE samples operations; their period is in instructions, such as i1i")
        }
        Letter::Errors | Letter::Skip => None,
        letter if EVENTS.iter().any(|(served, ..)| *served == letter) => None,
        _ => Some("Arm SPE does not record that"),
    };
    options.letters().filter_map(|letter| Some((letter, reason(letter)?))).collect()
}

impl TraceDecoder for SpeDecoder<'_> {
    fn parts(&self) -> Vec<usize> {
        let size = |part: &SpePart| usize::try_from(part.range.end - part.range.start).unwrap_or(0);
        self.parts.iter().map(size).collect()
    }

    fn begins(&self) -> Vec<u64> {
        let clock = self.traces.clock.unwrap_or_default();
        let begin = |part: &SpePart| part.before.timestamp.map_or(0, |stamp| clock.time(stamp));
        self.parts.iter().map(begin).collect()
    }

    fn decode(&self, part: usize, samples: &mut SampleWriter, gaps: &mut Gaps) {
        let Some(part) = self.parts.get(part) else { return };
        let Some(queue) = self.traces.queues.all.get(part.queue) else { return };
        let Some(stretch) = queue.stretches.get(part.stretch) else { return };
        let mut reader = RecordReader::default();
        let mut records =
            PartRecords { decoder: self, queue, before: part.before, owners: self.traces.owners() };
        let mut is_damaged = false;
        for packet in Packets::new(stretch, part.range.clone()) {
            match packet {
                Ok(packet) => {
                    is_damaged = false;
                    if let Some(record) = reader.take(&packet) {
                        records.put(&record, samples);
                    }
                }
                Err(_) => {
                    if !is_damaged {
                        gaps.add(GapReason::BadPacket);
                    }
                    is_damaged = true;
                    reader.reset();
                }
            }
        }
        if reader.is_open() {
            gaps.add(GapReason::CutRecord);
        }
    }
}

/// Makes samples of the records of a part.
struct PartRecords<'d, 'i> {
    decoder: &'d SpeDecoder<'i>,
    queue: &'d TraceQueue<'i>,
    before: Before,
    owners: OwnerFinder<'d>,
}

impl PartRecords<'_, '_> {
    /// Writes the samples of the next record.
    fn put(&mut self, record: &Record, samples: &mut SampleWriter) {
        self.before.pass(record);
        let decoder = self.decoder;
        let clock = decoder.traces.clock.unwrap_or_default();
        let time = clock.time(self.before.timestamp.unwrap_or(0));
        let Owner { pid, tid } = self.owner(time);
        let sample = DecodedSample {
            ip: record.ip,
            pid,
            tid,
            time,
            addr: record.virtual_address,
            cpu: self.queue.cpu,
            period: 1,
            weight: record.latency.into(),
            data_src: decoder.cpus.of(self.queue.cpu).data_src(record),
            phys_addr: record.physical_address,
            ..DecodedSample::default()
        };
        for event in decoder.events.iter().filter(|event| event.has(record)) {
            let sample = match event.letter {
                Letter::Branches => {
                    DecodedSample { addr: record.target, data_src: 0, phys_addr: 0, ..sample }
                }
                _ => sample,
            };
            samples.put(event.event, &sample);
        }
        if let Some((event, period)) = decoder.instructions
            && self.before.records.is_multiple_of(period)
        {
            samples.put(event, &DecodedSample { period, ..sample });
        }
    }

    /// Returns the thread of the record that was passed last.
    fn owner(&mut self, time: u64) -> Owner {
        let SpeDecoder { traces, has_contexts, .. } = self.decoder;
        if let Some(context) = self.before.context.filter(|_| *has_contexts) {
            return self.owners.owner(context.cast_signed(), time);
        }
        let running = self.queue.cpu.and_then(|cpu| traces.running.at(cpu, time));
        match (running.filter(|_| !has_contexts), self.queue.tid) {
            (Some(owner), _) => owner,
            (None, Some(tid)) => self.owners.owner(tid, time),
            (None, None) => Owner::UNKNOWN,
        }
    }
}
