//! The answer of `rep diff`: recordings, one comparison for each event, warnings, gates.

use std::collections::BTreeMap;

use anyhow::bail;

use super::args::DiffQuery;
use super::gates;
use super::rows::{
    Causes, Compared, Comparing, DiffEvent, EventLabels, Grouping, described, events,
};
use super::runs::{RunFacts, differences, leave_out_empty, runs};
use super::stacks;
use crate::compare::rules::GateReport;
use crate::compare::{Comparison, RowChange, compare};
use crate::count::Count;
use crate::engine::gather::{Apart, apart};
use crate::profile::Profile;
use crate::query::{FilterValues, Warning};

/// The whole answer.
pub(super) struct DiffAnswer<'q> {
    pub(super) asked: &'q DiffQuery,
    /// Recordings of both sides.
    pub(super) runs: [Vec<RunInput>; 2],
    pub(super) events: Vec<ComparedEvent>,
    pub(super) warnings: Vec<Warning>,
    /// The answers to the rules, if there are any.
    pub(super) gates: Option<GateReport<'q>>,
}

/// A recording of a side.
pub(super) struct RunInput {
    pub(super) path: String,
    pub(super) samples: u64,
    pub(super) seconds: Option<f64>,
}

/// An event, and the comparison of its rows.
pub(super) struct ComparedEvent {
    pub(super) name: String,
    /// `true` if periods are times, in nanoseconds.
    pub(super) counts_time: bool,
    /// Names of the columns of rows.
    pub(super) columns: Vec<String>,
    /// Number of those that the user asked for; the others are their companions.
    pub(super) keys: usize,
    /// What a row is: a function, a module, …
    pub(super) noun: &'static str,
    pub(super) labels: EventLabels,
    /// Numbers of samples of each row on both sides.
    pub(super) samples: Vec<[u64; 2]>,
    /// Samples and periods of both sides.
    pub(super) totals: [Count; 2],
    /// `true` if values are samples, else periods.
    pub(super) by_samples: bool,
    /// Sums of the rows' values on both sides, if rows are whole callchains.
    pub(super) sums: Vec<[u64; 2]>,
    pub(super) comparison: Comparison,
    pub(super) causes: Causes,
}

impl ComparedEvent {
    /// Returns the rows as they are printed: those marked by impact, largest first, but those that
    /// others explain under them; then the others.
    pub(super) fn listed(&self) -> Vec<&RowChange> {
        let mut rows = self.comparison.listed();
        rows.sort_by_key(|row| (!row.marked, self.causes.because.contains_key(&row.row)));
        rows
    }
}

/// Reads all inputs and compares them.
///
/// # Errors
/// Returns an error if a side has nothing to compare, or the sides differ in what was recorded. With
/// gates, that is an answer without events.
pub(super) fn answer(asked: &DiffQuery) -> anyhow::Result<DiffAnswer<'_>> {
    let mut apart = apart(&asked.query, &[&asked.base, &asked.new], &RunFacts::of)?;
    let mut doubts = gates::doubts(&apart);
    let mut warnings = leave_out_empty(&mut apart);
    warnings.extend(apart.unreadable.iter().flatten().cloned());
    warnings.extend(of_inputs(&apart));
    let sides = [0, 1].map(|side| recordings(&apart, side));
    let [base, new] = sides.each_ref().map(Vec::as_slice);
    let (different, machines_differ) = differences([base, new]);
    warnings.extend(different);
    let of_runs = runs([base, new]);
    let inputs = [0, 1].map(|side| inputs(&apart, side));
    let mut answer = DiffAnswer { asked, runs: inputs, events: Vec::new(), warnings, gates: None };

    let all = events(&apart);
    let refusal = comparable(&apart, &all, asked).err();
    if let Some(error) = refusal {
        let is_nothing = apart.groups.iter().all(Vec::is_empty);
        if !asked.gates.is_asked() || is_nothing && doubts.len() > 1 && all.is_empty() {
            return Err(error);
        }
        doubts.push(error.to_string());
        answer.gates = Some(gates::without_answers(doubts));
        return Ok(answer);
    }
    let grouping = Grouping { apart: &apart, query: &asked.query, runs: of_runs, machines_differ };
    let comparing = Comparing::new(grouping, &asked.options, [&asked.base, &asked.new]);
    for event in &all {
        let compared = compared(&comparing, event, asked)?;
        answer.events.extend(ComparedEvent::of(event, compared, asked));
    }
    if answer.events.is_empty() {
        let warning = nothing_passes(&mut apart);
        if !asked.gates.is_asked() {
            bail!("{}", warning.message);
        }
        doubts.push(warning.message);
        answer.gates = Some(gates::without_answers(doubts));
        return Ok(answer);
    }
    if asked.gates.is_asked() {
        answer.gates = Some(gates::of_diff(asked, comparing, &all, doubts)?);
    }
    Ok(answer)
}

