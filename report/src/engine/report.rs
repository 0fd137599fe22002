//! Answers a query: from inputs to one profile.
//!
//! ```text
//!   Input ─► Session (parts, records, frozen side-band) ─► Scan (all cores)
//!              └─ modules ─► Resolver ─► Labeller ─────────┴─► Profile ─► exports
//! ```

use std::path::Path;
use std::sync::OnceLock;

use recrep_format::abi::{AttrFlags, BranchSampleType, RecordType, SampleType};
use recrep_format::attr::AttrEntry;

use crate::count::LOWER_VALUES;
use crate::engine::counted::{Names, Purpose, histogram, profile_events};
use crate::engine::counts::RecordedCounts;
use crate::engine::{fetching, unmatched};
use crate::input::several::{each_merged, retry_if_changed};
use crate::input::split::Split;
use crate::input::{Input, Keep, OpenError, OpenedInput};
use crate::profile::names::{ProfileNames, SharedNames};
use crate::profile::recording::{Recording, When};
use crate::profile::{InputSummary, Profile};
use crate::query::{
    ChainOptions, Column, Field, FilterValues, Inspection, KeyError, Mode, Query, SortKey, Source,
    Warning,
};
use crate::samples::{self, Session};
use crate::scan::Dropped;
use crate::symbols::Resolver;
use crate::timeline::{Role, SwitchCounts, is_switches, total};
use crate::tracepoints::Formats;

/// Answers the query, by `trace` if no columns were named and the first input has only tracepoints;
/// returns the query that was answered, too.
///
/// # Errors
/// Returns an error if no input can be read, or if an input lacks data that the query asks for.
pub fn answer(query: &Query) -> anyhow::Result<(Profile, Query)> {
    retry_if_changed(&query.sources, || {
        if query.inspection == Some(Inspection::Stats) {
            // Only records and samples are counted: no columns, no callchains.
            let chains = ChainOptions::default();
            let counted =
                Query { columns: Vec::new(), chains, has_default_columns: false, ..query.clone() };
            return Ok((gather(&counted, |_| ())?.0, query.clone()));
        }
        let (profile, query, _) = gather(query, |_| ())?;
        Ok((profile, query))
    })
}

/// Answers for single inputs with the same numbers for the same texts.
struct Answering<'q> {
    query: &'q Query,
    resolver: Resolver,
    names: SharedNames,
    /// The query that is answered: the first input decides which columns are the default.
    answered: OnceLock<Query>,
}

impl<'q> Answering<'q> {
    fn new(query: &'q Query) -> Self {
        let resolver = Resolver::new(query.symbol_sources.clone());
        Self { query, resolver, names: SharedNames::of_resolver(), answered: OnceLock::new() }
    }

