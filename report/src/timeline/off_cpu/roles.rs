//! Kinds of events, by what their samples stand for.

use recrep_format::abi::{EventType, HwEvent, SwEvent};
use recrep_format::attr::{Attr, AttrIndex, AttrTable};

/// Meaning of an event's samples for the times of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing that is time.
    #[default]
    None,
    /// Switches of threads from their CPUs.
    Switch,
    /// Running time: the samples' periods in nanoseconds.
    Clock,
    /// Running time: what the thread ran since its sample before.
    Cycles,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles(Vec<Role>);

impl Roles {
    /// Finds the first event of context switches and the event that tells of running time: the first clock; else
    /// cycles, on each kind of core; else the first other event of the hardware.
    pub(super) fn find(attrs: &AttrTable) -> Self {
        let attrs: Vec<&Attr> = attrs.entries().iter().map(|entry| &entry.attr).collect();
        let first = |is: fn(&Attr) -> bool| attrs.iter().position(|attr| is(attr));
        let (switches, clock, cycles) = (first(is_switches), first(is_clock), first(is_cycles));
        let role = |(place, attr): (usize, &&Attr)| match Some(place) {
            place if place == switches => Role::Switch,
            place if place == clock => Role::Clock,
            _ if clock.is_some() => Role::None,
            _ if is_cycles(attr) => Role::Cycles,
            place if cycles.is_none() && place == first(is_hardware) => Role::Cycles,
            _ => Role::None,
        };
        Self(attrs.iter().enumerate().map(role).collect())
    }

    #[inline]
    pub fn of(&self, event: AttrIndex) -> Role {
        self.0.get(event.0).copied().unwrap_or_default()
    }

    /// Returns whether any event has samples of running time.
    pub fn have_cpu(&self) -> bool {
        self.0.iter().any(|role| matches!(role, Role::Clock | Role::Cycles))
    }

    /// Returns whether running time is what threads ran between samples.
    pub fn have_cycles(&self) -> bool {
        self.0.contains(&Role::Cycles)
    }

    /// Iterates over the events whose samples stand for time.
    pub fn used(&self) -> impl Iterator<Item = AttrIndex> {
        self.0.iter().enumerate().filter(|(_, role)| **role != Role::None).map(|(index, _)| AttrIndex(index))
    }
}

fn is_software(attr: &Attr, event: SwEvent) -> bool {
    attr.kind == EventType::SOFTWARE && attr.config == event.0
}

/// Returns whether an event counts switches of threads from their CPUs.
pub(crate) fn is_switches(attr: &Attr) -> bool {
    is_software(attr, SwEvent::CONTEXT_SWITCHES)
}

fn is_clock(attr: &Attr) -> bool {
    is_software(attr, SwEvent::CPU_CLOCK) || is_software(attr, SwEvent::TASK_CLOCK)
}

/// Returns whether an event counts cycles; the upper half of its config may have the PMU of a kind of cores.
fn is_cycles(attr: &Attr) -> bool {
    attr.kind == EventType::HARDWARE && attr.config & u64::from(u32::MAX) == HwEvent::CPU_CYCLES.0
}

fn is_hardware(attr: &Attr) -> bool {
    let other = [EventType::SOFTWARE, EventType::TRACEPOINT, EventType::BREAKPOINT];
    !other.contains(&attr.kind) && attr.sample_period > 0
}
