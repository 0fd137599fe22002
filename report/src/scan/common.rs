//! What consecutive samples have in common, and what only a sample itself tells: the state of [`super::short`].

use std::ops::Range;

use recrep_format::abi::CpuMode;
use recrep_format::attr::AttrIndex;
use recrep_format::layout::Slot;

use super::task::Scan;
use crate::callchain::Sampled;
use crate::count::Layout;
use crate::query::key::Field;
use crate::timeline::Moment;

/// Number of words of the widest keys that are counted the short way.
pub(super) const WIDEST: usize = 4;

/// A field as it was recorded.
pub(super) type Recorded = [u8; 8];

/// What samples that are counted the short way need.
pub(super) struct Short {
    pub(super) own: OwnWords,
    /// `true` if there are filters that leave out samples.
    pub(super) is_filtered: bool,
    /// Event of the sample before.
    pub(super) event: Option<EventFields>,
    /// What the keys of the samples before had in common, in user code and in the kernel.
    pub(super) common: [Option<Common>; 2],
}

/// Words of a key that differ between the samples of a thread: masks for the sampled address and for its frame, and the
/// place of the callchain.
pub(super) struct OwnWords {
    pub(super) ip: [u64; WIDEST],
    pub(super) frame: [u64; WIDEST],
    pub(super) has_frame: bool,
    pub(super) chain: Option<usize>,
}

/// An event, and the places of fields in its samples.
#[derive(Clone, Copy)]
pub(super) struct EventFields {
    pub(super) index: AttrIndex,
    pub(super) number: u16,
    /// The period of the attr, for samples without one.
    pub(super) attr_period: u64,
    /// Its id, as recorded.
    pub(super) id: Option<Recorded>,
    pub(super) id_at: Slot,
    pub(super) ip: Slot,
    pub(super) task: Slot,
    pub(super) time: Slot,
    /// Not there if keys do not have the CPU.
    pub(super) cpu: Slot,
    pub(super) period: Slot,
}

/// What the keys of consecutive samples have in common, as long as nothing that decides it changes.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) event: u16,
    pub(super) mode: CpuMode,
    /// pid and tid, as recorded.
    pub(super) task: Option<Recorded>,
    /// `true` if it depends on the thread.
    pub(super) has_task: bool,
    pub(super) cpu: Option<Recorded>,
    pub(super) moments: Range<Moment>,
    /// Times that are surely within `moments`.
    pub(super) times: Range<u64>,
    pub(super) sampled: Sampled,
    /// The packed key, with 0 for what only a sample itself tells.
    pub(super) words: [u64; WIDEST],
}

/// Fields of a sample that decide what its key has in common with others.
#[derive(Clone, Copy)]
pub(super) struct Deciding {
    pub(super) mode: CpuMode,
    pub(super) task: Option<Recorded>,
    pub(super) cpu: Option<Recorded>,
}

impl Common {
    #[inline]
    pub(super) fn is_of(&self, event: u16, sample: Deciding) -> bool {
        (!self.has_task || self.task == sample.task)
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
            is_filtered: scan.filter.leaves_out_samples(),
            event: None,
            common: [None, None],
        })
    }
}
