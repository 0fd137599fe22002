//! Counts the samples of one file, names them and adds them to the profile.
//!
//! ```text
//!   Query, Session ─► FileTables ─► Scan ─► Tally ─► Labeller ─► Scanned ─► Profile
//!                     looked up      how    counted   names        rows
//! ```

use rayon::prelude::*;
use recrep_format::abi::{AttrFlags, EventType, SampleType, SwEvent};
use recrep_format::attr::{AttrEntry, AttrIndex};
use rustc_hash::FxHashMap;

use super::critical_path::path_of_input;
use super::described::have_switches;
use super::{Labeller, ModuleSymbols, loaded, multiplexed, numbers};
use crate::callchain::{ChainChecks, ChainLimit, ChainOrigin, FrameFields, FramePointers};
use crate::count::metrics::Metrics;
use crate::count::{Count, Layout, Rows};
use crate::profile::modules::ModuleUses;
use crate::profile::names::SharedNames;
use crate::profile::{Event, Profile};
use crate::query::{
    ChainOptions, Field, FrameKey, KeyError, MAX_STACK, Meta, Mode, Query, SampleFilters, SortKey,
};
use crate::samples::{
    ChainSetup, CounterTraits, CriticalPath, SampleFilter, Session, are_hardware_calls,
    shows_inlined,
};
use crate::scan::{Dropped, Scan, Scanned, ThreadTables};
use crate::symbols::{Functions, Module, Resolver};
use crate::timeline::{Groups, PathShares, Role, Timeline, is_switches};
use crate::tracepoints::{Formats, RecordedKernel, Traced};

/// Where the names of an answer come from and are kept: all of its files share both.
#[derive(Clone, Copy)]
pub(crate) struct NameSources<'n> {
    pub(crate) resolver: &'n Resolver,
    pub(crate) shared: &'n SharedNames,
}

/// What is made of the counted samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Rows of the profile.
    Rows,
    /// The uses of modules, of callers too if callchains are counted, and no rows.
    ModuleUses,
}

/// Counts the samples of each module, and those without a function.
pub(crate) fn module_uses(
    query: &Query,
    session: &Session<'_>,
    resolver: &Resolver,
) -> Result<ModuleUses, KeyError> {
    let mut profile = Profile::default();
    let names = NameSources { resolver, shared: &SharedNames::default() };
    histogram(&mut profile, query, session, names, Purpose::ModuleUses)?;
    Ok(profile.module_uses)
}

/// Counts the samples on all cores, adds what is made of them to the profile, and returns the
/// numbers of samples without a row.
pub(crate) fn histogram(
    profile: &mut Profile,
    asked: &Query,
    session: &Session<'_>,
    names: NameSources<'_>,
    purpose: Purpose,
) -> Result<Dropped, KeyError> {
    let query = &answerable(asked, session);
    let tables = FileTables::read(query, asked, session, names.resolver);
    let (scan, found) = tables.scan(query, asked, session, names.resolver)?;
    profile.add_traced(&found);
    profile.warnings.extend(tables.formats.warnings.iter().cloned());
    let tally = scan.count();
    session.input.release();
    let (events, hits) = (query.mode.event_names(&session.events), &tally.hits);
    let modules: Vec<&Module> = session.side_band.modules.iter().collect();
    let labeller = Labeller {
        query,
        input: &session.input.name,
        fields: query.fields(),
        timeline: scan.threads.timeline,
        module_numbers: numbers(query, hits, &modules, names.shared),
        modules,
        symbols: ModuleSymbols::Loaded(loaded(query, hits, &tables.functions)),
        inlined: inlined(query, session, scan.chains.unwinding.is_some()),
        events: &events,
        names: names.shared,
        groups: &tables.groups,
        traced: scan.traced.as_ref(),
    };
    let scanned = tally.named(&labeller);
    profile.paths.extend(tables.path.as_ref().map(|path| path_of_input(path, session)));
    Ok(NamedCounts { scan: &scan, scanned, labeller }.fill(profile, purpose))
}

