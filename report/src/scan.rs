//! The pass over the samples: every worker takes the next piece until there is none.
//!
//! What is asked of a sample costs a few loads at known places; its callchain is never walked. Lookups in the timeline are
//! remembered per worker, since samples come in runs of one thread at few addresses.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use recrep_format::abi::{CpuMode, ReadFormat, RecordType, SampleType};
use recrep_format::attrs::{AttrIndex, AttrTable};
use recrep_format::read::Frames;
use recrep_format::record::Sample;
use rustc_hash::FxHashSet;

use crate::aggregate::{Count, Field, Histogram, Key, Layout, Meta, PieceReads, Reads};
use crate::clock::Clock;
use crate::query::Filters;
use crate::split::Piece;
use crate::timeline::{Moment, Span, Task, Timeline};

/// What every worker reads.
#[derive(Debug)]
pub struct Scan<'f> {
    /// The attrs.
    pub attrs: &'f AttrTable,
    /// When records take effect.
    pub clock: &'f Clock<'f>,
    /// The frozen side-band.
    pub timeline: &'f Timeline,
    /// What a key holds.
    pub layout: &'f Layout,
    /// Which samples make rows.
    pub filters: &'f Filters,
    /// Which modules pass the filter by module; all, where there is none.
    pub modules: Option<Vec<bool>>,
    /// How many modules there are.
    pub module_count: usize,
}

/// What the scan found beside the histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// Samples whose id no event has.
    pub unknown_id: u64,
    /// Samples of guests: they count in the totals only.
    pub guest: u64,
}

/// The result.
#[derive(Debug)]
pub struct Scanned {
    /// Rows and what they gathered, in no order.
    pub rows: Vec<(Key, Count)>,
    /// The totals of each event.
    pub totals: Vec<Count>,
    /// What made no row.
    pub strays: Strays,
    /// Which threads were sampled under which names.
    pub named: Named,
}

/// Pairs of a comm and a thread, both packed.
pub type Named = FxHashSet<(u64, u64)>;

impl Scan<'_> {
    /// Counts the samples in these pieces on all cores.
    ///
    /// When all are counted, `prepare` is told which modules were hit, and gives what turns a key into a row: a
    /// key with a symbol in the place of the address. That too is done by all cores, each with the keys that it has
    /// counted. Rows are far fewer than keys, so little is left to merge.
    pub fn run<F: Fn(Key) -> Key + Sync>(&self, pieces: &[Piece<'_>], prepare: impl FnOnce(&[bool]) -> F) -> Scanned {
        match self.layout.len() {
            1 => self.run_with::<1, F>(pieces, prepare),
            2 => self.run_with::<2, F>(pieces, prepare),
            3 => self.run_with::<3, F>(pieces, prepare),
            4 => self.run_with::<4, F>(pieces, prepare),
            5 => self.run_with::<5, F>(pieces, prepare),
            _ => self.run_with::<{ Layout::MOST }, F>(pieces, prepare),
        }
    }

    fn run_with<const N: usize, F: Fn(Key) -> Key + Sync>(
        &self,
        pieces: &[Piece<'_>],
        prepare: impl FnOnce(&[bool]) -> F,
    ) -> Scanned {
        let next = AtomicUsize::new(0);
        let workers = rayon::broadcast(|_| {
            let mut worker = Worker::<N>::new(self);
            while let Some((index, piece)) = take(&next, pieces) {
                worker.piece(index, piece);
            }
            worker
        });
        let mut rest = Worker::<N>::new(self);
        let (mut strays, mut hits) = (Strays::default(), vec![false; self.module_count]);
        let mut histograms = Vec::new();
        let mut named = Named::default();
        for worker in workers {
            named.extend(worker.named);
            strays.unknown_id += worker.strays.unknown_id;
            strays.guest += worker.strays.guest;
            hits.iter_mut().zip(&worker.hits).for_each(|(all, one)| *all |= one);
            rest.reads.pieces.extend(worker.reads.pieces);
            histograms.push(worker.histogram);
        }
        rest.reads.settle(&mut rest.histogram);
        histograms.push(rest.histogram);
        let row = prepare(&hits);
        let part = |histogram: Histogram<N>| histogram.map(|key| self.layout.pack(&row(self.layout.unpack(&key))));
        let parts: Vec<Histogram<N>> = histograms.into_par_iter().map(part).collect();
        let all = parts.into_iter().reduce(Histogram::merge).unwrap_or_else(|| Histogram::new(0));
        let rows = all.rows.iter().map(|(key, count)| (self.layout.unpack(key), *count)).collect();
        Scanned { rows, totals: all.totals, strays, named }
    }
}

fn take<'p, 'a>(next: &AtomicUsize, pieces: &'p [Piece<'a>]) -> Option<(usize, &'p Piece<'a>)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, pieces.get(index)?))
}

