//! The request for metrics, and the events that it takes.

use std::collections::BTreeMap;

use recrep_counts::{MetricInput, TableMetric};

use super::facts::Facts;
use super::sets::Sets;
use super::wanted::{FoundMetrics, LeftOut, Search, Wanted};
use crate::event::EventSpec;
use crate::machine::sources::EventSources;

/// Metrics that the user asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(crate) struct MetricRequest {
    /// Names of metrics or groups, each perhaps with modifiers.
    pub(crate) names: Vec<String>,
    /// Level of the top-down metrics (`--topdown`, `--td-level`); 0 for the first.
    pub(crate) topdown: Option<u32>,
    /// Never group events.
    pub(crate) no_group: bool,
    /// Each metric has events of its own.
    pub(crate) no_merge: bool,
    pub(crate) no_threshold: bool,
}

/// Events for metrics.
#[derive(Debug, Default)]
pub(crate) struct ChosenMetrics {
    pub(crate) specs: Vec<EventSpec>,
    /// For each event the number of its set: the same event can be in several.
    pub(crate) set_of: Vec<usize>,
    /// Metrics; the events of their inputs are places in `specs`.
    pub(crate) metrics: Vec<TableMetric>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

/// Name of the groups of top-down metrics, with the level behind it.
const TOPDOWN: &str = "TopdownL";

/// Chooses metrics and their events.
pub(crate) fn choose(
    request: &MetricRequest,
    sources: &EventSources,
    facts: &Facts,
) -> Result<ChosenMetrics, String> {
    let (no_group, no_threshold) = (request.no_group, request.no_threshold);
    let search = Search { sources, facts, no_group, no_threshold };
    let mut chosen = ChosenMetrics::default();
    let mut wanted: Vec<RequestedMetric> = Vec::new();
    for name in &request.names {
        let found = search.find(name).map_err(|why| format!("-M {name}: {why}"))?;
        ask(found, name, &mut wanted, &mut chosen.notes);
    }
    if let Some(level) = request.topdown {
        let name = topdown(level, sources)?;
        let found = Search { no_threshold: true, ..search }.find(&name);
        ask(
            found.map_err(|why| format!("--topdown: {why}"))?,
            &name,
            &mut wanted,
            &mut chosen.notes,
        );
    }
    let mut sets = Sets::default();
    let inputs = add_to_sets(&mut wanted, &mut sets, &mut chosen.notes, request, sources)?;
    chosen.notes.extend(remarks(&wanted, &inputs));
    for (asked, inputs) in wanted.into_iter().zip(inputs) {
        let (Wanted { entry, name, formula, threshold, .. }, Some(inputs)) = (asked.metric, inputs)
        else {
            continue;
        };
        let (unit, scale) = (entry.unit, entry.scale);
        chosen.metrics.push(TableMetric {
            name,
            unit,
            scale,
            formula,
            threshold,
            inputs,
            cgroup: None,
        });
    }
    if let (true, Some(first)) = (chosen.metrics.is_empty(), chosen.notes.first()) {
        return Err(format!("no metric is left: {first}"));
    }
    (chosen.specs, chosen.set_of) = (sets.specs, sets.set_of);
    Ok(chosen)
}

/// Adds the events of all metrics to the sets, and notes on the metrics that are left out. Returns
/// the inputs of each metric that is not.
fn add_to_sets(
    wanted: &mut [RequestedMetric],
    sets: &mut Sets,
    notes: &mut Vec<String>,
    request: &MetricRequest,
    sources: &EventSources,
) -> Result<Vec<Option<Vec<MetricInput>>>, String> {
    // Those with the most events first, so that others find theirs among them.
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|index| {
        wanted.get(*index).map(|asked| usize::MAX - asked.metric.events.len())
    });
    let mut left_out: BTreeMap<String, Vec<LeftOut>> = BTreeMap::new();
    let mut inputs = vec![None; wanted.len()];
    for index in order {
        let Some(asked) = wanted.get_mut(index) else { continue };
        let mut added = sets.add(&asked.metric, request.no_merge, sources);
        if let (Err(why), true) = (&added, asked.metric.threshold.is_some()) {
            // Events that only the threshold needs may be missing.
            let plain = asked.metric.without_threshold(why);
            added = sets.add(&plain, request.no_merge, sources);
            asked.metric = plain;
        }
        match added {
            Ok(own) => {
                if let Some(slot) = inputs.get_mut(index) {
                    *slot = Some(own);
                }
            }
            Err(why) if asked.is_named => return Err(format!("-M {}: {why}", asked.by)),
            Err(why) => {
                let name = asked.metric.name.clone();
                left_out.entry(asked.by.clone()).or_default().push(LeftOut { name, why });
            }
        }
    }
    for (by, metrics) in &left_out {
        notes.extend(note(by, metrics));
    }
    Ok(inputs)
}

