//! Before the scan of a file: the query as this file can answer it, and what the scan reads.

use recrep_format::abi::{AttrFlags, BranchSampleType, SampleType};
use recrep_format::attr::AttrEntry;

use crate::callchain::{
    ChainChecks, ChainLimit, ChainOrigin, Deferred, FrameFields, FramePointers, RecordedChains,
    StackUnwinder, deferred_chains,
};
use crate::count::Layout;
use crate::query::{ChainOptions, Field, FrameKey, KeyError, MAX_STACK, Mode, Query, SortKey};
use crate::samples::Session;
use crate::samples::{SampleFilter, counted_by_thread, scaled};
use crate::scan::Scan;
use crate::symbols::{Functions, Resolver};
use crate::timeline::{Groups, Timeline};
use crate::tracepoints::{Formats, RecordedKernel, Traced};

/// Returns the query as a file can answer it: without recorded callchains there are no callers to
/// count.
pub(super) fn answerable(query: &Query, session: &Session<'_>) -> Query {
    let chains = &query.chains;
    let wanted = chains.is_shown() || chains.used_unshown();
    let has_calls = session.samples_have(SampleType::CALLCHAIN);
    let has_any = has_calls || (chains.branches && session.samples_have(SampleType::BRANCH_STACK));
    let counted = chains.counted || (wanted && has_any);
    let children = chains.children && (has_calls || chains.children_requested);
    Query { chains: ChainOptions { counted, children, ..chains.clone() }, ..query.clone() }
}

/// What the scan of a file reads, and what names its keys afterwards.
pub(super) struct Setup<'s> {
    pub(super) query: &'s Query,
    pub(super) session: &'s Session<'s>,
    pub(super) layout: Layout,
    /// For each event, whether its counters are counted by thread.
    by_thread: Vec<bool>,
    /// For each event, whether its counts are scaled by the times of its counter.
    pub(super) scales: Vec<bool>,
    /// Whether the tasks of samples are looked up; otherwise all are of [`Self::nobody`].
    has_tasks: bool,
    nobody: Timeline,
    pub(super) groups: Groups,
    deferred: Deferred<'s>,
    /// The frame at which chains begin, as in perf whether callchains were recorded or not.
    most: ChainLimit,
    unwinding: Option<StackUnwinder<'s>>,
    frame_pointers: Option<FramePointers<'s>>,
    /// Whether inlined functions become frames.
    pub(super) inlined: bool,
    pub(super) functions: Functions<'s>,
    pub(super) formats: Formats,
}