/// Returns what `act` makes of the samples of a file, which it reads one by one; keys get names as in
/// a report.
pub(crate) fn with_samples<R>(
    asked: &Query,
    session: &Session<'_>,
    resolver: &Resolver,
    act: impl FnOnce(&Scan<'_>, &Labeller<'_>) -> R,
) -> Result<R, KeyError> {
    let query = &answerable(asked, session);
    let tables = FileTables::read(query, asked, session, resolver);
    let (scan, _) = tables.scan(query, asked, session, resolver)?;
    let labeller = Labeller {
        query,
        input: &session.input.name,
        fields: query.fields(),
        timeline: scan.threads.timeline,
        module_numbers: Vec::new(),
        modules: session.side_band.modules.iter().collect(),
        symbols: ModuleSymbols::Lazy(&tables.functions),
        inlined: inlined(query, session, scan.chains.unwinding.is_some()),
        events: &session.events,
        names: &SharedNames::default(),
        groups: &tables.groups,
        traced: None,
    };
    Ok(act(&scan, &labeller))
}

/// Returns the query as a file can answer it: without recorded callchains there are no callers to
/// count.
fn answerable(query: &Query, session: &Session<'_>) -> Query {
    let mut filters = query.filters.clone();
    if query.mode == Mode::CriticalPath {
        // These choose the path, not samples: all of its pieces count.
        let SampleFilters { times, comms, pids, tids, .. } = &mut filters.samples;
        (*times, *comms, *pids, *tids) = (None, None, None, None);
    }
    let chains = &query.chains;
    let wanted = chains.is_shown() || chains.used_unshown();
    let has_calls = session.samples_have(SampleType::CALLCHAIN);
    let has_any = has_calls || (chains.branches && session.samples_have(SampleType::BRANCH_STACK));
    let counted = chains.counted || (wanted && has_any);
    let children = chains.children && (has_calls || chains.children_requested);
    let chains = ChainOptions { counted, children, ..chains.clone() };
    Query { chains, filters, ..query.clone() }
}

/// Returns whether inlined functions become frames.
fn inlined(query: &Query, session: &Session<'_>, are_unwound: bool) -> bool {
    query.chains.inlined.unwrap_or_else(|| shows_inlined(session, are_unwound))
}

/// What samples and names of a file are looked up in.
struct FileTables<'s> {
    functions: Functions<'s>,
    formats: Formats,
    groups: Groups,
    frame_pointers: Option<FramePointers<'s>>,
    path: Option<CriticalPath<'s>>,
    /// The timeline of queries that need no threads.
    nobody: Timeline,
}

impl<'s> FileTables<'s> {
    /// Reads what the query needs; `asked` is the query before [`answerable`].
    fn read(
        query: &Query,
        asked: &Query,
        session: &'s Session<'s>,
        resolver: &'s Resolver,
    ) -> Self {
        let by_group = query.has(SortKey::Socket)
            || query.needs(Field::Cgroup)
            || query.needs(Field::CgroupSpace)
            || query.filters.socket.is_some();
        let groups = match by_group {
            true => Groups::read(session.file, &session.split.side_band, &session.clock),
            false => Groups::default(),
        };
        let formats = match query.trace_columns().is_empty() {
            true => Formats::default(),
            false => Formats::read(session.file),
        };
        let frame_pointers = follows_frame_pointers(query, asked, session)
            .then(|| FramePointers::new(&session.side_band.modules, resolver));
        let (functions, nobody) = (session.functions(resolver), Timeline::default());
        let path = CriticalPath::find(session, &asked.filters.samples);
        Self { functions, formats, groups, frame_pointers, path, nobody }
    }

    /// Returns the scan of the file's samples, and for each column of tracepoints whether any event
    /// has it.
    fn scan(
        &'s self,
        query: &'s Query,
        asked: &Query,
        session: &'s Session<'s>,
        resolver: &'s Resolver,
    ) -> Result<(Scan<'s>, Vec<bool>), KeyError> {
        let layout = Layout::of(query);
        let counters = CounterTraits::read(session);
        let has_tasks = query.mode != Mode::Samples
            || layout.has_tasks()
            || query.filters.by_task()
            || counters.by_thread.contains(&true);
        let timeline: &Timeline = if has_tasks { &session.timeline } else { &self.nobody };
        let Self { functions, formats, groups, .. } = self;
        let kernel = RecordedKernel { formats, timeline, functions };
        let (traced, found) = Traced::new(&query.trace_columns(), &session.events, kernel)?;
        let filters = &query.filters;
        let socket = filters.socket.map(|socket| groups.cpus_of(socket));
        let scan = Scan {
            session,
            query,
            filter: SampleFilter::new(session, &filters.samples, filters.events.as_deref(), socket),
            threads: ThreadTables { timeline, has_tasks, groups },
            parallelism: query.needs_parallelism().then(|| session.parallelism()),
            chains: self.chains(query, asked, session, resolver, &layout, timeline),
            traced: (!found.is_empty()).then_some(traced),
            steps: session.steps(query.steps),
            path: session.waits.as_ref().map(|_| self.path_shares()),
            kernel: query.needs_wait_kinds().then_some(kernel),
            layout,
            counters,
        };
        Ok((scan, found))
    }

