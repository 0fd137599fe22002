//! Gates: what rules ask about, counted in the inputs.

use std::collections::BTreeMap;

use super::args::DiffQuery;
use super::gate_keys::{add_columns, keys, kinds, need_chains};
use super::rows::{Compared, Comparing, DiffEvent, Grouping, add_module, events};
use super::runs::{RunFacts, differences, leave_out_empty, runs};
use crate::cli::Gates;
use crate::compare::Options;
use crate::compare::rules::{GateReport, KindFacts, NamedRow, RowKind, RuleFacts, evaluate};
use crate::engine::gather::{Apart, apart};
use crate::profile::{InputSummary, Profile};
use crate::query::{ChainOptions, Column, Needs, Query, SortKey, Source};

/// Returns the query that counts what the rules need and nothing else.
fn counting(query: &Query, gates: &Gates) -> Query {
    let mut columns = Vec::new();
    add_columns(&mut columns, gates);
    add_module(&mut columns);
    if columns.is_empty() {
        columns.push(Column { typed: "comm".into(), key: SortKey::Comm });
    }
    let children = need_chains(gates);
    let chains = ChainOptions {
        children,
        children_requested: children,
        inlined: query.chains.inlined,
        most: query.chains.most,
        as_recorded: query.chains.as_recorded,
        ..ChainOptions::default()
    };
    let needs = Needs { companions: true, unmapped: true, ..Needs::default() };
    Query {
        columns,
        chains,
        needs,
        has_default_columns: false,
        shown: Vec::new(),
        limit: None,
        percent_limit: None,
        hierarchy: false,
        group: false,
        separator: None,
        ..query.clone()
    }
}

/// Returns the reasons not to trust the inputs.
pub(super) fn doubts(apart: &Apart<RunFacts>) -> Vec<String> {
    let unreadable = apart.unreadable.iter().flatten().map(|warning| warning.message.clone());
    let mut doubts: Vec<String> = unreadable.collect();
    for (profile, _) in apart.groups.iter().flatten() {
        for input in &profile.inputs {
            doubts.extend(doubt(input));
        }
        // What says a byte of the file says that it is damaged there.
        let damage = profile.warnings.iter().filter(|warning| {
            warning.offset.is_some()
                || ["bad-sample", "unknown-id", "torn-callchain", "no-events", "truncated"]
                    .contains(&warning.code)
        });
        let path = profile.inputs.first().map_or("", |input| input.path.as_str());
        doubts.extend(damage.map(|warning| format!("{path}: {}", warning.message)));
    }
    doubts
}

fn doubt(input: &InputSummary) -> Option<String> {
    if input.samples == 0 {
        return Some(format!("{}: there are no samples in it", input.path));
    }
    let is_cut = !input.complete;
    is_cut.then(|| format!("{}: the recording is truncated or was not finished", input.path))
}

/// Returns the report of inputs that answer no rule.
pub(super) fn without_answers<'r>(doubts: Vec<String>) -> GateReport<'r> {
    GateReport { judgements: Vec::new(), doubts, is_apart: false }
}

/// Evaluates the rules over two sides.
pub(super) fn of_diff<'q>(
    asked: &'q DiffQuery,
    comparing: Comparing<'_>,
    events: &[DiffEvent],
    doubts: Vec<String>,
) -> anyhow::Result<GateReport<'q>> {
    let (gates, query) = (&asked.gates, comparing.grouping.query);
    let is_counted = !query.chains.children && !asked.by_stack && !need_chains(gates);
    if is_counted {
        return evaluated(gates, &asked.options, &comparing, events, doubts);
    }
    let query = counting(&asked.query, gates);
    let sources: [&[Source]; 2] = [&asked.base, &asked.new];
    let mut apart = apart(&query, &sources, &RunFacts::of)?;
    leave_out_empty(&mut apart);
    let grouping = Grouping { apart: &apart, query: &query, ..comparing.grouping };
    let comparing = Comparing::new(grouping, &asked.options, sources);
    evaluated(gates, &asked.options, &comparing, &self::events(&apart), doubts)
}

/// Evaluates the rules over one profile: that of a query.
///
/// # Errors
/// Returns an error if a rule needs a second side, or an input lacks data that the query asks for.
pub(crate) fn of_profile<'q>(query: &Query, gates: &'q Gates) -> anyhow::Result<GateReport<'q>> {
    let counted = counting(query, gates);
    let mut apart = apart(&counted, &[&[], &query.sources], &RunFacts::of)?;
    let doubts = doubts(&apart);
    leave_out_empty(&mut apart);
    let recorded: Vec<RunFacts> =
        apart.groups.iter().flatten().map(|(_, recorded)| recorded.clone()).collect();
    let sides: [&[RunFacts]; 2] = [&[], &recorded];
    let (_, machines_differ) = differences(sides);
    let grouping = Grouping { apart: &apart, query: &counted, runs: runs(sides), machines_differ };
    let options = Options::default();
    let comparing = Comparing::new(grouping, &options, [&[], &query.sources]);
    evaluated(gates, &options, &comparing, &events(&apart), doubts)
}

