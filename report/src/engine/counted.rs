//! Counts the samples of one file, names them and adds them to the profile.

use rayon::prelude::*;
use recrep_format::abi::{AttrFlags, BranchSampleType, SampleType};
use recrep_format::attr::{AttrEntry, AttrIndex};
use rustc_hash::FxHashMap;

use crate::callchain::{ChainLimit, FrameFields, Recorded, Stacks, deferred_chains};
use crate::count::metrics::Metrics;
use crate::count::{Count, Layout, Rows};
use crate::engine::multiplexed;
use crate::engine::session::Session;
use crate::engine::signs::StackSource;
use crate::engine::{Labeller, loaded, numbers};
use crate::profile::Profile;
use crate::profile::modules::ModuleUses;
use crate::profile::names::AnswerLabels;
use crate::query::{
    ChainOptions, Field, FrameKey, KeyError, MAX_STACK, Meta, Mode, Query, SortKey, Warning,
};
use crate::scan::{Dropped, Scan, counted_by_thread, scaled};
use crate::symbols::Resolver;
use crate::timeline::{Groups, Role, Timeline};
use crate::tracepoints::{Formats, RecordedKernel, Traced};

/// Counts the samples of each module, and those without a function; of callers too if callchains
/// are counted.
pub(crate) fn module_uses(
    query: &Query,
    session: &Session<'_>,
    resolver: &Resolver,
) -> Result<ModuleUses, KeyError> {
    let mut profile = Profile::default();
    histogram(&mut profile, query, session, (resolver, &AnswerLabels::default()), true)?;
    Ok(profile.module_uses)
}

/// Counts the samples on all cores, adds the rows to the profile, and returns the numbers of
/// samples without a row. With `only_uses`, the uses of modules are counted, and no rows are added.
pub(crate) fn histogram(
    profile: &mut Profile,
    query: &Query,
    session: &Session<'_>,
    (resolver, labels): (&Resolver, &AnswerLabels),
    only_uses: bool,
) -> Result<Dropped, KeyError> {
    // Without recorded callchains there are no callers to count.
    let wanted = query.chains.is_shown() || query.chains.used_unshown();
    let has_calls = session.samples_have(SampleType::CALLCHAIN);
    let has_any =
        has_calls || (query.chains.branches && session.samples_have(SampleType::BRANCH_STACK));
    let counted = query.chains.counted || (wanted && has_any);
    let children = query.chains.children && (has_calls || query.chains.children_requested);
    let is_shown = counted && query.chains.is_shown();
    // As in perf, the frame at which chains begin does not depend on whether callchains were
    // recorded.
    let outermost = query.chains.from_caller();
    let query = &Query {
        chains: ChainOptions { counted, children, ..query.chains.clone() },
        ..query.clone()
    };
    let (attrs, side_band) = (&session.file.attrs, &session.side_band);
    let layout = Layout::of(query);
    let by_thread = counted_by_thread(attrs, &session.split.side_band, &session.split.pieces);
    let scales = scaled(attrs, &session.split.side_band);
    let has_own = by_thread.contains(&true);
    let (has_tasks, nobody) = (
        query.mode != Mode::Samples || layout.has_tasks() || query.filters.by_task() || has_own,
        Timeline::default(),
    );
    let timeline = if has_tasks { &*session.timeline } else { &nobody };
    let by_group =
        query.has(SortKey::Socket) || query.needs(Field::Cgroup) || query.needs(Field::CgroupSpace);
    let groups = match by_group || query.filters.socket.is_some() {
        true => Groups::read(session.file, &session.split.side_band, &session.clock),
        false => Groups::default(),
    };
    let socket = query.filters.socket.map(|socket| groups.cpus_of(socket));
    let filter = session.filters(&query.filters.samples, query.filters.events.as_deref(), socket);
    let deferred = deferred_chains(session.file, &session.split.side_band);
    let most = ChainLimit { frames: query.chains.frames(), outermost };
    let unwinding = if counted { session.unwinding(resolver) } else { None };
    let inlined = query.chains.inlined.unwrap_or(unwinding.is_some());
    let functions = session.functions(resolver);
    let by_function = !layout.has(Field::Line) && !layout.has(Field::Offset);
    let asked = query.trace_columns();
    let formats = if asked.is_empty() { Formats::default() } else { Formats::read(session.file) };
    let kernel = RecordedKernel { formats: &formats, timeline, functions: &functions };
    let (traced, found) = Traced::new(&asked, &session.events, kernel)?;
    let traced = (!asked.is_empty()).then_some(&traced);
    profile.add_traced(&found);
    profile.warnings.extend(formats.warnings.iter().cloned());
    let scan = Scan {
        attrs,
        clock: &session.clock,
        timeline,
        has_tasks,
        query,
        layout: &layout,
        filter: &filter,
        by_thread: &by_thread,
        scales: &scales,
        groups: &groups,
        off_cpu: session.off_cpu.as_ref(),
        traced,
        module_count: side_band.modules.len(),
        recorded: Recorded { deferred: &deferred, most },
        unwinding: unwinding.as_ref(),
        // Keys hold the function of the sampled instruction, which does not give inlined functions
        // or addresses.
        whole: inlined || query.chains.key != FrameKey::Function,
        placed: FrameFields {
            cpu_mode: layout.cpu_mode,
            // Callers have addresses if they get rows; in call trees, they have names.
            ip: children && layout.has(Field::Ip),
            size: layout.has(Field::MapSize),
            returns: inlined && !are_calls(session),
            unmapped: query.needs.unmapped && query.chains.children
                || query.chains.key == FrameKey::Address,
            unnamed: true,
        },
        early: by_function.then_some(&functions),
    };
    let modules: Vec<_> = side_band.modules.iter().collect();
    let events = session.events_of(query.mode);
    let (scanned, labeller) = scan.run(&session.split.pieces, |hits| {
        session.input.release();
        Labeller {
            query,
            fields: query.fields(),
            timeline,
            module_numbers: numbers(hits, &modules, labels),
            modules,
            symbols: loaded(query, hits, &functions),
            inlined,
            events: &events,
            labels,
            groups: &groups,
            traced,
        }
    });
    profile.warnings.extend(multiplexed::warnings(session, &scanned.times, &scales));
    let mut totals = scanned.totals;
    if query.filters.resolved {
        leave_out_unresolved(&mut totals, &scanned.rows, query.mode);
    }
    for (index, total) in totals.iter().enumerate() {
        let of = |counts: &FxHashMap<Option<AttrIndex>, u64>| match &session.off_cpu {
            Some(times) if index == 0 => {
                let is_time = |event: &Option<AttrIndex>| {
                    event.is_some_and(|event| times.role(event) != Role::None)
                };
                counts.iter().filter(|(event, _)| is_time(event)).map(|(_, count)| count).sum()
            }
            Some(_) => 0,
            None => counts.get(&Some(AttrIndex(index))).copied().unwrap_or(0),
        };
        profile.add_total(
            index,
            *total,
            of(&side_band.lost_samples),
            of(&side_band.filtered_samples),
        );
    }
    if query.mode == Mode::Samples && !only_uses {
        profile.warnings.extend(signs(query, session, &labeller, (&scanned.rows, &scanned.stacks)));
    }
    if query.has(SortKey::Symbol) {
        let doubts = labeller.count_modules(&scanned.rows, &mut profile.module_uses);
        profile.warnings.extend(doubts.warnings("samples"));
    }
    if only_uses {
        labeller.count_callers(&scanned.rows, &scanned.stacks, &mut profile.module_uses);
        return Ok(scanned.dropped);
    }
    let mut stacks = scanned.stacks;
    let mut rows = labeller.by_ancestors(scanned.rows, &mut stacks);
    if counted && !is_shown || query.filters.by_symbol() {
        rows = rows.changed(|row| {
            if !is_shown {
                *Field::Chain.of_mut(row) = 0;
            }
            labeller.takes(row)
        });
    }
    if is_shown {
        profile.children |= query.chains.children;
        labeller.cumulate(&rows, stacks, profile);
        return Ok(scanned.dropped);
    }
    let with_parts = query.has_parts();
    let words = labeller.label(rows.len(), &|row, key| rows.read_key(row, key));
    let of_row =
        |row: usize| Metrics::of(rows.count(row), with_parts.then(|| rows.key(row)).as_ref());
    let metrics: Vec<Metrics> = (0..rows.len()).into_par_iter().map(of_row).collect();
    let are_distinct = rows.layout().is_told_by(query.columns.iter().map(|column| column.key));
    profile.set_rows(words, metrics, are_distinct);
    Ok(scanned.dropped)
}

