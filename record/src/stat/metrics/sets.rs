//! Sets of events for metrics: each is counted once for all metrics that it suffices for.

use std::collections::BTreeMap;

use recrep_counts::MetricInput;
use recrep_format::abi::EventType;

use super::wanted::{Wanted, spelt};
use crate::event::{self, EventSpec};
use crate::machine::pmu::Pmu;
use crate::machine::sources::EventSources;

/// Config of the event `slots` of Intel's CPUs, which leads the group of the events that divide it
/// up.
const SLOTS: u64 = 0x400;
/// Configs of those events.
const TOPDOWN: std::ops::RangeInclusive<u64> = 0x8000..=0x8700;

/// Events of metrics.
#[derive(Debug, Default)]
pub(super) struct Sets {
    pub(super) specs: Vec<EventSpec>,
    /// Number of the set of each of them.
    pub(super) set_of: Vec<usize>,
    sets: Vec<Set>,
    /// Events that were parsed, by their text and the PMU of the kind of cores.
    parsed: BTreeMap<(String, Option<String>), Result<Vec<EventSpec>, String>>,
}

/// Events that are counted for the same metrics.
#[derive(Debug)]
struct Set {
    /// For each event of a formula, the places of what counts it.
    places: BTreeMap<String, Vec<usize>>,
    pmu: Option<String>,
    modifiers: String,
    grouped: bool,
}

impl Sets {
    /// Returns the inputs of a metric, from a set that has all of its events, or a new one. With
    /// `apart`, always from a new one.
    pub(super) fn add(
        &mut self,
        wanted: &Wanted,
        apart: bool,
        sources: &EventSources,
    ) -> Result<Vec<MetricInput>, String> {
        let mut parsed = Vec::new();
        for event in &wanted.events {
            let text = spelt(event, &wanted.modifiers);
            let pmu = wanted.entry.pmu.clone();
            let known = self.parsed.entry((text, pmu));
            let specs =
                known.or_insert_with_key(|(text, pmu)| parse(text, pmu.as_deref(), sources));
            let specs = specs.clone().map_err(|why| format!("metric '{}': {why}", wanted.name))?;
            parsed.push((event.clone(), specs));
        }
        let is_like =
            |set: &Set| !apart && set.pmu == wanted.entry.pmu && set.modifiers == wanted.modifiers;
        let suffices = |set: &Set| {
            let has_all = wanted.events.iter().all(|event| set.places.contains_key(event));
            // Events without groups are added to those that there are.
            is_like(set) && set.grouped == wanted.grouped && (has_all || !wanted.grouped)
        };
        let number = self.sets.iter().position(suffices);
        let number = number.unwrap_or_else(|| {
            self.sets.push(Set {
                places: BTreeMap::new(),
                pmu: wanted.entry.pmu.clone(),
                modifiers: wanted.modifiers.clone(),
                grouped: wanted.grouped,
            });
            self.sets.len() - 1
        });
        if let Some(set) = self.sets.get_mut(number) {
            parsed.retain(|(event, _)| !set.places.contains_key(event));
        }
        let added = self.append(parsed, number, wanted.grouped, sources);
        let Some(set) = self.sets.get_mut(number) else { return Ok(Vec::new()) };
        set.places.extend(added);
        let inputs = wanted.events.iter().map(|event| {
            let events = set.places.get(event).cloned().unwrap_or_default();
            MetricInput { name: event.clone(), sources: events.len(), events }
        });
        Ok(inputs.collect())
    }

    /// Appends events, in weak groups by PMU if they are grouped. Returns their places.
    fn append(
        &mut self,
        parsed: Vec<(String, Vec<EventSpec>)>,
        number: usize,
        grouped: bool,
        sources: &EventSources,
    ) -> BTreeMap<String, Vec<usize>> {
        let mut by_pmu: Vec<(String, Vec<(String, EventSpec)>)> = Vec::new();
        for (event, specs) in parsed {
            for spec in specs {
                let pmu = pmu_of(&spec, sources);
                let member = (event.clone(), spec);
                match by_pmu.iter_mut().find(|(name, _)| *name == pmu) {
                    Some((_, members)) => members.push(member),
                    None => by_pmu.push((pmu, vec![member])),
                }
            }
        }
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (pmu, mut members) in by_pmu {
            let pmu = sources.pmus().iter().find(|other| other.name == pmu);
            members.sort_by_key(|(_, spec)| rank(spec, pmu));
            let leader = self.specs.len();
            let is_group = grouped && members.len() > 1;
            for (event, mut spec) in members {
                let place = self.specs.len();
                spec.modifiers.weak = is_group;
                spec.leader = (is_group && place > leader).then_some(leader);
                places.entry(event).or_default().push(place);
                self.specs.push(spec);
                self.set_of.push(number);
            }
        }
        places
    }
}

/// Returns what counts an event; of the cores only those of the PMU, if that is given.
fn parse(text: &str, pmu: Option<&str>, sources: &EventSources) -> Result<Vec<EventSpec>, String> {
    let mut specs = event::parse(text, sources).map_err(|why| why.to_string())?;
    if let Some(pmu) = pmu {
        // Other kinds of cores have events of the same name.
        let cores: Vec<&str> =
            sources.pmus().iter().filter(|pmu| pmu.core).map(|pmu| &pmu.name[..]).collect();
        specs.retain(|spec| match &spec.pmu {
            Some(own) => own.name == *pmu || !cores.contains(&&own.name[..]),
            None => true,
        });
        if specs.is_empty() {
            return Err(format!("the cores of {pmu} do not have '{text}'"));
        }
    }
    Ok(specs)
}

/// Returns the name of an event's PMU.
fn pmu_of(spec: &EventSpec, sources: &EventSources) -> String {
    match &spec.pmu {
        Some(pmu) => pmu.name.clone(),
        None if matches!(spec.kind, EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW) => {
            let core = sources.pmus().iter().find(|pmu| pmu.core);
            core.map_or_else(|| "cpu".to_owned(), |pmu| pmu.name.clone())
        }
        None => "software".to_owned(),
    }
}

/// Returns the rank of an event in its group: `slots` leads, and what divides it up follows.
fn rank(spec: &EventSpec, pmu: Option<&Pmu>) -> u8 {
    let has_slots = pmu.is_some_and(|pmu| pmu.core && pmu.alias("slots").is_some());
    match spec.config {
        SLOTS if has_slots => 0,
        config if has_slots && TOPDOWN.contains(&config) && config & 0xff == 0 => 1,
        _ => 2,
    }
}