struct Worker<'s, const N: usize> {
    scan: &'s Scan<'s>,
    histogram: Histogram<N>,
    reads: Reads<N>,
    strays: Strays,
    hits: Vec<bool>,
    span: Option<Span>,
    named: Named,
    events: Vec<Event>,
}

/// What is the same for all samples of an event.
#[derive(Clone, Copy)]
struct Event {
    number: u16,
    period: u64,
    reads: bool,
    has_time: bool,
    group: bool,
}

impl<'s, const N: usize> Worker<'s, N> {
    fn new(scan: &'s Scan<'s>) -> Self {
        let events = scan.attrs.entries().iter().enumerate().map(|(number, entry)| Event {
            number: u16::try_from(number).unwrap_or(u16::MAX),
            period: entry.attr.sample_period,
            reads: entry.attr.sample_type.contains(SampleType::READ),
            has_time: entry.attr.sample_type.contains(SampleType::TIME),
            group: entry.attr.read_format.contains(ReadFormat::GROUP),
        });
        let events: Vec<_> = events.collect();
        Self {
            scan,
            histogram: Histogram::new(events.len()),
            reads: Reads { pieces: Vec::new() },
            strays: Strays::default(),
            hits: vec![false; scan.module_count],
            span: None,
            named: Named::default(),
            events,
        }
    }

    fn piece(&mut self, index: usize, piece: &Piece<'_>) {
        let attrs = self.scan.attrs;
        let mut reads = PieceReads::new(index);
        for raw in Frames::new(piece.bytes, piece.offset, attrs.endian()).map_while(Result::ok) {
            if raw.header.kind != RecordType::SAMPLE {
                continue;
            }
            match attrs.sample(raw) {
                Some((event, sample)) => self.sample(event, &sample, &mut reads),
                None => self.strays.unknown_id += 1,
            }
        }
        self.histogram.settle();
        self.reads.pieces.push(reads);
    }

    #[inline]
    fn sample(&mut self, index: AttrIndex, sample: &Sample<'_, '_>, reads: &mut PieceReads<N>) {
        let Some(&event) = self.events.get(index.0) else { return };
        if let Some(cpus) = &self.scan.filters.cpus
            && !sample.cpu().is_some_and(|cpu| cpus.contains(&cpu))
        {
            return;
        }
        let key = self.key(event, sample);
        if event.reads {
            self.readings(event, sample, key, reads);
            return;
        }
        let period = sample.period().unwrap_or(event.period);
        let packed = key.map(|key| self.scan.layout.pack(&key));
        self.histogram.count(index.0, packed, Count { samples: 1, period });
    }

    /// Counts a sample for each counter that it reads.
    #[cold]
    fn readings(&mut self, event: Event, sample: &Sample<'_, '_>, key: Option<Key>, reads: &mut PieceReads<N>) {
        let Ok(Some(read)) = sample.upto(SampleType::READ).map(|fields| fields.read) else { return };
        for counter in read.counters().take(if event.group { usize::MAX } else { 1 }) {
            let Some((id, target)) = self.counter_of(event, sample, counter.id) else {
                self.strays.unknown_id += 1;
                continue;
            };
            let packed = key.map(|mut key| {
                let meta = Meta { event: target.number, ..Meta::unpack(Field::Meta.of(&key)) };
                *Field::Meta.of_mut(&mut key) = meta.pack();
                self.scan.layout.pack(&key)
            });
            let number = usize::from(target.number);
            if let Some(period) = reads.read(id, counter.value, number, packed)
                && period != 0
            {
                self.histogram.count(number, packed, Count { samples: 1, period });
            }
        }
    }