/// Returns hints at what the recording could show.
fn signs(
    query: &Query,
    session: &Session<'_>,
    labeller: &Labeller<'_>,
    counted: (&Rows, &Stacks),
) -> Vec<Warning> {
    let (rows, stacks) = counted;
    let layout = rows.layout();
    let mut hints = Vec::new();
    if layout.has(Field::Address) && query.has(SortKey::Symbol) {
        hints = labeller.interpreters(rows, stacks);
    }
    // Frames without a function must be there, and none of branches.
    let has_chains = layout.has(Field::Chain) && layout.cpu_mode;
    if !has_chains
        || query.chains.branches
        || query.filters.resolved
        || query.chains.frames() < MAX_STACK
    {
        return hints;
    }
    let entries = || session.file.attrs.entries().iter();
    let any = |fields: SampleType| session.samples_have(fields);
    let source = if are_calls(session) {
        StackSource::CallStack
    } else if any(SampleType::STACK_USER) {
        StackSource::Copies
    } else {
        StackSource::FramePointers
    };
    let has_user = |entry: &AttrEntry| {
        let is_left_out = entry.attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_USER)
            && source == StackSource::FramePointers;
        entry.attr.sample_type.contains(SampleType::CALLCHAIN) && !is_left_out
    };
    let has_chains: Vec<bool> = entries().map(has_user).collect();
    hints.extend(labeller.broken_stacks(rows, stacks, (source, &has_chains)));
    hints
}

/// Subtracts samples without a function from the totals.
fn leave_out_unresolved(totals: &mut [Count], rows: &Rows, mode: Mode) {
    for (row, count) in rows.iter() {
        let meta = Meta::unpack(Field::Meta.of(&row));
        let total = totals.get_mut(usize::from(meta.event));
        if let Some(total) = total.filter(|_| !meta.is_resolved(mode.is_of_branches())) {
            total.samples = total.samples.saturating_sub(count.samples);
            total.period = total.period.wrapping_sub(count.period);
        }
    }
}

/// Returns whether callchains come from the call stack of the hardware (LBR): their frames are
/// calls, not return addresses.
fn are_calls(session: &Session<'_>) -> bool {
    let attrs = session.file.attrs.entries().iter();
    attrs
        .map(|entry| entry.attr.branch_sample_type)
        .any(|kind| kind.contains(BranchSampleType::CALL_STACK))
}