/// Rows of a kind, compared if there are two sides.
struct OfKind {
    kind: RowKind,
    compared: Compared,
}

/// Evaluates the rules over the first event.
fn evaluated<'q>(
    gates: &'q Gates,
    options: &Options,
    comparing: &Comparing<'_>,
    events: &[DiffEvent],
    mut doubts: Vec<String>,
) -> anyhow::Result<GateReport<'q>> {
    let grouping = &comparing.grouping;
    let (mut all, mut samples, mut unresolved) = (Vec::new(), 0, 0.0);
    let has_base = grouping.runs.first().is_some_and(|runs| !runs.is_empty());
    if let Some(event) = events.first() {
        for kind in kinds(gates) {
            let has_chains =
                grouping.apart.groups.iter().flatten().all(|(profile, _)| profile.children);
            if kind == RowKind::Children && !has_chains {
                doubts.push("no callchains were recorded, which `children` needs".into());
                continue;
            }
            let keys = keys(kind);
            let place =
                |key: SortKey| grouping.query.columns.iter().position(|column| column.key == key);
            let columns: Vec<usize> = keys.iter().filter_map(|(_, key)| place(*key)).collect();
            let compared = comparing.rows(event, &columns, kind == RowKind::Children)?;
            if kind == RowKind::Own {
                unresolved = compared.grouped.unresolved;
            }
            all.push(OfKind { kind, compared });
        }
        samples = least_samples(grouping, event);
    }
    let of_kinds = all.iter().map(|of| (of.kind, of.facts()));
    let runs = grouping.runs.iter().map(Vec::len);
    let facts = RuleFacts {
        kinds: of_kinds.collect::<BTreeMap<RowKind, KindFacts<'_>>>(),
        lost: lost(grouping.apart),
        unresolved,
        broken: broken(grouping.apart),
        samples,
        runs: runs.skip(usize::from(!has_base)).min().unwrap_or(0),
        doubts,
    };
    Ok(evaluate(&gates.rules.rules, &facts, options.level)?)
}

/// Returns the number of samples of an event, of the side that has fewer.
fn least_samples(grouping: &Grouping<'_>, event: &DiffEvent) -> u64 {
    let of_side = |(places, group): (&Vec<Option<usize>>, &Vec<(Profile, RunFacts)>)| {
        let counts = places.iter().zip(group).filter_map(|(place, (profile, _))| {
            profile.events().get((*place)?).map(|event| event.total.samples)
        });
        (!group.is_empty()).then(|| counts.sum::<u64>())
    };
    let sides = event.places.iter().zip(&grouping.apart.groups);
    sides.filter_map(of_side).min().unwrap_or(0)
}

impl OfKind {
    fn facts(&self) -> KindFacts<'_> {
        let Compared { grouped, comparison, .. } = &self.compared;
        let (labels, sides) = (&grouped.labels, &grouped.sides);
        let counts = sides.children.as_ref().unwrap_or(&sides.own);
        let base = sides.base.len();
        let all: f64 = sides.own.totals().iter().skip(base).sum();
        let numbered = counts.rows().enumerate();
        let counted = numbered.filter(|(_, values)| values.iter().any(|value| *value > 0.0));
        let rows = counted.map(|(row, values)| NamedRow {
            row,
            names: labels.names_for_rules(row),
            share: if all > 0.0 { values.iter().skip(base).sum::<f64>() / all } else { 0.0 },
        });
        KindFacts { rows: rows.collect(), comparison: comparison.as_ref() }
    }
}

/// Returns the share of samples that were lost, on the side that lost more.
fn lost(apart: &Apart<RunFacts>) -> f64 {
    let shares = apart.groups.iter().map(|group| {
        let inputs: Vec<&InputSummary> =
            group.iter().flat_map(|(profile, _)| &profile.inputs).collect();
        // Most records are samples.
        let lost: u64 = inputs.iter().map(|input| input.lost_samples.max(input.lost_events)).sum();
        let taken: u64 = inputs.iter().map(|input| input.samples).sum();
        part(lost, lost.saturating_add(taken))
    });
    shares.fold(0.0, f64::max)
}

/// Returns the share of the new side's user stacks that do not reach the start of their program.
fn broken(apart: &Apart<RunFacts>) -> Option<f64> {
    let group = apart.groups.last().into_iter().flatten();
    let (mut all, mut broken) = (0, 0);
    for (profile, _) in group {
        all += profile.user_stacks.all;
        broken += profile.user_stacks.broken;
    }
    (all > 0).then(|| part(broken, all))
}

#[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
fn part(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}
