//! The short way to count a sample: its key is put together from what it has in common with the samples before, and from
//! what only the sample itself tells.
//!
//! ```text
//!   common   [ event, CPU mode, CPU │ comm │ thread │ 0  │ 0     ]    found anew when one of them changes
//!   own      [                      │      │        │ ip │ frame ]    of each sample
//! ```
//!
//! Consecutive samples are mostly of one thread and one event, so most fields of a sample are only compared, as they were
//! recorded, with those of a sample before.

use std::ops::Range;

use recrep_format::abi::CpuMode;
use recrep_format::endian::Endian;
use recrep_format::layout::Slot;
use recrep_format::record::RawRecord;

use super::task::Scan;
use super::worker::{Event, Point, Worker};
use crate::callchain::Sampled;
use crate::count::{Count, Layout};
use crate::query::key::{Field, NO_KEY};
use crate::timeline::Moment;

/// Number of words of the widest keys that are counted the short way.
const WIDEST: usize = 4;

/// A field as it was recorded.
type Recorded = [u8; 8];

/// What samples that are counted the short way need.
pub(super) struct Short {
    own: OwnWords,
    endian: Endian,
    /// `true` if there are filters that leave out samples.
    is_filtered: bool,
    /// Event of the sample before.
    event: Option<EventFields>,
    /// What the keys of the samples before had in common, in user code and in the kernel.
    common: [Option<Common>; 2],
}

/// Words of a key that differ between the samples of a thread: masks for the sampled address and for its frame, and the
/// place of the callchain.
struct OwnWords {
    ip: [u64; WIDEST],
    frame: [u64; WIDEST],
    has_frame: bool,
    chain: Option<usize>,
}

/// An event, and the places of fields in its samples.
#[derive(Clone, Copy)]
struct EventFields {
    of: Event,
    /// Its id, as recorded.
    id: Option<Recorded>,
    id_at: Slot,
    ip: Slot,
    task: Slot,
    time: Slot,
    /// Not there if keys do not have the CPU.
    cpu: Slot,
    period: Slot,
}

/// What the keys of consecutive samples have in common, as long as nothing that decides it changes.
#[derive(Clone)]
struct Common {
    event: u16,
    mode: CpuMode,
    /// pid and tid, as recorded.
    task: u64,
    /// 0 if it does not depend on the thread, else all ones.
    task_mask: u64,
    cpu: Option<Recorded>,
    moments: Range<Moment>,
    /// Times that are surely within `moments`.
    times: Range<u64>,
    sampled: Sampled,
    /// The packed key, with 0 for what only a sample itself tells.
    words: [u64; WIDEST],
}

/// Fields of a sample that decide what its key has in common with others.
#[derive(Clone, Copy)]
struct Deciding {
    mode: CpuMode,
    task: u64,
    cpu: Option<Recorded>,
}

impl Common {
    #[inline]
    fn is_of(&self, event: u16, sample: Deciding) -> bool {
        (self.task ^ sample.task) & self.task_mask == 0
            && (self.event, self.mode) == (event, sample.mode)
            && self.cpu == sample.cpu
    }
}

impl Short {
    /// Returns what the samples of a scan need; `None` if keys have words that neither samples have in common nor a
    /// sample itself tells, or if there are filters that look at places.
    pub(super) fn of(layout: &Layout, scan: &Scan<'_>) -> Option<Self> {
        let common = [Field::Meta, Field::Comm, Field::Thread, Field::Process];
        let [ip, frame, chain] = [Field::Ip, Field::Frame, Field::Chain].map(|field| layout.place(field));
        let own = [ip, frame, chain].iter().flatten().count();
        let filters = &scan.filter.compiled;
        let has_places = filters.modules.is_some() || filters.socket.is_some();
        let is_all = own + common.iter().filter(|field| layout.has(**field)).count() == layout.len();
        let is_walked = scan.off_cpu.is_some() || scan.layout.last.is_some();
        let mask = |of: Option<usize>| std::array::from_fn(|place| if Some(place) == of { u64::MAX } else { 0 });
        let own = OwnWords { ip: mask(ip), frame: mask(frame), has_frame: frame.is_some(), chain };
        let is_possible = is_all && !has_places && !is_walked && layout.len() <= WIDEST;
        is_possible.then(|| Self {
            own,
            endian: scan.attrs.endian(),
            is_filtered: scan.filter.leaves_out_samples(),
            event: None,
            common: [None, None],
        })
    }
}

/// Returns a field of a sample, as recorded.
#[inline]
fn field(fields: &[Recorded], at: Slot) -> Option<Recorded> {
    fields.get(at.at() / size_of::<Recorded>()).copied()
}

