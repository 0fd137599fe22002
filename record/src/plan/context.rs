//! Context shared by the parts of the plan.

use super::rate::Rates;
use crate::machine::Machine;
use crate::plan::config::{Config, Delay};
use crate::tasks::Target;

/// Facts that all attrs depend on.
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) machine: &'a Machine,
    pub(super) rates: Rates,
    /// `true` if counters count whole CPUs.
    pub(super) system: bool,
    /// `true` if the command's exec starts counting.
    pub(super) starts_on_exec: bool,
    /// `true` if future threads and children are counted too.
    pub(super) inherits: bool,
}

impl<'a> Context<'a> {
    pub(super) fn new(config: &'a Config, machine: &'a Machine, rates: Rates) -> Self {
        Self {
            config,
            machine,
            rates,
            system: config.target == Target::System,
            starts_on_exec: config.target == Target::Command && config.delay == Delay::None,
            inherits: !config.no_inherit && !config.per_thread,
        }
    }
}
