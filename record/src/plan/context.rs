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
}

impl Context<'_> {
    /// Returns whether the command's exec starts counting.
    pub(super) fn starts_on_exec(&self) -> bool {
        self.config.target == Target::Command && self.config.delay == Delay::None
    }
}
