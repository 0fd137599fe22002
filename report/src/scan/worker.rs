//! One worker: turns samples into keys and counts them.

use recrep_format::abi::{CpuMode, DataSrc, ReadFormat, SampleType, Weight, WeightParts};
use recrep_format::attr::{AttrIndex, AttrTable};
use recrep_format::layout::UpTo;
use recrep_format::read::Frames;
use recrep_format::record::{Sample, SampleFields};

use super::chains::ChainCounter;
use super::common::{EventTraits, Short};
use super::recent::RecentBranches;
use super::task::{Dropped, Scan};
use super::waits::WaitKinds;
use crate::callchain::{ChainOrigin, Frame, FrameFinder};
use crate::count::{
    Count, CounterKey, Histogram, Layout, PieceReads, Reading, SampleRows, for_width,
};
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::query::{CacheLine, End, Field, Key, Meta, Mode, NO_KEY};
use crate::samples::{PieceWorker, TaskFinder, for_each_sample};
use crate::timeline::{Clock, ModuleId, Moment, SampleContext, Task, ThreadRef};
use crate::tracepoints::PayloadTexts;

/// State of a worker.
pub(super) struct Worker<'s> {
    pub(super) scan: &'s Scan<'s>,
    pub(super) attrs: &'s AttrTable,
    pub(super) clock: &'s Clock<'s>,
    /// Layout of the keys that are counted.
    pub(super) layout: Layout,
    /// Counted samples.
    pub(super) histogram: Histogram,
    /// Counter readings, kept until those of earlier pieces are known.
    pub(super) reads: Vec<PieceReads>,
    /// Samples that were not counted, or only in part.
    pub(super) dropped: Dropped,
    /// Number of addresses that were looked up in each module.
    pub(super) hits: Vec<u64>,
    /// Threads, and whether the filters select them.
    pub(super) tasks: TaskFinder<'s>,
    /// Numbers of tracepoint payloads that were seen.
    pub(super) seen: PayloadTexts,
    /// Callchains of the samples.
    pub(super) chains: ChainCounter<'s>,
    pub(super) events: Vec<EventTraits>,
    /// Last field to decode.
    pub(super) last: UpTo,
    /// Kinds of waits, if they are needed.
    pub(super) waits: Option<WaitKinds<'s>>,
    /// Rows of recent branches, if branches are counted.
    pub(super) recent: RecentBranches,
    /// Rows of the current sample.
    pub(super) rows: SampleRows,
    /// Packed key of the current sample or branch.
    pub(super) packed: Vec<u64>,
    /// What samples that are counted the short way need; `None` if all must be counted the long
    /// way.
    short: Option<Short<'s>>,
}

impl PieceWorker for Worker<'_> {
    /// Counts the samples of a piece.
    fn read(&mut self, number: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        let width = self.short.as_ref().map_or(0, |_| self.layout.len());
        for_width!(width, self.samples(number, piece, buffer));
    }

    fn finish(&mut self) {
        self.recent.settle(&mut self.histogram);
        self.histogram.settle();
    }
}

/// Place and time of a count: a sample's data, or those of time without a sample.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) mode: CpuMode,
    pub(super) ip: u64,
    pub(super) cpu: Option<u32>,
    pub(super) time: Option<u64>,
    pub(super) offset: u64,
    pub(super) pid: i32,
    pub(super) tid: i32,
}

impl Point {
    /// Returns the data of a sample.
    #[inline]
    pub(super) fn of(sample: &Sample<'_, '_>) -> Self {
        Self {
            mode: sample.cpu_mode(),
            ip: sample.ip().unwrap_or(0),
            cpu: sample.cpu(),
            time: sample.time(),
            offset: sample.offset(),
            pid: sample.pid().map_or(-1, u32::cast_signed),
            tid: sample.tid().map_or(-1, u32::cast_signed),
        }
    }
}