    /// Returns the profile of an input, and what `of` makes of its session.
    fn input<T>(
        &self,
        source: &Source,
        of: &dyn Fn(&Session<'_>) -> T,
    ) -> anyhow::Result<(Profile, T)> {
        let input = Input::open(source)?;
        input.unless_changed(self.opened_input(&input, of))
    }

    fn opened_input<T>(
        &self,
        input: &Input,
        of: &dyn Fn(&Session<'_>) -> T,
    ) -> anyhow::Result<(Profile, T)> {
        let Self { query, resolver, names, answered } = self;
        let opened = OpenedInput::new(input, Keep::Some)?;
        let session = &Session::open(&opened, query.mode, Some(resolver));
        let by_trace = || query.has_default_columns && Formats::cover_all_events(session.file);
        let query =
            answered.get_or_init(|| if by_trace() { query.by_trace() } else { (*query).clone() });
        let profile = of_session(query, session, Names { resolver, shared: names })?;
        Ok((profile, of(session)))
    }

    /// Calls `make` with inputs and merges what it returns, in their order.
    fn merged<T: Send>(
        &self,
        sources: &[Source],
        make: &(dyn Fn(&Source) -> anyhow::Result<T> + Sync),
        merge: &(dyn Fn(&mut T, T) + Sync),
    ) -> anyhow::Result<(Option<T>, Vec<Warning>)> {
        // Which names a file has must not depend on when another one's debug file was fetched.
        let side_by_side = self.query.symbol_sources.servers.is_none();
        each_merged(sources, side_by_side, make, merge)
    }
}

/// Like [`answer`], and returns what `of` makes of the session of each input, in their order. If an
/// input changed while it was read, that is an error: there is no second attempt.
pub(crate) fn gather<T: Send>(
    query: &Query,
    of: impl Fn(&Session<'_>) -> T + Sync,
) -> anyhow::Result<(Profile, Query, Vec<T>)> {
    let answering = Answering::new(query);
    let of_input = |source: &Source| {
        let (mut profile, made) = answering.input(source, &of)?;
        if !query.sources.contains(source) || query.sources.len() > 1 {
            for warning in &mut profile.warnings {
                let name = profile.inputs.first().map_or("", |input| input.path.as_str());
                warning.message = format!("{name}: {}", warning.message);
            }
        }
        Ok((profile, vec![made]))
    };
    let merge = |(whole, all): &mut (Profile, Vec<T>), (one, made)| {
        whole.append(one);
        all.extend(made);
    };
    let merged = answering.merged(&query.sources, &of_input, &merge);
    let (found, unreadable) = merged.map_err(|error| of_bare_name(error, query))?;
    let Answering { resolver, names, answered, .. } = answering;
    resolver.check_unchanged()?;
    let (mut profile, made) = found.unwrap_or_default();
    profile.names = names.into_names();
    profile.names.disambiguate();
    profile.settle();
    profile.warnings.extend(unreadable);
    // What one of several inputs has is an answer.
    if profile.is_without_rows() && query.inspection.is_none() {
        // Times come from switches of threads, of which there are some.
        let samples = profile.samples().max(query.mode.is_of_time().into());
        profile.warnings.push(FilterValues::failure(&profile.filter_values, samples));
    } else {
        profile.warnings.extend(FilterValues::partly(&profile.filter_values).collect::<Vec<_>>());
        profile.warnings.extend(unknown_events(query, &profile));
    }
    let query = answered.into_inner().unwrap_or_else(|| query.clone());
    let trace_columns = query.columns.iter().filter(|column| column.key.is_of_trace());
    if let Some((column, _)) = trace_columns.zip(&profile.traced).find(|(_, exists)| !**exists) {
        return Err(KeyError::NoField(column.typed.clone()).into());
    }
    Ok((profile, query, made))
}

/// Profiles of inputs that are not merged, with the same numbers for the same texts.
pub(crate) struct Apart<T> {
    /// The inputs of each group of sources in their order, and what was made of each.
    pub groups: Vec<Vec<(Profile, T)>>,
    /// A warning for each input that cannot be read, by group.
    pub unreadable: Vec<Vec<Warning>>,
    /// Names of cells and frames. Functions that read alike are not disambiguated.
    pub names: ProfileNames,
}

/// Answers a query for each input of some groups apart, and returns what `of` makes of the session
/// of each, too. If an input changed while it was read, that is an error.
///
/// # Errors
/// Returns an error if an input lacks data that the query asks for, but not if none can be read.
pub(crate) fn apart<T: Send>(
    query: &Query,
    groups: &[&[Source]],
    of: &(dyn Fn(&Session<'_>) -> T + Sync),
) -> anyhow::Result<Apart<T>> {
    let answering = Answering::new(query);
    let of_input = |source: &Source| Ok(vec![answering.input(source, of)?]);
    let merge = |all: &mut Vec<(Profile, T)>, one: Vec<(Profile, T)>| all.extend(one);
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    for sources in groups {
        match answering.merged(sources, &of_input, &merge) {
            Ok((of_group, left_out)) => {
                found.push(of_group.unwrap_or_default());
                unreadable.push(left_out);
            }
            Err(error) => {
                let error = error.downcast::<OpenError>()?;
                found.push(Vec::new());
                unreadable.push(vec![Warning::new(Warning::UNREADABLE, error.to_string())]);
            }
        }
    }
    answering.resolver.check_unchanged()?;
    Ok(Apart { groups: found, unreadable, names: answering.names.into_names() })
}

/// Returns a warning for each name of `--event` that no event of any input has.
fn unknown_events(query: &Query, profile: &Profile) -> Vec<Warning> {
    let events: Vec<&str> = profile.events().iter().map(|event| event.name.as_str()).collect();
    let warning = |wanted: &String| {
        let is_known = events.iter().any(|event| samples::is_named(event, wanted));
        let message = || {
            format!(
                "--event: no event is named `{wanted}`; events of the input: {}",
                events.join(", ")
            )
        };
        (!is_known && !events.is_empty()).then(|| Warning::new("unknown-event", message()))
    };
    query.filters.events.iter().flatten().filter_map(warning).collect()
}

/// Turns an unreadable input into [`KeyError::NoFile`] if a column was typed as a bare word that is
/// no known key: only the input could show that it is a tracepoint's field.
fn of_bare_name(error: anyhow::Error, query: &Query) -> anyhow::Error {
    let is_bare = |column: &&Column| {
        matches!(column.key, SortKey::TraceField(_)) && !column.typed.contains('.')
    };
    match query.columns.iter().find(is_bare).filter(|_| error.is::<OpenError>()) {
        Some(column) => KeyError::NoFile(column.typed.clone(), error.to_string()).into(),
        None => error,
    }
}

/// Answers the query for one input.
fn of_session(query: &Query, session: &Session<'_>, names: Names<'_>) -> anyhow::Result<Profile> {
    let input = session.input;
    let is_timed = query.needs(Field::Time) || query.filters.samples.times.is_some();
    if is_timed || query.mode != Mode::Samples {
        input.check_recording("what has times, branches or memory accesses")?;
    }
    check_recorded(&input.name, query.mode, session)?;
    check_chains(&input.name, query, session)?;
    let not_fetched = fetching::fetch(query, session, names.resolver)?;
    let mut profile = Profile::of_events(profile_events(session, query.mode));
    let dropped = histogram(&mut profile, query, session, names, Purpose::Rows)?;
    if query.inspection.is_none() {
        let recorded = unmatched::Recorded {
            session,
            resolver: names.resolver,
            symbol_sources: &query.symbol_sources,
            mode: query.mode,
        };
        profile.filter_values =
            unmatched::filter_values(&query.filters, profile.is_without_rows(), recorded)?;
    }
    if let Some(counts) = RecordedCounts::of(session).filter(|_| query.mode.event().is_none()) {
        for (place, count) in counts.totals().into_iter().enumerate() {
            profile.add_count(place, count);
        }
        profile.thread_counts = counts.threads();
        profile.warnings.extend(counts.warnings);
    }
    if query.threads && profile.thread_counts.is_empty() {
        let attrs = session.file.attrs.entries().iter();
        let are_asked =
            attrs.map(|entry| &entry.attr).any(|attr| attr.flags.contains(AttrFlags::INHERIT_STAT));
        let message = match are_asked {
            true => {
                "no counts of threads were recorded: the kernel writes them where a program with \
                 several threads or processes is recorded; of one alone, see rec stat"
            }
            false => "no counts of threads were recorded; record with -s",
        };
        profile.warnings.push(Warning::new("no-thread-counts", message));
    }
    profile.inputs.push(summary(query, session));
    profile.warnings.extend(session.warnings());
    profile.warnings.extend(not_fetched);
    profile.warnings.extend(dropped_warnings(&dropped));
    profile.warnings.extend(dropped.ends.warnings());
    profile.chain_ends = dropped.ends;
    if let Some(times) = &session.off_cpu {
        profile.warnings.extend(time_warnings(&times.counts));
    }
    profile.hints = hints(query, &input.name, session);
    Ok(profile)
}

/// Returns what is said of an input.
pub(crate) fn summary(query: &Query, session: &Session<'_>) -> InputSummary {
    let Session { input, split, side_band, .. } = session;
    let count = |kind: RecordType| split.counts.get(&kind).copied().unwrap_or(0);
    let mut recording = Recording::of(session.file, count(RecordType::THROTTLE));
    if query.is_default_input {
        recording.when = When::of(session.file, Path::new(&input.name));
    }
    let summed = input.profile_samples().map(Split::counts_of_profile);
    let records = summed.as_ref().unwrap_or(&split.counts);
    InputSummary {
        path: input.name.clone(),
        bytes: input.len(),
        samples: input.profile_samples().unwrap_or_else(|| split.samples()),
        records: records.iter().map(|(kind, count)| (kind.to_string(), *count)).collect(),
        lost_events: side_band.lost_events,
        lost_samples: total(&side_band.lost_samples),
        filtered_samples: total(&side_band.filtered_samples),
        complete: session.is_complete(),
        recording,
    }
}

/// Returns options that would show more of an input.
fn hints(query: &Query, name: &str, session: &Session<'_>) -> Vec<String> {
    let mut hints = Vec::new();
    if let Some(times) = &session.off_cpu
        && times.counts.unfinished > 0
    {
        hints.push(format!(
            "{name}: {} threads were off their CPUs when the recording ended; that time counts \
             until its last record",
            times.counts.unfinished
        ));
    }
    if query.mode == Mode::Samples && have_switches(session) {
        hints.push(format!(
            "{name} also has waits of threads: see where with --off-cpu, or waiting and running \
             with --wall"
        ));
    }
    if query.mode == Mode::Samples && !query.chains.branches && have_branches(session) {
        hints.push(format!("{name} has branch stacks: -b counts the branches in them"));
    }
    hints
}

/// Returns an error if the query asks for callchains of which none were recorded.
fn check_chains(name: &str, query: &Query, session: &Session<'_>) -> anyhow::Result<()> {
    let has_history = query.chains.branches && session.samples_have(SampleType::BRANCH_STACK);
    if !query.chains.is_asked || session.samples_have(SampleType::CALLCHAIN) || has_history {
        return Ok(());
    }
    if query.chains.branches {
        anyhow::bail!(
            "{name}: no branch stacks or callchains were recorded; record with -b or leave \
             --branch-history out"
        );
    }
    anyhow::bail!(
        "{name}: no callchains were recorded; record with -g, or leave --children, -g and -G out"
    )
}

/// Returns whether samples have branch stacks other than the hardware's call stack.
pub(crate) fn have_branches(session: &Session<'_>) -> bool {
    session.file.attrs.entries().iter().any(|AttrEntry { attr, .. }| {
        attr.sample_type.contains(SampleType::BRANCH_STACK)
            && !attr.branch_sample_type.contains(BranchSampleType::CALL_STACK)
    })
}

/// Returns an error if the data that the mode needs was not recorded.
fn check_recorded(name: &str, mode: Mode, session: &Session<'_>) -> anyhow::Result<()> {
    let access =
        SampleType::DATA_SRC | SampleType::WEIGHT | SampleType::WEIGHT_STRUCT | SampleType::ADDR;
    match mode {
        Mode::Branches | Mode::FallThroughs if !session.samples_have(SampleType::BRANCH_STACK) => {
            anyhow::bail!("{name}: no branch stacks were recorded; record with -b")
        }
        Mode::Memory if !session.samples_have(access) => {
            anyhow::bail!("{name}: no memory accesses were recorded; record with -d and -W")
        }
        _ => check_times(name, mode, session),
    }
}

/// Returns an error if the records that counting time needs were not recorded.
fn check_times(name: &str, mode: Mode, session: &Session<'_>) -> anyhow::Result<()> {
    let Some(times) = &session.off_cpu else { return Ok(()) };
    if times.counts.records == 0 {
        anyhow::bail!(
            "{name}: no switches of threads (SWITCH records with times) were recorded; {ADVICE}"
        );
    }
    let has_cpu = times.roles.iter().any(|role| matches!(role, Role::Clock | Role::Cycles));
    if mode == Mode::Wall && !has_cpu {
        anyhow::bail!(
            "{name}: no clock or hardware event was sampled, so running time is unknown; {ADVICE}"
        );
    }
    Ok(())
}

/// Commands that record what reports on time need.
const ADVICE: &str = "record with `rec --off-cpu`, or with `perf record --switch-events -e \
                      cpu-clock -e context-switches/period=1/ -g`";

/// Returns whether a report by samples could be one on time.
pub(crate) fn have_switches(session: &Session<'_>) -> bool {
    let counts = &session.split.counts;
    let has_records = [RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE]
        .iter()
        .any(|kind| counts.contains_key(kind));
    has_records && session.file.attrs.entries().iter().any(|entry| is_switches(&entry.attr))
}

/// Returns warnings of times that are missing, or shown at another stack.
fn time_warnings(counts: &SwitchCounts) -> impl Iterator<Item = Warning> {
    let unpaired = "switches lack the record of the switch out or in (lost?), so their time is \
                    unknown and left out";
    let unsampled = format!(
        "of {} waits have no stack of their own: their time is shown at the stack of the thread's \
         CPU sample before, below `[nearest sample]`, or at `[no sample]`",
        counts.stretches
    );
    let all = [
        Warning::counted(counts.unpaired, "unpaired-switches", unpaired),
        Warning::counted(counts.unsampled, "unsampled-switches", &unsampled),
    ];
    all.into_iter().flatten()
}

fn dropped_warnings(dropped: &Dropped) -> impl Iterator<Item = Warning> {
    let Dropped { unknown_id, malformed, torn_chains, lower_values, .. } = *dropped;
    let of_ids = "samples have an id that no event in the file has, and are left out";
    let of_fields = "samples are too short for the fields of their event, and are left out";
    let of_chains = "samples end inside their callchains, and count without them";
    let all = [
        Warning::counted(lower_values, "counter-reset", LOWER_VALUES),
        Warning::counted(unknown_id, "unknown-id", of_ids),
        Warning::counted(malformed, "bad-sample", of_fields),
        Warning::counted(torn_chains, "torn-callchain", of_chains),
    ];
    all.into_iter().flatten()
}