impl<'s> Setup<'s> {
    /// Reads what the scan needs; `asked` is the query before [`answerable`].
    pub(super) fn new(
        query: &'s Query,
        asked: &Query,
        session: &'s Session<'s>,
        resolver: &'s Resolver,
    ) -> Self {
        let (attrs, side_band) = (&session.file.attrs, &session.split.side_band);
        let layout = Layout::of(query);
        let by_thread = counted_by_thread(attrs, side_band, &session.split.pieces);
        let has_tasks = query.mode != Mode::Samples
            || layout.has_tasks()
            || query.filters.by_task()
            || by_thread.contains(&true);
        let by_group = query.has(SortKey::Socket)
            || query.needs(Field::Cgroup)
            || query.needs(Field::CgroupSpace)
            || query.filters.socket.is_some();
        let unwinding = if query.chains.counted { session.unwinding(resolver) } else { None };
        let follows = |entry: &AttrEntry| {
            let AttrEntry { attr, .. } = entry;
            attr.sample_type.contains(SampleType::CALLCHAIN)
                && ChainOrigin::of(attr) == ChainOrigin::Recorded
                && !attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_USER)
        };
        // With `--max-stack`, chains from the outermost frame on lack their inner ones.
        let has_all = query.chains.frames() >= MAX_STACK || !asked.chains.begin_at_caller();
        let has_frame_pointers = query.chains.counted
            && !query.chains.as_recorded
            && has_all
            && attrs.entries().iter().any(follows);
        Self {
            scales: scaled(attrs, side_band),
            groups: if by_group {
                Groups::read(session.file, side_band, &session.clock)
            } else {
                Groups::default()
            },
            deferred: deferred_chains(session.file, side_band),
            most: ChainLimit {
                frames: query.chains.frames(),
                outermost: asked.chains.begin_at_caller(),
            },
            inlined: {
                let default = || shows_inlined(session, unwinding.is_some());
                query.chains.inlined.unwrap_or_else(default)
            },
            functions: session.functions(resolver),
            formats: if query.trace_columns().is_empty() {
                Formats::default()
            } else {
                Formats::read(session.file)
            },
            nobody: Timeline::default(),
            query,
            session,
            layout,
            by_thread,
            has_tasks,
            unwinding,
            frame_pointers: has_frame_pointers
                .then(|| FramePointers::new(&session.side_band.modules, resolver)),
        }
    }

    pub(super) fn timeline(&self) -> &Timeline {
        if self.has_tasks { &self.session.timeline } else { &self.nobody }
    }

    /// Returns the filter of samples.
    pub(super) fn filter(&self) -> SampleFilter<'_> {
        let filters = &self.query.filters;
        let socket = filters.socket.map(|socket| self.groups.cpus_of(socket));
        SampleFilter::new(self.session, &filters.samples, filters.events.as_deref(), socket)
    }

    /// Returns the columns of tracepoints, and for each of them whether any event has it.
    pub(super) fn traced(&self) -> Result<(Traced<'_>, Vec<bool>), KeyError> {
        let kernel = RecordedKernel {
            formats: &self.formats,
            timeline: self.timeline(),
            functions: &self.functions,
        };
        Traced::new(&self.query.trace_columns(), &self.session.events, kernel)
    }

    /// Returns the scan of the file's samples.
    pub(super) fn scan<'a>(
        &'a self,
        filter: &'a SampleFilter<'a>,
        traced: Option<&'a Traced<'a>>,
    ) -> Scan<'a> {
        let Self { query, session, layout, .. } = self;
        let by_function = !layout.has(Field::Line) && !layout.has(Field::Offset);
        Scan {
            attrs: &session.file.attrs,
            clock: &session.clock,
            timeline: self.timeline(),
            has_tasks: self.has_tasks,
            are_sums: session.input.profile_samples().is_some(),
            query,
            layout,
            steps: session.steps(query.steps),
            filter,
            by_thread: &self.by_thread,
            scales: &self.scales,
            groups: &self.groups,
            off_cpu: session.off_cpu.as_ref(),
            traced,
            module_count: session.side_band.modules.len(),
            recorded: RecordedChains { deferred: &self.deferred, most: self.most },
            unwinding: self.unwinding.as_ref(),
            checks: self
                .frame_pointers
                .as_ref()
                .map(|rules| ChainChecks { rules, functions: &self.functions }),
            // Keys hold the function of the sampled instruction, which does not give inlined
            // functions or addresses.
            whole: self.inlined || query.chains.key != FrameKey::Function,
            placed: self.frame_fields(),
            early: by_function.then_some(&self.functions),
        }
    }

    fn frame_fields(&self) -> FrameFields {
        let Self { query, layout, .. } = self;
        let chains = &query.chains;
        FrameFields {
            cpu_mode: layout.cpu_mode,
            // Callers have addresses if they get rows; in call trees, they have names.
            ip: chains.children && layout.has(Field::Ip),
            size: layout.has(Field::MapSize),
            inlined: self.inlined && !are_calls(self.session),
            unmapped: query.needs.unmapped && chains.children || chains.key == FrameKey::Address,
            unnamed: true,
        }
    }
}

/// Returns whether inlined functions become frames unless the user asks otherwise: as in perf where
/// stacks `are_unwound`; where rec unwound, its samples have chains.
pub(super) fn shows_inlined(session: &Session<'_>, are_unwound: bool) -> bool {
    let are_copied = session.file.attrs.entries().iter().any(|AttrEntry { attr, .. }| {
        ChainOrigin::of(attr) == ChainOrigin::Copied
            && attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_USER)
    });
    are_unwound && are_copied || session.input.shows_inlined()
}

/// Returns whether callchains come from the call stack of the hardware (LBR): their frames are
/// calls, not return addresses.
pub(super) fn are_calls(session: &Session<'_>) -> bool {
    let kinds = session.file.attrs.entries().iter().map(|entry| entry.attr.branch_sample_type);
    kinds.into_iter().any(|kind| kind.contains(BranchSampleType::CALL_STACK))
}
