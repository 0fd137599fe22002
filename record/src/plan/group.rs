//! Groups: events that are scheduled on the PMU together, and leader sampling (`:S`).

use recrep_format::abi::AttrFlags;

use super::event::PlannedEvent;
use crate::event::EventSpec;

/// Position of an event in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Number of events in the group; 1 if the event is alone.
    pub(super) members: usize,
    /// `true` if the event leads the group, or is alone.
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

/// Sets up leader sampling: the other members only count, and the leader's samples have their
/// values.
pub(super) fn lead(events: &mut [PlannedEvent], specs: &[EventSpec]) {
    for index in 0..events.len() {
        let Some(spec) = specs.get(index) else { continue };
        let leader = spec.leader.unwrap_or(index);
        if !specs.get(leader).is_some_and(samples_for_all) {
            continue;
        }
        let sampler = sampler(specs, events, leader);
        let (Some(own), Some(leads)) = (events.get(sampler), events.get(leader)) else { continue };
        let sample_type = own.attr.sample_type | leads.attr.sample_type;
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
        event.attr.sample_type = sample_type;
    }
}

/// Returns whether this event's group uses leader sampling.
pub(super) fn samples_for_all(spec: &EventSpec) -> bool {
    spec.modifiers.sample_read
}

/// Returns the sampling event: the leader, or the first event after it if the leader writes to an
/// AUX area.
fn sampler(specs: &[EventSpec], events: &[PlannedEvent], leader: usize) -> usize {
    match events.get(leader) {
        Some(event) if event.has_aux => {
            specs.iter().position(|spec| spec.leader == Some(leader)).unwrap_or(leader)
        }
        _ => leader,
    }
}
