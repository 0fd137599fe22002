//! Joins inputs: the profiles of all inputs of a query, merged or apart.
//!
//! ```text
//!   Source ─► Input ─► OpenedInput ─► Session ─► Profile ─┬─► merged with those of other inputs
//!             open     parsed         side-band  counted  └─► apart, with the same labels (diff)
//! ```

use std::sync::OnceLock;

use super::counted::NameSources;
use super::input_profile::profile;
use crate::decode::{self, WantedTraces};
use crate::input::several::each_merged;
use crate::input::{Input, Keep, OpenError};
use crate::profile::names::{ProfileNames, SharedNames};
use crate::profile::{InputSummary, Profile};
use crate::query::{FilterValues, KeyError, Query, Source, Warning};
use crate::samples::Session;
use crate::symbols::Resolver;
use crate::tracepoints::Formats;

/// Answers for single inputs with the same numbers for the same texts.
struct Answering<'q> {
    query: &'q Query,
    resolver: Resolver,
    names: SharedNames,
    /// The query that is answered: the first input decides which columns are the default.
    answered: OnceLock<Query>,
    second: Option<SecondQuery<'q>>,
    /// Samples of traces may be sums: nothing reads them one by one.
    as_sums: bool,
}

/// Query of the same samples that is answered in the same sessions, so that what comes before the
/// samples is read once. Its mode and its sources of symbols are those of the first query.
struct SecondQuery<'q> {
    query: &'q Query,
    /// Names of its own: symbols keep the numbers that they have in the first answer.
    names: SharedNames,
}

impl<'q> SecondQuery<'q> {
    fn new(query: &'q Query) -> Self {
        Self { query, names: SharedNames::default() }
    }

    fn profile(&self, session: &Session<'_>, resolver: &Resolver) -> anyhow::Result<Profile> {
        profile(self.query, session, NameSources { resolver, shared: &self.names })
    }
}

/// Profiles of one input for both queries, and what was made of its session.
#[derive(Default)]
struct InputAnswer<T> {
    profile: Profile,
    second: Option<Profile>,
    made: T,
}

impl<'q> Answering<'q> {
    fn new(query: &'q Query, second: Option<&'q Query>) -> Self {
        Self {
            query,
            resolver: Resolver::new(query.symbol_sources.clone()),
            names: SharedNames::of_resolver(),
            answered: OnceLock::new(),
            second: second.map(SecondQuery::new),
            as_sums: false,
        }
    }

