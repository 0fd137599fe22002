//! Input of the scan, and the samples that it could not count.

use recrep_format::attr::AttrTable;

use crate::callchain::ChainEnds;
use crate::count::Layout;
use crate::query::{Field, Query, Steps};
use crate::samples::{ChainSetup, CounterTraits, SampleFilter, Session};
use crate::timeline::{Clock, Groups, Parallelism, PathShares, Timeline};
use crate::tracepoints::{RecordedKernel, Traced};

/// Input of the scan, shared by all workers.
pub(crate) struct Scan<'f> {
    pub session: &'f Session<'f>,
    pub query: &'f Query,
    pub layout: Layout,
    pub filter: SampleFilter<'f>,
    pub threads: ThreadTables<'f>,
    /// Numbers of threads that ran, if they are needed.
    pub parallelism: Option<&'f Parallelism>,
    pub counters: CounterTraits,
    /// Callchains. Their `functions` replace addresses while samples are counted, unless the query
    /// needs source lines or offsets in functions.
    pub chains: ChainSetup<'f>,
    /// Tracepoint columns, if any are requested.
    pub traced: Option<Traced<'f>>,
    /// Steps in which times are counted.
    pub steps: Steps,
    /// What samples stand for on the critical path, if that is counted.
    pub path: Option<PathShares>,
    /// The kernel, if kinds of waits are needed.
    pub kernel: Option<RecordedKernel<'f>>,
}

/// What the threads of samples are looked up in.
#[derive(Clone, Copy)]
pub(crate) struct ThreadTables<'f> {
    pub timeline: &'f Timeline,
    /// `true` if threads and mappings are looked up there.
    pub has_tasks: bool,
    /// CPU sockets, cgroups and cgroup namespaces; empty if the query needs none.
    pub groups: &'f Groups,
}

impl<'f> Scan<'f> {
    pub(super) fn attrs(&self) -> &'f AttrTable {
        &self.session.file.attrs
    }

    pub(super) fn clock(&self) -> &'f Clock<'f> {
        &self.session.clock
    }

    /// Returns the layout of the keys that workers count: with a frame where functions replace
    /// addresses, unless keys have a recorded address and frames do not.
    pub(super) fn counted(&self) -> Layout {
        let layout = &self.layout;
        let is_early = self.chains.functions.is_some() && !self.query.mode.is_of_branches();
        let has_ip = layout.has(Field::Ip);
        let has_own_ip = has_ip && !self.chains.fields.ip;
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
