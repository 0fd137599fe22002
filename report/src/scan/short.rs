//! The short way to count a sample: its key is put together from what it has in common with the
//! samples before, and from what only the sample itself tells.
//!
//! ```text
//!   common   [ event, CPU mode, CPU │ comm │ thread │ 0  │ 0     ]    found anew when one of them changes
//!   own      [                      │      │        │ ip │ frame ]    of each sample
//! ```
//!
//! Consecutive samples are mostly of one thread and one event, so most fields of a sample are only
//! compared, as they were recorded, with those of a sample before.

use recrep_format::abi::CpuMode;
use recrep_format::layout::Slot;
use recrep_format::record::{FixedFields, RawRecord, Sample};

use super::common::{Common, Deciding, EventTraits, KnownEvent, Short, WIDEST};
use super::worker::{Point, Worker};
use crate::count::Count;
use crate::query::{Field, NO_KEY};
use crate::timeline::SampleContext;

impl<'s> Worker<'s> {
    /// Counts a sample whose key has `WIDTH` words; returns `false` if it must be counted the long
    /// way.
    #[inline]
    pub(super) fn count_short<const WIDTH: usize>(
        &mut self,
        short: &mut Short<'s>,
        raw: RawRecord<'_>,
    ) -> bool {
        let (attrs, clock, filter) = (self.attrs, self.clock, &self.scan.filter);
        let fields = FixedFields::of(raw.bytes, attrs.endian());
        if short.event.as_ref().is_none_or(|known| fields.recorded(known.id_at) != known.id) {
            short.event = self.known_event(raw);
        }
        let Some(KnownEvent { index, event, layout, task, cpu, samples, .. }) = short.event else {
            return false;
        };
        let sample = Sample::new(raw, layout, attrs.endian());
        if short.is_filtered && !filter.counts(index.0, &sample) {
            return true;
        }
        let count = Count {
            samples: fields.number(samples).unwrap_or(1),
            period: fields.number(layout.period).unwrap_or(event.period),
        };
        self.histogram.count_total(index.0, count);
        let time = fields.number(layout.time).unwrap_or(0);
        let (task, cpu) = (fields.recorded(task), fields.recorded(cpu));
        let of = Deciding { task, event: event.number, mode: raw.header.cpu_mode(), cpu };
        let [user, kernel] = &mut short.common;
        let common = if of.mode == CpuMode::Kernel { kernel } else { user };
        if common.as_ref().is_none_or(|known| known.of != of || !known.times.contains(&time)) {
            *common = self.common(of, event, &sample, common.take());
        }
        // Samples like this may get no rows.
        let Some(Common { sampled, words, .. }) = common else { return true };
        let ip = fields.number(layout.ip).unwrap_or(0);
        let at = || clock.moment(Some(time), raw.offset);
        let frame = if self.layout.has(Field::Frame) {
            self.chains.reader.finder.named(sampled, ip, at)
        } else {
            0
        };
        let mut key: [u64; WIDTH] = std::array::from_fn(|_| 0);
        for (((word, common), ip_mask), frame_mask) in
            key.iter_mut().zip(words).zip(&short.ip).zip(&short.frame)
        {
            *word = *common | ip & ip_mask | frame & frame_mask;
        }
        if let Some(place) = short.chain {
            let at = SampleContext { space: sampled.space, moment: at() };
            let chain = self.chains.of(&sample, event.origin, at, None);
            if let Some(word) = key.get_mut(place) {
                *word = chain;
            }
        }
        self.histogram.add(&key, count);
        true
    }

    /// Finds the event of a sample and the places of its fields; `None` if its samples must be
    /// counted the long way.
    #[inline(never)]
    fn known_event(&self, raw: RawRecord<'_>) -> Option<KnownEvent<'s>> {
        let attrs = self.attrs;
        let index = attrs.event_of(&raw)?;
        let (event, layout) = (*self.events.get(index.0)?, attrs.sample_layout(index)?);
        let id_at = layout.event_id();
        let id = FixedFields::of(raw.bytes, attrs.endian()).recorded(id_at);
        let task = if self.scan.threads.has_tasks { layout.tid } else { Slot::NONE };
        let cpu = if self.layout.cpu { layout.cpu } else { Slot::NONE };
        let samples = if event.is_sum { layout.stream_id } else { Slot::NONE };
        (!event.reads).then_some(KnownEvent { index, event, layout, id, id_at, task, cpu, samples })
    }

    /// Finds what the keys of samples like this have in common: perhaps what they had `before`;
    /// `None` if they get no rows.
    #[inline(never)]
    fn common(
        &mut self,
        of: Deciding,
        event: EventTraits,
        sample: &Sample<'_, '_>,
        before: Option<Common>,
    ) -> Option<Common> {
        let point = Point::of(sample);
        let at = self.clock.moment(point.time, point.offset);
        if let Some(common) =
            before.filter(|before| before.of == of && before.moments.contains(&at))
        {
            return Some(common);
        }
        let (mut key, mut words) = (NO_KEY, [0; WIDEST]);
        let SampleContext { space, .. } = self.key_at(event.number, &point, &mut key)?;
        for field in [Field::Ip, Field::Frame] {
            *field.of_mut(&mut key) = 0;
        }
        self.layout.pack(&key, &mut words);
        let (sampled, mut moments) = self.chains.reader.finder.sampled(of.mode, space, at);
        if self.scan.threads.has_tasks {
            let (span, _) = self.tasks.span(point.pid, point.tid, at);
            moments = moments.start.max(span.moments.start)..moments.end.min(span.moments.end);
        }
        let times = self.clock.times_within(&moments);
        Some(Common { of, moments, times, sampled, words })
    }
}
