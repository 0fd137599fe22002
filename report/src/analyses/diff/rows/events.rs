//! Events of both sides.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use super::super::runs::RunFacts;
use crate::engine::gather::Apart;

/// An event of both sides.
#[derive(Clone, Debug)]
pub(crate) struct DiffEvent {
    pub(crate) name: String,
    /// `true` if periods are times, in nanoseconds.
    pub(crate) counts_time: bool,
    /// Number of the event in each run of each side, if the run has it.
    pub(crate) places: [Vec<Option<usize>>; 2],
}

/// Returns the events that have samples, in the order in which they are found. Events of one name are
/// numbered in each file, and those of equal numbers are one.
pub(crate) fn events(apart: &Apart<RunFacts>) -> Vec<DiffEvent> {
    let mut found: IndexMap<(&str, usize), DiffEvent> = IndexMap::new();
    let mut sampled: BTreeSet<usize> = BTreeSet::new();
    let runs = [0, 1].map(|side| apart.groups.get(side).map_or(&[][..], Vec::as_slice));
    for (side, group) in runs.iter().enumerate() {
        for (run, (profile, _)) in group.iter().enumerate() {
            let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
            for (place, event) in profile.events().iter().enumerate() {
                let number = numbers.entry(&event.name).or_default();
                let entry = found.entry((&event.name, *number));
                *number += 1;
                let index = entry.index();
                let of_event = entry.or_insert_with(|| DiffEvent {
                    name: event.name.clone(),
                    counts_time: event.counts_time,
                    places: runs.map(|group| vec![None; group.len()]),
                });
                let of_side = of_event.places.get_mut(side);
                if let Some(of_run) = of_side.and_then(|places| places.get_mut(run)) {
                    *of_run = Some(place);
                }
                if event.total.samples > 0 {
                    sampled.insert(index);
                }
            }
        }
    }
    let all = found.into_values().enumerate();
    all.filter(|(index, _)| sampled.contains(index)).map(|(_, event)| event).collect()
}
