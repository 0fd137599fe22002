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

use recrep_format::abi::CpuMode;
use recrep_format::layout::Slot;
use recrep_format::record::{FixedFields, RawRecord, Sample};

use super::common::{Common, Deciding, EventFields, Short, WIDEST};
use super::worker::{Point, Worker};
use crate::count::Count;
use crate::query::key::{Field, NO_KEY};

impl Worker<'_> {
    /// Counts a sample whose key has `WIDTH` words; returns `false` if it must be counted the long way.
    #[inline]
    pub(super) fn count_short<const WIDTH: usize>(&mut self, raw: RawRecord<'_>) -> bool {
        let fields = FixedFields::of(raw.bytes, self.scan.attrs.endian());
        let is_known = |event: &EventFields| fields.recorded(event.id_at) == event.id;
        if !self.short.as_ref().and_then(|short| short.event.as_ref()).is_some_and(is_known) {
            self.find_event(raw);
        }
        let Some(short) = &self.short else { return false };
        let Some(EventFields { index, number, attr_period, ip, task, time, cpu, period, .. }) = short.event else {
            return false;
        };
        if short.is_filtered {
            let sample = self.scan.attrs.sample(raw);
            if !sample.is_some_and(|(index, sample)| self.scan.filter.counts(index.0, &sample)) {
                return true;
            }
        }
        let count = Count { samples: 1, period: fields.number(period).unwrap_or(attr_period) };
        self.histogram.count_total(index.0, count);
        let time = fields.number(time).unwrap_or(0);
        let (task, cpu) = (fields.recorded(task), fields.recorded(cpu));
        let sample = Deciding { mode: raw.header.cpu_mode(), task, cpu };
        let of_mode = usize::from(sample.mode == CpuMode::Kernel);
        let is_known = |common: &Common| common.is_of(number, sample) && common.times.contains(&time);
        if !short.common.get(of_mode).and_then(Option::as_ref).is_some_and(is_known) {
            self.find_common(sample, raw);
        }
        let Some(Short { own, common, .. }) = &self.short else { return true };
        let Some(Common { sampled, words, .. }) = common.get(of_mode).and_then(Option::as_ref) else { return true };
        let (ip, clock) = (fields.number(ip).unwrap_or(0), self.scan.clock);
        let at = || clock.moment(Some(time), raw.offset);
        let frame = if own.has_frame { self.chains.finder.named(sampled, ip, at) } else { 0 };
        let mut key: [u64; WIDTH] = std::array::from_fn(|_| 0);
        for (((word, common), ip_mask), frame_mask) in key.iter_mut().zip(words).zip(&own.ip).zip(&own.frame) {
            *word = common | ip & ip_mask | frame & frame_mask;
        }
        if let Some(place) = own.chain {
            let (space, attrs) = (sampled.space, self.scan.attrs);
            if let Some((layout, event)) = attrs.sample_layout(index).zip(self.events.get(index.0)) {
                let sample = Sample::new(raw, layout, attrs.endian());
                let chain = self.chain(*event, &sample, (space, at(), None));
                key.get_mut(place).into_iter().for_each(|word| *word = chain);
            }
        }
        self.histogram.add(&key, count);
        true
    }

    /// Finds the event of a sample and the places of its fields; nothing if its samples must be counted the long way.
    #[inline(never)]
    fn find_event(&mut self, raw: RawRecord<'_>) {
        let attrs = self.scan.attrs;
        let found = attrs.event_of(&raw).and_then(|index| {
            let (event, layout) = (*self.events.get(index.0)?, attrs.sample_layout(index)?);
            let id_at = layout.event_id();
            (!event.reads).then(|| EventFields {
                index,
                number: event.number,
                attr_period: event.period,
                id: FixedFields::of(raw.bytes, attrs.endian()).recorded(id_at),
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
            let of_task = &span.moments;
            moments = moments.start.max(of_task.start)..moments.end.min(of_task.end);
        }
        let times = self.scan.clock.times_within(&moments);
        Some(Common { event: event.number, mode, task, has_task, cpu, moments, times, sampled, words })
    }
}