impl<'s> Worker<'s> {
    /// Creates a worker that has counted nothing yet.
    pub(super) fn new(scan: &'s Scan<'s>) -> Self {
        let attrs = scan.attrs();
        let events = attrs.entries().iter().enumerate().map(|(number, entry)| EventTraits {
            number: u16::try_from(number).unwrap_or(u16::MAX),
            period: entry.attr.sample_period,
            reads: entry.attr.sample_type.contains(SampleType::READ),
            by_thread: scan.counters.by_thread.get(number) == Some(&true),
            scales: scan.counters.scales.get(number) == Some(&true),
            group: entry.attr.read_format.contains(ReadFormat::GROUP),
            origin: ChainOrigin::of(&entry.attr),
            is_sum: scan.session.are_sums(number),
        });
        let events: Vec<_> = events.collect();
        // READ follows the fields of fixed size and precedes all others.
        let last =
            scan.layout.last.filter(|last| *last != SampleType::ADDR).unwrap_or(SampleType::READ);
        let layout = scan.counted();
        Self {
            scan,
            attrs,
            clock: scan.clock(),
            histogram: Histogram::new(layout.len(), events.len()),
            reads: Vec::new(),
            dropped: Dropped::default(),
            hits: vec![0; scan.session.side_band.modules.len()],
            chains: ChainCounter::new(scan),
            seen: PayloadTexts::default(),
            tasks: TaskFinder::new(scan.threads.timeline, Some(&scan.filter)),
            events,
            last: UpTo::field(last),
            waits: scan.kernel.map(WaitKinds::new),
            recent: RecentBranches::new(&scan.layout),
            rows: SampleRows::default(),
            packed: vec![0; layout.len()],
            short: Short::of(&layout, scan),
            layout,
        }
    }

    /// Marks the modules that the `wanted` samples at the beginning of a piece hit.
    pub(super) fn probe(&mut self, piece: &Piece<'_>, wanted: usize) {
        /// Samples that follow each other often hit the same modules.
        const STEP: usize = 4;
        let attrs = self.attrs;
        // Unpacking pieces again for this would take longer than it saves.
        let bytes = piece.kept().unwrap_or_default();
        let frames = Frames::new(bytes, piece.offset, attrs.endian()).map_while(Result::ok);
        let samples = frames.filter_map(|raw| attrs.sample(raw));
        for (index, sample) in samples.step_by(STEP).take(wanted) {
            let Point { mode, ip, time, offset, pid, tid, .. } = Point::of(&sample);
            let at = self.clock.moment(time, offset);
            let (task, is_taken) = self.task(pid, tid, at);
            if is_taken && self.scan.filter.counts(index.0, &sample) {
                let place = self.scan.threads.timeline.place(mode, task.space, ip, at);
                self.hit(place.module);
            }
        }
    }

    /// Counts the samples of a piece, the short way if `WIDTH`, the number of words of the keys, is
    /// not 0.
    fn samples<const WIDTH: usize>(
        &mut self,
        number: usize,
        piece: &Piece<'_>,
        buffer: &mut UnpackBuffer,
    ) {
        let attrs = self.attrs;
        let mut reads = PieceReads::new(number);
        let mut short = self.short.take();
        for_each_sample(piece, buffer, |raw| {
            if WIDTH > 0
                && short.as_mut().is_some_and(|short| self.count_short::<WIDTH>(short, raw))
            {
                return;
            }
            match attrs.sample(raw) {
                Some((event, sample)) => self.sample(event, &sample, &mut reads),
                None => self.dropped.unknown_id += 1,
            }
        });
        self.reads.push(reads);
        self.short = short;
    }

    fn sample(&mut self, index: AttrIndex, sample: &Sample<'_, '_>, reads: &mut PieceReads) {
        let Some(&event) = self.events.get(index.0) else { return };
        if let Some(off_cpu) = &self.scan.session.off_cpu {
            return self.times(off_cpu, index, event, sample);
        }
        // The next increments start from values that the filters leave out, too.
        if !event.reads && !self.scan.filter.counts(index.0, sample) {
            return;
        }
        if event.reads || self.scan.layout.last.is_some() {
            return self.walk_sample(event, sample, reads);
        }
        let count = self.count(event, sample);
        self.histogram.count_total(index.0, count);
        let mut key = NO_KEY;
        if self.key(event, sample, &mut key).is_some() {
            self.add(&key, count);
        }
    }

