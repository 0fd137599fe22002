//! The short way to count a sample: a cache of what its key has in common with the samples before,
//! behind [`Worker::count_short`].
//!
//! ```text
//!   common   [ event, CPU mode, CPU │ comm │ thread │ 0  │ 0     ]    found anew when one of them changes
//!   own      [                      │      │        │ ip │ frame ]    of each sample
//! ```
//!
//! Consecutive samples are mostly of one thread and one event, so most fields of a sample are only
//! compared, as they were recorded, with those of a sample before. What is found anew comes from
//! the same [`Worker::key_at`] as the keys of all other samples.

use std::ops::Range;

use recrep_format::abi::CpuMode;
use recrep_format::attr::AttrIndex;
use recrep_format::layout::{SampleLayout, Slot};
use recrep_format::record::{FixedFields, RawRecord, Sample};

use super::task::Scan;
use super::worker::{EventTraits, Point, Worker};
use crate::callchain::Sampled;
use crate::count::{Count, Layout};
use crate::query::{Field, NO_KEY};
use crate::timeline::{Moment, SampleContext};

/// Number of words of the widest keys that are counted the short way.
const WIDEST: usize = 4;

/// A field as it was recorded.
type Recorded = [u8; 8];

/// What samples that are counted the short way need.
pub(super) struct Short<'s> {
    /// Masks of the words of a key that only a sample itself tells: its address, and its frame.
    ip: [u64; WIDEST],
    frame: [u64; WIDEST],
    /// Place of the callchain in a key.
    chain: Option<usize>,
    /// `true` if there are filters that leave out samples.
    is_filtered: bool,
    /// Event of the sample before.
    event: Option<KnownEvent<'s>>,
    /// What the keys of the samples before had in common, in user code and in the kernel.
    common: [Option<Common>; 2],
}

/// An event, and the places of fields in its samples.
#[derive(Clone, Copy)]
struct KnownEvent<'s> {
    index: AttrIndex,
    event: EventTraits,
    layout: &'s SampleLayout,
    /// Its id, as recorded.
    id: Option<Recorded>,
    id_at: Slot,
    /// Not there if keys do not depend on the thread.
    task: Slot,
    /// Not there if keys do not have the CPU.
    cpu: Slot,
}

/// Fields of a sample that decide what its key has in common with others.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Deciding {
    /// pid and tid, as recorded.
    task: Option<Recorded>,
    event: u16,
    mode: CpuMode,
    cpu: Option<Recorded>,
}

/// What the keys of consecutive samples have in common, as long as nothing that decides it changes.
struct Common {
    of: Deciding,
    moments: Range<Moment>,
    /// Times that are surely within `moments`.
    times: Range<u64>,
    sampled: Sampled,
    /// The packed key, with 0 for what only a sample itself tells.
    words: [u64; WIDEST],
}

impl Short<'_> {
    /// Returns what the samples of a scan need; `None` if keys have words that neither samples have
    /// in common nor a sample itself tells, or if there are filters that look at places.
    pub(super) fn of(layout: &Layout, scan: &Scan<'_>) -> Option<Self> {
        let common = [Field::Meta, Field::Comm, Field::Thread, Field::Process];
        let [ip, frame, chain] =
            [Field::Ip, Field::Frame, Field::Chain].map(|field| layout.place(field));
        let own = [ip, frame, chain].iter().flatten().count();
        let has_places = scan.filter.modules.is_some() || scan.filter.socket.is_some();
        let is_all =
            own + common.iter().filter(|field| layout.has(**field)).count() == layout.len();
        let is_walked = scan.off_cpu.is_some() || scan.layout.last.is_some();
        let [ip, frame] = [ip, frame]
            .map(|of| std::array::from_fn(|place| if Some(place) == of { u64::MAX } else { 0 }));
        let is_possible = is_all && !has_places && !is_walked && layout.len() <= WIDEST;
        is_possible.then(|| Self {
            ip,
            frame,
            chain,
            is_filtered: scan.filter.leaves_out_samples(),
            event: None,
            common: [None, None],
        })
    }
}

impl<'s> Worker<'s> {
    /// Counts a sample whose key has `WIDTH` words; returns `false` if it must be counted the long
    /// way.
    #[inline]
    pub(super) fn count_short<const WIDTH: usize>(
        &mut self,
        short: &mut Short<'s>,
        raw: RawRecord<'_>,
    ) -> bool {
        let Scan { attrs, clock, filter, .. } = *self.scan;
        let fields = FixedFields::of(raw.bytes, attrs.endian());
        if short.event.as_ref().is_none_or(|known| fields.recorded(known.id_at) != known.id) {
            short.event = self.known_event(raw);
        }
        let Some(KnownEvent { index, event, layout, task, cpu, .. }) = short.event else {
            return false;
        };
        let sample = Sample::new(raw, layout, attrs.endian());
        if short.is_filtered && !filter.counts(index.0, &sample) {
            return true;
        }
        let count =
            Count { samples: 1, period: fields.number(layout.period).unwrap_or(event.period) };
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
            self.chains.finder.named(sampled, ip, at)
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
        let attrs = self.scan.attrs;
        let index = attrs.event_of(&raw)?;
        let (event, layout) = (*self.events.get(index.0)?, attrs.sample_layout(index)?);
        let id_at = layout.event_id();
        let id = FixedFields::of(raw.bytes, attrs.endian()).recorded(id_at);
        let task = if self.scan.has_tasks { layout.tid } else { Slot::NONE };
        let cpu = if self.layout.cpu { layout.cpu } else { Slot::NONE };
        (!event.reads).then_some(KnownEvent { index, event, layout, id, id_at, task, cpu })
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
        let at = self.scan.clock.moment(point.time, point.offset);
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
        let (sampled, mut moments) = self.chains.finder.sampled(of.mode, space, at);
        if self.scan.has_tasks {
            let (span, _) = self.spans.get(self.scan.timeline, point.pid, point.tid, at, |_| true);
            moments = moments.start.max(span.moments.start)..moments.end.min(span.moments.end);
        }
        let times = self.scan.clock.times_within(&moments);
        Some(Common { of, moments, times, sampled, words })
    }
}
