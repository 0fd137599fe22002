//! Groups: events that are on the PMU together, and those whose leader samples for all (`:S`).

use recrep_format::abi::AttrFlags;

use super::event::PlannedEvent;
use crate::event::EventSpec;

/// How an event stands in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// How many events it has; 1: the event is alone.
    pub(super) members: usize,
    /// Whether the event leads it, or is alone.
    pub(super) leads: bool,
}

impl Group {
    pub(super) fn of(specs: &[EventSpec], index: usize) -> Self {
        let own = specs.get(index).and_then(|spec| spec.leader);
        let leader = own.unwrap_or(index);
        let led = specs.iter().filter(|spec| spec.leader == Some(leader)).count();
        Self { members: led + 1, leads: own.is_none() }
    }
}

/// Where a leader samples for its group, the others only count: their values are in its samples.
pub(super) fn lead(events: &mut [PlannedEvent], specs: &[EventSpec]) {
    for index in 0..events.len() {
        let Some(spec) = specs.get(index) else { continue };
        let leader = spec.leader.unwrap_or(index);
        if !specs.get(leader).is_some_and(samples_for_all) {
            continue;
        }
        let sampler = sampler(specs, events, leader);
        let types = |at: usize| events.get(at).map(|event| event.attr.sample_type);
        let (Some(own), Some(leads)) = (types(sampler), types(leader)) else { continue };
        if index == sampler {
            continue;
        }
        let Some(event) = events.get_mut(index) else { continue };
        if spec.terms.rate.is_none() {
            event.attr.sample_period = 0;
            event.attr.flags -= AttrFlags::FREQ;
        }
        if spec.terms.overwrite.is_none() {
            event.attr.flags -= AttrFlags::WRITE_BACKWARD;
        }
        event.attr.sample_type = own | leads;
    }
}

/// Whether the leader of this event's group samples for all.
pub(super) fn samples_for_all(spec: &EventSpec) -> bool {
    spec.modifiers.sample_read
}

/// Who samples: the leader; but where that writes to an AUX area, the first event after it.
fn sampler(specs: &[EventSpec], events: &[PlannedEvent], leader: usize) -> usize {
    match events.get(leader) {
        Some(event) if event.has_aux => specs.iter().position(|spec| spec.leader == Some(leader)).unwrap_or(leader),
        _ => leader,
    }
}