    /// Returns what a record of a sample counts.
    fn count(&self, event: EventTraits, sample: &Sample<'_, '_>) -> Count {
        let sum = if event.is_sum { sample.stream_id() } else { None };
        Count { samples: sum.unwrap_or(1), period: sample.period().unwrap_or(event.period) }
    }

    /// Adds to the count of a key.
    #[inline]
    pub(super) fn add(&mut self, key: &Key, count: Count) {
        self.layout.pack(key, &mut self.packed);
        self.histogram.add(&self.packed, count);
    }

    /// Counts a sample whose fields of variable size must be walked.
    fn walk_sample(&mut self, event: EventTraits, sample: &Sample<'_, '_>, reads: &mut PieceReads) {
        let mut fields = SampleFields::default();
        if sample.walk(self.last, &mut fields).is_err() {
            self.dropped.malformed += 1;
            return;
        }
        let mut key = NO_KEY;
        let found = self.key(event, sample, &mut key);
        let weight = self.extras(event, &mut key, found, sample, &fields);
        self.rows.count = 0;
        self.rows.keys.clear();
        if self.scan.query.mode.is_of_branches() {
            self.rows.period = Some(1);
            if let Some(stack) = &fields.branch_stack {
                let guest = Some(sample.cpu_mode()).filter(|mode| mode.is_guest());
                self.branches(&key, guest, found, stack, fields.read.is_some());
            }
        } else {
            self.rows.period = (self.scan.query.mode == Mode::Memory).then_some(weight.max(1));
            self.rows.count = 1;
            // A sample without a row counts in the totals only.
            if found.is_some() {
                self.layout.pack(&key, &mut self.packed);
                self.rows.keys.extend_from_slice(&self.packed);
            }
        }
        match &fields.read {
            Some(read) => {
                if !self.scan.filter.counts_sample(sample) {
                    self.rows = SampleRows { keys: Vec::new(), count: 0, period: self.rows.period };
                }
                for counter in read.counters().take(if event.group { usize::MAX } else { 1 }) {
                    let reading = Reading::of(read, &counter, event.scales);
                    self.reading(event, sample, counter.id, reading, reads);
                }
            }
            None if event.is_sum => {
                let count = self.count(event, sample);
                self.histogram.count_total(usize::from(event.number), count);
                if found.is_some() {
                    self.add(&key, count);
                }
            }
            None => {
                let period = sample.period().unwrap_or(event.period);
                self.histogram.count_rows(usize::from(event.number), &self.rows, period);
            }
        }
    }

    /// Sets the words of a key from fields that only some samples have (cost and target of a memory
    /// access, data of a tracepoint), and returns the weight.
    pub(super) fn extras(
        &mut self,
        event: EventTraits,
        key: &mut Key,
        found: Option<SampleContext>,
        sample: &Sample<'_, '_>,
        fields: &SampleFields<'_>,
    ) -> u64 {
        let layout = &self.scan.layout;
        let (weight, latency) = match fields.weight {
            None => (0, 0),
            Some(Weight::Whole(weight)) => (weight, 0),
            Some(Weight::Parts(WeightParts { var1, var2, var3 })) => {
                (u64::from(var1), u64::from(var2) | u64::from(var3) << 16)
            }
        };
        let Some(at) = found else { return weight };
        if layout.has(Field::DataModule) {
            let addr = sample.addr().unwrap_or(0);
            let place =
                self.scan.threads.timeline.place(sample.cpu_mode(), at.space, addr, at.moment);
            let (is_shared, is_mapped) = (place.is_shared, place.module.is_some());
            *Field::DataModule.of_mut(key) = self.hit(place.module);
            *Field::DataAddr.of_mut(key) = addr;
            *Field::DataAddress.of_mut(key) = place.address;
            *Field::DataLine.of_mut(key) =
                CacheLine { address: place.address & !(layout.line - 1), is_shared, is_mapped }
                    .pack();
            let reach = u64::from(addr != 0)
                | u64::from(is_mapped) << 1
                | u64::from(self.is_mapped(key)) << 2;
            *Field::Reach.of_mut(key) = reach;
        }
        if let Some(traced) = &self.scan.traced {
            *Field::Payload.of_mut(key) = traced.number(event.number, fields.raw, &mut self.seen);
        }
        for (field, value) in [
            (Field::LineOffset, sample.addr().unwrap_or(0) & (layout.line - 1)),
            (Field::DataSrc, fields.data_src.unwrap_or(DataSrc::NONE.0) & layout.data_src),
            (Field::Weight, weight),
            (Field::Latency, latency & layout.latency),
            (Field::PhysAddr, fields.phys_addr.unwrap_or(0)),
            (Field::Transaction, fields.transaction.unwrap_or(0)),
            (Field::CodePage, fields.code_page_size.unwrap_or(0)),
            (Field::DataPage, fields.data_page_size.unwrap_or(0)),
            (Field::Cgroup, fields.cgroup.unwrap_or(0)),
        ] {
            *field.of_mut(key) = value;
        }
        weight
    }