/// Returns notes on the metrics that have `inputs`: on those without their thresholds, and without
/// groups.
fn remarks(wanted: &[RequestedMetric], inputs: &[Option<Vec<MetricInput>>]) -> Vec<String> {
    let counted = wanted.iter().zip(inputs).filter(|(_, inputs)| inputs.is_some());
    let counted: Vec<&Wanted> = counted.map(|(asked, _)| &asked.metric).collect();
    let mut notes = Vec::new();
    let without: Vec<&&Wanted> =
        counted.iter().filter(|metric| metric.no_threshold.is_some()).collect();
    if let Some(why) = without.first().and_then(|metric| metric.no_threshold.as_ref()) {
        let names: Vec<&str> = without.iter().map(|metric| &metric.name[..]).collect();
        notes.push(format!("the thresholds are unknown of {}; {why}", names.join(", ")));
    }
    let watched: Vec<&str> =
        counted.iter().filter(|metric| metric.watched).map(|metric| &metric.name[..]).collect();
    if !watched.is_empty() {
        notes.push(format!(
            "the NMI watchdog takes a counter, so that the events of {} are not counted as a \
             group; to turn it off: echo 0 > /proc/sys/kernel/nmi_watchdog",
            watched.join(", ")
        ));
    }
    notes
}

/// A metric, and the name that the user gave for it.
struct RequestedMetric {
    metric: Wanted,
    by: String,
    /// `true` if that is its own name, not a group's.
    is_named: bool,
}

/// Adds the metrics that a name means, each once, and a note on those that are left out.
fn ask(found: FoundMetrics, by: &str, wanted: &mut Vec<RequestedMetric>, notes: &mut Vec<String>) {
    for metric in found.metrics {
        let is_wanted = wanted.iter().any(|asked| {
            asked.metric.name == metric.name && asked.metric.entry.pmu == metric.entry.pmu
        });
        if !is_wanted {
            let plain = by.split(':').next().unwrap_or(by);
            let is_named = plain.eq_ignore_ascii_case(&metric.entry.name);
            wanted.push(RequestedMetric { metric, by: by.to_owned(), is_named });
        }
    }
    notes.extend(note(by, &found.left_out));
}

/// Returns a note on metrics of a group that cannot be computed, with the first one's reason.
fn note(by: &str, left_out: &[LeftOut]) -> Option<String> {
    let first = left_out.first()?;
    let names: Vec<&str> = left_out.iter().map(|metric| &metric.name[..]).collect();
    Some(format!("-M {by}: left out are {}; {}", names.join(", "), first.why))
}

/// Returns the group of the top-down metrics of a level.
fn topdown(level: u32, sources: &EventSources) -> Result<String, String> {
    let groups = sources.metrics().iter().flat_map(|metric| &metric.groups);
    let levels = groups.filter_map(|group| {
        let (start, level) = group.split_at_checked(TOPDOWN.len())?;
        start.eq_ignore_ascii_case(TOPDOWN).then(|| level.parse::<u32>().ok())?
    });
    match (level, levels.max()) {
        (_, None) => Err("--topdown: the tables of this CPU have no groups of metrics such as \
                          TopdownL1; rec list metricgroup --event-tables DIR shows those that \
                          there are"
            .to_owned()),
        (level, Some(most)) if level > most => {
            Err(format!("--td-level {level}: the last level of this CPU's tables is {most}"))
        }
        (level, Some(_)) => Ok(format!("{TOPDOWN}{}", level.max(1))),
    }
}
