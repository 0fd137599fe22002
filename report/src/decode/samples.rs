//! Decoded samples: the events that they are of, and their records.
//!
//! A record is a sample, or where a report counts samples without asking when they were, the sum of several that
//! differ in time alone: STREAM_ID is their number then, and PERIOD the sum of their periods.

use recrep_format::abi::{CpuMode, SampleType, Weight};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::record::{Body, BranchStack, Record, SampleFields};

/// Distance between the ids of a recorded event and of those that are made of its trace, as in
/// perf.
const IDS: u64 = 1_000_000_000;

/// Events of decoded samples, in perf's order and with perf's names.
#[derive(Debug, Default)]
pub(crate) struct DecodedEvents {
    pub entries: Vec<AttrEntry>,
    next: u64,
    /// Records are sums of samples.
    are_sums: bool,
}

impl DecodedEvents {
    /// Creates the set of events for the trace of this event.
    pub(crate) fn of_traced(traced: &AttrEntry) -> Self {
        let id = traced.ids.first().copied().unwrap_or(0).wrapping_add(IDS);
        Self { entries: Vec::new(), next: id.max(1), are_sums: false }
    }

    /// Makes the records of the events that are added from now on sums of samples.
    pub(crate) fn sum_samples(&mut self) {
        self.are_sums = true;
    }

    /// Returns whether records are sums of samples.
    pub(crate) fn are_sums(&self) -> bool {
        self.are_sums
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, name: &str, mut attr: Attr) -> DecodedEvent {
        if self.are_sums {
            attr.sample_type |= SampleType::STREAM_ID | SampleType::PERIOD;
        }
        let (id, fields) = (self.next, attr.sample_type);
        self.next += 1;
        self.entries.push(AttrEntry { attr, ids: vec![id], name: Some(name.to_owned()) });
        DecodedEvent { id, fields, is_summed: self.are_sums }
    }
}

/// An event of decoded samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DecodedEvent {
    id: u64,
    fields: SampleType,
    /// Its records are sums of samples.
    is_summed: bool,
}

/// Returns whether an address is the kernel's: in the upper half.
#[inline]
pub(crate) fn is_kernel(address: u64) -> bool {
    address >> 63 != 0
}

/// A decoded sample. Only fields that its event has are written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DecodedSample<'a> {
    pub ip: u64,
    pub pid: i32,
    pub tid: i32,
    pub time: u64,
    pub addr: u64,
    pub cpu: Option<u32>,
    pub period: u64,
    pub weight: u64,
    pub data_src: u64,
    pub phys_addr: u64,
    /// Words of the callchain.
    pub callchain: &'a [u64],
    /// The last branches, newest first.
    pub branches: &'a [LastBranch],
    /// Raw data.
    pub raw: &'a [u8],
    /// What is the raw data instead, if there is any.
    pub elapsed: Option<Elapsed>,
}

/// Instructions and cycles since the last sample of the same event that had cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elapsed {
    pub instructions: u64,
    pub cycles: u64,
}

impl Elapsed {
    /// Returns the raw data of a sample that has them.
    fn to_raw(self) -> [[u8; 8]; 2] {
        [self.instructions, self.cycles].map(u64::to_le_bytes)
    }

    /// Reads the raw data of a sample.
    pub(crate) fn read(raw: &[u8]) -> Option<Self> {
        let mut words = U64s::new(raw, Endian::Little).iter();
        let (instructions, cycles) = (words.next()?, words.next()?);
        words.next().is_none().then_some(Self { instructions, cycles })
    }
}

/// A branch that was taken before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastBranch {
    pub from: u64,
    pub to: u64,
}

/// Writes decoded samples as records.
#[derive(Debug)]
pub(crate) struct SampleWriter {
    records: Encoder,
    /// Words of the sample that is written: of its callchain, of its last branches.
    words: [Encoder; 2],
    /// Number of samples that are written.
    pub samples: u64,
    /// Number of samples, with those that are left out.
    pub taken: u64,
    /// Number of samples that are left out before the first is written.
    left_out: u64,
}

impl SampleWriter {
    /// Creates a writer that leaves out so many samples first.
    pub(crate) fn leaving_out(left_out: u64, endian: Endian) -> Self {
        let words = [Encoder::new(endian), Encoder::new(endian)];
        Self { records: Encoder::new(endian), words, samples: 0, taken: 0, left_out }
    }

    /// Returns the records.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.records.as_bytes()
    }

    /// Writes a sample of an event.
    pub(crate) fn put(&mut self, event: DecodedEvent, sample: &DecodedSample<'_>) {
        self.put_sum(event, sample, 1);
    }

    /// Writes so many samples of an event whose records are sums.
    pub(crate) fn put_sum(&mut self, event: DecodedEvent, sample: &DecodedSample<'_>, count: u64) {
        self.taken = self.taken.saturating_add(count);
        if self.taken <= self.left_out {
            return;
        }
        let stream_id = if event.is_summed { count } else { event.id };
        let has = |field: SampleType| event.fields.contains(field);
        let DecodedSample { pid, tid, .. } = *sample;
        let [callchain, branches] = &mut self.words;
        let callchain =
            has(SampleType::CALLCHAIN).then(|| words(callchain, sample.callchain.iter().copied()));
        let branches = has(SampleType::BRANCH_STACK).then(|| {
            // Without flags: a trace does not tell what was predicted.
            let entries = sample.branches.iter().flat_map(|it| [it.from, it.to, 0]);
            let words = words(branches, entries);
            BranchStack { hw_idx: Some(u64::MAX), words, counters: None }
        });
        let elapsed = sample.elapsed.map(Elapsed::to_raw);
        let raw = elapsed.as_ref().map_or(sample.raw, |words| words.as_flattened());
        let fields = SampleFields {
            identifier: has(SampleType::IDENTIFIER).then_some(event.id),
            ip: has(SampleType::IP).then_some(sample.ip),
            tid: has(SampleType::TID).then_some([pid.cast_unsigned(), tid.cast_unsigned()]),
            time: has(SampleType::TIME).then_some(sample.time),
            addr: has(SampleType::ADDR).then_some(sample.addr),
            id: has(SampleType::ID).then_some(event.id),
            stream_id: has(SampleType::STREAM_ID).then_some(stream_id),
            cpu: has(SampleType::CPU).then_some([sample.cpu.unwrap_or(u32::MAX), 0]),
            period: has(SampleType::PERIOD).then_some(sample.period.wrapping_mul(count)),
            weight: has(SampleType::WEIGHT).then_some(Weight::Whole(sample.weight)),
            data_src: has(SampleType::DATA_SRC).then_some(sample.data_src),
            phys_addr: has(SampleType::PHYS_ADDR).then_some(sample.phys_addr),
            raw: has(SampleType::RAW).then_some(raw),
            callchain,
            branch_stack: branches,
            ..SampleFields::default()
        };
        let mode = if is_kernel(sample.ip) { CpuMode::Kernel } else { CpuMode::User };
        let record = Record::new(mode.bits(), Body::Sample(Box::new(fields)));
        // Stacks have at most 1024 entries each: a sample is never too long.
        if record.encode(&mut self.records).is_ok() {
            self.samples += count;
        }
    }
}

/// Returns words in the byte order of `to`, where they are put.
fn words(to: &mut Encoder, words: impl Iterator<Item = u64>) -> U64s<'_> {
    to.clear();
    for word in words {
        to.u64(word);
    }
    U64s::new(to.as_bytes(), to.endian())
}