    /// Answers for an input; `of` is called with its session.
    fn input<T>(
        &self,
        source: &Source,
        of: &dyn Fn(&Session<'_>) -> T,
    ) -> anyhow::Result<InputAnswer<T>> {
        let input = Input::open(source)?;
        input.unless_changed(self.opened_input(&input, of))
    }

    fn opened_input<T>(
        &self,
        input: &Input,
        of: &dyn Fn(&Session<'_>) -> T,
    ) -> anyhow::Result<InputAnswer<T>> {
        let Self { query, resolver, names, answered, second, as_sums } = self;
        let traces = WantedTraces::each(&query.filters.samples.itrace);
        let traces = WantedTraces { as_sums: *as_sums, ..traces };
        let opened = decode::open(input, Keep::Some, traces, resolver)?;
        let session = &Session::open(&opened, query.mode, Some(resolver));
        let by_trace = || query.has_default_columns && Formats::cover_all_events(session.file);
        let query =
            answered.get_or_init(|| if by_trace() { query.by_trace() } else { (*query).clone() });
        let profile = profile(query, session, NameSources { resolver, shared: names })?;
        let second = second.as_ref().map(|second| second.profile(session, resolver)).transpose()?;
        Ok(InputAnswer { profile, second, made: of(session) })
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

/// Answers the query, and returns what `of` makes of the session of each input, in their order. If an
/// input changed while it was read, that is an error: there is no second attempt.
pub(crate) fn gather<T: Send>(
    query: &Query,
    of: impl Fn(&Session<'_>) -> T + Sync,
) -> anyhow::Result<(Profile, Query, Vec<T>)> {
    let Gathered { profile, query, made, .. } = gather_two(query, None, of)?;
    Ok((profile, query, made))
}

/// Answers the query like [`gather`], where rows and totals are all that is wanted.
pub(crate) fn gather_rows(query: &Query) -> anyhow::Result<(Profile, Query)> {
    let answering = Answering { as_sums: query.takes_sums(), ..Answering::new(query, None) };
    let Gathered { profile, query, .. } = gathered(query, answering, |_| ())?;
    Ok((profile, query))
}

/// Answers of all inputs.
pub(crate) struct Gathered<T> {
    pub(crate) profile: Profile,
    /// The query that was answered.
    pub(crate) query: Query,
    /// Answer of the second query: its rows and their names.
    pub(crate) second: Option<Profile>,
    /// What was made of the session of each input, in their order.
    pub(crate) made: Vec<T>,
}

/// Like [`gather`], and answers a second query of the same samples in the same sessions.
pub(crate) fn gather_two<T: Send>(
    query: &Query,
    second: Option<&Query>,
    of: impl Fn(&Session<'_>) -> T + Sync,
) -> anyhow::Result<Gathered<T>> {
    gathered(query, Answering::new(query, second), of)
}

fn gathered<T: Send>(
    query: &Query,
    answering: Answering<'_>,
    of: impl Fn(&Session<'_>) -> T + Sync,
) -> anyhow::Result<Gathered<T>> {
    let of_input = |source: &Source| {
        let InputAnswer { mut profile, second, made } = answering.input(source, &of)?;
        if !query.sources.contains(source) || query.sources.len() > 1 {
            for warning in &mut profile.warnings {
                let name = profile.inputs.first().map_or("", |input| input.path.as_str());
                warning.message = format!("{name}: {}", warning.message);
            }
        }
        Ok(InputAnswer { profile, second, made: vec![made] })
    };
    let merge = |all: &mut InputAnswer<Vec<T>>, one: InputAnswer<Vec<T>>| all.append(one);
    let merged = answering.merged(&query.sources, &of_input, &merge);
    let (found, unreadable) = match (merged, query.bare_word()) {
        // Only the input could show that the word is a tracepoint's field.
        (Err(error), Some(word)) if error.is::<OpenError>() => {
            return Err(KeyError::NoFile(word.to_owned(), error.to_string()).into());
        }
        (merged, _) => merged?,
    };
    let Answering { resolver, names, answered, second: asked, .. } = answering;
    resolver.check_unchanged()?;
    let InputAnswer { mut profile, mut second, made } = found.unwrap_or_default();
    name(&mut profile, names);
    if let (Some(profile), Some(SecondQuery { names, .. })) = (&mut second, asked) {
        name(profile, names);
    }
    profile.warnings.extend(unreadable);
    // What one of several inputs has is an answer.
    if profile.is_without_rows() && query.inspection.is_none() {
        // Times come from switches of threads, of which there are some.
        let samples = profile.samples().max(query.mode.is_of_time().into());
        let failure = FilterValues::failure(&profile.filter_values, samples);
        let has_waits = samples == 0 && profile.inputs.iter().any(InputSummary::has_switches);
        let waits = if has_waits { "; how long its threads waited: --off-cpu" } else { "" };
        profile.warnings.push(Warning::new(failure.code, failure.message + waits));
    } else {
        profile.warnings.extend(FilterValues::partly(&profile.filter_values).collect::<Vec<_>>());
        let events: Vec<&str> = profile.events().iter().map(|event| event.name.as_str()).collect();
        let unknown = query.filters.unknown_events(&events);
        profile.warnings.extend(unknown);
    }
    let query = answered.into_inner().unwrap_or_else(|| query.clone());
    let trace_columns = query.columns.iter().filter(|column| column.key.is_of_trace());
    if let Some((column, _)) = trace_columns.zip(&profile.traced).find(|(_, exists)| !**exists) {
        return Err(KeyError::NoField(column.typed.clone()).into());
    }
    Ok(Gathered { profile, query, second, made })
}

impl<T> InputAnswer<Vec<T>> {
    /// Adds the answers for other inputs.
    fn append(&mut self, other: Self) {
        self.profile.append(other.profile);
        if let (Some(second), Some(others)) = (&mut self.second, other.second) {
            second.append(others);
        }
        self.made.extend(other.made);
    }
}

/// Gives the merged profile of all inputs its names.
fn name(profile: &mut Profile, names: SharedNames) {
    profile.names = names.into_names();
    profile.names.disambiguate();
    profile.settle();
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
    let answering = Answering::new(query, None);
    let of_input = |source: &Source| {
        let InputAnswer { profile, made, .. } = answering.input(source, of)?;
        Ok(vec![(profile, made)])
    };
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
