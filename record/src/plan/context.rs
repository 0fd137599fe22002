//! What the parts of the plan share.

use super::rate::Rates;
use crate::machine::Machine;
use crate::plan::config::{Config, Delay};
use crate::target::Target;

/// What all attrs depend on.
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) machine: &'a Machine,
    pub(super) rates: Rates,
    /// Whether the counters are on whole CPUs.
    pub(super) system: bool,
}

impl Context<'_> {
    /// Whether counting begins at the exec of the command.
    pub(super) fn starts_on_exec(&self) -> bool {
        self.config.target == Target::Command && self.config.delay == Delay::None
    }
}
