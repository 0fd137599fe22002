//! Samples one by one, with the keys that a report counts them by.

use recrep_format::abi::SampleType;
use recrep_format::attr::AttrIndex;
use recrep_format::layout::UpTo;
use recrep_format::record::{Sample, SampleFields};
use rustc_hash::FxHashMap;

use super::common::EventTraits;
use super::task::{Dropped, Scan};
use super::worker::Worker;
use crate::callchain::{ChainRef, Frame, FrameFinder, Stacks};
use crate::count::{CounterKey, Reading};
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::query::{Field, Key, Meta, NO_KEY};
use crate::samples::for_each_sample;

/// A sample that passes the filters, but for those by function.
pub(crate) struct CountedSample<'r, 'a> {
    /// Number of its event.
    pub event: usize,
    pub period: u64,
    pub key: &'r Key,
    pub sample: &'r Sample<'a, 'a>,
    /// Its fields behind those of fixed size, as far as samples of the file have them.
    pub fields: &'r SampleFields<'a>,
    /// Frames and chains that the worker found.
    pub finder: &'r FrameFinder<'r>,
}

impl CountedSample<'_, '_> {
    /// Returns the word that stands for the frame of the sampled instruction in the worker.
    pub(crate) fn frame_word(&self) -> u64 {
        Field::Frame.of(self.key)
    }

    /// Returns the frame of the sampled instruction.
    pub(crate) fn frame(&self) -> Frame {
        let found = self.finder.images.frame(self.frame_word(), &self.finder.stacks);
        found.unwrap_or_default()
    }

    /// Returns its callchain.
    pub(crate) fn chain(&self) -> ChainRef {
        ChainRef::unpack(Field::Chain.of(self.key))
    }
}

/// Reads samples, for one worker.
pub(crate) struct SampleReader<'s> {
    worker: Worker<'s>,
    /// Last of the needed fields behind those of fixed size.
    last: Option<UpTo>,
    /// Last values of the counters that samples read.
    readings: FxHashMap<CounterKey, Reading>,
}

/// Fields that are read, the last one in a sample first.
const READ_FIELDS: [SampleType; 6] = [
    SampleType::CGROUP,
    SampleType::PHYS_ADDR,
    SampleType::DATA_SRC,
    SampleType::WEIGHT_STRUCT,
    SampleType::WEIGHT,
    SampleType::READ,
];

impl<'s> SampleReader<'s> {
    /// Creates a reader that has read nothing yet.
    pub(crate) fn new(scan: &'s Scan<'s>) -> Self {
        let last = READ_FIELDS.into_iter().find(|field| scan.session.samples_have(*field));
        Self {
            worker: Worker::new(scan),
            last: last.map(UpTo::field),
            readings: FxHashMap::default(),
        }
    }

    /// Returns whether periods follow from the samples before, so that one reader must read all.
    pub(crate) fn is_ordered(scan: &Scan<'_>) -> bool {
        scan.session.samples_have(SampleType::READ)
    }

    /// Returns the frames and chains that were found.
    pub(crate) fn stacks(&self) -> &Stacks {
        &self.worker.chains.reader.finder.stacks
    }

    /// Forgets the chains, but not their frames: numbers of chains begin anew.
    pub(crate) fn forget_chains(&mut self) {
        self.worker.chains.reader.finder.forget_chains();
    }

    /// Calls `act` with each sample of a piece.
    pub(crate) fn read(
        &mut self,
        piece: &Piece<'_>,
        buffer: &mut UnpackBuffer,
        mut act: impl FnMut(CountedSample<'_, '_>),
    ) {
        let attrs = self.worker.attrs;
        for_each_sample(piece, buffer, |raw| match attrs.sample(raw) {
            Some((event, sample)) => self.sample(event, &sample, &mut act),
            None => self.worker.dropped.unknown_id += 1,
        });
    }

    fn sample(
        &mut self,
        index: AttrIndex,
        sample: &Sample<'_, '_>,
        act: &mut impl FnMut(CountedSample<'_, '_>),
    ) {
        let Some(&event) = self.worker.events.get(index.0) else { return };
        let is_counted = self.worker.scan.filter.counts(index.0, sample);
        if !is_counted && !event.reads {
            return;
        }
        let mut fields = SampleFields::default();
        if self.last.is_some_and(|last| sample.walk(last, &mut fields).is_err()) {
            self.worker.dropped.malformed += 1;
            return;
        }
        let mut key = NO_KEY;
        let has_row = self.worker.key(event, sample, &mut key).is_some();
        if event.reads {
            return self.counters(event, sample, &fields, &mut key, has_row, act);
        }
        if has_row {
            let period = sample.period().unwrap_or(event.period);
            self.pass(&key, index.0, period, sample, &fields, act);
        }
    }

    /// Passes a sample on for each counter that it reads, with the increment as its period.
    fn counters(
        &mut self,
        event: EventTraits,
        sample: &Sample<'_, '_>,
        fields: &SampleFields<'_>,
        key: &mut Key,
        has_row: bool,
        act: &mut impl FnMut(CountedSample<'_, '_>),
    ) {
        let Some(read) = &fields.read else { return };
        let has_row = has_row && self.worker.scan.filter.counts_sample(sample);
        for counter in read.counters().take(if event.group { usize::MAX } else { 1 }) {
            let reading = Reading::of(read, &counter, event.scales);
            let Some((id, target)) = self.worker.counter_of(event, sample, counter.id) else {
                self.worker.dropped.unknown_id += 1;
                continue;
            };
            let thread = if event.by_thread { self.worker.thread(sample).pack() } else { 0 };
            let before = self.readings.insert(CounterKey { id, thread }, reading);
            let period = reading.increment(before.unwrap_or_default());
            self.worker.dropped.lower_values += u64::from(period.is_none());
            let number = usize::from(target.number);
            if let Some(period @ 1..) = period
                && has_row
                && self.worker.scan.filter.counts_event(number)
            {
                let meta = Meta { event: target.number, ..Meta::unpack(Field::Meta.of(key)) };
                *Field::Meta.of_mut(key) = meta.pack();
                self.pass(key, number, period, sample, fields, act);
            }
        }
    }

    fn pass(
        &self,
        key: &Key,
        event: usize,
        period: u64,
        sample: &Sample<'_, '_>,
        fields: &SampleFields<'_>,
        act: &mut impl FnMut(CountedSample<'_, '_>),
    ) {
        let finder = &self.worker.chains.reader.finder;
        act(CountedSample { event, period, key, sample, fields, finder });
    }

    /// Returns the numbers of samples that were not read, or only in part.
    pub(crate) fn finish(self) -> Dropped {
        let torn_chains = self.worker.chains.torn;
        let reader = self.worker.chains.reader;
        let unwinder = self.worker.scan.chains.unwinding.as_ref();
        let ends = unwinder.map(|unwinder| reader.sources.ends.named(unwinder)).unwrap_or_default();
        Dropped { ends, torn_chains, ..self.worker.dropped }
    }
}