    fn counter_of(&self, event: Event, sample: &Sample<'_, '_>, id: Option<u64>) -> Option<(u64, Event)> {
        match id.or_else(|| sample.event_id()) {
            Some(id) => {
                let index = self.scan.attrs.by_id(id).map_or(usize::from(event.number), |index| index.0);
                let known = self.scan.attrs.by_id(id).is_some() || self.events.len() == 1;
                if known { Some((id, *self.events.get(index)?)) } else { None }
            }
            None => Some((0, event)),
        }
    }

    /// The sample's key; `None` where it makes no row.
    #[inline]
    fn key(&mut self, event: Event, sample: &Sample<'_, '_>) -> Option<Key> {
        let (layout, filters) = (self.scan.layout, self.scan.filters);
        let mode = sample.cpu_mode();
        if matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
            self.strays.guest += 1;
            return None;
        }
        let mut key = Key::default();
        let level = if layout.level { u8::try_from(mode.bits()).unwrap_or(0) } else { 0 };
        let cpu = if layout.cpu { sample.cpu().unwrap_or(u32::MAX) } else { 0 };
        *Field::Meta.of_mut(&mut key) = Meta { event: event.number, level, is_symbol: false, cpu }.pack();
        let time = if event.has_time { sample.time() } else { None };
        let at = self.scan.clock.moment(time, sample.raw().offset);
        let task = self.task(sample, at);
        if filtered(filters, self.scan.timeline, &task, sample.tid()) {
            return None;
        }
        let ip = sample.ip().unwrap_or(0);
        if layout.has(Field::Module) {
            let place = self.scan.timeline.place(mode, &task, ip, at);
            if let Some(wanted) = &self.scan.modules
                && place.module.is_none_or(|m| wanted.get(m.0 as usize) != Some(&true))
            {
                return None;
            }
            if let Some(hit) = place.module.and_then(|m| self.hits.get_mut(m.0 as usize)) {
                *hit = true;
            }
            *Field::Module.of_mut(&mut key) = place.module.map_or(0, |m| u64::from(m.0) + 1);
            *Field::Address.of_mut(&mut key) = place.address;
        }
        *Field::Comm.of_mut(&mut key) = task.comm.pack();
        *Field::Thread.of_mut(&mut key) = task.thread.pack();
        *Field::Ip.of_mut(&mut key) = ip;
        Some(key)
    }

    /// What the sample's thread was.
    #[inline]
    fn task(&mut self, sample: &Sample<'_, '_>, at: Moment) -> Task {
        let pid = sample.pid().map_or(-1, u32::cast_signed);
        let tid = sample.tid().map_or(-1, u32::cast_signed);
        match &self.span {
            Some(span) if span.covers(pid, tid, at) => span.task,
            _ => {
                let task = self.span.insert(self.scan.timeline.span(pid, tid, at)).task;
                self.named.insert((task.comm.pack(), task.thread.pack()));
                task
            }
        }
    }
}

/// Whether a filter by thread leaves the sample out.
#[inline]
fn filtered(filters: &Filters, timeline: &Timeline, task: &Task, tid: Option<u32>) -> bool {
    let lacks = |set: &Option<_>, number: i32| {
        let set: &Option<std::collections::HashSet<i32>> = set;
        set.as_ref().is_some_and(|set| !set.contains(&number))
    };
    lacks(&filters.pids, task.pid)
        || lacks(&filters.tids, tid.map_or(-1, u32::cast_signed))
        || filters.comms.as_ref().is_some_and(|comms| !comms.contains(timeline.comm(task.comm).as_ref()))
}