    /// Returns what samples stand for on the critical path.
    fn path_shares(&self) -> PathShares {
        let path = self.path.as_ref();
        path.map(|path| PathShares::of(path.waits, &path.pieces)).unwrap_or_default()
    }

    /// Returns how chains are read, and what their frames are told apart by.
    fn chains(
        &'s self,
        query: &Query,
        asked: &Query,
        session: &'s Session<'s>,
        resolver: &'s Resolver,
        layout: &Layout,
        timeline: &'s Timeline,
    ) -> ChainSetup<'s> {
        let chains = &query.chains;
        let unwinding = if chains.counted { session.unwinding(resolver) } else { None };
        let inlined = inlined(query, session, unwinding.is_some());
        let functions = &self.functions;
        let by_function = !layout.has(Field::Line) && !layout.has(Field::Offset);
        // As in perf, chains begin at this frame whether callchains were recorded or not.
        let most =
            ChainLimit { frames: chains.frames(), outermost: asked.chains.begin_at_caller() };
        ChainSetup {
            unwinding,
            as_recorded: chains.as_recorded,
            fields: FrameFields {
                cpu_mode: layout.cpu_mode,
                // Callers have addresses if they get rows; in call trees, they have names.
                ip: chains.children && layout.has(Field::Ip),
                size: layout.has(Field::MapSize),
                inlined: inlined && !are_hardware_calls(session),
                unmapped: query.needs.unmapped && chains.children
                    || chains.key == FrameKey::Address,
                unnamed: true,
            },
            functions: by_function.then_some(functions),
            // Inlined functions and positions are found by address, later.
            names_callers: !inlined && chains.key == FrameKey::Function,
            checks: self.frame_pointers.as_ref().map(|rules| ChainChecks { rules, functions }),
            ..ChainSetup::new(session, timeline, most)
        }
    }
}

/// Returns whether the query counts chains that the kernel made by following frame pointers, so
/// that they are checked.
fn follows_frame_pointers(query: &Query, asked: &Query, session: &Session<'_>) -> bool {
    let follows = |AttrEntry { attr, .. }: &AttrEntry| {
        attr.sample_type.contains(SampleType::CALLCHAIN)
            && ChainOrigin::of(attr) == ChainOrigin::Recorded
            && !attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_USER)
    };
    // With `--max-stack`, chains from the outermost frame on lack their inner ones.
    let has_all = query.chains.frames() >= MAX_STACK || !asked.chains.begin_at_caller();
    let is_checked = query.chains.counted && !query.chains.as_recorded && has_all;
    is_checked && session.file.attrs.entries().iter().any(follows)
}

/// The counted samples of a file, with functions in place of addresses.
struct NamedCounts<'a> {
    scan: &'a Scan<'a>,
    scanned: Scanned,
    labeller: Labeller<'a>,
}