    /// Counts the sample's rows for one of its counter readings.
    fn reading(
        &mut self,
        event: EventTraits,
        sample: &Sample<'_, '_>,
        id: Option<u64>,
        reading: Reading,
        reads: &mut PieceReads,
    ) {
        let Some((id, target)) = self.counter_of(event, sample, id) else {
            self.dropped.unknown_id += 1;
            return;
        };
        let (layout, number) = (&self.layout, usize::from(target.number));
        let is_counted = self.scan.filter.counts_event(number);
        let mut rows = if is_counted { self.rows.clone() } else { SampleRows::default() };
        for packed in rows.keys.chunks_exact_mut(layout.len()) {
            let mut key = layout.unpack(packed);
            let meta = Meta { event: target.number, ..Meta::unpack(Field::Meta.of(&key)) };
            *Field::Meta.of_mut(&mut key) = meta.pack();
            layout.pack(&key, packed);
        }
        let counter =
            CounterKey { id, thread: if event.by_thread { self.thread(sample).pack() } else { 0 } };
        if let Some(period) = reads.read(counter, reading, number, || rows.clone())
            && period != 0
        {
            self.histogram.count_rows(number, &rows, period);
        }
    }

    /// Returns the thread of a sample.
    pub(super) fn thread(&mut self, sample: &Sample<'_, '_>) -> ThreadRef {
        let Point { time, offset, pid, tid, .. } = Point::of(sample);
        self.task(pid, tid, self.clock.moment(time, offset)).0.thread
    }

    pub(super) fn counter_of(
        &self,
        event: EventTraits,
        sample: &Sample<'_, '_>,
        id: Option<u64>,
    ) -> Option<(u64, EventTraits)> {
        let Some(id) = id.or_else(|| sample.event_id()) else { return Some((0, event)) };
        match self.attrs.by_id(id) {
            Some(index) => Some((id, *self.events.get(index.0)?)),
            None => (self.events.len() == 1).then_some((id, event)),
        }
    }

    /// Fills the sample's key, and returns its address space and moment; `None` if it gets no row.
    #[inline(always)]
    pub(super) fn key(
        &mut self,
        event: EventTraits,
        sample: &Sample<'_, '_>,
        key: &mut Key,
    ) -> Option<SampleContext> {
        let at = self.key_at(event.number, &Point::of(sample), key)?;
        if self.scan.layout.has(Field::Chain) {
            *Field::Chain.of_mut(key) = self.chains.of(sample, event.origin, at, None);
        }
        Some(at)
    }

