//! Input of the scan, and the samples that it could not count.

use recrep_format::attr::AttrTable;

use crate::callchain::{ChainChecks, ChainEnds, FrameFields, RecordedChains, StackUnwinder};
use crate::count::Layout;
use crate::query::{Field, Query, Steps};
use crate::samples::SampleFilter;
use crate::symbols::Functions;
use crate::timeline::{Clock, Groups, OffCpu, Timeline};
use crate::tracepoints::Traced;

/// Input of the scan, shared by all workers.
#[derive(Clone, Copy)]
pub(crate) struct Scan<'f> {
    pub attrs: &'f AttrTable,
    pub clock: &'f Clock<'f>,
    pub timeline: &'f Timeline,
    /// `true` if threads and mappings are looked up there.
    pub has_tasks: bool,
    /// `true` if each record of a sample stands for several ones; STREAM_ID is their number.
    pub are_sums: bool,
    pub query: &'f Query,
    pub layout: &'f Layout,
    /// Steps in which times are counted.
    pub steps: Steps,
    pub filter: &'f SampleFilter<'f>,
    /// Whether threads have their own values of the counters that samples read, for each event.
    pub by_thread: &'f [bool],
    /// Whether these values are scaled to the time that the counters were enabled, for each event.
    pub scales: &'f [bool],
    /// CPU sockets, cgroups and cgroup namespaces; empty if the query needs none.
    pub groups: &'f Groups,
    /// Times of threads, if they are counted in place of the samples.
    pub off_cpu: Option<&'f OffCpu>,
    /// Tracepoint columns, if any are requested.
    pub traced: Option<&'f Traced<'f>>,
    pub module_count: usize,
    pub recorded: RecordedChains<'f>,
    pub unwinding: Option<&'f StackUnwinder<'f>>,
    /// Checks of recorded callchains.
    pub checks: Option<ChainChecks<'f>>,
    /// Fields that distinguish frames.
    pub placed: FrameFields,
    /// `true` if sampled instructions stay in their callchains.
    pub whole: bool,
    /// Functions that replace addresses while samples are counted; `None` if the query needs source
    /// lines or offsets in functions.
    pub early: Option<&'f Functions<'f>>,
}

impl Scan<'_> {
    /// Returns the layout of the keys that workers count: with a frame where functions replace
    /// addresses, unless keys have a recorded address and frames do not.
    pub(super) fn counted(&self) -> Layout {
        let layout = self.layout;
        let is_early = self.early.is_some() && !self.query.mode.is_of_branches();
        let has_ip = layout.has(Field::Ip);
        let has_own_ip = has_ip && !self.placed.ip;
        let has_frame = layout.has(Field::Chain) || layout.has(Field::Address) && !has_ip;
        if is_early && has_frame && !has_own_ip { layout.by_frame() } else { layout.clone() }
    }
}

/// Numbers of samples that were not counted, or only in part, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Samples with an unknown event ID.
    pub unknown_id: u64,
    /// Counter values that are lower than the one before.
    pub lower_values: u64,
    /// Samples too short for the fields of their event, where missing fields were needed.
    pub malformed: u64,
    /// Samples whose record ends within the callchain; they count without it.
    pub torn_chains: u64,
    /// How chains from copied stacks ended.
    pub ends: ChainEnds,
}

impl Dropped {
    /// Adds the numbers of another worker.
    pub(crate) fn add(&mut self, other: Self) {
        self.unknown_id += other.unknown_id;
        self.lower_values += other.lower_values;
        self.malformed += other.malformed;
        self.torn_chains += other.torn_chains;
        self.ends.add(other.ends);
    }
}