impl NamedCounts<'_> {
    /// Adds what was counted to the profile, and returns the numbers of samples without a row.
    fn fill(mut self, profile: &mut Profile, purpose: Purpose) -> Dropped {
        let Scan { query, session, .. } = *self.scan;
        let (scanned, labeller) = (&mut self.scanned, &self.labeller);
        profile.warnings.extend(multiplexed::warnings(
            session,
            &scanned.times,
            &self.scan.counters.scales,
        ));
        if query.filters.resolved {
            leave_out_unresolved(&mut scanned.totals, &scanned.rows, query.mode);
        }
        add_totals(profile, &scanned.totals, session);
        // What a profile lacks cannot be recorded any more.
        let is_recording = session.input.profile_samples().is_none();
        if query.mode == Mode::Samples && purpose == Purpose::Rows && is_recording {
            let (hints, stacks) = labeller.hints(session, &scanned.rows, &scanned.stacks);
            profile.warnings.extend(hints);
            profile.user_stacks.add(stacks.all);
            profile.program_stacks.append(stacks.of_programs);
        }
        if query.mode == Mode::CriticalPath && purpose == Purpose::Rows {
            profile.warnings.extend(labeller.spinning(&scanned.rows));
        }
        if query.has(SortKey::Symbol) {
            let doubts = labeller.count_modules(&scanned.rows, &mut profile.module_uses);
            profile.warnings.extend(doubts.warnings("samples"));
        }
        let dropped = std::mem::take(&mut scanned.dropped);
        match purpose {
            Purpose::Rows => self.add_rows(profile),
            Purpose::ModuleUses => {
                let Scanned { rows, stacks, .. } = scanned;
                labeller.count_callers(rows, stacks, &mut profile.module_uses);
            }
        }
        dropped
    }

    fn add_rows(self, profile: &mut Profile) {
        let Self { scanned: Scanned { rows, mut stacks, .. }, labeller, .. } = self;
        let query = labeller.query;
        let is_shown = query.chains.counted && query.chains.is_shown();
        let mut rows = labeller.by_ancestors(rows, &mut stacks);
        if query.chains.counted && !is_shown || query.filters.by_symbol() {
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
        } else {
            labeller.add_rows(&rows, profile);
        }
    }
}

impl Labeller<'_> {
    /// Adds rows without callers.
    fn add_rows(&self, rows: &Rows, profile: &mut Profile) {
        let with_parts = self.query.has_parts();
        let words = self.label(rows.len(), &|row, key| rows.read_key(row, key));
        let of_row =
            |row: usize| Metrics::of(rows.count(row), with_parts.then(|| rows.key(row)).as_ref());
        let metrics: Vec<Metrics> = (0..rows.len()).into_par_iter().map(of_row).collect();
        let keys = self.query.columns.iter().map(|column| column.key);
        profile.set_rows(words, metrics, rows.layout().is_told_by(keys));
    }
}

/// Returns the events of a profile in a mode.
pub(crate) fn profile_events(session: &Session<'_>, mode: Mode) -> Vec<Event> {
    if let Some(name) = mode.event() {
        return vec![Event { counts_time: true, ..Event::named(name) }];
    }
    let has_waits = mode == Mode::Samples && have_switches(session);
    let event = |(entry, name): (&AttrEntry, &String)| {
        let (kind, config) = (entry.attr.kind, entry.attr.config);
        let is_clock = [SwEvent::CPU_CLOCK.0, SwEvent::TASK_CLOCK.0].contains(&config)
            && kind == EventType::SOFTWARE;
        Event {
            counts_time: is_clock && mode == Mode::Samples,
            is_tracepoint: kind == EventType::TRACEPOINT,
            is_of_waits: has_waits && is_switches(&entry.attr) && entry.attr.sample_period == 1,
            ..Event::named(name)
        }
    };
    session.file.attrs.entries().iter().zip(&session.events).map(event).collect()
}

/// Adds the totals of the events, with what was lost of each.
fn add_totals(profile: &mut Profile, totals: &[Count], session: &Session<'_>) {
    let side_band = &session.side_band;
    for (index, total) in totals.iter().enumerate() {
        let lost = of_event(&side_band.lost_samples, index, session);
        let filtered = of_event(&side_band.filtered_samples, index, session);
        profile.add_total(index, *total, lost, filtered);
    }
}

/// Returns the count of an event; of times, that of all events from which they are computed.
fn of_event(
    counts: &FxHashMap<Option<AttrIndex>, u64>,
    index: usize,
    session: &Session<'_>,
) -> u64 {
    let Some(times) = &session.off_cpu else {
        return counts.get(&Some(AttrIndex(index))).copied().unwrap_or(0);
    };
    if index > 0 {
        return 0;
    }
    let is_time =
        |event: &Option<AttrIndex>| event.is_some_and(|event| times.role(event) != Role::None);
    counts.iter().filter(|(event, _)| is_time(event)).map(|(_, count)| count).sum()
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