impl Worker<'_> {
    /// Counts a sample whose key has `WIDTH` words; returns `false` if it must be counted the long way.
    #[inline]
    pub(super) fn count_short<const WIDTH: usize>(&mut self, raw: RawRecord<'_>) -> bool {
        let fields: &[Recorded] = raw.bytes.as_chunks().0;
        let is_known = |event: &EventFields| field(fields, event.id_at) == event.id;
        if !self.short.as_ref().and_then(|short| short.event.as_ref()).is_some_and(is_known) {
            self.find_event(raw);
        }
        let Some(short) = &self.short else { return false };
        let Some(EventFields { of: Event { number, period, .. }, ip, task, time, cpu, period: period_at, .. }) =
            short.event
        else {
            return false;
        };
        let endian = short.endian;
        if short.is_filtered {
            let sample = self.scan.attrs.sample(raw);
            if !sample.is_some_and(|(index, sample)| self.scan.filter.counts(index.0, &sample)) {
                return true;
            }
        }
        let period = field(fields, period_at).map_or(period, |period| endian.u64(period));
        let count = Count { samples: 1, period };
        self.histogram.count_total(number.into(), count);
        let time = field(fields, time).map_or(0, |time| endian.u64(time));
        let task = field(fields, task).map_or(u64::MAX, u64::from_ne_bytes);
        let sample = Deciding { mode: raw.header.cpu_mode(), task, cpu: field(fields, cpu) };
        let of_mode = usize::from(sample.mode == CpuMode::Kernel);
        let is_known = |common: &Common| common.is_of(number, sample) && common.times.contains(&time);
        if !short.common.get(of_mode).and_then(Option::as_ref).is_some_and(is_known) {
            self.find_common(sample, raw);
        }
        let Some(Short { own, common, .. }) = &self.short else { return true };
        let Some(Common { sampled, words, .. }) = common.get(of_mode).and_then(Option::as_ref) else { return true };
        let (ip, clock) = (field(fields, ip).map_or(0, |ip| endian.u64(ip)), self.scan.clock);
        let at = || clock.moment(Some(time), raw.offset);
        let frame = if own.has_frame { self.chains.finder.named(sampled, ip, at) } else { 0 };
        let mut key: [u64; WIDTH] = std::array::from_fn(|_| 0);
        for (((word, common), ip_mask), frame_mask) in key.iter_mut().zip(words).zip(&own.ip).zip(&own.frame) {
            *word = common | ip & ip_mask | frame & frame_mask;
        }
        if let Some(place) = own.chain {
            let space = sampled.space;
            if let Some((index, sample)) = self.scan.attrs.sample(raw)
                && let Some(event) = self.events.get(index.0)
            {
                let chain = self.chain(*event, &sample, (space, at(), None));
                key.get_mut(place).into_iter().for_each(|word| *word = chain);
            }
        }
        self.histogram.add(&key, count);
        true
    }

    /// Finds the event of a sample and the places of its fields; `None` if its samples must be counted the long way.
    #[inline(never)]
    fn find_event(&mut self, raw: RawRecord<'_>) {
        let attrs = self.scan.attrs;
        let found = attrs.event_of(&raw).and_then(|index| {
            let (event, layout) = (*self.events.get(index.0)?, attrs.sample_layout(index)?);
            let id_at = layout.event_id();
            (!event.reads).then(|| EventFields {
                of: event,
                id: field(raw.bytes.as_chunks().0, id_at),
                id_at,
                ip: layout.ip,
                task: layout.tid,
                time: layout.time,
                cpu: if self.layout.cpu { layout.cpu } else { Slot::NONE },
                period: layout.period,
            })
        });
        self.short.as_mut().into_iter().for_each(|short| short.event = found);
    }

    /// Finds what the keys of samples like this have in common; nothing if they get no rows.
    #[inline(never)]
    fn find_common(&mut self, deciding: Deciding, raw: RawRecord<'_>) {
        let of_mode = usize::from(deciding.mode == CpuMode::Kernel);
        let before = self.short.as_mut().and_then(|short| short.common.get_mut(of_mode)?.take());
        let found = self.common(deciding, raw, before);
        if let Some(common) = self.short.as_mut().and_then(|short| short.common.get_mut(of_mode)) {
            *common = found;
        }
    }

    fn common(&mut self, deciding: Deciding, raw: RawRecord<'_>, before: Option<Common>) -> Option<Common> {
        let (index, sample) = self.scan.attrs.sample(raw)?;
        let event = *self.events.get(index.0)?;
        let point = Point::of(event, &sample);
        let at = self.scan.clock.moment(point.time, point.offset);
        let is_valid = |common: &Common| common.is_of(event.number, deciding) && common.moments.contains(&at);
        if let Some(common) = before.filter(is_valid) {
            return Some(common);
        }
        let (mut key, mut words) = (NO_KEY, [0; WIDEST]);
        let (space, at) = self.key_at(event.number, &point, &mut key)?;
        for field in [Field::Ip, Field::Frame] {
            *field.of_mut(&mut key) = 0;
        }
        self.layout.pack(&key, &mut words);
        let Deciding { mode, task, cpu } = deciding;
        let (sampled, mut moments) = self.chains.finder.sampled(mode, space, at);
        let has_task = self.scan.has_tasks;
        if has_task {
            let (span, _) = self.spans.get(self.scan.timeline, (point.pid, point.tid), at, |_| true);
            let of_task = span.moments();
            moments = moments.start.max(of_task.start)..moments.end.min(of_task.end);
        }
        let times = self.scan.clock.times_within(&moments);
        let task_mask = if has_task { u64::MAX } else { 0 };
        Some(Common { event: event.number, mode, task, task_mask, cpu, moments, times, sampled, words })
    }
}
