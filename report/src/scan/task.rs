//! Input of the scan, and the samples that it could not count.

use recrep_format::attr::AttrTable;

use super::chains::ChainSettings;
use super::filter::SampleFilter;
use crate::callchain::unwind::UnwindStats;
use crate::count::Layout;
use crate::query::key::Field;
use crate::query::mode::Mode;
use crate::timeline::Timeline;
use crate::timeline::cgroups::Groups;
use crate::timeline::clock::Clock;
use crate::timeline::off_cpu::OffCpu;
use crate::tracepoints::Traced;

/// Input of the scan, shared by all workers.
#[derive(Clone, Copy)]
pub struct Scan<'f> {
    /// Attrs of the file.
    pub attrs: &'f AttrTable,
    /// Clock that gives the moments of records.
    pub clock: &'f Clock<'f>,
    /// Timeline built from the side-band records.
    pub timeline: &'f Timeline,
    /// `true` if threads and mappings are looked up there.
    pub has_tasks: bool,
    /// Kind of items to count: samples, branches, memory accesses, …
    pub mode: Mode,
    /// `true` if samples of guests get rows.
    pub guests: bool,
    /// Layout of the keys.
    pub layout: &'f Layout,
    /// Filters of the samples.
    pub filter: &'f SampleFilter<'f>,
    /// CPU sockets, cgroups and cgroup namespaces; empty if the query needs none.
    pub groups: &'f Groups,
    /// Times of threads, if they are counted in place of the samples.
    pub off_cpu: Option<&'f OffCpu>,
    /// Tracepoint columns, if any are requested.
    pub traced: Option<&'f Traced<'f>>,
    /// Step of `Field::Time` in nanoseconds.
    pub quantum: u64,
    /// Number of modules.
    pub module_count: usize,
    /// `true` if functions replace the addresses in keys while samples are counted.
    pub names_keys: bool,
    /// Settings for callchains, used if the layout has `Field::Chain`.
    pub chaining: ChainSettings<'f>,
}

impl Scan<'_> {
    /// Returns the layout of the keys that workers count: with a frame where functions replace addresses, unless keys
    /// have a recorded address and frames do not.
    pub(super) fn counted(&self) -> Layout {
        let is_early = self.chaining.early.is_some() && !self.mode.is_of_branches();
        let has_own_ip = self.layout.has(Field::Ip) && !self.chaining.placed.ip;
        let by_frame = is_early && (self.names_keys || self.layout.has(Field::Chain)) && !has_own_ip;
        if by_frame { self.layout.by_frame() } else { self.layout.clone() }
    }
}

/// Numbers of samples that were not counted, or only in part, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Samples with an unknown event ID.
    pub unknown_id: u64,
    /// Samples of guests, which count in the totals only.
    pub guest: u64,
    /// Samples too short for the fields of their event, where missing fields were needed.
    pub malformed: u64,
    /// Samples whose record ends within the callchain; they count without it.
    pub torn_chains: u64,
    /// Statistics on the chains from copied stacks.
    pub ends: UnwindStats,
}

impl Dropped {
    /// Adds the numbers of another worker.
    pub fn add(&mut self, other: Self) {
        self.unknown_id += other.unknown_id;
        self.guest += other.guest;
        self.malformed += other.malformed;
        self.torn_chains += other.torn_chains;
        self.ends.add(other.ends);
    }
}