/// Returns the rows of an event and their comparison.
fn compared(
    comparing: &Comparing<'_>,
    event: &DiffEvent,
    asked: &DiffQuery,
) -> anyhow::Result<Compared> {
    if asked.by_stack {
        let grouped = stacks::rows(&comparing.grouping, event, asked);
        let comparison = Some(compare(&grouped.sides, &asked.options).map_err(described)?);
        return Ok(Compared { grouped, comparison, causes: Causes::default() });
    }
    let shown: Vec<usize> = (0..asked.shown).collect();
    comparing.rows(event, &shown, asked.query.chains.children)
}

/// Returns the warnings of all inputs, those of one kind as one.
fn of_inputs(apart: &Apart<RunFacts>) -> Vec<Warning> {
    let mut by_code: BTreeMap<&str, (Warning, usize)> = BTreeMap::new();
    for (profile, _) in apart.groups.iter().flatten() {
        let path = profile.inputs.first().map_or("", |input| input.path.as_str());
        for warning in &profile.warnings {
            let first = || {
                let message = format!("{path}: {}", warning.message);
                (Warning { message, ..warning.clone() }, 0)
            };
            by_code.entry(warning.code).or_insert_with(first).1 += 1;
        }
    }
    let all = by_code.into_values().map(|(warning, count)| match count {
        1 => warning,
        _ => {
            let message = format!("{} (and {} more like it)", warning.message, count - 1);
            Warning { message, ..warning }
        }
    });
    all.filter(|warning| !warning.is_failure()).collect()
}

fn recordings(apart: &Apart<RunFacts>, side: usize) -> Vec<RunFacts> {
    let group = apart.groups.get(side).into_iter().flatten();
    group.map(|(_, recorded)| recorded.clone()).collect()
}

fn inputs(apart: &Apart<RunFacts>, side: usize) -> Vec<RunInput> {
    let group = apart.groups.get(side).into_iter().flatten();
    group.map(RunInput::of).collect()
}

impl RunInput {
    fn of(input: &(Profile, RunFacts)) -> Self {
        let (profile, recorded) = input;
        Self {
            path: profile.inputs.first().map_or_else(String::new, |input| input.path.clone()),
            samples: profile.samples(),
            seconds: recorded.seconds,
        }
    }
}

/// Checks that both sides have runs, and the same events at the same rates.
fn comparable(
    apart: &Apart<RunFacts>,
    events: &[DiffEvent],
    asked: &DiffQuery,
) -> anyhow::Result<()> {
    for (name, (group, unreadable)) in
        ["base", "new"].iter().zip(apart.groups.iter().zip(&apart.unreadable))
    {
        if group.is_empty() {
            let why: Vec<&str> = unreadable.iter().map(|one| one.message.as_str()).collect();
            match why.is_empty() {
                true => bail!("the {name} side has no samples to compare"),
                false => bail!("the {name} side cannot be read: {}", why.join("; ")),
            }
        }
    }
    // Times do not depend on how often samples are taken.
    if asked.allow_different || asked.query.mode.is_of_time() {
        return Ok(());
    }
    for event in events.iter().filter(|event| asked.takes(&event.name)) {
        let mut rates: BTreeMap<String, String> = BTreeMap::new();
        for (places, group) in event.places.iter().zip(&apart.groups) {
            for (place, (profile, recorded)) in places.iter().zip(group) {
                let path = profile.inputs.first().map_or("", |input| input.path.as_str());
                let rate = place.and_then(|place| recorded.rates.get(place));
                let rate = rate.map_or("not recorded", String::as_str);
                rates.entry(rate.to_owned()).or_insert_with(|| path.to_owned());
            }
        }
        if rates.len() > 1 {
            let all = rates.iter().map(|(rate, path)| format!("{rate} in {path}"));
            bail!(
                "the sides differ in the event `{}`: {} (compare all the same: --allow-different)",
                event.name,
                all.collect::<Vec<_>>().join(", ")
            );
        }
    }
    Ok(())
}

/// Returns why no sample made a row.
fn nothing_passes(apart: &mut Apart<RunFacts>) -> Warning {
    let mut values = Vec::new();
    let mut samples = 0;
    for (profile, _) in apart.groups.iter_mut().flatten() {
        samples += profile.samples();
        FilterValues::merge(&mut values, std::mem::take(&mut profile.filter_values));
    }
    FilterValues::failure(&values, samples)
}

impl ComparedEvent {
    /// Returns what is printed of an event; `None` without rows.
    fn of(event: &DiffEvent, compared: Compared, asked: &DiffQuery) -> Option<Self> {
        let Compared { grouped, comparison, causes } = compared;
        let comparison = comparison.filter(|_| !grouped.labels.rows.is_empty())?;
        let (columns, noun) = match asked.by_stack {
            true => (vec!["stack".to_owned()], "callchain"),
            false => {
                let columns = asked.query.columns.iter().take(asked.shown);
                (columns.map(|column| column.typed.clone()).collect(), asked.noun())
            }
        };
        Some(Self {
            name: event.name.clone(),
            counts_time: event.counts_time,
            keys: if asked.by_stack { 1 } else { asked.query.sort().count().min(asked.shown) },
            columns,
            noun,
            by_samples: grouped.by_samples(),
            labels: grouped.labels,
            samples: grouped.samples,
            totals: grouped.totals,
            sums: grouped.sums,
            comparison,
            causes,
        })
    }
}
