//! What consecutive samples have in common, and what only a sample itself tells: the state of
//! [`super::short`].

use std::ops::Range;

use recrep_format::abi::CpuMode;
use recrep_format::attr::AttrIndex;
use recrep_format::layout::{SampleLayout, Slot};

use super::task::Scan;
use crate::callchain::{ChainOrigin, Sampled};
use crate::count::Layout;
use crate::query::Field;
use crate::timeline::Moment;

/// Properties common to all samples of an event.
#[derive(Clone, Copy)]
pub(super) struct EventTraits {
    pub(super) number: u16,
    pub(super) period: u64,
    pub(super) reads: bool,
    /// `true` if each thread has its own values of the counters that samples read.
    pub(super) by_thread: bool,
    /// `true` if increments of these values are scaled to the time that the counter was enabled.
    pub(super) scales: bool,
    pub(super) group: bool,
    pub(super) origin: ChainOrigin,
    /// `true` if each record stands for several samples; STREAM_ID is their number.
    pub(super) is_sum: bool,
}

/// Number of words of the widest keys that are counted the short way.
pub(super) const WIDEST: usize = 4;

/// A field as it was recorded.
pub(super) type RecordedField = [u8; 8];

/// What samples that are counted the short way need.
pub(super) struct Short<'s> {
    /// Masks of the words of a key that only a sample itself tells: its address, and its frame.
    pub(super) ip: [u64; WIDEST],
    pub(super) frame: [u64; WIDEST],
    /// Place of the callchain in a key.
    pub(super) chain: Option<usize>,
    /// `true` if there are filters that leave out samples.
    pub(super) is_filtered: bool,
    /// Event of the sample before.
    pub(super) event: Option<KnownEvent<'s>>,
    /// What the keys of the samples before had in common, in user code and in the kernel.
    pub(super) common: [Option<Common>; 2],
}

/// An event, and the places of fields in its samples.
#[derive(Clone, Copy)]
pub(super) struct KnownEvent<'s> {
    pub(super) index: AttrIndex,
    pub(super) event: EventTraits,
    pub(super) layout: &'s SampleLayout,
    /// Its id, as recorded.
    pub(super) id: Option<RecordedField>,
    pub(super) id_at: Slot,
    /// Not there if keys do not depend on the thread.
    pub(super) task: Slot,
    /// Not there if keys do not have the CPU.
    pub(super) cpu: Slot,
    /// Not there if each record is one sample.
    pub(super) samples: Slot,
}

/// Fields of a sample that decide what its key has in common with others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Deciding {
    /// pid and tid, as recorded.
    pub(super) task: Option<RecordedField>,
    pub(super) event: u16,
    pub(super) mode: CpuMode,
    pub(super) cpu: Option<RecordedField>,
}

/// What the keys of consecutive samples have in common, as long as nothing that decides it changes.
pub(super) struct Common {
    pub(super) of: Deciding,
    pub(super) moments: Range<Moment>,
    /// Times that are surely within `moments`.
    pub(super) times: Range<u64>,
    pub(super) sampled: Sampled,
    /// The packed key, with 0 for what only a sample itself tells.
    pub(super) words: [u64; WIDEST],
}

impl Short<'_> {
    /// Returns what the samples of a scan need; `None` if keys have words that neither samples have
    /// in common nor a sample itself tells, or if there are filters that look at places.
    pub(super) fn of(layout: &Layout, scan: &Scan<'_>) -> Option<Self> {
        let common = [Field::Meta, Field::Comm, Field::Thread, Field::Process];
        let [ip, frame, chain] =
            [Field::Ip, Field::Frame, Field::Chain].map(|field| layout.place(field));
        let own = [ip, frame, chain].iter().flatten().count();
        let has_places = scan.filter.modules.is_some()
            || scan.filter.socket.is_some()
            || scan.query.filters.parallelism.is_some();
        let is_all =
            own + common.iter().filter(|field| layout.has(**field)).count() == layout.len();
        let is_walked = scan.session.off_cpu.is_some() || scan.layout.last.is_some();
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
