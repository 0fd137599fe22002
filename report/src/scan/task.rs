//! What every worker reads, and what it finds beside the histogram.

use recrep_format::attrs::AttrTable;

use super::chains::Chaining;
use super::filter::SampleFilter;
use crate::callchain::unwind::Ends;
use crate::count::Layout;
use crate::query::sort_key::Mode;
use crate::timeline::Timeline;
use crate::timeline::cgroups::Groups;
use crate::timeline::clock::Clock;
use crate::tracepoints::Traced;

/// What every worker reads.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'f> {
    /// The attrs.
    pub attrs: &'f AttrTable,
    /// When records take effect.
    pub clock: &'f Clock<'f>,
    /// The frozen side-band.
    pub timeline: &'f Timeline,
    /// What is counted.
    pub mode: Mode,
    /// Whether samples of guests make rows.
    pub guests: bool,
    /// What a key holds.
    pub layout: &'f Layout,
    /// Which samples make rows.
    pub filter: &'f SampleFilter<'f>,
    /// What CPUs and threads belong to; nothing where no key asks for it.
    pub groups: &'f Groups,
    /// What is shown of tracepoints' raw bytes, where that is asked for.
    pub traced: Option<&'f Traced<'f>>,
    /// The steps of [`crate::count::Field::Time`], in nanoseconds.
    pub quantum: u64,
    /// How many modules there are.
    pub module_count: usize,
    /// The callchains, where [`crate::count::Field::Chain`] is in use.
    pub chaining: Chaining<'f>,
}

/// What the scan found beside the histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Samples whose id no event has.
    pub unknown_id: u64,
    /// Samples of guests that count in the totals only.
    pub guest: u64,
    /// Samples that are shorter than their event's fields say; the rest of the record was needed.
    pub malformed: u64,
    /// Samples whose record ends before their callchain does: they count, without it.
    pub torn_chains: u64,
    /// How chains on copied stacks end.
    pub ends: Ends,
}

impl Dropped {
    /// Adds what another worker found.
    pub fn add(&mut self, other: Self) {
        self.unknown_id += other.unknown_id;
        self.guest += other.guest;
        self.malformed += other.malformed;
        self.torn_chains += other.torn_chains;
        self.ends.add(other.ends);
    }
}