    /// Fills a key but for the callchain, and returns address space and moment; `None` if it gets
    /// no row.
    #[inline(always)]
    pub(super) fn key_at(
        &mut self,
        event: u16,
        point: &Point,
        key: &mut Key,
    ) -> Option<SampleContext> {
        let (layout, filter) = (&self.scan.layout, &self.scan.filter);
        let mode = point.mode;
        let has_frame = self.layout.has(Field::Frame);
        let cpu_mode =
            if layout.cpu_mode && !has_frame { u8::try_from(mode.bits()).unwrap_or(0) } else { 0 };
        let cpu = if layout.cpu { point.cpu.unwrap_or(u32::MAX) } else { 0 };
        let at = End { cpu_mode, ..End::default() };
        *Field::Meta.of_mut(key) = Meta { event, at, cpu, ..Meta::default() }.pack();
        let at = self.clock.moment(point.time, point.offset);
        let (task, is_taken) = self.task(point.pid, point.tid, at);
        if !is_taken || !filter.takes_cpu(point.cpu) {
            return None;
        }
        let (ip, context) = (point.ip, SampleContext { space: task.space, moment: at });
        if layout.has(Field::Module) {
            // Modules that the filter leaves out are not loaded.
            if filter.modules.is_some() {
                let place = self.scan.threads.timeline.place(mode, task.space, ip, at);
                if !filter.takes_module(place.module) {
                    return None;
                }
            }
            // If branches are counted, their ends are what has a module.
            if has_frame {
                let (sampled, _) = self.chains.reader.finder.sampled(mode, task.space, at);
                *Field::Frame.of_mut(key) = self.chains.reader.finder.named(&sampled, ip, || at);
            } else if !self.scan.query.mode.is_of_branches() {
                self.code(Some(mode), context, ip).put(key);
            }
        }
        *Field::Comm.of_mut(key) = task.comm.pack();
        *Field::Thread.of_mut(key) = task.thread.pack();
        *Field::Ip.of_mut(key) = ip;
        *Field::Process.of_mut(key) = u64::from(task.pid.cast_unsigned());
        if layout.has(Field::Time) {
            *Field::Time.of_mut(key) = self.scan.steps.start(point.time.unwrap_or(0));
        }
        if let Some(parallelism) = self.scan.parallelism {
            let threads = parallelism.at(point.time.unwrap_or(0));
            let wanted = self.scan.query.filters.parallelism.as_ref();
            if wanted.is_some_and(|wanted| !wanted.contains(&threads)) {
                return None;
            }
            *Field::Parallelism.of_mut(key) = threads.into();
        }
        if layout.has(Field::CgroupSpace) {
            *Field::CgroupSpace.of_mut(key) = self.scan.threads.groups.space_number(point.tid, at);
        }
        Some(context)
    }

    /// Returns the frame of an instruction: a sampled one, or without a CPU mode the end of a
    /// branch.
    #[inline]
    pub(super) fn code(&mut self, mode: Option<CpuMode>, at: SampleContext, ip: u64) -> Frame {
        let frame = self.chains.reader.finder.mapped(mode, at.space, ip, at.moment);
        self.hit(frame.module.checked_sub(1).map(ModuleId));
        frame
    }

    /// Returns whether anything is mapped at the sampled address of a key.
    pub(super) fn is_mapped(&self, key: &Key) -> bool {
        let FrameFinder { images, stacks, .. } = &self.chains.reader.finder;
        let is_framed = self.layout.has(Field::Frame);
        let frame = if is_framed { images.frame(Field::Frame.of(key), stacks) } else { None };
        frame.map_or_else(|| Field::Module.of(key), |frame| frame.module.into()) != 0
    }

    /// Marks a module as hit and returns its number in a key.
    #[inline]
    pub(super) fn hit(&mut self, module: Option<ModuleId>) -> u64 {
        let Some(ModuleId(module)) = module else { return 0 };
        if let Some(hits) = self.hits.get_mut(module as usize) {
            *hits += 1;
        }
        u64::from(module) + 1
    }

    /// Returns a sample's task, and whether the filters select it.
    #[inline(always)]
    pub(super) fn task(&mut self, pid: i32, tid: i32, at: Moment) -> (Task, bool) {
        if !self.scan.threads.has_tasks {
            return (Task::UNKNOWN, true);
        }
        let (span, is_taken) = self.tasks.span(pid, tid, at);
        (span.task, *is_taken)
    }
}
